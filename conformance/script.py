"""A case as a script of its own, for people who have no onnxspec: only onnx, NumPy and the runtime.

It holds the node, the inputs and what the outputs must be, and exits 1 where one of them is not. The numbers are those
of a free run: a script must pass on a runtime that was repaired, so it cannot start from states that a faulty one
reported.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import re
import shlex
import textwrap
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from ..cases import Case, CaseSpec, features_of
from ..reference import FORMATS, Readings, clause_named, configure, expect
from ..reference.bounded import RADIUS_SLACK
from .target import Target, parse_target

__all__ = ["script_of"]

_WIDTH = 116
_LITERAL = 40  # tensors of up to so many elements are written out


def script_of(case: Case, target: Target | None = None) -> str:
    """The text of a Python script that runs a case on a target and says what is outside its radius.

    target
        Its provider, options and accuracy class go into the script; without it onnxruntime's CPU provider.

    The script accepts every reading that the case leaves open, and judges nothing that is only convention.
    """
    target = target or parse_target("onnxruntime")
    half = case.spec.type == "bfloat16"
    tensors = _Tensors(case)
    runtime = _RUNTIMES.get(target.adapter, _of_file)(case, target)
    expected = list(_expected(case, target.accuracy))
    needs = {_drawn: {"hashlib"}, _unpacked: {"base64", "zlib"}}
    text = "\n".join([*tensors.lines, *expected])
    functions = [f for f in needs if f"{f.__name__[1:]}(" in text] + ([_bits, _numbers] if half else []) + [_ratios]
    standard = {"sys"}.union(*(needs.get(f, set()) for f in functions), runtime.standard)
    type_name = FORMATS[case.spec.type].dtype.name
    end = _END.format(
        dtype=type_name,
        types=f'"{type_name}", "uint16"' if half else f'"{type_name}",',
        got="numbers(got)" if half else "got.astype(np.float64)",
        largest=repr(FORMATS[case.spec.type].largest),
    )
    lines = [
        *_head(case, target),
        "",
        "from __future__ import annotations",
        "",
        *(f"import {name}" for name in sorted(standard)),
        "",
        *sorted(["import numpy as np", *(line for line in runtime.imports if line.startswith("import "))]),
        *sorted(["from onnx import TensorProto, helper", *(i for i in runtime.imports if i.startswith("from "))]),
        *(line for f in functions for line in ("", "", *inspect.getsource(f).replace("def _", "def ").splitlines())),
        "",
        "",
        *tensors.lines,
        "",
        *_model(case),
        "",
        *expected,
        "",
        *runtime.lines.strip().splitlines(),
        "",
        *end.splitlines(),
    ]
    return "\n".join(lines) + "\n"


# What the script contains as it stands here. Kept free of everything but NumPy and the standard library.


def _drawn(key: str, shape: tuple[int, ...], precision: int, exponent: int) -> np.ndarray:
    """Dense dyadic rationals from a counter-based generator (the finalizer of splitmix64): the same bits everywhere."""
    start = np.uint64(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little"))
    with np.errstate(over="ignore"):
        z = start + np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    size = np.ldexp(((z >> np.uint64(64 - precision)) | np.uint64(1)).astype(np.float64), exponent - precision)
    return np.where((z & np.uint64(1)).astype(bool), -size, size).reshape(shape)


def _unpacked(text: str, shape: tuple[int, ...]) -> np.ndarray:
    """float64 numbers from their compressed bytes: first all first bytes, then all second ones, ..."""
    planes = np.frombuffer(zlib.decompress(base64.b85decode(text)), np.uint8).reshape(8, -1)
    return planes.T.copy().view("<f8").reshape(shape)


def _bits(array: np.ndarray) -> np.ndarray:
    """bfloat16 as its bits: the upper half of a float32."""
    return (array.view(np.uint32) >> 16).astype(np.uint16) if array.dtype == np.float32 else array


def _numbers(array: np.ndarray) -> np.ndarray:
    """A tensor in float64, bits of bfloat16 included."""
    array = (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array
    return array.astype(np.float64)


def _ratios(got: np.ndarray, value: np.ndarray, radius: np.ndarray, largest: float) -> np.ndarray:
    """|error| / radius of every element; -1 where nothing can be said. Beyond the type's range infinity is right."""
    with np.errstate(all="ignore"):
        ratio = np.abs(got - value) / radius
        beyond = (np.abs(value) + radius >= largest) & (np.abs(got) >= largest) & (np.sign(got) == np.sign(value))
    ratio[~np.isfinite(got)] = np.inf
    ratio[(got == value) | beyond] = 0
    ratio[np.isinf(radius)] = -1
    return ratio


