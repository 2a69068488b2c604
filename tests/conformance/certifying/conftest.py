"""Fixtures: one small certified run for all tests here."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxspec.conformance.probes.selection import Selection, select_probes
from onnxspec.conformance.results.writer import RunWriter
from onnxspec.conformance.running.engine import execute
from onnxspec.conformance.running.run import Plan
from onnxspec.conformance.targets.target import parse_target

from .packages import Files, packed


def recorded_run(folder: Path, selection: Selection, *, fills: bool = False) -> Path:
    """Run a selection on onnxruntime, with a record, and return the folder."""
    target = parse_target("onnxruntime")
    probes = tuple(select_probes(selection, target.operators))
    plan = Plan(selection, probes, (target,), record=True, shrinks=False, expected=False, fills=fills)
    with RunWriter(folder) as journal:
        execute(plan, journal)
    return folder


@pytest.fixture(scope="session")
def certified_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recorded run of one operator version in one type, with random cases."""
    folder = tmp_path_factory.mktemp("certified") / "run"
    return recorded_run(folder, Selection("smoke-nonce-17", ("RNN",), (7,), ("float32",)))


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recorded run of a whole operator with added cases, which a certificate may rest on."""
    return recorded_run(tmp_path_factory.mktemp("whole") / "run", Selection("core-nonce-4711", ("RNN",)), fills=True)


@pytest.fixture(scope="session")
def certified_files(certified_run: Path) -> Files:
    """Return the files of the run's package."""
    return packed(certified_run)
