"""``check`` and ``run MODEL`` on com.microsoft::DynamicQuantizeLSTM, on models that onnxruntime's own tool makes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnxspec.conformance.checking.check import check_model
from onnxspec.conformance.extraction.cases import cases_of_model

from .nodes import I, N, model_of, recurrent, weights_of

quantization = pytest.importorskip("onnxruntime.quantization")


@pytest.fixture(scope="module")
def floating(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a model with a bidirectional float LSTM."""
    node = recurrent("LSTM", ("X", "W", "R", "B"), direction="bidirectional")
    path = tmp_path_factory.mktemp("floating") / "model.onnx"
    onnx.save(model_of([node], {"X": ("steps", N, I)}, weights_of("LSTM", 2), 17), path)
    return path


@pytest.mark.parametrize("kind", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_what_quantize_dynamic_makes_is_right_and_can_be_taken_out(
    floating: Path, tmp_path: Path, kind: str, per_channel: bool
) -> None:
    path = tmp_path / "quantized.onnx"
    weights = getattr(quantization.QuantType, kind)
    quantization.quantize_dynamic(
        floating, path, op_types_to_quantize=["LSTM"], per_channel=per_channel, weight_type=weights
    )
    checked = check_model(path)
    assert [operator for _, operator in checked.nodes] == ["com.microsoft::DynamicQuantizeLSTM-1"]
    assert (checked.problems, checked.unchecked, checked.inconclusive) == ((), (), ())
    (node,) = cases_of_model(path, tmp_path / "cases")
    assert (node.operator, node.why) == ("com.microsoft::DynamicQuantizeLSTM-1", "")
    taken = onnx.load(tmp_path / "cases" / node.case / "model.onnx")
    assert taken.graph.node[0].domain == "com.microsoft"


@pytest.mark.parametrize(
    ("name", "change", "rule", "words"),
    [
        ("R_zero_point", lambda a: a.astype(np.uint8), "types", "R_zero_point is uint8 while W is int8"),
        (
            "W_scale",
            lambda a: a.astype(np.float64),
            "types",
            "W_scale is float64, which com.microsoft::DynamicQuantizeLSTM-1 does not take",
        ),
        ("W_scale", lambda a: np.tile(a, 2), "shapes", "W_scale has shape (4,)"),
        ("W", lambda a: a.swapaxes(1, 2), "shapes", "W has shape (2, 20, 3)"),
        ("W", lambda a: a.astype(np.float32), "types", "W is float32, not uint8 or int8"),
    ],
)
def test_what_breaks_its_document_is_named(
    floating: Path, tmp_path: Path, name: str, change: object, rule: str, words: str
) -> None:
    path = tmp_path / "quantized.onnx"
    quantization.quantize_dynamic(floating, path, op_types_to_quantize=["LSTM"])
    model = onnx.load(path)
    formal = [
        *("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"),
        *("W_scale", "W_zero_point", "R_scale", "R_zero_point"),
    ]
    called = model.graph.node[0].input[formal.index(name)]
    (tensor,) = [t for t in model.graph.initializer if t.name == called]
    tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor)), called))  # type: ignore[operator]
    problems = check_model(model).problems
    assert f"dynamicquantizelstm.{rule}" in {problem.rule for problem in problems}
    assert any(words in problem.message for problem in problems), [p.message for p in problems]
