"""Statements of a case's script for inputs, model and expected outputs, and functions that scripts hold.

Scripts hold the source text of the last functions here, which need nothing but the standard library and NumPy.
"""

from __future__ import annotations

import base64
import itertools
import json
import textwrap
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from ....cases import Case, Feed, Trial
from ....reference import Interpretations, expect, operator_for
from ....reference.faults.computing import Prediction

WIDTH = 120
LITERAL = 12  # maximum number of elements of a tensor that is written out


def array_text(values: NDArray[Any], dtype: str) -> str:
    """Return an expression for a tensor of few elements, without line breaks."""
    if not values.size:
        return f'np.zeros({values.shape}, "{dtype}")'
    literals = (repr(v) if np.isfinite(v) else f"np.{v}".replace("np.-", "-np.") for v in values.ravel().tolist())
    return f'np.array([{", ".join(literals)}], "{dtype}").reshape({values.shape})'


def wrapped(line: str) -> Iterator[str]:
    """Yield a statement in lines of bounded length; one with packed numbers stays one line."""
    if len(line) <= WIDTH:
        yield line
    elif "unpacked(" in line:
        yield f"{line}  # noqa: E501"
    else:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        yield from textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def packed(values: NDArray[np.float64]) -> str:
    """Return an expression for many float64 numbers, which `unpacked` reads."""
    planes = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(-1, 8).T
    text = base64.b85encode(zlib.compress(planes.tobytes(), 9)).decode()
    return f'unpacked("{text}", {values.shape})'


