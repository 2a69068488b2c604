"""Nodes with inputs for tests of radii, and judgement of outputs over every interpretation that a node touches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import (
    CELLS,
    FORMATS,
    Agreement,
    Interpretations,
    Node,
    compare,
    configure,
    expect,
    operator_version,
)

Arrays = Mapping[str, NDArray[Any]]
OPERATORS = tuple(CELLS)
FINE_AND_COARSE = ("float32", "float16")
# Tests that take every type run in a plain pytest with one type that rounds finely and one that rounds coarsely.
TWO_TYPES = [pytest.param(kind, marks=() if kind in FINE_AND_COARSE else pytest.mark.long) for kind in FORMATS]
# Of LSTM; for other operators use `outputs_of`.
OUTPUTS = ("Y", "Y_h", "Y_c")


def outputs_of(op: str) -> tuple[str, ...]:
    """Return all outputs of an operator."""
    return ("Y", "Y_h", *(f"Y_{name}" for name in CELLS[op].inner))


def optional_of(op: str) -> tuple[str, ...]:
    """Return all optional inputs of an operator except sequence_lens."""
    return tuple(name for name in operator_version(op, 22).inputs if name not in ("X", "W", "R", "sequence_lens"))


def functions_of(op: str, *names: str) -> list[str]:
    """Return as many of the names as a direction of the operator has activations.

    The last one is repeated if there are too few.
    """
    count = len(CELLS[op].activations)
    return [*names, *names[-1:] * count][:count]


def variants_of(op: str) -> list[dict[str, Any]]:
    """Return the attributes by which an operator's equations vary; the first entry has none."""
    return {"LSTM": [{}, {"input_forget": 1}], "GRU": [{}, {"linear_before_reset": 1}], "RNN": [{}]}[op]


def inputs_for(
    kind: str,
    sizes: tuple[int, int, int, int],
    *,
    op: str = "LSTM",
    directions: int = 1,
    layout: int = 0,
    optional: tuple[str, ...] = ("B", "initial_h", "initial_c"),
    lengths: list[int] | None = None,
    scale: float = 1.0,
    seed: int = 0,
) -> dict[str, NDArray[Any]]:
    """Return uniform numbers in (-scale, scale).

    Those of W and R are scaled down with the size, so that sums are about 1. Optional inputs that the operator does not
    have are left out.
    """
    T, N, I, H = sizes
    rows, peepholes = len(CELLS[op].gates) * H, len(CELLS[op].peepholes) * H
    dtype = FORMATS[kind].dtype
    random = np.random.default_rng([seed, T, N, I, H])

    def tensor(*shape: int, gain: float = 1.0) -> NDArray[Any]:
        with np.errstate(over="ignore"):
            return (gain * scale * random.uniform(-1, 1, shape)).astype(dtype)

    state = (directions, N, H) if layout == 0 else (N, directions, H)
    made = {
        "X": tensor(*((T, N, I) if layout == 0 else (N, T, I))),
        "W": tensor(directions, rows, I, gain=2 / max(I, 4) ** 0.5),
        "R": tensor(directions, rows, H, gain=2 / max(H, 4) ** 0.5),
        "B": tensor(directions, 2 * rows),
        "initial_h": tensor(*state),
        "initial_c": tensor(*state),
        "P": tensor(directions, peepholes),
    }
    wanted = ("X", "W", "R", *(name for name in optional_of(op) if name in optional))
    chosen = {name: made[name] for name in made if name in wanted}
    if lengths is not None:
        chosen["sequence_lens"] = np.array(lengths, np.int32)
    return chosen


def agreements(
    node: Node,
    inputs: Arrays,
    outputs: Arrays,
    accuracy: str = "standard",
    interpretations: Interpretations | None = None,
) -> list[Agreement]:
    """Return the agreement of the outputs with each clause, except the convention on padding."""
    expectations = expect(node, inputs, outputs, accuracy, interpretations)
    assert not any(np.isnan(e.number.radius).any() for e in expectations)
    return [compare(e, outputs[e.output]) for e in expectations if not e.clause.endswith("padding.zero")]


def worst_ratio(node: Node, inputs: Arrays, outputs: Arrays, accuracy: str = "standard") -> float:
    """Return the largest |error|/radius under the interpretation that explains the outputs best.

    It is infinity for other shapes.
    """
    worst = []
    for interpretations in Interpretations().alternatives(configure(node, inputs).open_questions):
        expectations = expect(node, inputs, outputs, accuracy, interpretations)
        if any(outputs[e.output].shape != e.number.value.shape for e in expectations):
            return np.inf
        ratios = [a.worst for a in agreements(node, inputs, outputs, accuracy, interpretations)]
        worst.append(max(ratios, default=0.0))
        if worst[-1] <= 1:
            break
    return min(worst)


def judged_share(node: Node, inputs: Arrays, outputs: Arrays, accuracy: str = "standard") -> float:
    """Return the share of all elements that can be judged, with bounds of any width."""
    compared = agreements(node, inputs, outputs, accuracy)
    return sum(a.judged + a.vague for a in compared) / sum(a.elements for a in compared)
