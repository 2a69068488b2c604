"""Tests of radii in float32, those of large nodes: nowhere smaller than in float64, and wider by rounding at most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from onnxspec.reference import ACCURACY_CLASSES, FORMATS, Expectation, Node, evaluate, expect
from onnxspec.reference.recurrent import expectation

from ..situations import OPERATORS, Arrays, functions_of, inputs_for, outputs_of, variants_of

CLASSES = tuple(ACCURACY_CLASSES)


def large_of(op: str, kind: str = "float32", **given: Any) -> Arrays:
    """Return inputs for which a direction's gates have about 32,768 numbers or more."""
    return inputs_for(kind, (260 if op == "RNN" else 80, 8, 16, 64), op=op, **{"optional": ("B",), **given})


def returned(node: Node, inputs: Arrays) -> dict[str, np.ndarray]:
    """Return outputs of a target that computes in float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        return {name: array.astype(inputs["X"].dtype) for name, array in evaluate(node, inputs).items()}


def in_float64(monkeypatch: pytest.MonkeyPatch, *asked: Any) -> list[Expectation]:
    with monkeypatch.context() as patch:
        patch.setattr(expectation, "_radii", lambda *_: np.float64)
        return expect(*asked)


def pairs(monkeypatch: pytest.MonkeyPatch, *asked: Any) -> Iterator[tuple[Any, Any]]:
    """Yield radii in float32 and in float64, without the elements that are in doubt in float32."""
    for narrow, wide in zip(expect(*asked), in_float64(monkeypatch, *asked), strict=True):
        one, other = narrow.number, wide.number
        assert (narrow.output, narrow.clause, one.budget) == (wide.output, wide.clause, other.budget)
        assert one.radius.dtype == np.float64
        doubt, least = (np.zeros(n.value.shape, bool) if n.doubt is None else n.doubt for n in (one, other))
        assert (doubt >= least).all()
        np.testing.assert_array_equal(one.value[~doubt], other.value[~doubt])
        yield one.radius[~doubt], other.radius[~doubt]


@pytest.fixture
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use radii in float32, and products of absolute values, for nodes of any size."""
    monkeypatch.setattr(expectation, "is_large", lambda c: True)
    monkeypatch.setattr(expectation, "LEAST_SINGLE", 0)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("accuracy", CLASSES)
@pytest.mark.parametrize("scale", [1.0, 1e-3, 30.0, 1e-37, 1e-42])
@pytest.mark.usefixtures("small_ones_too")
def test_no_radius_is_smaller_and_none_much_larger(
    scale: float, accuracy: str, op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds for any states that a target returns: also near either end of the range, and NaN or infinity."""
    random = np.random.default_rng(3)
    optional = tuple(name for name in ("B", "initial_h", "initial_c") if name != "initial_c" or op == "LSTM")
    for attributes in variants_of(op):
        inputs = inputs_for("float32", (12, 3, 5, 6), op=op, optional=optional, lengths=[12, 7, 0], scale=scale)
        node = Node(op, 22, attributes, outputs_of(op))
        right = returned(node, inputs)
        wild = dict(right)
        wild["Y"] = (right["Y"] * 10.0 ** random.uniform(-44, 39, right["Y"].shape)).astype(np.float32)
        wild["Y"][5, :, 1, 2:4] = np.nan, np.inf
        for observed in (right, wild):
            compared = 0
            for one, other in pairs(monkeypatch, node, inputs, observed, accuracy):
                assert (one >= other).all()
                assert (one <= other * (1 + 2.0**-10)).all()
                compared += int((one > other).sum())
            assert compared > 10


@pytest.mark.usefixtures("small_ones_too")
def test_they_do_not_shrink_with_the_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """With forget gates of 1 and a class of few roundings, the losses of each step's operations would add up."""
    T, H = 20_000, 3
    inputs = inputs_for("float32", (T, 1, 2, H), optional=("B",))
    inputs["B"][:, 2 * H : 3 * H] = 30.0
    node = Node("LSTM", 22, {}, outputs_of("LSTM"))
    for one, other in pairs(monkeypatch, node, inputs, returned(node, inputs), "strict"):
        assert (one >= other).all()
        assert (one <= other * (1 + T * 2.0**-20)).all()


@pytest.mark.parametrize("op", OPERATORS)
def test_large_nodes_alone_have_them_and_only_those_that_are_fit(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(inputs: Arrays, attributes: dict[str, Any] | None = None, free: bool = False) -> bool:
        node = Node(op, 22, attributes or {}, outputs_of(op))
        observed = {} if free else returned(node, inputs)
        expectations = [(e.number.radius > 0).any() and e for e in expect(node, inputs, observed)]
        wide = in_float64(monkeypatch, node, inputs, observed)
        return any(e and (e.number.radius != w.number.radius).any() for e, w in zip(expectations, wide, strict=True))

    assert narrow(large_of(op))
    assert not narrow(inputs_for("float32", (8, 3, 5, 6), op=op, optional=("B",)))
    assert not narrow(large_of(op), free=True)
    assert not narrow(large_of(op), {"clip": 3.0})
    assert not narrow(large_of(op), {"activations": functions_of(op, "Softsign")})
    for kind in FORMATS:
        assert narrow(large_of(op, kind)) == (kind == "float32")
    if op == "LSTM":
        assert not narrow(large_of(op, optional=("B", "P")))
