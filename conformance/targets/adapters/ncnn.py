"""Adapter for ncnn behind its converter pnnx, on the CPU. Package: ncnn onnx. No options.

pnnx converts a recurrent node as exporters write it: constant weights, and behind Y a Squeeze (for two directions
Transpose and Reshape). ncnn has no batches. So the adapter adds these nodes and runs rows one by one, each with its
part of the inputs. A converter that dies ends the worker, so that this is no refusal.

pnnx is a program in a package of that name: pip install --no-deps pnnx, since it requires PyTorch and does not use it.

Tested: ncnn 1.0.20261020 with pnnx 20261020, on CPU.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ncnn: Any = importlib.import_module("ncnn")

OPTION_DEFAULTS: dict[str, Any] = {}

SESSIONS = ("held", "several", "many", "refusals", "sizes")

_INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
_ROWS = {"X": 1, "sequence_lens": 0, "initial_h": 1, "initial_c": 1}
"""The axis of rows in each input."""

_BY_STEP = 2
"""The axis of rows in Y; in states it is 1."""


class Adapter:
    """ncnn on the CPU, one thread, in float32."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._program = Path(ncnn.__file__).parent.parent / "pnnx" / "pnnx"
        if not self._program.is_file():
            raise RuntimeError("no program pnnx: pip install --no-deps pnnx")

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": "ncnn",
            "version": version("ncnn"),
            "converter": f"pnnx {version('pnnx')}",
            "batches": "rows run one by one",
            "provider": "",
            "device": "CPU",
        }

    def prepare(self, model: bytes) -> Session:
        """Convert `model`, in the form of one row."""
        proto = onnx.load_model_from_string(model)
        if len(proto.graph.node) != 1:
            raise ValueError("the adapter puts what pnnx asks for behind one node, and this model has several")
        (node,) = proto.graph.node
        given = dict(zip(_INPUTS, node.input, strict=False))
        names = {tensor.name for tensor in proto.graph.initializer}
        for name in ("W", "R", "B", "P"):
            if given.get(name) and given[name] not in names:
                raise ValueError(f"pnnx takes {name} as a constant")
        if any(attribute.name == "layout" and attribute.i for attribute in node.attribute):
            raise ValueError("pnnx takes layout 0")
        if any(value.type.tensor_type.elem_type != TensorProto.FLOAT for value in proto.graph.output):
            raise ValueError("ncnn takes float32")
        rowed = {given[name]: axis for name, axis in _ROWS.items() if given.get(name)}
        held = _taken_out(proto, {given[name] for name in _ROWS if given.get(name)})
        for value in proto.graph.input:
            if value.name in rowed:
                value.type.tensor_type.shape.dim[rowed[value.name]].dim_value = 1
        constants = {tensor.name for tensor in proto.graph.initializer}
        inputs = [(value.name, rowed[value.name]) for value in proto.graph.input if value.name not in constants]
        outputs = [_BY_STEP if value.name == node.output[0] else 1 for value in proto.graph.output]
        directions = 2 if any(a.s == b"bidirectional" for a in node.attribute if a.name == "direction") else 1
        _add_what_exporters_add(proto, directions)
        return Session(self._converted(proto), inputs, held, outputs, directions, given["X"])

    def _converted(self, proto: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(proto, os.path.join(folder, "m.onnx"))
            command = [str(self._program), "m.onnx", "fp16=0"]
            done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            text = done.stdout.decode("utf-8", "replace")
            print(text)
            if done.returncode < 0:
                os.kill(os.getpid(), -done.returncode)
            left = re.search(r"^todo (\w+)", text, re.MULTILINE)
            if left:
                raise ValueError(f"pnnx leaves {left.group(1)} as it is: todo")
            if done.returncode:
                raise ValueError(f"pnnx ends with {done.returncode}")
            net = ncnn.Net()
            net.opt.num_threads = 1
            net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
            net.opt.use_bf16_storage = False
            param, weights = (os.path.join(folder, f"m.ncnn.{end}") for end in ("param", "bin"))
            if net.load_param(param) or net.load_model(weights):
                raise ValueError("ncnn does not load what pnnx wrote")
            return net


def _taken_out(proto: Any, names: set[str]) -> dict[str, np.ndarray]:
    """Turn constants of these names into inputs, so that each row gets its part, and return their values."""
    held = {}
    declared = {value.name for value in proto.graph.input}
    for tensor in [tensor for tensor in proto.graph.initializer if tensor.name in names]:
        held[tensor.name] = numpy_helper.to_array(tensor)
        proto.graph.initializer.remove(tensor)
        if tensor.name not in declared:
            value = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            proto.graph.input.append(value)
    return held


def _add_what_exporters_add(proto: Any, directions: int) -> None:
    """Add the nodes that exporters of PyTorch put behind Y."""
    (node,) = proto.graph.node
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    y = node.output[0]
    if not y:
        return
    opset = next(entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx"))
    node.output[0] = f"{y}_raw"
    if directions == 2:
        proto.graph.initializer.append(numpy_helper.from_array(np.array([0, 0, -1], np.int64), f"{y}_shape"))
        swapped = helper.make_node("Transpose", [f"{y}_raw"], [f"{y}_swapped"], perm=[0, 2, 1, 3])
        proto.graph.node.extend([swapped, helper.make_node("Reshape", [f"{y}_swapped", f"{y}_shape"], [y])])
    elif opset < 13:
        proto.graph.node.append(helper.make_node("Squeeze", [f"{y}_raw"], [y], axes=[1]))
    else:
        proto.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), f"{y}_axes"))
        proto.graph.node.append(helper.make_node("Squeeze", [f"{y}_raw", f"{y}_axes"], [y]))


class Session:
    """A converted model, and the constants that each row gets its part of."""

    def __init__(
        self,
        net: Any,
        inputs: list[tuple[str, int]],
        held: dict[str, np.ndarray],
        outputs: list[int],
        directions: int,
        data: str,
    ) -> None:
        self._net = net
        self._inputs = inputs
        self._held = held
        self._outputs = outputs
        self._directions = directions
        self._data = data

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        """Return outputs of all rows, in the graph's order."""
        for name in feeds:
            if name not in dict(self._inputs):
                raise TypeError("pnnx takes nothing in the place of a constant")
        fed = {**self._held, **feeds}
        count = fed[self._data].shape[1]
        rows = [
            self._row({name: np.atleast_1d(fed[name].take(row, axis)) for name, axis in self._inputs})
            for row in range(count)
        ]
        return [np.concatenate([row[place] for row in rows], axis) for place, axis in enumerate(self._outputs)]

    def _row(self, fed: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Return the outputs of one row, with the dimensions that ONNX has."""
        extractor = self._net.create_extractor()
        kept = []
        for place, (name, array) in enumerate(fed.items()):
            kept.append(np.ascontiguousarray(array))
            if extractor.input(f"in{place}", ncnn.Mat(kept[-1])):
                raise ValueError(f"ncnn has no input {name}")
        results = []
        for place, axis in enumerate(self._outputs):
            status, mat = extractor.extract(f"out{place}")
            if status:
                raise ValueError(f"ncnn gives no output {place}: {status}")
            array = np.array(mat)
            steps = array.shape[:1] if axis == _BY_STEP else ()
            results.append(array.reshape((*steps, self._directions, 1, -1)))
        return results
