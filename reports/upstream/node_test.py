"""A case in the Python form of onnx's own node tests (onnx/backend/test/case/node): for the working group."""

from __future__ import annotations

import json
import keyword
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from .chosen import Chosen, NoFinding

MOST_NUMBERS = 20_000
"""Numbers of a test that somebody may be asked to read as source text."""

_WIDTH = 88


def node_test(chosen: Chosen) -> str:
    """A module with the case as a test, which onnx collects from its folder of node tests.

    Raises NoFinding for what such a test cannot say: models of several nodes, of other domains, forbidden ones, and
    cases that are too large; and OSError.
    """
    folder = chosen.exhibit.folder
    model = onnx.load_model(folder / "model.onnx", load_external_data=False)
    node = _lone_node(model)
    sets = sorted(folder.glob("test_data_set_*"), key=lambda place: int(place.name.rpartition("_")[2]))
    if not sets:
        raise NoFinding("the evidence has no data to make a node test of")
    inputs, outputs = _arrays(model, sets[-1])
    if not outputs:
        raise NoFinding("a forbidden model has no outputs: onnx's node tests cannot say that it must not run")
    if sum(array.size for array in (*inputs.values(), *outputs.values())) > MOST_NUMBERS:
        raise NoFinding(f"more than {MOST_NUMBERS:,} numbers are no test that anybody reads; choose a smaller case")
    return "\n".join(_lines(chosen, model, node, inputs, outputs, len(sets))) + "\n"


def _lone_node(model: onnx.ModelProto) -> onnx.NodeProto:
    if len(model.graph.node) != 1:
        raise NoFinding(f"a node test has one node, and this model has {len(model.graph.node)}")
    node = model.graph.node[0]
    if node.domain not in ("", "ai.onnx"):
        raise NoFinding(f"onnx's node tests are about its own operators, and not about those of {node.domain}")
    return node


def _arrays(model: onnx.ModelProto, folder: Path) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Inputs of the node in its order, constants among them, and outputs."""
    node = model.graph.node[0]
    given = {tensor.name: _array(tensor) for tensor in model.graph.initializer}
    given |= _read([value.name for value in model.graph.input], folder, "input")
    inputs = {name: given[name] for name in node.input if name}
    return inputs, _read([value.name for value in model.graph.output], folder, "output")


def _read(names: Sequence[str], folder: Path, kind: str) -> dict[str, NDArray[Any]]:
    arrays = {}
    for number, name in enumerate(names):
        path = folder / f"{kind}_{number}.pb"
        if path.is_file():
            arrays[name] = _array(onnx.load_tensor(path))
    return arrays


def _array(tensor: onnx.TensorProto) -> NDArray[Any]:
    array = numpy_helper.to_array(tensor)
    if tensor.data_type == onnx.TensorProto.BFLOAT16 and array.dtype != ml_dtypes.bfloat16:
        return array.astype(ml_dtypes.bfloat16)  # onnx before 1.19 widens it
    return array


def _lines(
    chosen: Chosen,
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    inputs: dict[str, NDArray[Any]],
    outputs: dict[str, NDArray[Any]],
    sets: int,
) -> Iterator[str]:
    name = _test_name(chosen, node)
    words = "".join(part.capitalize() for part in name.split("_")[1:])
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    yield "# Copyright (c) ONNX Project Contributors"
    yield "#"
    yield "# SPDX-License-Identifier: Apache-2.0"
    yield "from __future__ import annotations"
    yield ""
    if any(array.dtype == ml_dtypes.bfloat16 for array in (*inputs.values(), *outputs.values())):
        yield "import ml_dtypes"
    yield "import numpy as np"
    yield ""
    yield "import onnx"
    yield "from onnx.backend.test.case.base import Base"
    yield "from onnx.backend.test.case.node import expect"
    yield ""
    yield ""
    yield f"class {words}(Base):"
    yield "    @staticmethod"
    yield f"    def export_{name.removeprefix('test_')}() -> None:"
    for line in textwrap.wrap(_about(chosen, sets), _WIDTH - 10):
        yield f"        # {line}"
    yield from _indented("node = ", _node_source(node))
    yield ""
    for what, array in (*inputs.items(), *outputs.items()):
        yield from _indented(f"{_variable(what)} = ", _array_source(array))
    yield ""
    yield "        expect("
    yield "            node,"
    yield f"            inputs=[{', '.join(map(_variable, inputs))}],"
    yield f"            outputs=[{', '.join(map(_variable, outputs))}],"
    yield f'            name="{name}",'
    yield f'            opset_imports=[onnx.helper.make_operatorsetid("", {opset})],'
    yield "        )"


def _test_name(chosen: Chosen, node: onnx.NodeProto) -> str:
    """``test_gru_forward_lengths_ragged``: what the case's id says, without version, sizes and digest."""
    parts = chosen.exhibit.evidence.case.split(".")
    told = [part for part in parts[1:-1] if part != "float32" and not re.fullmatch(r"T\d+N\d+\w*", part)]
    words = re.sub(r"[^a-z0-9]+", "_", "_".join([node.op_type.lower(), *told]).lower()).strip("_")
    return f"test_{words}"


def _about(chosen: Chosen, sets: int) -> str:
    clause = next((first.text.rstrip(".") for _, first in chosen.finding.statements if first.text), "")
    words = f"{clause or chosen.finding.title}. The outputs are computed in float64 and rounded once."
    if sets > 1:
        runs = "run" if sets == 2 else "runs"
        words += f" In its session {sets - 1} {runs} came before it, which a node test cannot say."
    return words


def _variable(name: str) -> str:
    safe = re.sub(r"\W", "_", name)
    return f"{safe}_" if keyword.iskeyword(safe) or safe in ("node", "np", "onnx") else safe


def _node_source(node: onnx.NodeProto) -> str:
    attributes = [f"{a.name}={_value(onnx.helper.get_attribute_value(a))}" for a in node.attribute]
    inputs, outputs = json.dumps(list(node.input)), json.dumps(list(node.output))
    arguments = [json.dumps(node.op_type), f"inputs={inputs}", f"outputs={outputs}", *attributes]
    inner = "".join(f"    {argument},\n" for argument in arguments)
    return f"onnx.helper.make_node(\n{inner})"


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        return json.dumps(value.decode())
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    # An attribute's float is one of float32: its shortest digits are enough.
    return str(np.float32(value)) if isinstance(value, float) else repr(value)


def _array_source(array: NDArray[Any]) -> str:
    """An array whose bits are the same when the text is read."""
    bfloat16 = array.dtype == ml_dtypes.bfloat16
    dtype = "ml_dtypes.bfloat16" if bfloat16 else f"np.{array.dtype.name}"
    values = [_literal(value) for value in (array.astype(np.float32) if bfloat16 else array).ravel()]
    if len(values) <= 1:
        return f"np.array([{', '.join(values)}], dtype={dtype}).reshape({array.shape})"
    listed = textwrap.fill(", ".join(values), _WIDTH - 16)
    numbers = textwrap.indent(listed, "        ")
    return f"np.array(\n    [\n{numbers},\n    ],\n    dtype={dtype},\n).reshape({array.shape})"


def _literal(value: Any) -> str:
    return str(value) if np.isfinite(value) else f"{'-' if value < 0 else ''}np.{abs(value)}"


def _indented(name: str, source: str) -> Iterator[str]:
    yield from textwrap.indent(f"{name}{source}", "        ").splitlines()
