"""Unreadable models are refused with a one-line reason; shape inference does not copy weights."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf.internal.encoder import _VarintBytes as varint
from onnx import TensorProto, helper, numpy_helper

from onnxspec.conformance.models.content import ModelError, Unreadable, read_content
from onnxspec.conformance.models.inference import main_scope

from ..checking.nodes import branch, choice, model_of

LARGE = np.arange(100_000, dtype=np.float32)
W, SHORT = numpy_helper.from_array(LARGE, "W"), numpy_helper.from_array(LARGE[:3], "b")


def model_with(*tensors: TensorProto) -> onnx.ModelProto:
    model = model_of([], {}, {}, outputs=())
    model.graph.initializer.extend(tensors)
    return model


def saved(folder: Path, *tensors: TensorProto) -> Path:
    """Write a model with these tensors, beside a file with ten numbers, and return its path."""
    (folder / "data.bin").write_bytes(LARGE[:10].tobytes())
    (folder / "model.onnx").write_bytes(model_with(*tensors).SerializeToString())
    return folder / "model.onnx"


def external(location: str = "data.bin", element: int = 1, size: int = 4, **entries: int) -> TensorProto:
    tensor = TensorProto(name="E", data_type=element, dims=[size], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def test_weights_are_read_within_a_bound_from_the_model_or_its_folder(tmp_path: Path) -> None:
    tensors = (W, SHORT, external(), external(offset=8), external(element=TensorProto.INT4, size=80))
    content = read_content(saved(tmp_path, *tensors))
    assert content.base == tmp_path.resolve()
    for tensor, expected in zip(tensors, (LARGE, LARGE[:3], LARGE[:4], LARGE[2:6]), strict=False):
        np.testing.assert_array_equal(content.array(tensor, 1 << 20), expected)
    with pytest.raises(Unreadable, match="takes 400000 bytes"):
        content.array(W, 1000)
    np.testing.assert_array_equal(read_content(model_with(), tmp_path).array(external(), 100), LARGE[:4])
    with pytest.raises(Unreadable, match="without its folder"):
        read_content(model_with(external())).array(external(), 100)


def test_the_whole_model_has_its_weights_again(tmp_path: Path) -> None:
    path = saved(tmp_path, W, SHORT, external(length=16))
    *inside, last = read_content(onnx.load(path, load_external_data=False), tmp_path).whole().graph.initializer
    for tensor, expected in zip((*inside, last), (LARGE, LARGE[:3], LARGE[:4]), strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), expected)
    assert not last.external_data


def test_shape_inference_does_not_copy_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = branch([helper.make_node("Constant", [], ["w"], value=W)], "w")
    both = helper.make_node("Add", ["Y", "W"], ["sum"])
    sizes = []
    infer = onnx.shape_inference.infer_shapes
    monkeypatch.setattr(
        onnx.shape_inference, "infer_shapes", lambda m, **kw: (sizes.append(m.ByteSize()), infer(m, **kw))[1]
    )
    model = model_of([choice(inner, inner), both], {"c": ()}, {"W": LARGE}, 17, ())
    scope = main_scope(read_content(model.SerializeToString()))
    assert scope.type_of("sum").shape == LARGE.shape
    assert max(sizes) < 2000


@pytest.mark.parametrize("location", ["../secret.bin", "{secret}", "link.bin", "folder/secret.bin"])
def test_nothing_outside_the_folder_is_opened(tmp_path: Path, location: str) -> None:
    inside, secret = tmp_path / "inside", tmp_path / "secret.bin"
    inside.mkdir()
    secret.write_bytes(bytes(40))
    (inside / "link.bin").symlink_to(secret)
    (inside / "folder").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(ModelError, match="is outside the folder"):
        read_content(saved(inside, external(location.format(secret=secret))))


@pytest.mark.parametrize(
    ("tensor", "old", "new", "message"),
    [
        (external(offset=10), b"data.bin", b"data.b\xffn", "is missing"),
        (external(offset=10), b"location", b"loc\xfftion", "names no file"),
        (external(offset=10), b"10", b"\xff0", "has offset"),
        (external(element=TensorProto.INT4, size=81), b"", b"", "has 40 bytes, the tensor takes 41"),
    ],
)
def test_a_damaged_place_of_external_data_is_refused(
    tmp_path: Path, tensor: TensorProto, old: bytes, new: bytes, message: str
) -> None:
    path = saved(tmp_path, tensor)
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(ModelError, match=message):
        read_content(path)


def nested(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):  # ModelProto.graph, GraphProto.node, NodeProto.attribute, AttributeProto.g ...
        for number in (6, 5, 1):
            inner = bytes([number << 3 | 2]) + varint(len(inner)) + inner
    return b"\x3a" + varint(len(inner)) + inner


WHOLE = model_with(W).SerializeToString()


NO_MODELS = {
    "empty": (b"", "is empty"),
    "zeros": (b"\x00" * 100, "is no ONNX model"),
    "zip": (b"PK\x03\x04 a zip, or a checkpoint", "is no ONNX model"),
    "ones": (b"\xff" * 1000, "is no ONNX model"),
    "last-byte": (WHOLE[:-1], "cut off"),
    "half": (WHOLE[: len(WHOLE) // 2], "cut off"),
    "no-graph": (b"\x08\x08", "holds no graph"),
    "nested": (nested(60), "is no ONNX model"),
    "nested-deep": (nested(2_000), "is no ONNX model"),
    "none": (None, "does not exist"),
    ".": (None, "is no file"),
    "pipe": (None, "is no file"),
}


@pytest.mark.parametrize("name", NO_MODELS)
def test_a_file_without_a_model_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    content, message = NO_MODELS[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    if name == "pipe":
        os.mkfifo(tmp_path / name)  # opening it would never end
    with pytest.raises(ModelError, match=message) as caught:
        read_content(tmp_path / name)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)
