"""Parts of emitted scripts that are the same in all of them, and how a script calls each runtime.

The functions here go into scripts as they stand, so they need nothing but the standard library and NumPy.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pprint import pformat
from typing import Any

import numpy as np

from ...cases import Case, features_of
from ..targets.adapters import EXTERNAL, adapter_source
from ..targets.target import Target

__all__ = ["COMPARISON", "LACKING", "Runtime", "bits", "drawn", "filled", "numbers", "ratios", "runtime_of", "unpacked"]


def drawn(key: str, shape: tuple[int, ...], precision: int, exponent: int) -> np.ndarray:
    """Dense dyadic rationals from a counter-based generator (the finalizer of splitmix64): the same bits everywhere."""
    start = np.uint64(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little"))
    with np.errstate(over="ignore"):
        z = start + np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    size = np.ldexp(((z >> np.uint64(64 - precision)) | np.uint64(1)).astype(np.float64), exponent - precision)
    return np.where((z & np.uint64(1)).astype(bool), -size, size).reshape(shape)


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


COMPARISON = """
worst = {{}}
results = [(k, run(k)) for k in range(len(FEEDS)) for _ in range(2)]
for interpretation, expected in EXPECTED.items():
    lines, worst[interpretation] = [f"{{interpretation}}:"], 0.0
    for k, outputs in results:
        for name, (value, radius) in expected[k].items():
            got, place = outputs[name], f"run {{k + 1}}, {{name}}"{lacking}
            if got is None or got.shape != value.shape or got.dtype.name not in ({types}):
                form = "missing" if got is None else f"{{got.dtype.name}} {{got.shape}}"
                lines.append(f"  {{place}} is {{form}}, must be {dtype} {{value.shape}}")
                worst[interpretation] = np.inf
            elif value.size:
                ratio = ratios({got}, value, radius, {largest})
                at = np.unravel_index(int(ratio.argmax()), ratio.shape)
                must = f"expected {{value[at]:.9g}}, radius {{radius[at]:.3g}}, |error|/radius {{ratio[at]:.3g}}"
                lines.append(f"  {{place}}{{[int(i) for i in at]}}: got {{float({got}[at]):.9g}}, {{must}}")
                worst[interpretation] = max(worst[interpretation], float(ratio[at]))
    print("\\n".join(dict.fromkeys(lines)))
least = min(worst.values())
print(f"worst |error|/radius: {{least:.3g}}:", "outside" if least > 1 else "inside")
sys.exit(least > 1)
"""

LACKING = """
            if got is None:  # asked for against output_sequence 0, it may be missing
                continue"""


# How each runtime is called: each text defines `run`, from a number of FEEDS to outputs by name.


@dataclass(frozen=True)
class Runtime:
    """`imports` of packages, modules of the `standard` library, and the `lines` that define ``run``."""

    imports: tuple[str, ...]
    lines: str
    standard: frozenset[str] = frozenset()


_ONNXRUNTIME = """
options = ort.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = @threads
options.graph_optimization_level = ort.GraphOptimizationLevel.@level
for key, setting in @entries.items():
    options.add_session_config_entry(key, setting)
session = ort.InferenceSession(model.SerializeToString(), options, providers=[("@provider", @settings)])


def run(k: int) -> dict[str, np.ndarray]:
    outputs = session.run(NAMES, FEEDS[k])
    return {name: outputs[n] for n, name in enumerate(NAMES)}
"""

# How a script gets the library of AMD Quark's operators, which onnxspec keeps in its cache folder once it has built it.
_LIBRARY = """
# Run with the path of AMD Quark's custom-op library as its argument, or in ONNXSPEC_QUARK_LIBRARY (onnxspec keeps the
# one that it has built in its cache folder, ~/.cache/onnxspec/quark). Without one it exits with 2.
LIBRARY = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ONNXSPEC_QUARK_LIBRARY", "")
if not os.path.isfile(LIBRARY):
    print(f"not tried: there is no library {LIBRARY!r}; give the path of one", file=sys.stderr)
    sys.exit(2)
"""

_BOUND = """
def bound(array: np.ndarray) -> ort.OrtValue:
    @bound


def run(k: int) -> dict[str, np.ndarray]:
    \"\"\"The outputs are bound to memory full of NaN, so that what the runtime leaves unwritten shows.\"\"\"
    feed = @feed
    expected = next(iter(EXPECTED.values()))[k]
    outputs = {name: @empty for name, (value, _) in expected.items()}
    binding = session.io_binding()
    for name, array in feed.items():
        binding.bind_ortvalue_input(name, bound(array))
    for name, array in outputs.items():
        binding.bind_ortvalue_output(name, bound(array))
    session.run_with_iobinding(binding)
    return outputs