def shortest(array: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers as float64 with the fewest digits that give the same tensor."""
    short = np.array([float(str(v)) for v in array.ravel()], np.float64).reshape(array.shape)
    same: bool = short.astype(array.dtype).tobytes() == array.tobytes()
    return short if same else array.astype(np.float64)


def attribute(value: Any) -> str:
    """Return the value of an attribute as Python source."""
    if isinstance(value, bytes):
        return source(value.decode())
    if isinstance(value, list):
        return f"[{', '.join(map(attribute, value))}]"
    if isinstance(value, float):
        # ONNX stores float32: its shortest digits are enough.
        return str(np.float32(value)) if np.isfinite(value) else f'float("{value}")'
    return repr(value)


def source(value: Any) -> str:
    """Return a text, or a list of texts, as Python source with double quotes."""
    return json.dumps(list(value) if not isinstance(value, str) else value, ensure_ascii=False)


def pair(number: NDArray[np.float64]) -> str:
    """Return an expression for value and radius; the radius is rounded up to few digits."""
    value, radius = number
    if value.size <= LITERAL:
        return array_text(
            np.stack([value, np.array([_rounded_up(r) for r in radius.flat]).reshape(value.shape)]), "float64"
        )
    # Eight bits compress well.
    finite = np.isfinite(radius)
    fraction, exponent = np.frexp(np.where(finite, radius, 1.0))
    return packed(np.stack([value, np.where(finite, np.ldexp(np.ceil(fraction * 256), exponent - 8), np.inf)]))


def _rounded_up(radius: float) -> float:
    """Return the number with three digits, rounded up."""
    short = float(f"{radius:.2e}")
    return short if short >= radius or not np.isfinite(radius) else float(f"{radius * 1.005:.2e}")


def feeds_of(case: Case) -> Iterator[str]:
    """Yield the inputs of all runs as assignments, each tensor once, and ``FEEDS``, the inputs of each run."""
    feeds = case.trial.feeds
    variables: list[dict[str, str]] = [{} for _ in feeds]
    graph = onnx.load_model_from_string(case.trial.model).graph
    model_inputs = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    for name in dict.fromkeys([*case.trial.node.operator.inputs, *feeds[-1].inputs]):
        if name not in model_inputs:
            continue  # a wrap holds a constant in another form
        arrays = {run: feed.inputs[name] for run, feed in enumerate(feeds) if name in feed.inputs}
        distinct = list(dict.fromkeys((a.shape, a.tobytes()) for a in arrays.values()))
        for run, array in arrays.items():
            number = distinct.index((array.shape, array.tobytes())) + 1
            variable = name if len(distinct) == 1 else f"{name}_{number}"
            if not any(variable in seen.values() for seen in variables):
                yield from wrapped(f"{variable} = {_tensor(array)}")
            variables[run][name] = variable
    fed = [{name: held[name] for name in feed.fed} for feed, held in zip(feeds, variables, strict=True)]
    runs = ["{" + ", ".join(f'"{name}": {variable}' for name, variable in run.items()) + "}" for run in fed]
    yield from wrapped(f"FEEDS = [{', '.join(runs)}]")


def _tensor(array: NDArray[Any]) -> str:
    """Return an expression for an input: its numbers if it is small, else its compressed bytes."""
    # NumPy has no bfloat16; float32 holds it exactly.
    dtype = "float32" if array.dtype.name == "bfloat16" else array.dtype.name
    if array.dtype.kind in "iu":
        return array_text(array, dtype)
    if array.size <= LITERAL:
        return array_text(shortest(array.astype(dtype)), dtype)
    return f'{packed(array.astype(np.float64))}.astype("{dtype}")'


def model_of(case: Case) -> Iterator[str]:
    """Yield source that makes the case's model with onnx.helper."""
    model = onnx.load_model_from_string(case.trial.model)
    graph = model.graph
    type_name_of = onnx.TensorProto.DataType.Name

    def info(value: onnx.ValueInfoProto) -> str:
        tensor = value.type.tensor_type
        shape = f"[{', '.join(map(_dimension, tensor.shape.dim))}]" if tensor.HasField("shape") else "None"
        arguments = f'"{value.name}", TensorProto.{type_name_of(tensor.elem_type)}, {shape}'
        return f"helper.make_tensor_value_info({arguments})"

    given = {name for feed in case.trial.feeds for name in feed.inputs}
    for tensor in graph.initializer:
        if tensor.name not in given:
            yield from wrapped(f"{tensor.name} = {_constant(tensor)}")
    nodes = [_node(node) for node in graph.node]
    if len(nodes) == 1:
        yield from wrapped(f"node = {nodes[0]}")
    else:
        yield "nodes = ["
        for text in nodes:
            yield from wrapped(f"    {text},")
        yield "]"
    for name, values in (("inputs", graph.input), ("outputs", graph.output)):
        yield f"{name} = ["
        yield from (f"    {info(value)}," for value in values)
        yield "]"
    constants = ", ".join(f'"{tensor.name}": {tensor.name}' for tensor in graph.initializer)
    raw = "bits(array)" if case.spec.type == "bfloat16" else "array"
    if constants:
        type_ = f"TensorProto.{type_name_of(graph.initializer[0].data_type)}"
        if len({tensor.data_type for tensor in graph.initializer}) > 1:
            type_ = "helper.np_dtype_to_tensor_dtype(array.dtype)"
            if case.spec.type == "bfloat16":
                type_ = f"TensorProto.BFLOAT16 if array.dtype == np.float32 else {type_}"
        expression = f"helper.make_tensor(name, {type_}, array.shape, {raw}.tobytes(), raw=True)"
        yield from ("weights = [", f"    {expression}", f"    for name, array in {{{constants}}}.items()", "]")
    node_list = "nodes" if len(nodes) > 1 else "[node]"
    yield f'graph = helper.make_graph({node_list}, "{graph.name}", inputs, outputs{", weights" * bool(constants)})'
    opsets = ", ".join(f'helper.make_opsetid("{opset.domain}", {opset.version})' for opset in model.opset_import)
    yield f"opsets = [{opsets}]"
    expression = (
        f"graph, opset_imports=opsets, ir_version={model.ir_version}, producer_name={source(model.producer_name)}"
    )
    yield f"model = helper.make_model({expression})"
    yield f"NAMES = {source([value.name for value in graph.output])}"


def _dimension(dimension: onnx.TensorShapeProto.Dimension) -> str:
    """Return a dimension for onnx.helper; None is an unknown one."""
    field = dimension.WhichOneof("value")
    return repr(None) if field is None else json.dumps(getattr(dimension, field))


def _node(node: onnx.NodeProto) -> str:
    """Return an expression for a node."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    keywords = "".join(f", {name}={attribute(value)}" for name, value in sorted(attributes.items()))
    domain = f', domain="{node.domain}"' if node.domain else ""
    names = f"{source(node.input)}, {source(node.output)}"
    return f'helper.make_node("{node.op_type}", {names}, name="{node.name}"{domain}{keywords})'


def _constant(tensor: onnx.TensorProto) -> str:
    """Return an expression for a scale or a zero point."""
    array = onnx.numpy_helper.to_array(tensor)
    return array_text(array if array.dtype.kind in "iu" else shortest(array), array.dtype.name)


def expected_of(case: Case, accuracy: str) -> Iterator[str]:
    """Yield the lines of EXPECTED: (value, radius) by output name, for each run and each distinct interpretation.

    The radius is infinite for undefined values and for conventions.
    """
    trial = case.trial
    open_questions = trial.open_questions
    right = operator_for(trial.node).classes(accuracy, case.spec.type).right
    yield "# The expected outputs and their error bounds (infinite: any number is accepted), run by run."
    yield "EXPECTED = {"
    seen: set[bytes] = set()
    for name, interpretations in itertools.product(right, Interpretations().alternatives(open_questions)):
        runs = [_numbers_of(trial, feed, name, interpretations) for feed in trial.feeds]
        content = b"".join(number.tobytes() for run in runs for number in run.values())
        if content in seen:
            continue
        seen.add(content)
        parts = [name] if len(right) > 1 else []
        parts += [f"{question} {getattr(interpretations, question)}" for question in sorted(open_questions)]
        start = f'    "{", ".join(parts) or "expected"}": ['
        yield start if len(start) <= WIDTH else f"{start}  # noqa: E501"
        for run in runs:
            yield "        {"
            for output, number in run.items():
                yield from wrapped(f'            "{output}": {pair(number)},')
            yield "        },"
        yield "    ],"
    yield "}"


def _numbers_of(
    trial: Trial, feed: Feed, accuracy: str, interpretations: Interpretations
) -> dict[str, NDArray[np.float64]]:
    """Return value and radius of each output, stacked."""
    values, radii = Prediction.expected(expect(trial.node, feed.inputs, {}, accuracy, interpretations))
    return {name: np.stack([value, radii[name]]) for name, value in values.items()}


# Functions of scripts


def unpacked(text: str, shape: tuple[int, ...]) -> np.ndarray:
    """float64 numbers from their compressed bytes: first all first bytes, then all second ones, ..."""
    planes = np.frombuffer(zlib.decompress(base64.b85decode(text)), np.uint8).reshape(8, -1)
    return np.frombuffer(planes.T.tobytes(), "<f8").reshape(shape)


def bits(array: np.ndarray) -> np.ndarray:
    """bfloat16 as its bits: the upper half of a float32."""
    return (array.view(np.uint32) >> 16).astype(np.uint16) if array.dtype == np.float32 else array


def numbers(array: np.ndarray) -> np.ndarray:
    """A tensor in float64, bits of bfloat16 included."""
    wide: np.ndarray = (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array
    return wide.astype(np.float64)


def ratios(got: np.ndarray, value: np.ndarray, radius: np.ndarray, largest: float) -> np.ndarray:
    """|error| / radius of every element; -1 where nothing can be said. Beyond the type's range infinity is right."""
    with np.errstate(all="ignore"):
        ratio: np.ndarray = np.abs(got - value) / radius
        beyond = (np.abs(value) + radius >= largest) & (np.abs(got) >= largest) & (np.sign(got) == np.sign(value))
    ratio[~np.isfinite(got)] = np.inf
    ratio[(got == value) | beyond] = 0
    ratio[np.isinf(radius)] = -1
    return ratio
