"""Unreadable models are refused with a one-line reason; shape inference does not copy weights."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxspec.conformance.models.content import ModelError, Unreadable, read_content
from onnxspec.conformance.models.inference import main_scope

LARGE = np.arange(100_000, dtype=np.float32)


def model_with(*tensors: TensorProto) -> onnx.ModelProto:
    graph = helper.make_graph([], "weights", [], [], list(tensors))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def saved(folder: Path, *tensors: TensorProto) -> Path:
    """Write a model with these tensors, and return its path."""
    (folder / "model.onnx").write_bytes(model_with(*tensors).SerializeToString())
    return folder / "model.onnx"


def test_weights_are_read_within_a_bound(tmp_path: Path) -> None:
    content = read_content(
        saved(tmp_path, numpy_helper.from_array(LARGE, "W"), numpy_helper.from_array(LARGE[:3], "b"))
    )
    W, b = content.proto.graph.initializer
    np.testing.assert_array_equal(content.array(W, 1 << 20), LARGE)
    np.testing.assert_array_equal(content.array(b, 1 << 20), LARGE[:3])
    with pytest.raises(Unreadable, match="takes 400000 bytes"):
        content.array(W, 1000)


def test_shape_inference_does_not_copy_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    constant = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(LARGE, "w"))
    branch = helper.make_graph([constant], "branch", [], [helper.make_empty_tensor_value_info("w")])
    node = helper.make_node("If", ["c"], ["o"], then_branch=branch, else_branch=branch)
    both = helper.make_node("Add", ["o", "W"], ["sum"])
    inputs = [helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    graph = helper.make_graph([node, both], "g", inputs, [], [numpy_helper.from_array(LARGE, "W")])
    sizes = []
    infer = onnx.shape_inference.infer_shapes
    monkeypatch.setattr(
        onnx.shape_inference, "infer_shapes", lambda m, **kw: (sizes.append(m.ByteSize()), infer(m, **kw))[1]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    scope = main_scope(read_content(model.SerializeToString()))
    assert scope.type_of("sum").shape == LARGE.shape
    assert max(sizes) < 2000


def test_the_whole_model_has_its_weights_again(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(LARGE.tobytes())
    outside = external("data.bin")
    model = model_with(numpy_helper.from_array(LARGE, "W"), numpy_helper.from_array(LARGE[:3], "b"), outside)
    W, b, last = read_content(model, tmp_path).whole().graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(W), LARGE)
    np.testing.assert_array_equal(numpy_helper.to_array(b), LARGE[:3])
    assert not last.external_data


def external(location: str, **entries: int) -> TensorProto:
    tensor = TensorProto(name="W", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def test_external_data_is_read_from_the_folder_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(LARGE[:10].tobytes())
    content = read_content(saved(tmp_path, external("data.bin", offset=8)))
    np.testing.assert_array_equal(content.array(content.proto.graph.initializer[0], 100), LARGE[2:6])


def test_nothing_outside_the_folder_is_opened(tmp_path: Path) -> None:
    inside, secret = tmp_path / "inside", tmp_path / "secret.bin"
    inside.mkdir()
    secret.write_bytes(LARGE[:10].tobytes())
    (inside / "link.bin").symlink_to(secret)
    (inside / "folder").symlink_to(tmp_path, target_is_directory=True)
    for location in ("../secret.bin", str(secret), "link.bin", "folder/secret.bin"):
        with pytest.raises(ModelError, match="is outside the folder"):
            read_content(saved(inside, external(location)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"data.bin", b"data.b\xffn", "is missing"),
        (b"location", b"loc\xfftion", "names no file"),
        (b"10", b"\xff0", "has offset"),
    ],
)
def test_a_damaged_place_of_external_data_is_refused(tmp_path: Path, old: bytes, new: bytes, message: str) -> None:
    (tmp_path / "data.bin").write_bytes(bytes(100))
    path = saved(tmp_path, external("data.bin", offset=10))
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(ModelError, match=message):
        read_content(path)


def test_several_small_elements_share_a_byte(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(bytes(2))
    tensor = external("data.bin")
    tensor.data_type = TensorProto.INT4
    assert read_content(saved(tmp_path, tensor)).base == tmp_path.resolve()
    tensor.dims[0] = 5
    with pytest.raises(ModelError, match="has 2 bytes, the tensor takes 3"):
        read_content(saved(tmp_path, tensor))


def test_external_data_of_a_model_in_memory_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(LARGE[:10].tobytes())
    model = model_with(external("data.bin"))
    with pytest.raises(Unreadable, match="without its folder"):
        read_content(model).array(model.graph.initializer[0], 100)
    array = read_content(model, tmp_path).array(model.graph.initializer[0], 100)
    np.testing.assert_array_equal(array, LARGE[:4])


def nested(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):  # ModelProto.graph, GraphProto.node, NodeProto.attribute, AttributeProto.g ...
        for number in (6, 5, 1):
            inner = bytes([number << 3 | 2]) + varint(len(inner)) + inner
    return b"\x3a" + varint(len(inner)) + inner


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


WHOLE = model_with(numpy_helper.from_array(LARGE, "W")).SerializeToString()


NO_MODELS = {
    "empty": (b"", "is empty"),
    "zeros": (b"\x00" * 100, "is no ONNX model"),
    "zip": (b"PK\x03\x04 a zip, or a checkpoint", "is no ONNX model"),
    "ones": (b"\xff" * 1000, "is no ONNX model"),
    "last byte": (WHOLE[:-1], "cut off"),
    "half": (WHOLE[: len(WHOLE) // 2], "cut off"),
    "no graph": (b"\x08\x08", "holds no graph"),
    "nested": (nested(60), "is no ONNX model"),
    "nested deep": (nested(2_000), "is no ONNX model"),
}


@pytest.mark.parametrize("name", NO_MODELS)
def test_what_is_no_model_says_so_in_one_line(tmp_path: Path, name: str) -> None:
    content, message = NO_MODELS[name]
    (tmp_path / "bad.onnx").write_bytes(content)
    with pytest.raises(ModelError, match=message) as caught:
        read_content(tmp_path / "bad.onnx")
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, message in (("none.onnx", "does not exist"), ("", "is no file"), ("pipe", "is no file")):
        with pytest.raises(ModelError, match=message):
            read_content(tmp_path / name)