_END = """
worst = {{}}
results = [(k, run(k)) for k in range(len(FEEDS)) for _ in range(2)]
for reading, expected in EXPECTED.items():
    lines, worst[reading] = [f"{{reading}}:"], 0.0
    for k, outputs in results:
        for name, (value, radius) in expected[k].items():
            got, place = outputs[name], f"run {{k + 1}}, {{name}}"
            if got is None or got.shape != value.shape or got.dtype.name not in ({types}):
                form = "missing" if got is None else f"{{got.dtype.name}} {{got.shape}}"
                lines.append(f"  {{place}} is {{form}}, must be {dtype} {{value.shape}}")
                worst[reading] = np.inf
            elif value.size:
                ratio = ratios({got}, value, radius, {largest})
                at = np.unravel_index(int(ratio.argmax()), ratio.shape)
                must = f"expected {{value[at]:.9g}}, radius {{radius[at]:.3g}}, |error|/radius {{ratio[at]:.3g}}"
                lines.append(f"  {{place}}{{[int(i) for i in at]}}: got {{float({got}[at]):.9g}}, {{must}}")
                worst[reading] = max(worst[reading], float(ratio[at]))
    print("\\n".join(dict.fromkeys(lines)))
least = min(worst.values())
print(f"worst |error|/radius: {{least:.3g}}:", "outside" if least > 1 else "inside")
sys.exit(least > 1)
"""


# What differs from case to case.


def _head(case: Case, target: Target) -> Iterator[str]:
    yield f'"""{case.spec.id}'
    yield ""
    yield f"{case.trial.node.operator.name}. Each output is compared with a computation in float64; its radius is what"
    yield f"arithmetic of the accuracy class {target.accuracy} may be off by. Exits 1 where an output is outside its radius."
    yield '"""'
    # What starts the worker of a target tells how to start this.
    command = [part for part in target.command if part not in ("{worker}", "{source}")]
    words = [*(f"{name}={value}" for name, value in target.environment.items()), *command]
    if words:
        text = "The target is started with: " + " ".join(shlex.join(words).split())
        yield ""
        yield from textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")


def _long(line: str) -> str:
    return f"{line}  # noqa: E501" if len(line) > _WIDTH + 4 else line


