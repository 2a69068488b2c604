"""Tests that wraps are exact: the wrapped node gets, bit for bit, the inputs that the case states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

from onnxspec.cases import CaseSpec, build_case
from onnxspec.cases.specs.case import Trial
from onnxspec.cases.specs.model import array_of
from onnxspec.cases.specs.wrapping import EXACT, can_wrap, wrap
from onnxspec.reference import FORMATS, Node, evaluate

from ..samples import RICH, SAMPLES


def what_the_node_gets(trial: Trial, fed: Any) -> dict[str, Any]:
    """Return the inputs of the last node by formal name.

    The nodes before it are computed by the operators' documents.
    """
    model = onnx.load_model_from_string(trial.model)
    *before, node = model.graph.node
    assert node.op_type == trial.node.op_type
    values = {**{c.name: held(c) for c in model.graph.initializer}, **fed}
    for earlier in before:
        inputs = [values[name] for name in earlier.input]
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in earlier.attribute}
        values[earlier.output[0]] = step(earlier.op_type, inputs, attributes, trial)
    formal = zip(node.input, trial.node.operator.inputs, strict=False)
    return {name: values[tensor] for tensor, name in formal if tensor}


INTEGERS = (onnx.TensorProto.INT8, onnx.TensorProto.INT64)
TYPES = {FORMATS[name].onnx_type: FORMATS[name].dtype for name in FORMATS}


def held(tensor: onnx.TensorProto) -> Any:
    return onnx.numpy_helper.to_array(tensor) if tensor.data_type in INTEGERS else array_of(tensor)


def step(operator: str, inputs: list[Any], attributes: dict[str, Any], trial: Trial) -> Any:
    """Return the output of one operator that wraps use."""
    x = inputs[0]
    if operator == "Neg":
        return -x
    if operator == "Add":
        return x + inputs[1]
    if operator == "Cast":
        return x.astype(TYPES[attributes["to"]])
    if operator == "QuantizeLinear":
        return np.clip(np.rint((x / inputs[1]).astype(np.float64)) + inputs[2], -128, 127).astype(np.int8)
    if operator == "DequantizeLinear":
        return (x.astype(inputs[1].dtype) - inputs[2].astype(inputs[1].dtype)) * inputs[1]
    if operator == "Squeeze":
        return x.squeeze(tuple(attributes.get("axes", inputs[-1].tolist() if len(inputs) > 1 else ())))
    assert operator == trial.node.op_type
    plain = {n: v.decode() if isinstance(v, bytes) else v for n, v in attributes.items()}
    layer = Node(operator, trial.node.since_version, plain, ("Y",))
    return evaluate(layer, dict(zip("XWR", inputs, strict=True)))["Y"].astype(x.dtype)


@pytest.mark.parametrize("name", EXACT)
def test_the_node_gets_what_the_case_says_from_a_node_before_it(name: str) -> None:
    specs = [spec for spec in SAMPLES if can_wrap(spec, name)]
    assert len(specs) >= 5
    for spec in specs:
        operator, bare = spec.node.operator, build_case(spec)
        for trial, plain in zip(wrap(bare, name).trials, bare.trials, strict=True):
            model = onnx.load_model_from_string(trial.model)
            onnx.checker.check_model(model, full_check=True)
            assert any("X_again" in node.output for node in model.graph.node)
            outputs = onnx.load_model_from_string(plain.model).graph.output
            assert [output.name for output in model.graph.output] == [output.name for output in outputs]
            assert operator.since_version <= model.opset_import[0].version <= operator.last_opset
            for feed in trial.feeds:
                got = what_the_node_gets(trial, feed.fed)
                assert set(got) == set(feed.inputs)
                for formal, array in feed.inputs.items():
                    assert got[formal].dtype == array.dtype, spec.id
                    assert np.array_equal(got[formal], array), (spec.id, formal)


def test_numbers_are_still_dense() -> None:
    spec = CaseSpec("LSTM", 14, **RICH)
    for name in ("cast", "qdq"):
        weights = wrap(build_case(spec), name).trial.feeds[0].inputs["W"]
        assert len(np.unique(weights)) > 0.7 * weights.size
        assert np.abs(weights - build_case(spec).trial.feeds[0].inputs["W"]).max() < 0.01


def test_float16_is_kept_away_from_its_subnormal_numbers() -> None:
    spec = CaseSpec("LSTM", 14, data="small", **RICH)
    for array in wrap(build_case(spec), "cast").trial.feeds[0].inputs.values():
        if array.dtype == np.float32:
            assert np.abs(array[array != 0]).min() >= 2.0**-14


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (CaseSpec("LSTM", 14, "float64", **RICH), "qdq"),  # float64 cannot be quantized
        (CaseSpec("LSTM", 1, **RICH), "qdq"),  # QuantizeLinear came with opset 10
        (CaseSpec("LSTM", 14, "float16", data="nan-row", **RICH), "qdq"),
        (CaseSpec("LSTM", 14, data="inf-row", **RICH), "layers"),  # infinity times zero
        (CaseSpec("LSTM", 14, N=0, T=4, I=2, H=5), "layers"),
    ],
)
def test_what_no_wrap_passes_on_is_not_wrapped(spec: CaseSpec, name: str) -> None:
    assert not can_wrap(spec, name)
    assert can_wrap(spec, "neg")


def test_a_range_up_to_the_largest_number_is_not_quantized() -> None:
    top = CaseSpec("GRU", 14, bias=True, extremes="top")
    assert not can_wrap(top, "qdq-u8")
    assert can_wrap(replace(top, extremes="bias"), "qdq-u8")
