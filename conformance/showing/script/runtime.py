"""Source code of emitted scripts that calls a runtime: it defines `run`, from a number of FEEDS to outputs by name."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....cases import Case, features_of
from ...targets.adapters import EXTERNAL, adapter_source
from ...targets.target import Target


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

# The library of AMD Quark's operators; onnxspec keeps it in its cache folder after the build.
_LIBRARY = """
# Run with the path of AMD Quark's custom-op library as its argument, or in ONNXSPEC_QUARK_LIBRARY (onnxspec keeps the
# one that it has built in its cache folder, ~/.cache/onnxspec/quark). Without one it exits with 2.
LIBRARY = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ONNXSPEC_QUARK_LIBRARY", "")
if not os.path.isfile(LIBRARY):
    print(f"not tried: there is no library {LIBRARY!r}; give the path of one", file=sys.stderr)
    sys.exit(2)
"""

# Runtimes often leave a state unwritten after zero steps, and fresh memory often holds zeros.
_BOUND = """
def run(k: int) -> dict[str, np.ndarray]:
    \"\"\"The outputs are bound to memory full of NaN, so that what the runtime leaves unwritten shows.\"\"\"
    expected = next(iter(EXPECTED.values()))[k]
    outputs = {name: np.full(value.shape, np.nan, "@type") for name, (value, _) in expected.items()}
    binding = session.io_binding()
    for name, array in FEEDS[k].items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    for name, array in outputs.items():
        binding.bind_ortvalue_output(name, ort.OrtValue.ortvalue_from_numpy(array))
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

# The type that onnx itself has for it, since onnx 1.19.
_BFLOAT16 = """
BFLOAT16 = helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
"""

_ADAPTER = """
class Bits(np.ndarray):
    element = "bfloat16"


try:
    @load
    options = {**adapter.get("OPTION_DEFAULTS", {}), **@options}
    target = adapter["Adapter"](options)
except Exception as error:
    print(f"not tried, as it cannot start: {type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(2)
session = target.prepare(model.SerializeToString())


def run(k: int) -> dict[str, np.ndarray]:
    feed = @feed
    outputs = @outputs
    return {name: outputs[n] for n, name in enumerate(NAMES)}
"""

# Adapters may return bfloat16 as onnx before 1.19 has it, with a named field.
_BITS_OUT = '[a.view(np.uint16) if a is not None and a.dtype.names == ("bfloat16",) else a for a in session.run(feed)]'


def runtime_of(case: Case, target: Target) -> Runtime | None:
    """Return code that runs the case's ``model`` on a target; None for external programs and backend modules.

    The user's own adapter is run from its file; other adapters are embedded in the script.
    """
    if target.adapter in (EXTERNAL, "backend"):
        return None
    options: dict[str, Any] = dict(target.options)
    half = case.spec.type == "bfloat16"
    # NumPy has no bfloat16: there the adapter hands onnxruntime the bits.
    if target.adapter == "onnxruntime" and not half:
        return Runtime(("import onnxruntime as ort",), _of_onnxruntime(case, options))
    if target.adapter == "quark":
        lines = _LIBRARY + _of_onnxruntime(case, options, ("LIBRARY",))
        return Runtime(("import onnxruntime as ort",), lines, frozenset({"os"}))
    feed = _feed("bits(array).view(BFLOAT16)", half)
    if target.adapter == "onnx-reference":
        imports = ("from onnx.reference import ReferenceEvaluator",)
        return Runtime(imports, _BFLOAT16 * half + _filled(_REFERENCE, feed=feed))
    note = ""
    if target.adapter.endswith(".py"):
        path = Path(target.adapter).absolute()
        note = (
            "# Run with the path of the adapter as its argument where it is elsewhere.\n"
            f"ADAPTER = sys.argv[1] if len(sys.argv) > 1 else {str(path)!r}\n\n"
        )
        load = "sys.path.append(os.path.dirname(ADAPTER))\n    adapter = runpy.run_path(ADAPTER)"
        standard = frozenset({"os", "runpy"})
    else:
        packed = base64.b85encode(zlib.compress(adapter_source(target.adapter).encode(), 9)).decode()
        load = f'adapter: dict = {{}}\n    exec(zlib.decompress(base64.b85decode("{packed}")), adapter)  # noqa: E501'
        standard = frozenset({"base64", "zlib"})
    text = _ADAPTER if half else _ADAPTER[_ADAPTER.index("try:") :]
    lines = note + _filled(
        text,
        load=load,
        options=options,
        feed=_feed("bits(array).view(Bits)", half),
        outputs=_BITS_OUT if half else "session.run(feed)",
    )
    return Runtime((), lines, standard)


def _of_onnxruntime(case: Case, options: dict[str, Any], libraries: tuple[str, ...] = ()) -> str:
    """Return code that runs the case on onnxruntime.

    `libraries` are expressions for paths of custom-op libraries, in addition to those of the options.
    """
    provider = options.get("provider", "CPUExecutionProvider")
    entries = _settings(options.get("session_options", {}))
    if provider != "CPUExecutionProvider":
        entries["session.disable_cpu_ep_fallback"] = "1"
    text = _filled(
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
    if "empty-row" in features_of(case.spec):
        return text[: text.index("def run")] + _filled(_BOUND, type=case.spec.type).lstrip()
    return text


def _filled(template: str, /, **values: object) -> str:
    """Return a text in which every ``@name`` is replaced."""
    return re.sub("@([a-z]+)", lambda match: str(values[match[1]]), template)


def _settings(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as onnxruntime takes them: switches are "0" and "1"."""
    return {key: str(int(value)) if isinstance(value, bool) else str(value) for key, value in options.items()}


def _feed(native: str, half: bool) -> str:
    """Return the feed of a run; `native` is the expression that makes bfloat16 of a float32 tensor."""
    if not half:
        return "FEEDS[k]"
    return f"""{{
        name: {native} if array.dtype == np.float32 else array
        for name, array in FEEDS[k].items()
    }}"""
