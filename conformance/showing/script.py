"""A case as a script of its own, for people who have no onnxspec: only onnx, NumPy and the runtime.

It holds the node, the inputs and what the outputs must be, and exits 1 where one of them is not. The numbers are those
of a free run: a script must pass on a runtime that was repaired, so it cannot start from states that a faulty one
reported.
"""

from __future__ import annotations

import base64
import inspect
import itertools
import json
import re
import shlex
import textwrap
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from ...cases import Case, Feed, Spec, Trial, Violation, family_of
from ...cases.specs.subject import Bound
from ...reference import (
    FORMATS,
    Expectation,
    Interpretations,
    Node,
    budget,
    expect,
    interpretations_touched,
    operator_for,
)
from ...reference.numbers.bounded import RADIUS_SLACK, Bounded
from ...reference.operators.asking import returned_in_order
from ..targets.target import Target, usual_target
from .script_parts import COMPARISON, LACKING, Runtime, bits, drawn, numbers, ratios, runtime_of, unpacked

__all__ = ["script_of"]

_WIDTH = 120
_LITERAL = 12  # tensors of up to so many elements are written out


def script_of(case: Case, target: Target | None = None) -> str:
    """The text of a Python script that runs a case on a target and says what is outside its radius.

    target
        Its provider, options and accuracy class go into the script; without it onnxruntime's CPU provider.

    The script accepts every interpretation that the case leaves open, and judges nothing that is only convention. That
    of a forbidden model exits 1 where the model runs. In a graph of nodes the radius of one that stands behind another
    covers what that may hand on.
    """
    target = target or usual_target(case.trial.node.domain)
    runtime, violation = runtime_of(case, target), case.trial.violation
    end = _comparison(case, target.accuracy, runtime) if violation is None else _refusal(case, violation, runtime)
    body = [*_tensors(case), "", *_model(case), *end.lines]
    functions = [f for f in _STANDARD if re.search(rf"\b{f.__name__}\(", "\n".join(body))]
    standard = {"sys"}.union(*(_STANDARD[f] for f in functions), runtime.standard)
    lines = [
        *_heading(case, *end.sentences),
        *_started(target),
        *_imports(standard, runtime),
        *(line for f in functions for line in ("", "", *inspect.getsource(f).splitlines())),
        "",
        "",
        *body,
    ]
    return "\n".join(lines) + "\n"


_STANDARD: dict[Callable[..., Any], set[str]] = {
    drawn: {"hashlib"},
    unpacked: {"base64", "zlib"},
    bits: set(),
    numbers: set(),
    ratios: set(),
}
"""Functions that a script may hold, to the modules of the standard library that each needs."""


@dataclass(frozen=True)
class _End:
    """The end of a script: what its docstring says of it, and the lines that follow the model."""

    sentences: tuple[str, ...]
    lines: tuple[str, ...]


def _comparison(case: Case, accuracy: str, runtime: Runtime) -> _End:
    """The target runs, and each output is compared with what it must be."""
    half, type_names = case.spec.type == "bfloat16", _types_of(case)
    comparison = COMPARISON.format(
        lacking=LACKING if "sequence_output" in _touched(case.trial) else "",
        dtype=" or ".join(type_names),
        types=", ".join(f'"{name}"' for name in (*type_names, *(["uint16"] if half else []))) + ",",
        got="numbers(got)" if half else "got.astype(np.float64)",
        largest=repr(FORMATS[case.spec.type].largest),
    )
    sentences = (
        "Each output is compared with a computation in float64. Its radius is what arithmetic of the class",
        f"{accuracy!r} may be off by; exits 1 where an output is outside of it.",
    )
    lines = ("", *_expected(case, accuracy), "", *runtime.lines.strip().splitlines(), "", *comparison.splitlines())
    return _End(sentences, lines)