def _array(values: NDArray[Any], dtype: str) -> Iterator[str]:
    """Lines of an expression for a tensor of few elements."""
    shape = ", ".join(map(str, values.shape))
    if not values.size:
        yield f'np.zeros(({shape}), "{dtype}")'
        return
    words = ", ".join({"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}.get(w, w) for w in map(repr, values.ravel().tolist()))
    end = f'"{dtype}").reshape({shape})'
    if len(words) < 70:
        yield f"np.array([{words}], {end}"
        return
    yield "np.array(["
    yield from textwrap.wrap(words, _WIDTH - 8, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    yield f"], {end}"


def _assigned(name: str, lines: Iterator[str]) -> Iterator[str]:
    yield f"{name} = {next(lines)}"
    yield from lines


def _packed(values: NDArray[np.float64]) -> str:
    """An expression for many float64 numbers: see `_unpacked`."""
    planes = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(-1, 8).T
    text = base64.b85encode(zlib.compress(planes.tobytes(), 9)).decode()
    return f'unpacked("{text}", {values.shape})'


class _Tensors:
    """The inputs of all runs as assignments: each tensor once, and ``FEEDS``, what every run is fed."""

    def __init__(self, case: Case) -> None:
        self.lines: list[str] = []
        # Narrower types than float32 are written as float32, which holds them exactly; NumPy has no bfloat16.
        wide = case.spec.type == "bfloat16"
        feeds = case.trial.feeds
        names: list[dict[str, str]] = [{} for _ in feeds]
        for name in case.trial.node.operator.inputs:
            arrays = [feed.inputs.get(name) for feed in feeds]
            held: dict[tuple[Any, ...], str] = {}
            for run, array in enumerate(arrays):
                if array is None:
                    continue
                content = (array.shape, array.tobytes())
                if content not in held:
                    held[content] = f"{name}_{len(held) + 1}" if len({a.tobytes() for a in arrays if a is not None}) > 1 else name
                    dtype = "float32" if wide and name != "sequence_lens" else array.dtype.name
                    self.lines += _assigned(held[content], _tensor(case.spec, name, array, dtype, len(feeds)))
                names[run][name] = held[content]
        for feed, variables in zip(feeds, names, strict=True):
            fed = ", ".join(f'"{name}": {variable}' for name, variable in variables.items() if name in feed.fed)
            self.lines.append(f"{'FEEDS = [' if feed is feeds[0] else '         '}{{{fed}}}{']' if feed is feeds[-1] else ','}")


def _tensor(spec: CaseSpec, name: str, array: NDArray[Any], dtype: str, runs: int) -> Iterator[str]:
    """An expression for an input: written out where it is small, else the generator that it came from, else bytes."""
    if name == "sequence_lens" or array.size <= _LITERAL:
        yield from _array(array if name == "sequence_lens" else _shortest(array, dtype), dtype)
        return
    values = array.astype(np.float64)
    for key in (f"{spec.op}/{name}/{spec.weights_seed}", *(f"{spec.op}/{name}/{spec.seed}/{k}" for k in range(runs))):
        for precision in (FORMATS[spec.type].precision, 3):
            exponent = _unit_exponent(values.flat[0]) + precision
            if _drawn(key, array.shape, precision, exponent).astype(array.dtype).tobytes() == array.tobytes():
                yield f'drawn("{key}", {array.shape}, {precision}, {exponent}).astype("{dtype}")'
                return
    yield _long(f'{_packed(values)}.astype("{dtype}")')


def _shortest(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The numbers as float64 with the fewest digits that give the same tensor."""
    exact = array.astype(np.float64)
    short = np.array([float(str(v)) for v in array.astype(dtype).ravel()]).reshape(array.shape)
    return short if short.astype(dtype).tobytes() == array.astype(dtype).tobytes() else exact


def _unit_exponent(value: float) -> int:
    """q of value = m * 2^q with odd m; 0 where there is none."""
    if not np.isfinite(value) or value == 0:
        return 0
    over, under = float(value).as_integer_ratio()
    return (over & -over).bit_length() - under.bit_length()


def _model(case: Case) -> Iterator[str]:
    """The same model as the case's, made by onnx.helper."""
    model = onnx.load_model_from_string(case.trial.model)
    graph, (opset,) = model.graph, model.opset_import
    (node,) = graph.node
    attributes = "".join(f", {name}={_plain(value)}" for name, value in sorted(case.trial.node.attributes.items()))
    kind = onnx.TensorProto.DataType.Name(graph.output[0].type.tensor_type.elem_type)

    def info(value: onnx.ValueInfoProto) -> str:
        tensor = value.type.tensor_type
        dims = [f'"{d.dim_param}"' if d.dim_param else str(d.dim_value) for d in tensor.shape.dim]
        other = ", kind=TensorProto.INT32" if tensor.elem_type == onnx.TensorProto.INT32 else ""
        return f'info("{value.name}", {", ".join(dims)}{other})'

    def listed(items: list[str]) -> Iterator[str]:
        one = f"    [{', '.join(items)}],"
        yield from [one] if len(one) <= _WIDTH else ["    [", *(f"        {item}," for item in items), "    ],"]

    yield ""
    yield f"def info(name: str, *shape: object, kind: int = TensorProto.{kind}):"
    yield "    return helper.make_tensor_value_info(name, kind, shape)"
    yield ""
    yield ""
    words = f'"{node.op_type}", {_quoted(node.input)}, {_quoted(node.output)}, name="{node.name}"{attributes}'
    yield "node = helper.make_node("
    yield from textwrap.wrap(words, _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    yield ")"
    yield "graph = helper.make_graph("
    yield "    [node],"
    yield f'    "{graph.name}",'
    yield from listed([info(value) for value in graph.input])
    yield from listed([info(value) for value in graph.output])
    if graph.initializer:
        raw = "bits(a)" if case.spec.type == "bfloat16" else "a"
        given = ", ".join(f'"{tensor.name}": {tensor.name}' for tensor in graph.initializer)
        yield f"    [helper.make_tensor(n, TensorProto.{kind}, a.shape, {raw}.tobytes(), raw=True) for n, a in {{{given}}}.items()],"
    yield ")"
    yield f'opsets = [helper.make_opsetid("{opset.domain}", {opset.version})]'
    yield (
        f'model = helper.make_model(graph, opset_imports=opsets, ir_version={model.ir_version}, '
        f'producer_name="{model.producer_name}")'
    )
    yield f"NAMES = {_quoted([value.name for value in graph.output])}"


def _quoted(names: Any) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def _plain(value: Any) -> str:
    return _quoted(value) if isinstance(value, list) and value and isinstance(value[0], str) else (
        f'"{value}"' if isinstance(value, str) else repr(value)
    )


def _expected(case: Case, accuracy: str) -> Iterator[str]:
    """What the outputs of every run must be: for each reading that makes a difference (value, radius) by name.

    The radius is infinite where nothing can be said, or nothing but what convention says.
    """
    touched: frozenset[str] = frozenset()
    for feed in case.trial.feeds:
        touched |= configure(case.trial.node, feed.inputs).touched
    yield "# What each output must be, and its radius (infinite: nothing is demanded), run by run."
    yield "EXPECTED = {"
    seen: set[bytes] = set()
    for readings in Readings().alternatives(touched):
        runs = [_numbers_of(case, feed.inputs, accuracy, readings) for feed in case.trial.feeds]
        content = b"".join(number.tobytes() for run in runs for number in run.values())
        if content in seen:
            continue
        seen.add(content)
        label = ", ".join(f"{name} {getattr(readings, name)}" for name in sorted(touched)) or "expected"
        yield _long(f'    "{label}": [')
        for run in runs:
            yield "        {"
            for name, number in run.items():
                yield from _pair(name, number)
            yield "        },"
        yield "    ],"
    yield "}"


def _numbers_of(
    case: Case, inputs: Mapping[str, NDArray[Any]], accuracy: str, readings: Readings
) -> dict[str, NDArray[np.float64]]:
    """Value and radius of each output, stacked."""
    found: dict[str, NDArray[np.float64]] = {}
    for e in expect(case.trial.node, inputs, {}, accuracy, readings):
        value, radius = e.number.value, np.broadcast_to(e.number.radius, e.number.value.shape) * RADIUS_SLACK
        if e.number.doubt is not None:
            radius = np.where(e.number.doubt, np.inf, radius)
        if clause_named(e.clause).status == "convention":
            radius = np.full_like(radius, np.inf)
        number = np.stack([value, radius])
        found[e.output] = number if e.output not in found or e.about is None else np.where(e.about, number, found[e.output])
    return found


def _pair(name: str, number: NDArray[np.float64]) -> Iterator[str]:
    value, radius = number
    if value.size > _LITERAL:
        # Eight bits of the radius, rounded up, are enough and compress well.
        fraction, exponent = np.frexp(radius)
        finite = np.isfinite(radius)
        short = np.where(finite, np.ldexp(np.ceil(np.where(finite, fraction, 0.5) * 256), exponent - 8), np.inf)
        yield _long(f'            "{name}": {_packed(np.stack([value, short]))},')
        return
    yield f'            "{name}": ('
    for part in (value, np.vectorize(_rounded_up, otypes=[np.float64])(radius) if radius.size else radius):
        lines = [f"                {line}" for line in _array(part, "float64")]
        yield from [*lines[:-1], lines[-1] + ","]
    yield "            ),"


def _rounded_up(radius: float) -> float:
    """Three digits, upwards."""
    short = float(f"{radius:.2e}")
    return short if short >= radius or not np.isfinite(radius) else float(f"{radius * 1.005:.2e}")


# How each runtime is called: each defines `run`, from a number of FEEDS to outputs by name.


@dataclass(frozen=True)
class _Runtime:
    """`imports` of packages, modules of the `standard` library, and the `lines` that define ``run``."""

    imports: tuple[str, ...]
    lines: str
    standard: frozenset[str] = frozenset()


_BY_NAMES = """
    return {name: outputs[n] for n, name in enumerate(NAMES)}
"""

_ONNXRUNTIME = """
options = ort.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = @threads
options.graph_optimization_level = ort.GraphOptimizationLevel.@level
for key, setting in @entries.items():
    options.add_session_config_entry(key, setting)
session = ort.InferenceSession(model.SerializeToString(), options, providers=[("@provider", @settings)])
"""

_SIMPLE_RUN = """

def run(k: int) -> dict[str, np.ndarray]:
    outputs = session.run(NAMES, FEEDS[k])
"""

_BOUND_RUN = """

def run(k: int) -> dict[str, np.ndarray]:
    \"\"\"The outputs are bound to memory full of NaN, so that what the runtime leaves unwritten shows.\"\"\"
    shapes = {name: value.shape for name, (value, _) in next(iter(EXPECTED.values()))[k].items()}
    outputs = {name: @filled for name, shape in shapes.items()}
    binding = session.io_binding()
    for name, array in FEEDS[k].items():
        binding.bind_ortvalue_input(name, @given)
    for name, array in outputs.items():
        binding.bind_ortvalue_output(name, @taken)
    session.run_with_iobinding(binding)
    return outputs
"""

_REFERENCE = """
evaluator = ReferenceEvaluator(model)


def run(k: int) -> dict[str, np.ndarray]:
    outputs = evaluator.run(NAMES, {name: @native for name, array in FEEDS[k].items()})
"""

_BACKEND = """
module = importlib.import_module("@module")
classes = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Backend) and v is not Backend]
backend = module if hasattr(module, "prepare") or hasattr(module, "run_model") else classes[0]
prepared = backend.prepare(model, "@device") if hasattr(backend, "prepare") else None


def run(k: int) -> dict[str, np.ndarray]:
    inputs = [@native for array in FEEDS[k].values()]
    outputs = backend.run_model(model, inputs, "@device") if prepared is None else prepared.run(inputs)
    if isinstance(outputs, dict):
        return outputs
"""

_ADAPTER = """
session = runpy.run_path(@path)["Adapter"](@options).prepare(model.SerializeToString())


def run(k: int) -> dict[str, np.ndarray]:
    outputs = session.run({name: @native for name, array in FEEDS[k].items()})
"""

_BITS = """
class Bits(np.ndarray):
    element = "bfloat16"

"""


def _filled(text: str, **values: object) -> str:
    """A text in which every ``@name`` is replaced."""
    return re.sub("@([a-z]+)", lambda found: str(values[found[1]]), text)


def _of_onnxruntime(case: Case, target: Target) -> _Runtime:
    options: dict[str, Any] = dict(target.options)
    provider = options.get("provider", "CPUExecutionProvider")
    entries = _settings(options.get("session_options", {}))
    if provider != "CPUExecutionProvider":
        entries["session.disable_cpu_ep_fallback"] = "1"
    session = _filled(
        _ONNXRUNTIME if entries else re.sub("for key.*\n.*\n", "", _ONNXRUNTIME),
        threads=int(options.get("threads", 1)),
        level="ORT_ENABLE_ALL" if options.get("optimize") else "ORT_DISABLE_ALL",
        entries=entries,
        provider=provider,
        settings=_settings(options.get("provider_options", {})),
    )
    imports = ("import onnxruntime as ort",)
    if case.spec.type == "bfloat16":
        # NumPy has no such type, so onnxruntime takes and gives its bits only where they are bound.
        value = "ort.OrtValue.ortvalue_from_numpy_with_onnx_type(@array, TensorProto.@type)"
        bits = _filled(value, array="bits(array)", type="BFLOAT16")
        whole = _filled(value, array="array", type="INT32")
        given, filled = f'{whole} if name == "sequence_lens" else {bits}', "np.full(shape, 0x7FC0, np.uint16)"
        return _Runtime(imports, session + _filled(_BOUND_RUN, given=given, taken=bits, filled=filled))
    if "empty-row" in features_of(case.spec):
        value, filled = "ort.OrtValue.ortvalue_from_numpy(array)", f'np.full(shape, np.nan, "{case.spec.type}")'
        return _Runtime(imports, session + _filled(_BOUND_RUN, given=value, taken=value, filled=filled))
    return _Runtime(imports, session + _SIMPLE_RUN + _BY_NAMES[1:])


def _settings(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as onnxruntime takes them: switches are "0" and "1"."""
    return {key: str(int(value)) if isinstance(value, bool) else str(value) for key, value in options.items()}


def _native(case: Case) -> str:
    """A tensor of FEEDS in the type that onnx itself has for it."""
    if case.spec.type != "bfloat16":
        return "array"
    kind = "helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)"
    return f"bits(array).view({kind}) if array.dtype == np.float32 else array"


def _of_reference(case: Case, target: Target) -> _Runtime:
    lines = _filled(_REFERENCE, native=_native(case)) + _BY_NAMES[1:]
    return _Runtime(("from onnx.reference import ReferenceEvaluator",), lines)


def _of_backend(case: Case, target: Target) -> _Runtime:
    device = target.options.get("device", "CPU")
    lines = _filled(_BACKEND, module=target.options["module"], device=device, native=_native(case)) + _BY_NAMES[1:]
    return _Runtime(("from onnx.backend.base import Backend",), lines, frozenset({"importlib"}))


def _of_file(case: Case, target: Target) -> _Runtime:
    """An adapter of the user's own: the script runs its file."""
    half = case.spec.type == "bfloat16"
    native = "bits(array).view(Bits) if array.dtype == np.float32 else array" if half else "array"
    lines = _filled(_ADAPTER, path=repr(target.adapter), options=dict(target.options), native=native) + _BY_NAMES[1:]
    return _Runtime((), _BITS * half + lines, frozenset({"runpy"}))


_RUNTIMES: dict[str, Callable[[Case, Target], _Runtime]] = {
    "onnxruntime": _of_onnxruntime,
    "onnx-reference": _of_reference,
    "backend": _of_backend,
}
