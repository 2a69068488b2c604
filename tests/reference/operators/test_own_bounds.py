"""Tests of bounds from an external operator: invalid ones are refused, and too wide ones prove nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from onnxspec.cases import SimpleFamily, SimpleSpec
from onnxspec.reference import Node, Operator, budget, operator_of, operator_version
from onnxspec.reference.faults import Computed
from onnxspec.reference.numbers import Bounded

NODE = Node("RNN", 14, {"hidden_size": 2}, ("Y",))
X = np.ones((3, 1, 1), np.float32)
RIGHT = np.ones((3, 1, 1, 1))


@dataclass(frozen=True)
class Given(Computed):
    X: Any
    numbers: Mapping[str, Bounded] = field(hash=False)
    operator = operator_version("RNN", 14)

    def bounded(self, accuracy: str, observed: Mapping[str, Any]) -> dict[str, Bounded]:
        return dict(self.numbers)


class Own(Operator):
    document = operator_of("RNN").document

    def __init__(self, **numbers: tuple[Any, Any]) -> None:
        allowed = budget("standard", "float32")
        self.numbers = {name: Bounded(value, radius, allowed) for name, (value, radius) in numbers.items()}
        self.conforming = {}

    def resolve(self, node: Node, inputs: Any, interpretations: Any = None) -> Any:
        return Given(inputs["X"], self.numbers)

    def steps(self, *_: Any) -> Any: ...


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ({}, "gives no Y"),
        ({"Y": (RIGHT, RIGHT), "Z": (RIGHT, RIGHT)}, "gives 'Z', which RNN-14 has not"),
        ({"Y": (RIGHT[:, 0], RIGHT[:, 0])}, r"gives Y as \(3, 1, 1\), and by its form it is \(3, 1, 1, 1\)"),
        ({"Y": (RIGHT, RIGHT[0])}, "not one for each number"),
        ({"Y": (RIGHT, -RIGHT)}, "below zero, or NaN"),
        ({"Y": (RIGHT, np.nan * RIGHT)}, "below zero, or NaN"),
    ],
)
def test_what_are_no_bounds_of_the_outputs_is_refused(numbers: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Own(**numbers).expect(NODE, {"X": X}, {})


def test_bounds_that_are_too_wide_prove_nothing() -> None:
    (expectation,) = Own(Y=(RIGHT, RIGHT * np.inf)).expect(NODE, {"X": X}, {})
    assert expectation.weak is not None
    assert expectation.weak.all()
    (narrow,) = Own(Y=(RIGHT, RIGHT / 1000)).expect(NODE, {"X": X}, {})
    assert narrow.weak is None


def test_inputs_that_no_form_has_are_refused() -> None:
    @dataclass(frozen=True)
    class Spec(SimpleSpec):
        seq_length: int = 3
        batch_size: int = 1
        input_size: int = 1
        hidden_size: int = 2
        num_directions = 1
        op, version = "RNN", 14

    class Flat(SimpleFamily):
        spec = Spec

        def draw(self, spec: Any, name: str, shape: tuple[int, ...], key: str) -> Any:
            return np.ones(shape[1:])

        def profile(self, name: str, op: str, version: int) -> Any: ...

    with pytest.raises(ValueError, match=r"gives X as \(1, 1\), and by its form it is \(3, 1, 1\)"):
        Flat().build(Spec())
