"""A case as a Python source of onnx's node tests (onnx/backend/test/case/node)."""

from __future__ import annotations

import json
import keyword
import re
import textwrap
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from ...cases import Spec, build_case, clauses_exercised
from ...cases.directories.manifest import Fairness, data_sets_of, fairness_of
from ...reference.errors import UserError

MOST_NUMBERS = 20_000
"""Maximum number of values in a test that people read as source text."""

_WIDTH = 88

_WORDS = {
    "forward": "",
    "float32": "",
    "bias": "with_initial_bias",
    "initial-all": "with_initial_state",
    "peepholes": "with_peepholes",
    "layout1": "batchwise",
}
"""onnx's words for parts of a case's id; other parts stay."""

_SOURCE = """\
# Copyright (c) ONNX Project Contributors
#
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

{imports}import numpy as np

import onnx
from onnx.backend.test.case.base import Base
from onnx.backend.test.case.node import expect


class {op}(Base):
    @staticmethod
    def export_{function}() -> None:
{comment}
{node}

{arrays}

        expect(
            node,
            inputs=[{inputs}],
            outputs=[{outputs}],
            name="{name}",
            opset_imports=[onnx.helper.make_operatorsetid("", {opset})],
        )
"""


def node_test(spec: Spec) -> str:
    """Return a Python module with a case as a test, which onnx collects from its folder of node tests.

    Raise UserError for cases that such a test cannot express: several nodes, other domains, invalid models, sessions of
    several steps, outputs that the document leaves open, and too large cases.
    """
    if spec.illegal:
        raise UserError("an invalid model has no outputs: onnx's node tests cannot say that it must not run")
    case = build_case(spec)
    if case.trial.course is not None or case.trial.graph is not None:
        raise UserError("onnx's node tests run one node once, and this case has several nodes or sessions of its own")
    model = onnx.load_model_from_string(case.trial.model)
    node = _lone_node(model)
    sets = data_sets_of(case.trial)
    fairness = fairness_of(case, sets)
    if fairness.interpretations or fairness.open or fairness.unknown:
        unsettled = Fairness(fairness.interpretations, fairness.open, 0.0, None, fairness.unknown)
        raise UserError(
            f"a node test would pin what the document leaves open: {unsettled.reason}; choose a case without"
        )
    given = {**{tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}, **sets[-1].inputs}
    inputs = {name: _array(given[name]) for name in node.input if name}
    outputs = {value.name: _array(sets[-1].outputs[value.name]) for value in model.graph.output}
    if sum(array.size for array in (*inputs.values(), *outputs.values())) > MOST_NUMBERS:
        raise UserError(f"more than {MOST_NUMBERS:,} numbers are no test that anybody reads; choose a smaller case")
    arrays = {**inputs, **outputs}
    bfloat16 = any(array.dtype == ml_dtypes.bfloat16 for array in arrays.values())
    name, comment = _test_name(spec, node), textwrap.wrap(_about(spec, fairness, len(sets)), _WIDTH - 10)
    return _SOURCE.format(
        imports="import ml_dtypes\n" if bfloat16 else "",
        op=node.op_type,
        function=name.removeprefix(f"test_{node.op_type.lower()}_"),
        comment=textwrap.indent("\n".join(comment), "        # "),
        node=textwrap.indent(f"node = {_node_source(node)}", "        "),
        arrays=textwrap.indent(
            "\n".join(f"{_variable(n)} = {_array_source(a)}" for n, a in arrays.items()), "        "
        ),
        inputs=", ".join(map(_variable, inputs)),
        outputs=", ".join(map(_variable, outputs)),
        name=name,
        opset=next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")),
    )


def _lone_node(model: onnx.ModelProto) -> onnx.NodeProto:
    if len(model.graph.node) != 1:
        raise UserError(f"a node test has one node, and this model has {len(model.graph.node)}")
    node: onnx.NodeProto = model.graph.node[0]
    if node.domain not in ("", "ai.onnx"):
        raise UserError(f"onnx's node tests are about its own operators, and not about those of {node.domain}")
    return node


def _array(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array with its real type: onnx before 1.19 stores bfloat16 as uint16."""
    return array.view(ml_dtypes.bfloat16) if array.dtype == np.uint16 else array


def _test_name(spec: Spec, node: onnx.NodeProto) -> str:
    """Return a name like ``test_gru_seq_length``: the parts of the case's id without version, sizes and digest."""
    parts = [part for part in spec.id.split(".")[1:] if not re.fullmatch(r"T\d+N\d+\w*|[0-9a-f]{6}", part)]
    name_parts = ["seq_length" if part.startswith("lengths-") else _WORDS.get(part, part) for part in parts]
    name = re.sub(r"[^a-z0-9]+", "_", "_".join(filter(None, name_parts)).lower()).strip("_")
    return f"test_{node.op_type.lower()}_{name or 'defaults'}"


def _about(spec: Spec, fairness: Fairness, sets: int) -> str:
    """Return the comment: the most special statement that the case exercises, and remarks on accuracy."""
    stated = [clause for clause in clauses_exercised(spec) if clause.may_fail]
    topics = [re.split(r"[-\d]", part)[0] for part in spec.id.split(".")[3:-2]]
    special = next((c for topic in topics for c in stated if c.id.split(".")[1].startswith(topic)), stated[0])
    text = f"{special.text.rstrip('.')}. "
    text += "The outputs are computed in float64 and rounded once."
    if fairness.largest > 1:
        text += f" A correct {fairness.output} may differ by {fairness.largest:.3g} times the runner's tolerance."
    if sets > 1:
        runs = "run" if sets == 2 else "runs"
        text += f" In its session {sets - 1} {runs} came before it, which a node test cannot say."
    return text


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
    """Return the source of an array; reading it gives the same bits."""
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
