"""Faults that are made only in the places where wrong numbers were seen, whatever the fault concerns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[3]))  # benchmarks are not part of the package

from benchmarks.staging import Opened, findings_on, of_faults
from onnxspec.cases import CaseSpec, build_case
from onnxspec.reference import Fault, evaluate, fault_named, run_fault

Array = NDArray[Any]


def in_rows(change: Callable[[dict[str, Array]], dict[str, Array]], first: Callable[[int], int]) -> Opened:
    """Return a kernel of two threads; the second thread computes the rows from ``first`` on from changed inputs."""
    right = of_faults([])

    def opened(model: bytes) -> Any:
        session = right(model)
        names = [value.name for value in onnx.load_model_from_string(model).graph.output]

        def run(feeds: dict[str, Any]) -> list[Any]:
            whole, changed = session(feeds), session(change(feeds))
            rows = feeds["X"].shape[1]
            mask = np.arange(rows)[:, np.newaxis] >= first(rows)
            return [np.where(mask, b, a) if name else a for name, a, b in zip(names, whole, changed, strict=True)]

        return run

    return opened


def one_finding(opened: Opened, *specs: CaseSpec) -> Any:
    findings, results, _ = findings_on(opened, specs)
    assert any(result.failing for result in results)
    (finding,) = [f for f in findings if f["kind"] in ("wrong", "inaccurate")]
    return finding


def test_a_share_of_rows_that_starts_from_the_states_of_the_first_ones_is_named() -> None:
    def of_first(feeds: dict[str, Array]) -> dict[str, Array]:
        h = feeds["initial_h"]
        half = (h.shape[1] + 1) // 2
        return {**feeds, "initial_h": np.roll(h, half, axis=1)}

    specs = [CaseSpec("RNN", 14, T=2, N=n, I=2, H=3, initial="h", seed=n) for n in (7, 9)]
    finding = one_finding(in_rows(of_first, lambda rows: (rows + 1) // 2), *specs)
    assert finding["fault"].startswith("sizes.states-by-larger-halves")


@pytest.mark.parametrize("block", [4, 16])
def test_equations_that_are_wrong_in_the_last_units_only_are_named(block: int) -> None:
    id = f"lstm.input-forget.ignored@units-past-{block}s"
    specs = [
        CaseSpec("LSTM", 14, T=2, N=2, I=2, H=h, input_forget=1, initial="all", seed=h) for h in (block + 1, block + 3)
    ]
    assert one_finding(of_faults([id]), *specs)["fault"] == id


def test_units_of_altered_equations_are_computed_from_those_of_all() -> None:
    """Each unit has the value it would have if all units were altered, step by step from the same states."""
    spec = CaseSpec("GRU", 14, T=1, N=2, I=3, H=6, linear_before_reset=1, bias=True, initial="h")
    trial = build_case(spec).trial
    inputs = trial.feeds[0].inputs
    everywhere, tail = (
        d for name in ("", "@units-past-4s")
        if isinstance(d := fault_named(f"gru.linear-before-reset.ignored{name}"), Fault)
    )  # fmt: skip
    wrong, mixed = (run_fault(fault, trial.node, inputs)["Y"] for fault in (everywhere, tail))
    right = evaluate(trial.node, inputs)["Y"]
    assert (np.abs(wrong - right) > 1e-3).any()
    np.testing.assert_array_equal(mixed[..., 4:], wrong[..., 4:])
    np.testing.assert_allclose(mixed[..., :4], right[..., :4], rtol=1e-6)


def test_of_two_words_for_one_thing_one_is_told() -> None:
    """In RNN the activation's result is the hidden state: clipping either is the same fault."""
    specs = [
        CaseSpec("RNN", 14, T=3, N=2, I=2, H=3, activations=("Affine",), alpha=(1.5,), beta=(0.5,), clip=0.5, seed=n)
        for n in (1, 2)
    ]
    finding = one_finding(of_faults(["clip.on-hidden"]), *specs)
    assert finding["fault"] == "clip.after-activation"
    assert finding["foretold"] >= 5


def test_what_cases_of_other_lists_tell_apart_is_not_one_thing() -> None:
    """Without a list of activations both faults make Sigmoid HardSigmoid; with a list only the function's fault
    does."""
    specs = [CaseSpec("LSTM", 1, T=3, N=2, I=2, H=3, bias=True, seed=n) for n in (1, 2)]
    finding = one_finding(of_faults(["sigmoid.hard"]), *specs)
    assert finding["fault"] in ("sigmoid.hard", "")
    assert finding["title"].startswith("Consistent with") or not finding["fault"]
