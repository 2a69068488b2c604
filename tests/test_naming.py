"""Tests of the known faults of the kernels on which diagnoses are measured."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))  # benchmarks are no part of the package

from benchmarks.naming import KERNELS
from benchmarks.truths import TRUTHS
from onnxspec.conformance.cli.command import targets_of
from onnxspec.reference import fault_named


def _told(name: str) -> dict[str, dict[str, str]]:
    """Return the faults that the author of some kernels recorded."""
    path = Path(KERNELS).with_name(name)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.TRUTH)


def test_each_thing_that_is_wrong_with_a_kernel_has_its_names_and_nothing_else_has() -> None:
    recorded = {**_told("kernels.py"), **_told("devices.py")}
    assert {kernel: set(truth.faults) for kernel, truth in TRUTHS.items()} == {k: set(v) for k, v in recorded.items()}
    assert {target.name for target in targets_of(list(TRUTHS), KERNELS)} == set(recorded)


def test_a_name_is_that_of_a_fault() -> None:
    for truth in TRUTHS.values():
        for patterns in truth.faults.values():
            for pattern in patterns:
                assert fault_named(pattern.rstrip("*")) is not None, pattern


def test_only_what_names_the_truth_is_right() -> None:
    truth = TRUTHS["vector-tail"]
    assert truth.right("bias.recurrent-half-ignored@units-past-4s")
    assert not truth.right("bias.recurrent-half-ignored")
    assert not TRUTHS["tiles"].right("lengths.ignored")
