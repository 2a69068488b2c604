"""Unnamed failures are described by where they occur; no description is contradicted by new random cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.staging import Session, findings_on, staged
from onnxspec.cases import CaseSpec, profile
from onnxspec.conformance.diagnosis.error_pattern import pattern_text
from onnxspec.conformance.diagnosis.explainer import failing_case_of_tried
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import tried

from .in_process import Feeds, matcher, running

Mask = NDArray[np.bool_]


def masks(T: int, N: int, H: int, wrong: tuple[Any, ...] = (), output: str = "Y") -> dict[str, Mask]:
    """Return the error masks of Y and Y_h of a case with two directions; `wrong` indexes the wrong numbers of one."""
    both = {"Y": np.zeros((T, 2, N, H), bool), "Y_h": np.zeros((2, N, H), bool)}
    if wrong:
        both[output][wrong] = True
    return both


WRONG = {name: np.ones_like(mask) for name, mask in masks(2, 2, 2).items()}
# Without Y, one wrong unit of an earlier step has spread to all units through R.
STATE_ALONE = {"Y_h": masks(3, 1, 4, (0, 0, 2), "Y_h")["Y_h"]}


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([masks(3, 2, 5, (..., 4))], "Y, unit 4 (H = 5)"),
        ([masks(3, 2, 9, (..., 1, 0, slice(4, 8)))], "Y, the reverse direction, row 0 (N = 2), units 4 to 7 (H = 9)"),
        ([masks(4, 1, 1, ([0, 2],))], "Y, steps 0 and 2 (T = 4)"),
        ([masks(3, 2, 1, (slice(None),), "Y_h")], "Y_h"),
        ([STATE_ALONE], "the forward direction"),
        ([masks(3, 2, 2), WRONG], "run 2 (of 2)"),
        ([WRONG, WRONG], ""),
    ],
)
def test_the_pattern_of_a_session_has_what_is_wrong_while_the_rest_is_right(runs: Any, words: str) -> None:
    expected = f"in the smallest case only in {words}" if words else ""
    assert pattern_text(runs, ("forward", "reverse")) == expected


def unit_4_off(graph: Any, session: Session, feeds: Feeds) -> list[Any]:
    """Return outputs whose units are off from the fifth on, by more than any rounding and by no rule."""
    outputs = session(feeds)
    for value, array in zip(graph.output, outputs, strict=True):
        if value.name == "Y":
            array[..., 4:] += np.asarray(0.05, array.dtype) * np.cos(np.arange(array.shape[-1] - 4))
    return list(outputs)


@pytest.mark.long
def test_a_finding_without_a_name_says_where_it_shows() -> None:
    specs = [s for s in profile("smoke", "GRU", 14) if not s.illegal and s.type == "float32"]
    findings = [f for f in findings_on(running(unit_4_off), specs)[0] if f["kind"] == "wrong"]
    assert {f["fault"] for f in findings} == {""}
    assert all("unit 4 (H = 5)" in f.get("place", "") for f in findings), [f["title"] for f in findings]


def last_cell_state_off(graph: Any, session: Session, feeds: Feeds) -> list[Any]:
    """Return outputs whose Y_c is off by no rule in its first unit."""
    outputs = session(feeds)
    for value, array in zip(graph.output, outputs, strict=True):
        if value.name == "Y_c":
            array[..., 0] += np.asarray(0.05, array.dtype)
    return list(outputs)


def test_an_error_that_only_the_run_with_all_outputs_shows_is_said_to_be_there() -> None:
    specs = [CaseSpec("LSTM", 14, H=H, outputs=("", "Y_h")) for H in (4, 5)]
    (finding,) = findings_on(running(last_cell_state_off), specs)[0]
    assert "in the smallest case with all outputs only in Y_c" in finding["title"]


@pytest.mark.parametrize(
    ("names", "fault"), [("WRBP", "constants.override-ignored"), ("B", "constants.override-ignored@B")]
)
def test_a_constant_that_is_taken_for_fixed_is_named(names: str, fault: str) -> None:
    specs = [s for s in profile("core", "GRU", 22) if s.held in ("overridden", "zeroed") and not s.illegal]

    def ignoring_overrides(graph: Any, session: Session, feeds: Feeds) -> list[Any]:
        held = {tensor.name for tensor in graph.initializer} & {*names}
        return list(session({name: array for name, array in feeds.items() if name not in held}))

    findings, results, _ = findings_on(running(ignoring_overrides), specs)
    assert {r.diagnosis for r in results if r.failing} <= {(fault,), ("constants.override-ignored",)}
    assert [f["foretold"] > 0 for f in findings if f["kind"] in ("wrong", "inaccurate")] == [True]


def test_outputs_that_are_missing_are_given_up_at_once() -> None:
    """No pairs of faults are tried where only a fault of the outputs' form can explain the failure."""
    probes = [SpecProbe(s) for s in profile("smoke", "LSTM", 14) if not s.illegal and s.outputs[1:] != ("", "")]
    runs = tried(staged(running(lambda graph, session, feeds: session(feeds)[:1])), probes, "standard")
    failing = [case for run in runs if (case := failing_case_of_tried(run)) is not None and case.misshapen]
    assert len(failing) > 3
    long = matcher(1e6)
    long.names(failing)
    assert 1e6 - long.effort < 200 * len(failing)
