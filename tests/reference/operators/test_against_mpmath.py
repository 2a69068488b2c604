"""Tests of the reference against the second derivation, over random legal configurations of all versions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onnxspec.reference import Interpretations, Node, evaluate, versions_of

from .second_derivation import ACTIVATIONS, DEFAULT_ALPHA, DEFAULT_BETA, OPERATORS, Choices, second

# Versions that print Ht-1*R without the mark of transposition.
UNMARKED = {"LSTM": (1,), "GRU": (1, 3), "RNN": (1,)}

# float64 has u = 1.1e-16. A step at these sizes adds at most 9 terms and makes a few roundings more, some 20 u of the
# sum of absolute values; weights of at most 1 and at most four steps amplify that by less than the rest.
RELATIVE = 1e-13


# Each interpretation of the reference that differs from its default, and the equivalent choice of the second
# derivation.
INTERPRETATIONS: list[tuple[Interpretations, Choices]] = [
    (Interpretations(), Choices()),
    (Interpretations(cell_output_clip="unclipped"), Choices(clip_cell_output=False)),
    (Interpretations(coupled_gate="forget"), Choices(coupled_keeps="f")),
    (Interpretations(coefficients="by-position"), Choices(alpha_per_user=False)),
    (Interpretations(defaults="zero"), Choices(defaults_of_the_lost=False)),
    (Interpretations(threshold="above"), Choices(threshold_passes=False)),
    (Interpretations(empty="zero"), Choices(empty_keeps_state=False)),
    (Interpretations(zero_clip="zero"), Choices(clip_zero_is_off=False)),
    (Interpretations(recurrent_product="plain"), Choices(transpose_r=False)),
]


@dataclass(frozen=True)
class Configuration:
    """Legal node with its inputs; frozen so that a failing example prints whole."""

    op: str
    since_version: int
    attributes: dict[str, Any]
    inputs: dict[str, NDArray[Any]]


@st.composite
def configurations(draw: st.DrawFn) -> Configuration:
    """Draw legal configurations with T <= 4, N <= 3, I <= 3, H <= 3, shrinking towards ones and defaults."""
    op = draw(st.sampled_from(sorted(OPERATORS)))
    gates, functions = len(OPERATORS[op].gates), len(OPERATORS[op].functions)
    version = draw(st.sampled_from(versions_of(op)))
    t, n, i, h = (draw(st.integers(1, most)) for most in (4, 3, 3, 3))
    attributes: dict[str, Any] = {}
    if draw(st.booleans()):
        attributes["hidden_size"] = h
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    if direction != "forward" or draw(st.booleans()):
        attributes["direction"] = direction
    directions = 2 if direction == "bidirectional" else 1
    if version < 7:
        attributes["output_sequence"] = 1
    layout = draw(st.integers(0, 1)) if version >= 14 else 0
    if layout:
        attributes["layout"] = layout
    if op == "LSTM" and draw(st.booleans()):
        attributes["input_forget"] = draw(st.integers(0, 1))
    if op == "GRU" and version > 1 and draw(st.booleans()):
        attributes["linear_before_reset"] = draw(st.sampled_from([0, 1, 1, -1, 2]))
    if draw(st.booleans()):
        attributes["clip"] = draw(st.sampled_from([0.5, 0.125, 1.5, 10.0, 0.0]))
    if draw(st.booleans()):
        attributes |= draw(activations(functions * directions))

    types: list[Any] = [np.float64, np.float32, np.float16] + ([ml_dtypes.bfloat16] if version >= 22 else [])
    element = draw(st.sampled_from(types))
    # Shapes are drawn, numbers come from a seed: drawn numbers would cost a draw each and shrink to zero.
    generator = np.random.Generator(np.random.PCG64(draw(st.integers(0, 2**32 - 1))))
    dyadic = draw(st.booleans())

    def numbers(*shape: int) -> NDArray[Any]:
        values = generator.uniform(-1, 1, shape)
        return (np.round(values * 64) / 64 if dyadic else values).astype(element)

    state = (n, directions, h) if layout else (directions, n, h)
    inputs = {"X": numbers(*((n, t, i) if layout else (t, n, i))) * element(2)}
    inputs |= {"W": numbers(directions, gates * h, i), "R": numbers(directions, gates * h, h)}
    if draw(st.booleans()):
        inputs["B"] = numbers(directions, 2 * gates * h)
    if draw(st.booleans()):
        inputs["sequence_lens"] = np.array(draw(st.lists(st.integers(0, t), min_size=n, max_size=n)), dtype=np.int32)
    if draw(st.booleans()):
        inputs["initial_h"] = numbers(*state)
    if op == "LSTM" and draw(st.booleans()):
        inputs["initial_c"] = numbers(*state)
    if op == "LSTM" and draw(st.booleans()):
        inputs["P"] = numbers(directions, 3 * h)
    return Configuration(op, version, attributes, inputs)


@st.composite
def activations(draw: st.DrawFn, count: int) -> dict[str, Any]:
    """Draw ``activations`` with none, some or all of the alphas and betas that they can take."""
    names = [draw(st.sampled_from(ACTIVATIONS)) for _ in range(count)]
    values = st.sampled_from([0.5, -0.25, 0.75, 1.25, 0.0])
    chosen: dict[str, Any] = {"activations": names}
    for key, takers in (("activation_alpha", DEFAULT_ALPHA), ("activation_beta", DEFAULT_BETA)):
        given = draw(st.lists(values, max_size=sum(name in takers for name in names)))
        if given:
            chosen[key] = given
    return chosen


def assert_same(configuration: Configuration, interpretations: Interpretations, choices: Choices) -> None:
    version = configuration.since_version
    if version not in UNMARKED[configuration.op]:
        choices = replace(choices, transpose_r=True)
    node = Node(configuration.op, version, configuration.attributes, OPERATORS[configuration.op].outputs)
    actual = evaluate(node, configuration.inputs, interpretations)
    silent = {"says_defaults": False} if (configuration.op, version) == ("GRU", 1) else {}
    expected = second(configuration.op, configuration.attributes, configuration.inputs, choices, **silent)
    assert actual.keys() == expected.keys()
    size = max(1.0, *(float(np.abs(value).max(initial=0.0)) for value in expected.values()))
    for name, value in expected.items():
        assert actual[name].dtype == np.float64
        assert actual[name].shape == value.shape
        np.testing.assert_allclose(actual[name], value, rtol=RELATIVE, atol=RELATIVE * size, err_msg=name)


@settings(max_examples=1000, deadline=None, derandomize=True)
@given(configuration=configurations(), interpretation=st.sampled_from(INTERPRETATIONS))
def test_reference_agrees_with_the_second_derivation(
    configuration: Configuration, interpretation: tuple[Interpretations, Choices]
) -> None:
    assert_same(configuration, *interpretation)


@pytest.mark.parametrize(
    "interpretation", [INTERPRETATIONS[0], (Interpretations(empty="zero"), Choices(empty_keeps_state=False))], ids=str
)
@pytest.mark.parametrize(("steps", "sequences"), [(0, 2), (3, 0), (0, 0)])
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("op", OPERATORS)
def test_no_steps_or_no_sequences(
    op: str, steps: int, sequences: int, layout: int, interpretation: tuple[Interpretations, Choices]
) -> None:
    state = (sequences, 2, 3) if layout else (2, sequences, 3)
    rows = 3 * len(OPERATORS[op].gates)
    inputs = {
        "X": np.ones((sequences, steps, 2) if layout else (steps, sequences, 2)),
        "W": np.ones((2, rows, 2)),
        "R": np.ones((2, rows, 3)),
        "initial_h": np.full(state, 0.5),
    }
    if op == "LSTM":
        inputs["initial_c"] = np.full(state, 0.25)
    assert_same(Configuration(op, 14, {"direction": "bidirectional", "layout": layout}, inputs), *interpretation)
