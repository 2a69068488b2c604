"""Unnamed failures are described by where they occur; no description is contradicted by new random cases."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from benchmarks.staging import findings_on, of_faults, staged
from onnxspec.cases import profile
from onnxspec.conformance.diagnosis.causes import _fails_in
from onnxspec.conformance.diagnosis.failing_case import failing_case_of
from onnxspec.conformance.diagnosis.match import Matcher, ObservedCases
from onnxspec.conformance.diagnosis.places import Look, places_in_words, places_of, telling_places
from onnxspec.conformance.diagnosis.target_evidence import TargetEvidence
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import tried
from onnxspec.reference import operator_names

Mask = NDArray[np.bool_]
SIZES = ((3, 2, 33), (2, 3, 37), (4, 2, 45), (3, 2, 64), (2, 3, 67), (3, 5, 72), (5, 2, 101))


def told(wrong: Callable[[Mask, NDArray[np.int64]], Mask], sizes: Any = SIZES, output: str = "Y") -> str:
    """Return the description of cases with two directions in which some numbers are wrong."""
    cases = []
    for T, N, H in sizes:
        lengths = np.maximum(T - np.arange(N), 1)
        mask = np.broadcast_to(wrong(np.zeros((T, 2, N, H), bool), lengths), (T, 2, N, H))
        masks = {"Y": mask} if output == "Y" else {"Y": np.zeros_like(mask), output: mask.any(axis=0)}
        cases.append([Look(0, T, N, H, lengths, ("forward", "reverse"), ("Y", "Y_h", ""), masks)])
    return places_in_words(telling_places(places_of(cases), cases))


def at(**where: Callable[[NDArray[np.int64], int], Any]) -> Callable[[Mask, NDArray[np.int64]], Mask]:
    """Return a function that marks numbers by their indices along T, D, N and H, each from the indices and the size."""

    def wrong(mask: Mask, lengths: NDArray[np.int64]) -> Mask:
        chosen = np.ones_like(mask)
        for axis, name in enumerate("TDNH"):
            shape = [-1 if a == axis else 1 for a in range(4)]
            index = np.arange(mask.shape[axis])
            chosen &= np.asarray(where.get(name, lambda n, size: n >= 0)(index, mask.shape[axis])).reshape(shape)
        return chosen

    return wrong


def test_sizes_tell_apart_what_looks_alike_in_one_case() -> None:
    """The places "beyond 32 units", "past whole blocks of 32" and "the last unit" are equal with 33 units."""
    assert told(at(H=lambda n, size: n >= 32)) == "only in units beyond the first 32"
    tails = told(at(H=lambda n, size: n >= size - size % 8), [s for s in SIZES if s[2] % 8])
    assert tails == "only in units left over of hidden_size after whole blocks of 8"
    assert told(at(H=lambda n, size: n == size - 1)) == "only in the last unit"


def test_places_on_several_axes_are_told_together() -> None:
    cases = [(T, N, H) for T, N, H in SIZES for T in (T, T + 1)]
    both = told(at(D=lambda n, size: n == 1, N=lambda n, size: n == 0), cases)
    assert both == "only in the reverse direction, Y, the first row"
    assert told(at(), cases, output="Y_h") == "only in Y_h"


def test_steps_count_in_the_order_in_which_a_direction_computes_them() -> None:
    """The last position of a row is the reverse direction's first step."""

    def wrong(mask: Mask, lengths: NDArray[np.int64]) -> Mask:
        mask = mask.copy()
        for row, length in enumerate(lengths):
            mask[0, 0, row] = mask[length - 1, 1, row] = True
        return mask

    assert told(wrong, [(T, N, 5) for T, N in ((4, 2), (5, 3), (6, 2), (7, 3), (9, 4))]).endswith(
        "the first step of a row"
    )


def test_of_what_is_wrong_everywhere_or_anywhere_no_place_is_told() -> None:
    dice = np.random.default_rng(3)
    assert told(at()) in ("", "only in Y")
    assert told(lambda mask, lengths: dice.random(mask.shape) < 0.3) in ("", "only in Y")
    assert told(at(H=lambda n, size: n == 0), SIZES[:2]) in ("", "only in Y")  # two cases are too few


