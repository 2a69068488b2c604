"""Tests of relations between two evaluations of any legal node that strategies draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, strategies
from onnxspec.cases.specs.data import inputs_of
from onnxspec.reference import ACTIVATIONS, CELLS, Node, evaluate, operator_version, versions_of
from onnxspec.reference import CELLS as OPERATORS

Arrays = Mapping[str, NDArray[Any]]

EVERY = [(op, version) for op in OPERATORS for version in versions_of(op)]
every_version = pytest.mark.parametrize(("op", "version"), EVERY, ids=lambda value: str(value))
fixed = settings(derandomize=True, database=None, deadline=None)
few = settings(fixed, max_examples=25)

# Both sides are float64 and go through the same operations, though not always in the same order.
RELATIVE = 1e-9


def evaluated(spec: CaseSpec, inputs: Arrays | None = None, **changes: Any) -> dict[str, NDArray[np.float64]]:
    """Return the outputs of a case, or of a changed one on other inputs."""
    return evaluate(replace(spec, **changes).node, inputs_of(spec) if inputs is None else inputs)


def assert_same(found: Arrays, expected: Arrays) -> None:
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=RELATIVE, atol=RELATIVE, err_msg=name)


def axes(name: str, layout: int) -> str:
    """Return the axes of a tensor, by the documents' letters.

    D is num_directions, a dot an axis that is not needed here.
    """
    if name == "X":
        return ("TN.", "NT.")[layout]
    if name == "Y":
        return ("TDN.", "NTD.")[layout]
    if name.startswith(("initial_", "Y_")):
        return ("DN.", "ND.")[layout]
    return "N" if name == "sequence_lens" else "D"


def parts(arrays: Arrays, axis: str, layout: int, wanted: Sequence[int]) -> dict[str, NDArray[Any]]:
    """Return some positions along an axis, of all tensors that have it."""
    where = {name: axes(name, layout).find(axis) for name in arrays}
    return {n: array if where[n] < 0 else np.take(array, wanted, where[n]) for n, array in arrays.items()}


def swapped(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Return the arrays of layout 0 in layout 1."""
    moved = dict(arrays)
    for name, array in arrays.items():
        if len(axes(name, 0)) == array.ndim:
            moved[name] = array.transpose([axes(name, 0).index(axis) for axis in axes(name, 1)])
    return moved


@pytest.mark.parametrize(("op", "version"), [(op, v) for op, v in EVERY if v >= 14], ids=str)
def test_layout_1_is_layout_0_with_the_batch_first(op: str, version: int) -> None:
    @settings(few)
    @given(strategies.cases(op, version, min_steps=0, min_rows=0, only={"layout": [0]}))
    def check(spec: CaseSpec) -> None:
        assert_same(evaluated(spec, swapped(inputs_of(spec)), layout=1), swapped(evaluated(spec)))

    check()


def halves(spec: CaseSpec) -> list[CaseSpec]:
    """Return the two directions of a bidirectional case, with the functions and coefficients of each."""
    count = len(CELLS[spec.op].activations)
    specs = []
    taken = {"alpha": 0, "beta": 0}
    for d, direction in enumerate(("forward", "reverse")):
        changes: dict[str, Any] = {"direction": direction}
        if spec.activations is not None:
            names = spec.activations[d * count : (d + 1) * count]
            changes["activations"] = names
            for which in ("alpha", "beta"):
                used = sum(getattr(ACTIVATIONS[name], f"uses_{which}") for name in names)
                values = getattr(spec, which) or ()
                changes[which] = values[taken[which] : taken[which] + used] or None
                taken[which] += used
        specs.append(replace(spec, **changes))
    return specs


@every_version
def test_bidirectional_is_both_directions_side_by_side(op: str, version: int) -> None:
    @settings(few)
    @given(strategies.cases(op, version, min_steps=0, min_rows=0, only={"direction": ["bidirectional"]}))
    def check(spec: CaseSpec) -> None:
        whole = evaluated(spec)
        for d, half in enumerate(halves(spec)):
            alone = evaluate(half.node, parts(inputs_of(spec), "D", spec.layout, [d]))
            assert_same(parts(whole, "D", spec.layout, [d]), alone)

    check()


def flipped(spec: CaseSpec, name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return the array with the steps of each row, up to its length, in the opposite order."""
    order = axes(name, spec.layout)
    rows = np.moveaxis(array, (order.index("N"), order.index("T")), (0, 1)).copy()
    lengths = inputs_of(spec).get("sequence_lens", np.full(spec.N, spec.T))
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = row[:length][::-1]
    return np.moveaxis(rows, (0, 1), (order.index("N"), order.index("T")))


@every_version
def test_reverse_is_forward_on_flipped_rows(op: str, version: int) -> None:
    @settings(few)
    @given(strategies.cases(op, version, min_steps=0, min_rows=0, only={"direction": ["reverse"]}))
    def check(spec: CaseSpec) -> None:
        inputs = inputs_of(spec)
        turned = evaluated(spec, {**inputs, "X": flipped(spec, "X", inputs["X"])}, direction="forward")
        if "Y" in turned:
            turned["Y"] = flipped(spec, "Y", turned["Y"])
        assert_same(turned, evaluated(spec))

    check()


@every_version
def test_a_length_is_a_shorter_sequence(op: str, version: int) -> None:
    @settings(few)
    @given(strategies.cases(op, version, only={"lengths": ["ragged", "short", "empty", "full"]}))
    def check(spec: CaseSpec) -> None:
        inputs, whole = dict(inputs_of(spec)), evaluated(spec)
        for n, length in enumerate(inputs.pop("sequence_lens")):
            row, expected = parts(inputs, "N", spec.layout, [n]), parts(whole, "N", spec.layout, [n])
            padding = parts(expected, "T", spec.layout, range(length, spec.T))
            assert not padding.get("Y", np.zeros(0)).any()
            outputs = evaluated(spec, parts(row, "T", spec.layout, range(length)))
            assert_same(outputs, parts(expected, "T", spec.layout, range(length)))

    check()


@every_version
def test_versions_agree_on_what_they_share(op: str, version: int) -> None:
    @settings(few)
    @given(strategies.cases(op, version, types=["float32", "float64", "float16"]))
    def check(spec: CaseSpec) -> None:
        inputs, expected = inputs_of(spec), evaluated(spec)
        shared = {n: v for n, v in spec.node.attributes.items() if n != "output_sequence" and (n, v) != ("layout", 0)}
        for other in versions_of(op):
            defined, attributes = operator_version(op, other), dict(shared)
            if not attributes.keys() <= defined.attributes.keys():
                continue  # it lacks one of the attributes
            if "output_sequence" in defined.attributes:
                attributes["output_sequence"] = 1
            outputs = tuple(dict.fromkeys((*spec.node.outputs, *defined.required_outputs)))
            computed = evaluate(Node(op, other, attributes, outputs), inputs)
            for name, value in expected.items():
                np.testing.assert_array_equal(computed[name], value, err_msg=f"{name} of {op}-{other}")

    check()


@every_version
def test_an_output_does_not_depend_on_which_are_asked_for(op: str, version: int) -> None:
    everything = operator_version(op, version).outputs

    @settings(few)
    @given(strategies.cases(op, version, min_steps=0, min_rows=0))
    def check(spec: CaseSpec) -> None:
        whole = evaluated(spec, outputs=everything)
        for name, value in evaluated(spec).items():
            np.testing.assert_array_equal(value, whole[name], err_msg=name)

    check()