def _refusal(case: Case, violation: Violation, runtime: Runtime) -> _End:
    """The target must refuse a forbidden model."""
    sentences = (
        f"The document forbids this model: {violation.summary}.",
        f"It must be refused, due at {violation.due}; exits 1 where it runs.",
    )
    lines = (
        "",
        "",
        "def attempt() -> None:",
        *textwrap.indent(runtime.lines.strip().replace("\n\n\n", "\n\n"), "    ").splitlines(),
        "",
        "    for k in range(len(FEEDS)):",
        "        run(k)",
        "",
        "",
        "try:",
        "    attempt()",
        "except Exception as error:",
        '    print(f"refused, as it must be: {type(error).__name__}: {error}")',
        "    sys.exit(0)",
        *_wrapped(f"print({_text(f'ran, and must be refused: {violation.summary}')})"),
        "sys.exit(1)",
    )
    return _End(sentences, lines)


# What differs from case to case.


def _types_of(case: Case) -> tuple[str, ...]:
    """Names of the types that outputs have."""
    usual = FORMATS[case.spec.type].dtype
    codecs = (bound.node.codecs.get(name) for bound in case.trial.subject.nodes for name in bound.node.outputs)
    return tuple(dict.fromkeys((usual if codec is None else codec.dtype).name for codec in codecs))


def _heading(case: Case, *sentences: str) -> Iterator[str]:
    """The script's docstring. An id cannot be broken, however long it is, and linters are told so."""
    nodes = case.trial.subject.nodes
    names = " and ".join(dict.fromkeys(bound.node.operator.name for bound in nodes))
    several = ["The model has two recurrent nodes; tensors of the second one are called second_..."] * (len(nodes) > 1)
    lines = [f'"""{names}: {case.spec.id}', "", *several, *sentences]
    yield from lines
    yield '"""  # noqa: E501' if max(map(len, lines)) > _WIDTH else '"""'


def _imports(standard: Iterable[str], runtime: Runtime) -> Iterator[str]:
    yield ""
    yield "from __future__ import annotations"
    yield ""
    yield from (f"import {name}" for name in sorted(standard))
    yield ""
    yield from sorted(["import numpy as np", *(line for line in runtime.imports if line.startswith("import "))])
    yield from sorted(["from onnx import TensorProto, helper", *(i for i in runtime.imports if i.startswith("from "))])


def _started(target: Target) -> Iterator[str]:
    # What starts the worker of a target tells how to start this.
    command = [part for part in target.command if part not in ("{worker}", "{source}")]
    words = [*(f"{name}={value}" for name, value in target.environment.items()), *command]
    if words:
        text = "The target is started with: " + " ".join(shlex.join(words).split())
        yield ""
        yield from textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")


def _array(values: NDArray[Any], dtype: str) -> str:
    """An expression for a tensor of few elements, without line breaks."""
    if not values.size:
        return f'np.zeros({values.shape}, "{dtype}")'
    words = (repr(v) if np.isfinite(v) else f"np.{v}".replace("np.-", "-np.") for v in values.ravel().tolist())
    return f'np.array([{", ".join(words)}], "{dtype}").reshape({values.shape})'


