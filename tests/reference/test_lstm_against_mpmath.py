"""The reference against the second derivation, over random legal configurations of every version of LSTM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onnxspec.reference import Node, Readings, evaluate

from .second_lstm import ACTIVATIONS, DEFAULT_ALPHA, DEFAULT_BETA, Choices, second_lstm

OUTPUTS = ("Y", "Y_h", "Y_c")

# float64 has u = 1.1e-16. A step at these sizes adds at most 9 terms and makes a few roundings more, some 20 u of the
# sum of absolute values; weights of at most 1 and at most four steps amplify that by less than the rest.
RELATIVE = 1e-13


# Each reading of the reference that departs from its own, and the choice of the second derivation that it amounts to.
READINGS: list[tuple[Readings, Choices]] = [
    (Readings(), Choices()),
    (Readings(cell_output_clip="unclipped"), Choices(clip_cell_output=False)),
    (Readings(coupled_gate="forget"), Choices(coupled_keeps="f")),
    (Readings(coefficients="by-position"), Choices(alpha_per_user=False)),
    (Readings(defaults="zero"), Choices(defaults_of_the_lost=False)),
    (Readings(threshold="above"), Choices(threshold_passes=False)),
    (Readings(empty="zero"), Choices(empty_keeps_state=False)),
    (Readings(zero_clip="zero"), Choices(clip_zero_is_off=False)),
]


@dataclass(frozen=True)
class Configuration:
    """One legal node with its inputs; frozen so that a failing example prints whole."""

    since_version: int
    attributes: dict[str, Any]
    inputs: dict[str, NDArray[Any]]


@st.composite
def configurations(draw: st.DrawFn) -> Configuration:
    """Legal configurations with T <= 4, N <= 3, I <= 3, H <= 3, shrinking towards ones and defaults."""
    version = draw(st.sampled_from([14, 22, 7, 1]))
    t, n, i, h = (draw(st.integers(1, most)) for most in (4, 3, 3, 3))
    attributes: dict[str, Any] = {}
    if draw(st.booleans()):
        attributes["hidden_size"] = h
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    if direction != "forward" or draw(st.booleans()):
        attributes["direction"] = direction
    directions = 2 if direction == "bidirectional" else 1
    if version == 1:
        attributes["output_sequence"] = 1
    layout = draw(st.integers(0, 1)) if version >= 14 else 0
    if layout:
        attributes["layout"] = layout
    if draw(st.booleans()):
        attributes["input_forget"] = draw(st.integers(0, 1))
    if draw(st.booleans()):
        attributes["clip"] = draw(st.sampled_from([0.5, 0.125, 1.5, 10.0, 0.0]))
    if draw(st.booleans()):
        attributes |= draw(activations(3 * directions))

    types: list[Any] = [np.float64, np.float32, np.float16] + ([ml_dtypes.bfloat16] if version >= 22 else [])
    element = draw(st.sampled_from(types))
    # Shapes are drawn, numbers come from a seed: element by element they would cost a draw each and shrink to nothing.
    generator = np.random.Generator(np.random.PCG64(draw(st.integers(0, 2**32 - 1))))
    dyadic = draw(st.booleans())

    def numbers(*shape: int) -> NDArray[Any]:
        values = generator.uniform(-1, 1, shape)
        return (np.round(values * 64) / 64 if dyadic else values).astype(element)

    state = (n, directions, h) if layout else (directions, n, h)
    inputs = {"X": numbers(*((n, t, i) if layout else (t, n, i))) * element(2)}
    inputs |= {"W": numbers(directions, 4 * h, i), "R": numbers(directions, 4 * h, h)}
    if draw(st.booleans()):
        inputs["B"] = numbers(directions, 8 * h)
    if draw(st.booleans()):
        inputs["sequence_lens"] = np.array(draw(st.lists(st.integers(0, t), min_size=n, max_size=n)), dtype=np.int32)
    if draw(st.booleans()):
        inputs["initial_h"] = numbers(*state)
    if draw(st.booleans()):
        inputs["initial_c"] = numbers(*state)
    if draw(st.booleans()):
        inputs["P"] = numbers(directions, 3 * h)
    return Configuration(version, attributes, inputs)


@st.composite
def activations(draw: st.DrawFn, count: int) -> dict[str, Any]:
    """``activations`` with none, some or all of the alphas and betas that they can take."""
    names = [draw(st.sampled_from(ACTIVATIONS)) for _ in range(count)]
    values = st.sampled_from([0.5, -0.25, 0.75, 1.25, 0.0])
    chosen: dict[str, Any] = {"activations": names}
    for key, takers in (("activation_alpha", DEFAULT_ALPHA), ("activation_beta", DEFAULT_BETA)):
        given = draw(st.lists(values, max_size=sum(name in takers for name in names)))
        if given:
            chosen[key] = given
    return chosen


def assert_same(configuration: Configuration, readings: Readings, choices: Choices) -> None:
    node = Node("LSTM", since_version=configuration.since_version, attributes=configuration.attributes, outputs=OUTPUTS)
    actual = evaluate(node, configuration.inputs, readings)
    expected = second_lstm(configuration.attributes, configuration.inputs, choices)
    assert actual.keys() == expected.keys()
    size = max(1.0, *(float(np.abs(value).max(initial=0.0)) for value in expected.values()))
    for name, value in expected.items():
        assert actual[name].dtype == np.float64
        assert actual[name].shape == value.shape
        np.testing.assert_allclose(actual[name], value, rtol=RELATIVE, atol=RELATIVE * size, err_msg=name)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(configuration=configurations(), reading=st.sampled_from(READINGS))
def test_reference_agrees_with_the_second_derivation(
    configuration: Configuration, reading: tuple[Readings, Choices]
) -> None:
    assert_same(configuration, *reading)


@pytest.mark.parametrize("reading", READINGS, ids=[str(choices) for _, choices in READINGS])
@pytest.mark.parametrize(("steps", "sequences"), [(0, 2), (3, 0), (0, 0)])
@pytest.mark.parametrize("layout", [0, 1])
def test_no_steps_or_no_sequences(steps: int, sequences: int, layout: int, reading: tuple[Readings, Choices]) -> None:
    state = (sequences, 2, 3) if layout else (2, sequences, 3)
    inputs = {
        "X": np.ones((sequences, steps, 2) if layout else (steps, sequences, 2)),
        "W": np.ones((2, 12, 2)),
        "R": np.ones((2, 12, 3)),
        "initial_h": np.full(state, 0.5),
        "initial_c": np.full(state, 0.25),
    }
    assert_same(Configuration(14, {"direction": "bidirectional", "layout": layout}, inputs), *reading)