def off(units: Callable[[int], int]) -> Any:
    """Return a target whose units are off from a given number on, by more than any rounding and by no rule."""
    right = of_faults([])

    def opened(model: bytes) -> Any:
        session, names = right(model), [value.name for value in onnx.load_model_from_string(model).graph.output]

        def run(feeds: dict[str, Any]) -> list[Any]:
            outputs = session(feeds)
            Y = outputs[names.index("Y")] if "Y" in names else None
            if Y is not None:
                first = units(Y.shape[-1])
                Y[..., first:] = Y[..., first:] + np.asarray(0.05, Y.dtype) * np.cos(np.arange(Y.shape[-1] - first))
            return outputs

        return run

    return opened


@pytest.mark.long
def test_a_finding_without_a_name_says_where_it_shows() -> None:
    specs = [s for s in profile("smoke", "GRU", 14) if not s.illegal and s.type == "float32"]
    findings, _results, _ = findings_on(off(lambda H: 4), specs)
    failing = [f for f in findings if f["kind"] == "wrong"]
    assert failing
    assert all(not f["fault"] for f in failing)
    places = {f.get("place", "") for f in failing}
    assert any("units beyond the first 4" in place for place in places), [f["title"] for f in failing]
    assert not any("tail" in place or "last unit" in place for place in places)


def ignoring_overrides(names: str) -> Any:
    """Return a target that ignores fed values of some inputs and uses the model's initializers."""
    right = of_faults([])

    def opened(model: bytes) -> Any:
        held = {t.name for t in onnx.load_model_from_string(model).graph.initializer} & {*names}
        session = right(model)
        return lambda feeds: session({name: array for name, array in feeds.items() if name not in held})

    return opened


@pytest.mark.parametrize(
    ("names", "fault"), [("WRBP", "constants.override-ignored"), ("B", "constants.override-ignored@B")]
)
def test_a_constant_that_is_taken_for_fixed_is_named(names: str, fault: str) -> None:
    specs = [s for s in profile("core", "GRU", 22) if s.held in ("overridden", "zeroed") and not s.illegal]
    findings, results, _ = findings_on(ignoring_overrides(names), specs)
    assert {r.diagnosis for r in results if r.failing} <= {(fault,), ("constants.override-ignored",)}
    assert [f["foretold"] > 0 for f in findings if f["kind"] in ("wrong", "inaccurate")] == [True]


def test_outputs_that_are_missing_are_given_up_at_once() -> None:
    """No pairs of faults are tried where only a fault of the outputs' form can explain the failure."""
    right = of_faults([])

    def few(model: bytes) -> Any:
        session = right(model)
        return lambda feeds: session(feeds)[:1]

    probes = [SpecProbe(s) for s in profile("smoke", "LSTM", 14) if not s.illegal and s.outputs[1:] != ("", "")]
    failing = []
    for case_run in tried(staged(few), probes, "standard"):
        trial_and_outcome = case_run.prepared.trials[0], case_run.outcomes[0]
        case = failing_case_of(case_run.probe.id, *trial_and_outcome, case_run.probe.clauses, case_run.probe.size)
        failing += [case] if case is not None and case.misshapen else []
    assert len(failing) > 3
    matcher = Matcher(ObservedCases(TargetEvidence("standard")), 1e6)
    matcher.names(failing)
    assert 1e6 - matcher.effort < 200 * len(failing)


@pytest.mark.skipif("LinearAttention" not in operator_names(), reason="the installed onnx lacks its schema")
def test_a_case_of_a_described_operator_is_of_no_other() -> None:
    """Findings of both operators named LinearAttention must not raise: each operator has its own type of case."""
    spec = next(iter(profile("smoke", "LinearAttention", 27)))
    cause: Any = SimpleNamespace(shrunk=SimpleNamespace(one=SimpleNamespace(probe=SpecProbe(spec))))
    unused: Any = None
    assert not _fails_in("com.microsoft::LinearAttention", cause, unused, unused)