"""

_REFERENCE = """
evaluator = ReferenceEvaluator(model)


def run(k: int) -> dict[str, np.ndarray]:
    feed = @feed
    outputs = evaluator.run(NAMES, feed)
    return {name: outputs[n] for n, name in enumerate(NAMES)}
"""

_BACKEND = """
# The backend "@module" must be installed, or lie in the current folder, or in one that PYTHONPATH names.
sys.path.append(os.getcwd())
try:
    module = importlib.import_module("@module")
except ModuleNotFoundError as error:
    sys.exit(f"{error}: run this in the folder where @module lies, or name that folder in PYTHONPATH")
classes = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Backend) and v is not Backend]
backend = module if hasattr(module, "prepare") or hasattr(module, "run_model") else classes[0]
prepared = backend.prepare(model, "@device") if hasattr(backend, "prepare") else None


def run(k: int) -> dict[str, np.ndarray]:
    feed = @feed
    inputs = list(feed.values())
    outputs = backend.run_model(model, inputs, "@device") if prepared is None else prepared.run(inputs)
    return outputs if isinstance(outputs, dict) else {name: outputs[n] for n, name in enumerate(NAMES)}
"""

# The type that onnx itself has for it, since onnx 1.19.
_BFLOAT16 = """
BFLOAT16 = helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
"""

_ADAPTER = """
class Bits(np.ndarray):
    element = "bfloat16"


@load
options = {**adapter.get("OPTION_DEFAULTS", {}), **@options}
session = adapter["Adapter"](options).prepare(model.SerializeToString())


def run(k: int) -> dict[str, np.ndarray]:
    feed = @feed
    outputs = session.run(feed)
    return {name: outputs[n] for n, name in enumerate(NAMES)}
"""

# A program that is a target by itself is spoken to in frames: docs/worker-protocol.md.
_PROGRAM = """
command = @command
folder = @folder
start = @start
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
program = subprocess.Popen(command, cwd=folder, env={**os.environ, **start["environment"]}, **pipes)


def send(header: dict, arrays: list[np.ndarray]) -> None:
    header["arrays"] = [["bfloat16" if a.dtype == np.uint16 else a.dtype.name, list(a.shape)] for a in arrays]
    text = json.dumps(header).encode()
    body = b"".join(a.tobytes() + bytes(-a.nbytes % 16) for a in arrays)
    program.stdin.write(struct.pack("<8sIQ", b"ONXSPEC1", len(text), len(body)) + text + body)
    program.stdin.flush()


def receive(*types: str) -> tuple[dict, list[np.ndarray]]:
    header = {"type": ""}
    while header["type"] not in types:
        prefix = program.stdout.read(20)
        if len(prefix) < 20:
            sys.exit("the program has ended")
        _, size, body = struct.unpack("<8sIQ", prefix)
        header, body, arrays = json.loads(program.stdout.read(size)), program.stdout.read(body), []
        for element, shape in header.get("arrays", ()):
            dtype = np.dtype("uint16" if element == "bfloat16" else element)
            arrays.append(np.frombuffer(body, dtype, int(np.prod(shape))).reshape(shape))
            body = body[arrays[-1].nbytes + -arrays[-1].nbytes % 16 :]
    return header, arrays


def run(k: int) -> dict[str, np.ndarray]:
    feed = @feed
    arrays = [np.frombuffer(model.SerializeToString(), np.uint8), *feed.values()]
    job = {"number": 1, "model": 0, "feeds": [{name: n for n, name in enumerate(feed, 1)}]}
    send({"type": "run", "jobs": [job]}, arrays)
    report, arrays = receive("report", "died")
    if report.get("status") != "ran":
        raise RuntimeError(report.get("message") or report)
    outputs = [None if n is None else arrays[n] for n in report["outputs"][0][0]]
    return {name: outputs[n] for n, name in enumerate(NAMES)}


send(start, [])
answer, _ = receive("ready", "unavailable")
if answer["type"] != "ready":
    sys.exit(answer["message"])
