"""Tests of infinity, NaN, overflow and subnormals: undefined results never fail, and all others are judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onnxspec.reference import FORMATS, Interpretations, Node, compare, expect, run_fault
from onnxspec.reference.faults.fault import FAULTS
from onnxspec.reference.kernels.kernel import INTERPOLATIONS, STYLES, Style, run_kernel
from onnxspec.reference.recurrent.agreement import special_mismatches

from ..situations import (
    OPERATORS,
    OUTPUTS,
    TWO_TYPES,
    Arrays,
    agreements,
    functions_of,
    inputs_for,
    judged_share,
    optional_of,
    outputs_of,
    variants_of,
    worst_ratio,
)

TYPES = tuple(FORMATS)
CHOSEN: dict[str, dict[str, Any]] = {"LSTM": {}, "GRU": {"linear_before_reset": 1}, "RNN": {}}
RELU = {"activations": ["Relu", "Relu", "Relu"]}


def all_relu(op: str) -> dict[str, Any]:
    return {"activations": functions_of(op, "Relu")}


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("kind", TWO_TYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["library", "divided", "stored-sums-edge", "lanes", "wide-state", "saturating"])
def test_a_spoilt_row_is_left_out_and_the_others_are_judged(name: str, value: float, kind: str, op: str) -> None:
    inputs = inputs_for(kind, (4, 3, 4, 5), op=op, directions=2)
    inputs["X"][2, 1, 0] = value
    node = Node(op, 22, {"direction": "bidirectional"}, outputs_of(op))
    outputs = run_kernel(node, inputs, STYLES[name])
    assert worst_ratio(node, inputs, outputs) <= 1
    (Y, *_) = expect(node, inputs, outputs)
    assert Y.number.doubt is not None
    others = np.delete(Y.number.doubt, 1, axis=2)
    assert not others.any()
    assert not Y.number.doubt[:2, 0].any()  # before the corrupted step forward, after it in reverse
    assert not Y.number.doubt[3:, 1].any()
    assert Y.number.doubt[2, 0, 1].all()
    if op == "LSTM":
        # The cell state is not an output. Without its value, the next step starts from the returned state: Tanh(inf) is
        # finite.
        assert Y.number.doubt[2:, 0, 1].all()


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_that_a_spoilt_one_spoils_are_a_fault(value: float, op: str) -> None:
    inputs = inputs_for("float32", (4, 3, 4, 5), op=op)
    inputs["X"][2, 1, 0] = value
    node = Node(op, 22, {}, outputs_of(op))
    outputs = run_kernel(node, inputs, STYLES["library"])
    outputs["Y"][2:, 0, 2] = np.nan
    (worst, *_) = agreements(node, inputs, outputs)
    assert worst.worst == np.inf
    assert worst.nonfinite
    assert worst.index is not None
    assert worst.index[2] == 2


@pytest.mark.parametrize("kind", TWO_TYPES)
@pytest.mark.parametrize("tensor", ["W", "R", "B", "P", "initial_h", "initial_c"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_every_tensor_may_hold_what_is_not_finite(value: float, tensor: str, kind: str) -> None:
    for op in OPERATORS:
        lstm = op == "LSTM"
        if tensor not in Node(op, 22).operator.inputs:
            continue
        inputs = inputs_for(kind, (3, 2, 4, 5), op=op, optional=optional_of(op), lengths=[3, 2])
        inputs[tensor].reshape(-1)[0] = value  # belongs to unit 0, in weights to its first gate
        for attributes in ({}, {"input_forget": 1}, RELU) if lstm else (*variants_of(op), all_relu(op)):
            node = Node(op, 22, attributes, outputs_of(op))
            for name in ("library", "lanes", "stored-sums-edge"):
                outputs = run_kernel(node, inputs, STYLES[name])
                assert worst_ratio(node, inputs, outputs) <= 1
            (Y, *_) = expect(node, inputs, outputs)
            assert Y.number.doubt is not None
            if tensor in ("W", "B", "P", "initial_c"):  # at the first step it has reached only unit 0
                assert lstm or Y.number.doubt[0, :, :, 0].all()
                assert not Y.number.doubt[0, :, :, 1:].any()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("op", "attributes", "optional", "at", "unit", "others"),
    [
        ("GRU", {"linear_before_reset": 0}, ("B", "initial_h"), 5, 0, True),  # of the reset gate, which acts before R
        ("GRU", {"linear_before_reset": 1}, ("B", "initial_h"), 5, 0, False),
        ("LSTM", {}, ("B", "initial_h"), 7, 2, False),
        ("LSTM", {}, ("B", "P"), 7, 2, False),
    ],
)
def test_a_bias_that_is_not_finite_spoils_other_units_only_by_way_of_r(
    op: str, attributes: dict[str, Any], optional: tuple[str, ...], at: int, unit: int, others: bool, kind: str
) -> None:
    inputs = inputs_for(kind, (1, 2, 4, 5), op=op, optional=optional)
    inputs["B"][0, at] = np.nan
    node = Node(op, 22, attributes, ("Y",))
    (Y,) = expect(node, inputs, run_kernel(node, inputs, STYLES["library"]))
    assert Y.number.doubt is not None
    assert Y.number.doubt.shape == Y.number.value.shape
    spoilt = Y.number.doubt.all(axis=(0, 1, 2))
    assert spoilt.tolist() == Y.number.doubt.any(axis=(0, 1, 2)).tolist()
    assert spoilt.tolist() == [others or k == unit for k in range(5)]


@pytest.mark.parametrize("kind", TWO_TYPES)
@pytest.mark.parametrize(
    "style", [s for s in STYLES.values() if s.order in ("library", "fused", "backward")], ids=lambda s: s.name
)
@pytest.mark.parametrize("op", OPERATORS)
def test_chains_of_relu_may_overflow(op: str, style: Style, kind: str) -> None:
    inputs = inputs_for(kind, (12, 2, 4, 6), op=op, optional=("B",))
    largest = FORMATS[kind].largest
    # LSTM's state is a product of two gates and grows by a third; GRU's is a product of two; RNN's grows by R alone.
    size = {"LSTM": largest**0.25, "GRU": largest**0.5, "RNN": largest / 64}[op]
    inputs["X"] = (np.abs(inputs["X"].astype(float)) * size).astype(inputs["X"].dtype)
    if op == "GRU":  # one row that stays in the range
        inputs["X"][:, 1] /= inputs["X"].dtype.type(2.0**5)
    inputs["W"], inputs["R"] = np.abs(inputs["W"]), np.abs(inputs["R"])
    node = Node(op, 22, all_relu(op), outputs_of(op))
    for saturates in (False, True):
        outputs = run_kernel(node, inputs, replace(style, saturates=saturates))
        assert (np.abs(outputs["Y"].astype(float)) >= largest).any()
        assert worst_ratio(node, inputs, outputs) <= 1
    assert 0 < judged_share(node, inputs, outputs) < 1


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])  # no state is wider than float64
def test_a_state_shown_saturated_may_be_carried_on_beyond_it(kind: str) -> None:
    # H_1 is beyond the largest number; the kernel returns that one and continues with its wide state, which R makes
    # small.
    dtype, largest = FORMATS[kind].dtype, FORMATS[kind].largest
    tiny = 2.0 ** -int(np.log2(largest))
    node = Node("LSTM", 22, RELU, OUTPUTS)
    inputs: dict[str, Any] = {
        "X": np.array([[[1.0]], [[0.0]]], dtype),
        "W": np.zeros((1, 4, 1), dtype),
        "R": np.zeros((1, 4, 1), dtype),
        "B": np.zeros((1, 8), dtype),
    }
    root = 2.0 ** round(np.log2(largest) / 2)
    inputs["W"][0, :, 0] = [root, root, 0, 1]  # C_1 = root, H_1 = root * root
    inputs["R"][0, :, 0] = [0, 0, 0, tiny]
    inputs["B"][0, :2] = 1
    style = Style("wide", work="float64", accumulator="float64", stores_state=False, saturates=True)
    outputs = run_kernel(node, inputs, style)
    assert float(outputs["Y"][0].max()) == largest
    assert worst_ratio(node, inputs, outputs) <= 1


@pytest.mark.parametrize("kind", TYPES)
def test_where_infinity_is_right_the_largest_number_is_too_and_a_small_one_is_not(kind: str) -> None:
    largest = FORMATS[kind].largest
    inputs = inputs_for(kind, (1, 1, 2, 2), optional=("initial_c",))
    inputs["initial_c"][...] = largest
    node = Node("LSTM", 22, {"activations": ["HardSigmoid", "Relu", "Relu"]}, OUTPUTS)
    for saturates in (False, True):
        outputs = run_kernel(node, inputs, Style("s", saturates=saturates))
        assert worst_ratio(node, inputs, outputs) <= 1
    small = {name: np.zeros_like(array) for name, array in outputs.items()}
    assert worst_ratio(node, inputs, small) > 4


@pytest.mark.parametrize("op", OPERATORS)
def test_nan_through_relu_and_clip_is_a_interpretation(op: str) -> None:
    inputs = inputs_for("float32", (3, 2, 3, 4), op=op)
    inputs["X"][1, 0, 0] = np.nan
    for attributes in (all_relu(op), {"clip": 0.5}):
        node = Node(op, 22, attributes, outputs_of(op))
        results = [run_kernel(node, inputs, Style("s", swallows_nan=swallows)) for swallows in (False, True)]
        assert np.isnan(results[0]["Y"]).any()
        assert np.isfinite(results[1]["Y"]).all()
        assert all(worst_ratio(node, inputs, outputs) <= 1 for outputs in results)


def spoilt_inputs(op: str, name: str, kind: str = "float32") -> Arrays:
    """Return inputs with a NaN in one of them, or in none if there is none of that name."""
    inputs = inputs_for(kind, (3, 2, 3, 4), op=op, optional=optional_of(op), lengths=[3, 2], directions=2)
    inputs[name].reshape(-1)[0] = np.nan
    return inputs


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("name", ["X", "W", "R", "B", "P", "initial_h", "initial_c"])
def test_no_conforming_variant_loses_nan_where_only_sums_products_sigmoid_and_tanh_lie_between(
    name: str, op: str
) -> None:
    if name not in Node(op, 22).operator.inputs:
        return
    inputs = spoilt_inputs(op, name, "float32" if name in "XRP" else "bfloat16")
    made = {"activations": functions_of(op, "Affine", "ScaledTanh", "Tanh") * 2}
    for attributes in (CHOSEN[op], made):
        node = Node(op, 22, {**attributes, "direction": "bidirectional"}, outputs_of(op))
        for style in STYLES.values():
            outputs = run_kernel(node, inputs, style)
            assert special_mismatches(node, inputs, outputs) == [], style.name


@pytest.mark.parametrize("op", OPERATORS)
def test_a_number_where_the_equations_give_nan_is_a_departure_of_exactly_those_elements(op: str) -> None:
    inputs = inputs_for("float32", (4, 3, 3, 5), op=op)
    inputs["X"][2, 1, 0] = np.nan
    node = Node(op, 22, {}, outputs_of(op))
    right = run_kernel(node, inputs, STYLES["library"])
    lost = special_mismatches(node, inputs, {n: np.nan_to_num(a) for n, a in right.items()})
    assert [each.output for each in lost] == list(outputs_of(op))
    for each in lost:
        assert (each.lost == np.isnan(right[each.output])).all()
        assert (each.entry, each.clause) == ("X[2, 1, 0]", f"{op.lower()}.nan.kept")


@pytest.mark.parametrize("op", OPERATORS)
def test_nan_may_be_lost_by_what_selects_in_padding_and_in_a_row_without_steps(op: str) -> None:
    bidirectional = {"direction": "bidirectional"}
    unread = inputs_for("float32", (4, 2, 3, 5), op=op, lengths=[2, 0], directions=2)
    unread["X"][2:, 0] = np.nan
    unread["initial_h"][:, 1] = np.nan
    selecting = ({"activations": functions_of(op, "Relu") * 2}, {"clip": 0.5})
    for attributes, inputs in (*((each, spoilt_inputs(op, "X")) for each in selecting), ({}, unread)):
        node = Node(op, 22, {**attributes, **bidirectional}, outputs_of(op))
        outputs = {n: np.nan_to_num(a) for n, a in run_kernel(node, inputs, STYLES["library"]).items()}
        assert special_mismatches(node, inputs, outputs) == []


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("kind", TYPES)
def test_padding_may_hold_anything(kind: str, op: str) -> None:
    inputs = inputs_for(kind, (4, 2, 3, 5), op=op, directions=2, lengths=[2, 4])
    inputs["X"][2:, 0] = np.nan
    node = Node(op, 22, {"direction": "bidirectional"}, outputs_of(op))
    outputs = run_kernel(node, inputs, STYLES["library"])
    assert worst_ratio(node, inputs, outputs) <= 1
    assert judged_share(node, inputs, outputs) == 1
    wrong = run_fault(FAULTS["lengths.reverse-reads-padding"], node, inputs)
    assert worst_ratio(node, inputs, wrong) > 4


@pytest.mark.parametrize("kind", TWO_TYPES)
@pytest.mark.parametrize("style", STYLES.values(), ids=lambda s: s.name)
@pytest.mark.parametrize("op", OPERATORS)
def test_subnormal_numbers_may_be_taken_for_zero_in_the_flushing_class(op: str, style: Style, kind: str) -> None:
    form = FORMATS[kind]
    inputs = inputs_for(kind, (3, 2, 4, 5), op=op, optional=("B", "initial_h", "initial_c"))
    flushing = replace(style, flushes=True)
    for names in (("Sigmoid", "Tanh"), ("HardSigmoid", "Relu", "LeakyRelu"), ("Affine", "Relu", "Tanh")):
        node = Node(op, 22, {"activations": functions_of(op, *names), **CHOSEN[op]}, outputs_of(op))
        for scale in (form.least_normal, 4 * form.least_normal, 1.0):
            small = {n: (a.astype(float) * scale).astype(a.dtype) for n, a in inputs.items() if n != "W"}
            small["W"] = inputs["W"]
            outputs = run_kernel(node, small, flushing)
            assert worst_ratio(node, small, outputs, "flushing") <= 1


def test_a_flushed_difference_of_states_may_be_multiplied_by_a_large_gate() -> None:
    # h + z (H - h): H - h is subnormal and taken for zero, z is 100.
    least, dtype = FORMATS["float16"].least_normal, FORMATS["float16"].dtype
    inputs: dict[str, Any] = {name: np.zeros(shape, dtype) for name, shape in {"X": (1, 1, 1), "W": (1, 3, 1)}.items()}
    inputs |= {"R": np.zeros((1, 3, 1), dtype), "B": np.array([[100, 0, 1.5 * least, 0, 0, 0]], dtype)}
    inputs["initial_h"] = np.full((1, 1, 1), 2.4 * least, dtype)
    functions = {"activations": ["Affine", "Affine"], "activation_alpha": [1.0, 1.0], "activation_beta": [0.0, 0.0]}
    node = Node("GRU", 22, functions, ("Y", "Y_h"))
    for way in INTERPOLATIONS:
        outputs = run_kernel(node, inputs, Style("s", flushes=True, interpolation=way))
        assert worst_ratio(node, inputs, outputs, "flushing") <= 1, way


def test_what_flushes_is_accused_by_the_standard_class_and_not_by_its_own() -> None:
    least = FORMATS["float32"].least_normal
    inputs = inputs_for("float32", (1, 1, 2, 3), optional=("initial_c",))
    inputs["initial_c"] = (inputs["initial_c"] * np.float32(least)).astype(np.float32)
    inputs["X"] *= 0
    node = Node("LSTM", 22, {"activations": ["HardSigmoid", "Relu", "LeakyRelu"]}, OUTPUTS)
    outputs = run_kernel(node, inputs, Style("s", flushes=True))
    assert worst_ratio(node, inputs, outputs, "standard") > 4
    assert worst_ratio(node, inputs, outputs, "flushing") <= 1


# Coefficients in a kernel of a half type.


def one_unit(kind: str, attributes: dict[str, Any], x: float) -> tuple[Node, Arrays]:
    """Return one step of one unit, whose C is x: the input gate is open, the forget gate closed, g is Relu."""
    dtype = FORMATS[kind].dtype
    weights, bias = np.zeros((1, 4, 1), dtype), np.zeros((1, 8), dtype)
    weights[0, 3, 0] = 1
    bias[0, :4] = [8, 8, -8, 0]
    inputs = {"X": np.full((1, 1, 1), x, dtype), "W": weights, "R": np.zeros((1, 4, 1), dtype), "B": bias}
    return Node("LSTM", 22, attributes, OUTPUTS), inputs


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.7, 1.1])
def test_a_threshold_may_be_a_rounded_copy_even_in_exact_arithmetic(alpha: float, kind: str) -> None:
    attributes = {
        "activations": ["HardSigmoid", "Relu", "ThresholdedRelu"],
        "activation_alpha": [0.25, alpha],
        "activation_beta": [0.5],
    }
    copy = float(np.array(alpha).astype(FORMATS[kind].dtype))
    node, inputs = one_unit(kind, attributes, copy)
    for work in (None, "float32"):
        for threshold in ("at", "above"):
            style = Style("s", work=work, activation="formula")
            outputs = run_kernel(node, inputs, style, Interpretations(threshold=threshold))
            assert worst_ratio(node, inputs, outputs) <= 1


@pytest.mark.parametrize(("h", "alpha", "beta", "clip"), [
    ("Relu", 0.0, 0.0, 1e-7),
    ("Affine", 3e-8, 1e-7, None),
    ("Affine", 200.0, -6e4, None),
    ("ScaledTanh", 1e5, 1e-4, None),
], ids=["clip-underflows", "coefficients-underflow", "product-overflows", "coefficient-overflows"])  # fmt: skip
def test_float16_has_less_range_than_attributes(h: str, alpha: float, beta: float, clip: float | None) -> None:
    attributes: dict[str, Any] = {
        "activations": ["HardSigmoid", "Relu", h],
        "activation_alpha": [0.2, alpha],
        "activation_beta": [0.5, beta],
    }
    if clip is not None:
        attributes["clip"] = clip
    for x in (0.01, 1.5, 350.0):
        node, inputs = one_unit("float16", attributes, x)
        for work in (None, "float32", "float64"):
            outputs = run_kernel(node, inputs, Style("s", work=work, activation="formula"))
            assert worst_ratio(node, inputs, outputs) <= 1, (x, work)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("T", [0, 2])
@pytest.mark.parametrize(("accuracy", "inner"), [("f16-storage", "float16"), ("bf16-storage", "bfloat16")])
def test_a_class_that_stores_narrowly_stores_initial_states_so_too(
    accuracy: str, inner: str, T: int, kind: str, op: str
) -> None:
    inputs = inputs_for(kind, (T, 3, 2, 4), op=op, lengths=[0, T, T])
    node = Node(op, 22, CHOSEN[op], outputs_of(op))
    narrow = {n: a if n == "sequence_lens" else a.astype(FORMATS[inner].dtype) for n, a in inputs.items()}
    outputs = {n: a.astype(FORMATS[kind].dtype) for n, a in run_kernel(node, narrow, STYLES["library"]).items()}
    assert worst_ratio(node, inputs, outputs, accuracy) <= 1


def test_a_class_without_a_bound_judges_nothing() -> None:
    # 8 bits of precision: sums of more than 32 terms have no useful bound when they are added in bfloat16.
    inputs = inputs_for("bfloat16", (2, 2, 4, 33))
    node = Node("LSTM", 22, {}, OUTPUTS)
    outputs = run_kernel(node, inputs, STYLES["library"])
    assert judged_share(node, inputs, outputs, "fast") < 1
    for expectation in expect(node, inputs, outputs, "fast"):
        agreement = compare(expectation, outputs[expectation.output])
        assert agreement.worst == 0
