"""Tests that no conforming implementation fails, with any structure and any way of rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from onnxspec.reference import ACTIVATIONS, CELLS, FORMATS, Interpretations, Node, configure, evaluate
from onnxspec.reference.kernels.activations import EVALUATIONS
from onnxspec.reference.kernels.kernel import INTERPOLATIONS, ORDERS, RESETS, STYLES, Kernel, Style, rounded, run_kernel
from onnxspec.reference.numbers.accuracy import Format
from onnxspec.reference.numbers.activations import Activation

from ..situations import (
    OPERATORS,
    OUTPUTS,
    TWO_TYPES,
    Arrays,
    inputs_for,
    judged_share,
    optional_of,
    outputs_of,
    variants_of,
    worst_ratio,
)

TYPES = tuple(FORMATS)
NO_COMPLEMENT = ("difference", "in-turn")


class Wide(Kernel):
    """Kernel that computes each sum in float64 and rounds it."""

    def __init__(self, style: Style, form: Format) -> None:
        super().__init__(style, form)
        self._single = False


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("order", ORDERS)
def test_sums_in_float32_are_those_of_float64_each_rounded(order: str, kind: str) -> None:
    inputs = inputs_for(kind, (3, 2, 41, 5), op="LSTM", directions=2, optional=optional_of("LSTM"), lengths=[3, 1])
    inputs["W"][0] *= FORMATS[kind].dtype.type(2.0**-100)  # some products are subnormal, or vanish
    node = Node("LSTM", 22, {"direction": "bidirectional"}, outputs_of("LSTM"))
    for work in (None, "float32", "float64"):
        style = Style("s", work=work, order=order)
        single, wide = run_kernel(node, inputs, style), run_kernel(node, inputs, style, arithmetic=Wide)
        assert {n: a.tobytes() for n, a in single.items()} == {n: a.tobytes() for n, a in wide.items()}, work


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("kind", TWO_TYPES)
@pytest.mark.parametrize(("name", "T", "H"), [
    ("library", 500, 128), ("saturating", 50, 128), ("forward", 5, 128), ("fused", 5, 128),
    ("stored-sums-edge", 5, 128), ("divided", 100, 7), ("reciprocal", 500, 5), ("lanes", 200, 8),
])  # fmt: skip
def test_large_sizes_and_long_sequences(name: str, T: int, H: int, kind: str, op: str) -> None:
    if op != "LSTM":
        T, H = max(5, T // 5), max(5, H // 2)
    inputs = inputs_for(kind, (T, 2, 6, H), op=op, optional=("B", "P") if T < 30 else ("B",), lengths=[T, T - 3])
    node = Node(op, 22, {"hidden_size": H, **variants_of(op)[-1]}, outputs_of(op))
    outputs = run_kernel(node, inputs, STYLES[name])
    assert worst_ratio(node, inputs, outputs) <= 1
    assert judged_share(node, inputs, outputs) == 1


# Situations of GRU: extreme gates, states that cancel, states that leave the range.

EXTREMES: dict[str, dict[str, Any]] = {
    "update-open": {"z": 12.0},
    "update-shut": {"z": -12.0},
    "reset-open": {"r": 12.0, "h": 6.0},
    "reset-shut": {"r": -12.0},
    "update-beyond": {"z": 3.0, "activations": ["Affine", "Tanh"]},
    "update-negative": {"z": -40.0, "activations": ["Affine", "Affine"]},
    "update-large": {"z": 30.0, "activations": ["Relu", "Relu"]},
}


@pytest.mark.parametrize("kind", TWO_TYPES)
@pytest.mark.parametrize("state", ["equal", "opposite", "larger", "huge", "none"])
@pytest.mark.parametrize("extreme", EXTREMES)
def test_extreme_gates_and_states(extreme: str, state: str, kind: str) -> None:
    inputs = inputs_for(kind, (2, 2, 3, 5), op="GRU", optional=("B", "initial_h"))
    attributes = dict(EXTREMES[extreme])
    for letter, shift in ((name, attributes.pop(name)) for name in "zrh" if name in attributes):
        block = slice(start := "zrh".index(letter) * 5, start + 5)
        inputs["B"][:, block] = (inputs["B"][:, block].astype(float) + shift).astype(inputs["B"].dtype)
    h = evaluate(Node("GRU", 22, {**attributes, "clip": 0.0}), {**inputs, "initial_h": None})["Y"][0]
    # Tanh of a sum that hardly depends on H tests the candidate; without it, float16 is near the end of its range.
    given = {"equal": h, "opposite": -h, "larger": 512 * h, "huge": 0 * h + FORMATS[kind].largest / 64, "none": 0 * h}
    inputs["initial_h"] = FORMATS[kind].nearest(given[state])
    inputs["R"] = (inputs["R"].astype(float) * 2.0**-4).astype(inputs["R"].dtype)
    nodes = [Node("GRU", 22, {**attributes, "linear_before_reset": linear}, outputs_of("GRU")) for linear in (0, 1)]
    for number, style in enumerate(STYLES.values()):
        node = nodes[number % 2]
        assert worst_ratio(node, inputs, run_kernel(node, inputs, style)) <= 1, style.name


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("reset", RESETS)
def test_a_recurrent_bias_that_cancels_the_product_may_be_multiplied_apart(reset: str, kind: str) -> None:
    inputs = inputs_for(kind, (1, 2, 2, 5), op="GRU", optional=("B", "initial_h"))
    inputs["initial_h"] = np.ones_like(inputs["initial_h"])
    inputs["R"] = (inputs["R"].astype(float) * 64).astype(inputs["R"].dtype)
    inputs["B"][:, 15:] = -inputs["R"].astype(float).sum(axis=-1)
    functions = {
        "activations": ["HardSigmoid", "Affine"],
        "activation_alpha": [0.0, 1.0],
        "activation_beta": [0.7, 0.0],
    }
    node = Node("GRU", 22, {"linear_before_reset": 1, **functions}, outputs_of("GRU"))
    for work in (None, "float32"):
        style = Style("s", work=work, stores_sums=True, order="backward", reset=reset, interpolation="difference")
        assert worst_ratio(node, inputs, run_kernel(node, inputs, style)) <= 1


# Any legal node, with data from a seed.


def numbers(least: float, most: float) -> SearchStrategy[float]:
    return st.floats(least, most, width=32, allow_subnormal=False)


coefficients = numbers(-3, 3) | st.sampled_from([0.0, 1.0, -1.0, 100.0, -100.0, 1e-7, -3e-6, 1e5])
# Down to subnormal numbers of every type.
exponents = [0, 0, 0, -1022, -126, -30, -16, -8, -3, 3, 6, 10]
scales = st.sampled_from(exponents).map(lambda exponent: 2.0**exponent)
styles = st.builds(
    Style,
    name=st.just("drawn"),
    work=st.sampled_from([None, "float32", "float64"]),
    accumulator=st.sampled_from([None, "float64"]),
    order=st.sampled_from(ORDERS),
    stores_sums=st.booleans(),
    stores_gates=st.booleans(),
    stores_state=st.booleans(),
    activation=st.sampled_from(sorted(EVALUATIONS)),
    flushes=st.booleans(),
    swallows_nan=st.booleans(),
    saturates=st.booleans(),
    interpolation=st.sampled_from(INTERPOLATIONS),
    own_complement=st.booleans(),
    reset=st.sampled_from(RESETS),
)


@st.composite
def situations(draw: DrawFn) -> tuple[Node, Arrays]:
    """Draw a legal node of version 22 with inputs."""
    kind, op = draw(st.sampled_from(TYPES)), draw(st.sampled_from(OPERATORS))
    directions, layout = draw(st.sampled_from([1, 2])), draw(st.sampled_from([0, 1]))
    most = st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(1, 9), st.sampled_from([1, 2, 5, 17]))
    sizes = draw(most)
    optional = tuple(n for n in optional_of(op) if draw(st.booleans()))
    count = st.lists(st.integers(0, sizes[0]), min_size=sizes[1], max_size=sizes[1])
    lengths = draw(st.none() | count)
    seed = draw(st.integers(0, 99))
    inputs = inputs_for(
        kind, sizes, op=op, directions=directions, layout=layout, optional=optional, lengths=lengths, seed=seed
    )
    for name, array in inputs.items():
        if name != "sequence_lens":
            with np.errstate(over="ignore"):
                inputs[name] = (array.astype(np.float64) * draw(scales)).astype(array.dtype)
    if draw(st.integers(0, 3)) == 3:
        filled = sorted(name for name, array in inputs.items() if name != "sequence_lens" and array.size)
        spoilt = inputs[draw(st.sampled_from(filled))].reshape(-1)
        strange = [np.nan, np.inf, -np.inf, FORMATS[kind].largest]
        spoilt[draw(st.integers(0, spoilt.size - 1))] = draw(st.sampled_from(strange))
    attributes: dict[str, Any] = {
        "direction": "bidirectional" if directions == 2 else draw(st.sampled_from(["forward", "reverse"])),
        "layout": layout,
        **draw(st.sampled_from([{}, *variants_of(op)])),
    }
    clip = draw(st.none() | st.none() | numbers(0, 10) | st.sampled_from([1e-7, 0.0, 1e5]))
    if clip is not None:
        attributes["clip"] = clip
    if draw(st.booleans()):
        function = st.sampled_from(sorted(ACTIVATIONS))
        count = directions * len(CELLS[op].activations)
        attributes["activations"] = draw(st.lists(function, min_size=count, max_size=count))
        for name in ("activation_alpha", "activation_beta"):
            attributes[name] = draw(st.lists(coefficients, max_size=count))
    outputs = outputs_of(op)
    return Node(op, 22, attributes, draw(st.sampled_from([outputs, ("Y",), outputs[1:]]))), inputs


def _copy_of_clip() -> tuple[Node, Arrays]:
    # A float16 copy of this threshold is a subnormal number, with an error of a third.
    lines = {"activations": ["Affine"] * 3, "activation_alpha": [1.0] * 3, "activation_beta": [1.0, 0.0, 0.0]}
    return Node("LSTM", 22, {"clip": 1e-7, **lines}, OUTPUTS), inputs_for("float16", (1, 1, 2, 1))


@settings(max_examples=500, derandomize=True, deadline=None, database=None)
@given(situation=situations(), style=styles | st.sampled_from([*STYLES.values()]), choice=st.integers(0, 10**6))
@example(situation=_copy_of_clip(), style=Style("s", stores_sums=True, activation="formula"), choice=0)
def test_no_conforming_kernel_is_accused(situation: tuple[Node, Arrays], style: Style, choice: int) -> None:
    node, inputs = situation
    possible = list(Interpretations().alternatives(configure(node, inputs).open_questions))
    outputs = run_kernel(node, inputs, style, possible[choice % len(possible)])
    assert worst_ratio(node, inputs, outputs, "flushing" if style.flushes else "standard") <= 1


# The kernels themselves: a test of conforming kernels is only as good as they are.


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    "change",
    [
        *({"interpolation": way} for way in INTERPOLATIONS),
        *({"interpolation": way, "own_complement": True} for way in INTERPOLATIONS if way not in NO_COMPLEMENT),
        *({"reset": way} for way in RESETS),
    ],
    ids=str,
)
def test_each_way_of_a_gru_is_one_of_its_own(change: dict[str, Any], kind: str) -> None:
    inputs = inputs_for(kind, (2, 3, 4, 17), op="GRU")
    node = Node("GRU", 22, {"linear_before_reset": 1})
    plain, other = (run_kernel(node, inputs, style)["Y"] for style in (Style("s"), Style("s", **change)))
    same = change in ({"interpolation": "complement"}, {"reset": "rounded"})
    assert (plain == other).all() == (same or (change == {"reset": "fused"} and kind == "float64"))


@pytest.mark.parametrize("name", ["loose", "edge"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("function", ["Tanh", "Sigmoid"])
def test_activations_that_are_off_are_so_evenly_and_within_the_envelope(function: str, kind: str, name: str) -> None:
    form = FORMATS[kind]
    activation = Activation(ACTIVATIONS[function])
    x = np.random.default_rng(1).uniform(-4, 4, 200000).astype(np.float32)
    exact = activation(x.astype(np.float64))
    error = (EVALUATIONS[name](activation, x, form).astype(np.float64) - exact) / form.unit
    assert np.abs(error / (4 * np.abs(exact) + 4)).max() <= 1
    assert np.abs(error).max() > 0.2
    assert abs(error.mean()) < 0.05
    assert abs((error * np.sign(exact)).mean()) < 0.05


def test_rounding_to_tf32_keeps_eleven_bits_and_ties_to_even() -> None:
    given = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-20, -1 - 2.0**-10, np.inf, np.nan])
    expected = [1.0, 1 + 2.0**-9, 1 + 2.0**-10, -1 - 2.0**-10, np.inf, np.nan]
    np.testing.assert_array_equal(rounded(given, "tf32"), expected)