"""


def runtime_of(case: Case, target: Target) -> Runtime:
    """Code that runs the case's ``model`` on a target. An adapter of the user's own is run from its file, any other
    one goes into the script."""
    options: dict[str, Any] = dict(target.options)
    half = case.spec.type == "bfloat16"
    if target.adapter == "onnxruntime":
        return Runtime(("import onnxruntime as ort",), _of_onnxruntime(case, options))
    if target.adapter == "quark":
        lines = _LIBRARY + _of_onnxruntime(case, options, ("LIBRARY",))
        return Runtime(("import onnxruntime as ort",), lines, frozenset({"os"}))
    feed = _feed("bits(array).view(BFLOAT16)", half)
    if target.adapter == "onnx-reference":
        imports = ("from onnx.reference import ReferenceEvaluator",)
        return Runtime(imports, _BFLOAT16 * half + filled(_REFERENCE, feed=feed))
    if target.adapter == "backend":
        device = options.get("device", "CPU")
        lines = _BFLOAT16 * half + filled(_BACKEND, module=options["module"], device=device, feed=feed)
        return Runtime(("from onnx.backend.base import Backend",), lines, frozenset({"importlib", "os"}))
    if target.adapter == EXTERNAL:
        return Runtime((), _of_program(target, half), frozenset({"json", "os", "struct", "subprocess"}))
    if target.adapter.endswith(".py"):
        standard, load = frozenset({"runpy"}), f"adapter = runpy.run_path({target.adapter!r})"
    else:
        packed = base64.b85encode(zlib.compress(adapter_source(target.adapter).encode(), 9)).decode()
        load = f'adapter: dict = {{}}\nexec(zlib.decompress(base64.b85decode("{packed}")), adapter)  # noqa: E501'
        standard = frozenset({"base64", "zlib"})
    text = _ADAPTER if half else _ADAPTER[_ADAPTER.index("@load") :]
    lines = filled(text, load=load, options=options, feed=_feed("bits(array).view(Bits)", half))
    return Runtime((), lines, standard)


def _of_program(target: Target, half: bool) -> str:
    start = {
        "type": "start",
        "adapter": "",
        "options": dict(target.options),
        "environment": dict(target.environment),
        "time_limit": target.time_limit,
        "memory_limit": target.memory_limit,
        "output_limit": target.output_limit,
        "repeats": 1,
    }
    return filled(
        _PROGRAM,
        command=pformat(list(target.command), width=100),
        folder=repr(target.folder or "."),
        start=pformat(start, width=100, sort_dicts=False),
        feed=_feed("bits(array)", half),
    )


def _of_onnxruntime(case: Case, options: dict[str, Any], libraries: tuple[str, ...] = ()) -> str:
    """`libraries` are expressions of paths of custom-op libraries, beside those that the options name."""
    provider = options.get("provider", "CPUExecutionProvider")
    entries = _settings(options.get("session_options", {}))
    if provider != "CPUExecutionProvider":
        entries["session.disable_cpu_ep_fallback"] = "1"
    text = filled(
        _ONNXRUNTIME if entries else re.sub("for key.*\n.*\n", "", _ONNXRUNTIME),
        threads=int(options.get("threads", 1)),
        level="ORT_ENABLE_ALL" if options.get("optimize") else "ORT_DISABLE_ALL",
        entries=entries,
        provider=provider,
        settings=_settings(options.get("provider_options", {})),
    )
    libraries += tuple(repr(str(path)) for path in options.get("custom_op_libraries", ()))
    registered = "".join(f"options.register_custom_ops_library({path})\n" for path in libraries)
    text = text.replace("session = ort", f"{registered}session = ort", 1)
    session = text[: text.index("def run")]
    if case.spec.type == "bfloat16":
        # NumPy has no such type, so onnxruntime takes and gives its bits only where they are bound.
        value = """kind = TensorProto.BFLOAT16 if array.dtype == np.uint16 else TensorProto.INT32
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, kind)"""
        empty = "np.full(value.shape, 0x7FC0, np.uint16)"
        feed = "{name: bits(array) for name, array in FEEDS[k].items()}"
        return session + filled(_BOUND, bound=value, feed=feed, empty=empty).lstrip()
    if "empty-row" in features_of(case.spec):
        # A state after no steps is easily left unwritten, and fresh memory often holds zeros.
        value = "return ort.OrtValue.ortvalue_from_numpy(array)"
        empty = f'np.full(value.shape, np.nan, "{case.spec.type}")'
        return session + filled(_BOUND, bound=value, feed="FEEDS[k]", empty=empty).lstrip()
    return text


def filled(template: str, /, **values: object) -> str:
    """A text in which every ``@name`` is replaced."""
    return re.sub("@([a-z]+)", lambda found: str(values[found[1]]), template)


def _settings(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as onnxruntime takes them: switches are "0" and "1"."""
    return {key: str(int(value)) if isinstance(value, bool) else str(value) for key, value in options.items()}


def _feed(native: str, half: bool) -> str:
    """The feed of a run; `native` makes bfloat16 of a float32 tensor."""
    if not half:
        return "FEEDS[k]"
    return f"""{{
        name: {native} if array.dtype == np.float32 else array
        for name, array in FEEDS[k].items()
    }}"""