def _wrapped(line: str) -> Iterator[str]:
    """A statement in lines of bounded length; one that holds packed numbers stays one line."""
    if len(line) <= _WIDTH:
        yield line
    elif "unpacked(" in line:
        yield f"{line}  # noqa: E501"
    else:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        yield from textwrap.wrap(line, _WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _packed(values: NDArray[np.float64]) -> str:
    """An expression for many float64 numbers: see `unpacked`."""
    planes = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(-1, 8).T
    text = base64.b85encode(zlib.compress(planes.tobytes(), 9)).decode()
    return f'unpacked("{text}", {values.shape})'


def _tensors(case: Case) -> Iterator[str]:
    """The inputs of all runs as assignments, each tensor once, and ``FEEDS``, what every run is fed."""
    feeds = case.trial.feeds
    variables: list[dict[str, str]] = [{} for _ in feeds]
    graph = onnx.load_model_from_string(case.trial.model).graph
    there = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    for name in dict.fromkeys([*case.trial.node.operator.inputs, *feeds[-1].inputs]):
        if name not in there:
            continue  # in a wrap a constant is held as something else
        arrays = {run: feed.inputs[name] for run, feed in enumerate(feeds) if name in feed.inputs}
        distinct = list(dict.fromkeys((a.shape, a.tobytes()) for a in arrays.values()))
        for run, array in arrays.items():
            number = distinct.index((array.shape, array.tobytes())) + 1
            variable = name if len(distinct) == 1 else f"{name}_{number}"
            if not any(variable in seen.values() for seen in variables):
                yield from _wrapped(f"{variable} = {_tensor(case.spec, name, array)}")
            variables[run][name] = variable
    fed = [{name: held[name] for name in feed.fed} for feed, held in zip(feeds, variables, strict=True)]
    runs = ["{" + ", ".join(f'"{name}": {variable}' for name, variable in run.items()) + "}" for run in fed]
    yield from _wrapped(f"FEEDS = [{', '.join(runs)}]")


def _tensor(spec: Spec, name: str, array: NDArray[Any]) -> str:
    """An expression for an input: written out where it is small, else the generator that it came from, else bytes."""
    # NumPy has no bfloat16; float32 holds it exactly.
    dtype = "float32" if array.dtype.name == "bfloat16" else array.dtype.name
    if array.dtype.kind in "iu":
        return _array(array, dtype)
    if array.size <= _LITERAL:
        return _array(_shortest(array.astype(dtype)), dtype)
    return family_of(spec.op).formula(spec, name, array) or f'{_packed(array.astype(np.float64))}.astype("{dtype}")'


def _shortest(array: NDArray[Any]) -> NDArray[Any]:
    """The numbers as float64 with the fewest digits that give the same tensor."""
    short = np.array([float(str(v)) for v in array.ravel()], np.float64).reshape(array.shape)
    same: bool = short.astype(array.dtype).tobytes() == array.tobytes()
    return short if same else array.astype(np.float64)


def _dimension(dimension: onnx.TensorShapeProto.Dimension) -> str:
    """A dimension as onnx.helper takes it; None is one that nothing is said of."""
    given = dimension.WhichOneof("value")
    return repr(None) if given is None else json.dumps(getattr(dimension, given))


def _model(case: Case) -> Iterator[str]:
    """The same model as the case's, made by onnx.helper."""
    model = onnx.load_model_from_string(case.trial.model)
    graph = model.graph
    kind = onnx.TensorProto.DataType.Name

    def info(value: onnx.ValueInfoProto) -> str:
        tensor = value.type.tensor_type
        shape = f"[{', '.join(map(_dimension, tensor.shape.dim))}]" if tensor.HasField("shape") else "None"
        words = f'"{value.name}", TensorProto.{kind(tensor.elem_type)}, {shape}'
        return f"helper.make_tensor_value_info({words})"

    given = {name for feed in case.trial.feeds for name in feed.inputs}
    for tensor in graph.initializer:
        if tensor.name not in given:
            yield from _wrapped(f"{tensor.name} = {_constant(tensor)}")
    nodes = [_node(node, own) for node, own in zip(graph.node, _own(case.trial, graph.node), strict=True)]
    if len(nodes) == 1:
        yield from _wrapped(f"node = {nodes[0]}")
    else:
        yield "nodes = ["
        for text in nodes:
            yield from _wrapped(f"    {text},")
        yield "]"
    for name, values in (("inputs", graph.input), ("outputs", graph.output)):
        yield f"{name} = ["
        yield from (f"    {info(value)}," for value in values)
        yield "]"
    constants = ", ".join(f'"{tensor.name}": {tensor.name}' for tensor in graph.initializer)
    raw = "bits(array)" if case.spec.type == "bfloat16" else "array"
    if constants:
        type_ = f"TensorProto.{kind(graph.initializer[0].data_type)}"
        if len({tensor.data_type for tensor in graph.initializer}) > 1:
            type_ = "helper.np_dtype_to_tensor_dtype(array.dtype)"
            if case.spec.type == "bfloat16":
                type_ = f"TensorProto.BFLOAT16 if array.dtype == np.float32 else {type_}"
        made = f"helper.make_tensor(name, {type_}, array.shape, {raw}.tobytes(), raw=True)"
        yield from ("weights = [", f"    {made}", f"    for name, array in {{{constants}}}.items()", "]")
    several = "nodes" if len(nodes) > 1 else "[node]"
    yield f'graph = helper.make_graph({several}, "{graph.name}", inputs, outputs{", weights" * bool(constants)})'
    opsets = ", ".join(f'helper.make_opsetid("{opset.domain}", {opset.version})' for opset in model.opset_import)
    yield f"opsets = [{opsets}]"
    made = f"graph, opset_imports=opsets, ir_version={model.ir_version}, producer_name={_plain(model.producer_name)}"
    yield f"model = helper.make_model({made})"
    yield f"NAMES = {_quoted([value.name for value in graph.output])}"


def _own(trial: Trial, nodes: Sequence[onnx.NodeProto]) -> Iterator[Node | None]:
    """Those of a graph's nodes that the case is about, each in its place: the last of its kind where it is one."""
    named = {bound.name: bound.node for bound in trial.subject.nodes}
    last = max((place for place, node in enumerate(nodes) if node.op_type == trial.node.op_type), default=-1)
    for place, node in enumerate(nodes):
        if trial.subject.is_lone:
            yield trial.node if place == last else None
        else:
            yield named.get(node.name)


def _node(node: onnx.NodeProto, own: Node | None) -> str:
    """An expression for a node: one that the case is about has attributes as the case has them."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if own is not None:
        attributes = dict(own.attributes)
    words = "".join(f", {name}={_plain(value)}" for name, value in sorted(attributes.items()))
    domain = f', domain="{node.domain}"' if node.domain else ""
    names = f"{_quoted(node.input)}, {_quoted(node.output)}"
    return f'helper.make_node("{node.op_type}", {names}, name="{node.name}"{domain}{words})'


def _constant(tensor: onnx.TensorProto) -> str:
    """An expression for a scale or a zero point."""
    array = onnx.numpy_helper.to_array(tensor)
    return _array(array if array.dtype.kind in "iu" else _shortest(array), array.dtype.name)


def _text(words: str) -> str:
    """A text as Python has it."""
    return f'"{words}"' if '"' not in words else repr(words)


def _quoted(names: Any) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def _plain(value: Any) -> str:
    """An attribute's value as Python has it."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return _quoted(value) if isinstance(value, list) and value and isinstance(value[0], str) else repr(value)


def _expected(case: Case, accuracy: str) -> Iterator[str]:
    """The expected outputs of every run: for each interpretation that makes a difference (value, radius) by name.

    The radius is infinite where nothing can be said, or nothing but what convention says.
    """
    trial = case.trial
    touched, type_name = _touched(trial), case.spec.type
    right = operator_for(trial.node).classes(accuracy, type_name).right
    yield "# What each output must be, and its radius (infinite: nothing is demanded), run by run."
    yield "EXPECTED = {"
    seen: set[bytes] = set()
    for name, interpretations in itertools.product(right, Interpretations().alternatives(touched)):
        runs = [_numbers_of(trial, feed, name, interpretations) for feed in trial.feeds]
        content = b"".join(number.tobytes() for run in runs for number in run.values())
        if content in seen:
            continue
        seen.add(content)
        words = [name] if len(right) > 1 else []
        label = (
            ", ".join(words + [f"{each} {getattr(interpretations, each)}" for each in sorted(touched)]) or "expected"
        )
        start = f'    "{label}": ['
        yield start if len(start) <= _WIDTH else f"{start}  # noqa: E501"
        for run in runs:
            yield "        {"
            for name, number in run.items():
                yield from _wrapped(f'            "{name}": {_pair(number)},')
            yield "        },"
        yield "    ],"
    yield "}"


def _given(trial: Trial, feed: Feed) -> Iterator[tuple[Bound, dict[str, NDArray[Any]]]]:
    """Each node with its inputs; what a node before it gives as the reference has it."""
    tensors = dict(feed.inputs)
    for bound in trial.subject.nodes:
        inputs = bound.inputs_from(tensors)
        yield bound, inputs
        if not trial.subject.is_lone:
            tensors |= {bound.called(n): array for n, array in returned_in_order(bound.node, inputs).items()}


def _touched(trial: Trial) -> frozenset[str]:
    """The interpretations on which some runs of some node depend."""
    nodes = itertools.chain.from_iterable(_given(trial, feed) for feed in trial.feeds)
    return frozenset().union(*(interpretations_touched(bound.node, inputs) for bound, inputs in nodes))


def _expectations(
    bound: Bound,
    node: Node,
    inputs: Mapping[str, NDArray[Any]],
    known: Mapping[str, NDArray[np.float64]],
    accuracy: str,
    interpretations: Interpretations,
) -> Sequence[Expectation]:
    """Values that the outputs of a node must have.

    known
        Value and radius of what the nodes before it give.
    """
    behind = [formal for formal, source in (bound.inputs or {}).items() if source.tensor in known]
    if not behind:
        return expect(node, inputs, {}, accuracy, interpretations)
    if behind != ["X"] or bound.inputs is None:
        return ()
    source = bound.inputs["X"]
    value, radius = (source.of({source.tensor: part}) for part in known[source.tensor])
    doubt = ~np.isfinite(radius)
    type_name = operator_for(node).resolve(node, inputs, interpretations).format.name
    X = Bounded(value, np.where(doubt, 0.0, radius), budget(accuracy, type_name), doubt)
    return operator_for(node).expect_behind(node, inputs, X, accuracy, interpretations)


def _numbers_of(
    trial: Trial, feed: Feed, accuracy: str, interpretations: Interpretations
) -> dict[str, NDArray[np.float64]]:
    """Value and radius of each output of the graph, stacked."""
    numbers: dict[str, NDArray[np.float64]] = {}
    for bound, inputs in _given(trial, feed):
        node = trial.subject.showing(bound)
        by_output = _by_output(_expectations(bound, node, inputs, numbers, accuracy, interpretations))
        numbers |= {bound.called(name): number for name, number in by_output.items()}
    return numbers


def _by_output(expectations: Iterable[Expectation]) -> dict[str, NDArray[np.float64]]:
    """Value and radius of each output of a node, stacked."""
    by_output: dict[str, NDArray[np.float64]] = {}
    for e in expectations:
        value, radius = e.number.value, np.broadcast_to(e.number.radius, e.number.value.shape) * RADIUS_SLACK
        if e.number.doubt is not None:
            radius = np.where(e.number.doubt, np.inf, radius)
        if e.conventional:
            radius = np.full_like(radius, np.inf)
        number = np.stack([value, radius])
        # What a later expectation is about replaces what was there.
        by_output[e.output] = (
            number
            if e.output not in by_output
            else np.where(e.about if e.about is not None else True, number, by_output[e.output])
        )
    return by_output


def _pair(number: NDArray[np.float64]) -> str:
    """An expression for value and radius, the latter rounded up to few digits."""
    value, radius = number
    if value.size <= _LITERAL:
        return _array(
            np.stack([value, np.array([_rounded_up(r) for r in radius.flat]).reshape(value.shape)]), "float64"
        )
    # Eight bits compress well.
    finite = np.isfinite(radius)
    fraction, exponent = np.frexp(np.where(finite, radius, 1.0))
    return _packed(np.stack([value, np.where(finite, np.ldexp(np.ceil(fraction * 256), exponent - 8), np.inf)]))


def _rounded_up(radius: float) -> float:
    """Three digits, upwards."""
    short = float(f"{radius:.2e}")
    return short if short >= radius or not np.isfinite(radius) else float(f"{radius * 1.005:.2e}")
