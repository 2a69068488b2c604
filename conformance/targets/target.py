"""A target: a runtime in one configuration, and how people name it.

Names are ``onnxruntime``, ``onnxruntime:NAMEExecutionProvider``, ``onnx-reference``, ``openvino``, ``tract``,
``quark``, ``backend:package.module``, an adapter of another package, or a table of a ``targets.toml``::

    [migraphx]
    adapter = "onnxruntime"                     # or onnx-reference, backend, external, or a path ending in .py
    provider = "MIGraphXExecutionProvider"      # short for options.provider
    options = { optimize = true }               # options of the adapter
    interpreter = "/opt/rocm-venv/bin/python"   # runs the worker; or a whole command in front of it:
    # command = ["docker", "exec", "-i", "rocm", "python3", "-c", "{source}"]
    # command = ["ssh", "rocm-box", "python3", "{stdin}"]
    environment = { HIP_VISIBLE_DEVICES = "0" }
    time_limit = 120                            # seconds for one case
    memory_limit = 8_000_000_000                # bytes, in addition to the loaded runtime
    output_limit = 268_435_456                  # bytes that one case may return
    accuracy = "standard"                       # accuracy class it is judged by
    expected = "migraphx-failures.toml"         # its expected failures, in place of shipped ones

docs/targets.md has the details. Errors name the file and the line.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from ...reference import ACCURACY_CLASSES, operator_names
from ...reference.errors import UserError
from ..border.typed_toml import TomlDocument, shown
from .adapters import ADAPTERS, EXTERNAL, adapter_names, adapter_source
from .third_party import third_parties

TIME_LIMIT = 60.0
"""Default number of seconds for one case: compilers of devices take several."""

OUTPUT_LIMIT = 256 << 20
"""Default number of bytes that one case may return, all its runs together. The largest case of a profile returns 2 MB,
and this process holds outputs three times while it judges."""

ACCURACY = "standard"
"""Accuracy class of a target that declares none."""

_LONGEST_NAME = 200
_LONGEST = 1_000_000  # seconds: eleven days; some systems count what they wait for in milliseconds of 32 bits

OPTIMIZED = "+optimized"
"""The end of the name of a target in its second lane."""

PROVIDERS = tuple(
    name + "ExecutionProvider"
    for name in (
        *("ACL", "ArmNN", "Azure", "CANN", "CPU", "CUDA", "CoreML", "Dml", "JS", "MIGraphX", "NvTensorRTRTX", "Nnapi"),
        *("OpenVINO", "QNN", "ROCM", "Rknpu", "Tensorrt", "VSINPU", "VitisAI", "WebGpu", "WebNN", "Xnnpack"),
    )
)
"""Providers that onnxruntime's sources name; used for suggestions only, any other name ending alike is tried too."""

_SHORT = {
    **{name.removesuffix("ExecutionProvider").lower(): (name,) for name in PROVIDERS},
    "trt": ("TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider"),
    "directml": ("DmlExecutionProvider",),
    "gpu": ("CUDAExecutionProvider", "ROCMExecutionProvider", "DmlExecutionProvider"),
    "npu": ("QNNExecutionProvider", "VitisAIExecutionProvider", "OpenVINOExecutionProvider"),
}
"""Names that people and packages have for providers, in small letters; used for suggestions only."""

_PLAIN = tuple(name for name in ADAPTERS if name != "backend")
"""Adapters that are targets by their own names."""

_ABOUT = {"quark": "com.amd.quark"}
"""Adapters for the operators of another domain than ONNX's own."""

_WITHOUT_ZERO = r"^[^\0]*\Z"  # no path, name or variable holds a zero character
Name = Annotated[str, Meta(min_length=1, pattern=_WITHOUT_ZERO)]
Variable = Annotated[str, Meta(pattern=r"^[^=\0]+\Z")]
Bytes = Annotated[int, Meta(gt=0, lt=1 << 62)]


class TargetError(UserError):
    """A target's name or its table cannot be used; the message says which and why, in one line."""


@dataclass(frozen=True)
class Target:
    """A runtime in one configuration.

    Attributes:
        name: its name for the user.
        adapter: name of a shipped adapter, or path of a file that holds one.
        options: options of the adapter; JSON values.
        command: starts the worker, see `launch`; empty for this interpreter.
        environment: variables set beside those of the caller, and in the worker before it loads the adapter.
        time_limit: seconds for one case.
        memory_limit: bytes of address space for the cases, in addition to the loaded runtime, or None.
        output_limit: bytes that all runs of one case together may return.
        accuracy: name of the accuracy class by which the target is judged.
        expected: path of its own list of known failures; empty for the shipped one.
        wrap: name of the nodes around the node of each case, one of ``WRAPS``; empty for none.
        folder: working directory of a program that speaks the protocol; empty for the current one.
    """

    name: str
    adapter: str
    options: Mapping[str, object] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    time_limit: float = TIME_LIMIT
    memory_limit: int | None = None
    accuracy: str = ACCURACY
    expected: str = ""
    wrap: str = ""
    folder: str = ""
    output_limit: int = OUTPUT_LIMIT

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators that it is run with where none are asked for."""
        return operator_names(_ABOUT.get(self.adapter, ""))

    @property
    def is_command(self) -> bool:
        """Whether a command starts it, on any machine, rather than an interpreter."""
        return bool(self.command) and self.command[1:] != ("{worker}",)


def usual_target(domain: str) -> Target:
    """Return the default target for the operators of a domain."""
    name = next((adapter for adapter, own_domain in _ABOUT.items() if own_domain == domain), "onnxruntime")
    return Target(name, name)


def parse_target(text: str, targets_toml: Path | None = None) -> Target:
    """Return the target called `text`.

    `targets_toml` is the file with named targets. Raise `TargetError` for an unknown name and an invalid file or table.
    """
    named: Collection[str] = ()
    if targets_toml is not None:
        document = TomlDocument.read(targets_toml, TargetError)
        named = document.content
        if text in named:
            return _Table(document, targets_toml, text).target()
    kind, _, rest = text.partition(":")
    if text in _PLAIN:
        return Target(text, text)
    if kind == "onnxruntime" and re.fullmatch(r"\w+ExecutionProvider", rest):
        return Target(text, "onnxruntime", {"provider": rest})
    if kind == "backend" and re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", rest):
        return Target(text, "backend", {"module": rest})
    if text in third_parties():
        _require_source(text)
        return Target(text, text)
    asked = text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}..."
    raise TargetError(f"unknown target {asked!r}; nearest: {', '.join(map(shown, _nearest(text, named)))}")


def _require_source(adapter: str) -> None:
    """Raise TargetError if the source of an adapter cannot be read."""
    try:
        adapter_source(adapter)
    except UserError as error:
        raise TargetError(str(error)) from None
    except UnicodeDecodeError:
        raise TargetError(f"adapter {adapter!r} is no text in UTF-8") from None
    except OSError as error:
        raise TargetError(f"adapter {adapter!r} cannot be read: {error.strerror or error}") from None


def lane(target: Target, optimize: bool) -> Target:
    """Return the target in its lane: as it is, or with the runtime's graph optimizations on."""
    if not optimize or target.adapter != "onnxruntime":
        return target
    return replace(target, name=f"{target.name}{OPTIMIZED}", options={**target.options, "optimize": True})


def table_names(targets_toml: Path) -> list[str]:
    """Return the names of the tables of a file. Raise TargetError."""
    return list(TomlDocument.read(targets_toml, TargetError).content)


def _nearest(text: str, named: Collection[str]) -> list[str]:
    """Return the names nearest to an unknown one; all of them if none is near."""
    if text.startswith("backend"):
        return ["backend:package.module"]
    names = (*named, *_PLAIN, *third_parties())
    short = re.sub(r"_?execution_?pro\w*$", "", text.lower())
    runtime = re.match(r"(onnxruntime|ort)[:_-]", short)
    short = re.sub(r"[\W_]", "", short[runtime.end() :] if runtime else short)
    by_name = {key: [f"onnxruntime:{name}" for name in providers] for key, providers in _SHORT.items()}
    if not runtime:
        if short in by_name:
            return by_name[short]
        by_name |= {name.lower(): [name] for name in names}
    wanted = short if runtime else text.lower()
    near = [name for key in difflib.get_close_matches(wanted, by_name, 3, 0.6) for name in by_name[key]]
    return list(dict.fromkeys(near)) or [*names, "backend:package.module"]


class _Keys(Struct, kw_only=True):
    """The keys of a table of a targets file."""

    adapter: Name
    provider: Name | None = None
    options: dict[str, Any] = {}
    interpreter: Name | None = None
    command: Annotated[tuple[Name, ...], Meta(min_length=1)] | None = None
    environment: dict[Variable, Annotated[str, Meta(pattern=_WITHOUT_ZERO)]] = {}
    time_limit: Annotated[float, Meta(gt=0, le=_LONGEST)] = TIME_LIMIT
    memory_limit: Bytes | None = None
    output_limit: Bytes = OUTPUT_LIMIT
    accuracy: Name = ACCURACY
    expected: Name | None = None


class _Table:
    """One table of a targets file, read with checks; every complaint names file, line, table and key."""

    def __init__(self, document: TomlDocument, path: Path, name: str) -> None:
        self._document, self._name = document, name
        self._folder = path.parent
        self._keys = document.typed(document.content[name], _Keys, (name,))

    def target(self) -> Target:
        """Return the target of the table."""
        adapter, keys = self._adapter(), self._keys
        return Target(
            self._name,
            adapter,
            self._options(adapter),
            self._command(),
            keys.environment,
            keys.time_limit,
            keys.memory_limit,
            self._accuracy(),
            str(self._near("expected", keys.expected)) if keys.expected is not None else "",
            folder=str(self._folder) if adapter == EXTERNAL else "",
            output_limit=keys.output_limit,
        )

    def _wrong(self, key: str, complaint: str) -> ValueError:
        return self._document.wrong((self._name, *key.split(".")), complaint)

    def _near(self, key: str, value: str) -> Path:
        """Return the path of a key, relative to the file's folder."""
        try:
            return self._folder / Path(value).expanduser()
        except RuntimeError:  # ~name, and nobody is called so
            raise self._wrong(key, f"there is no home folder for {value!r}") from None

    def _adapter(self) -> str:
        adapter = self._keys.adapter
        if adapter.endswith(".py"):
            path = self._near("adapter", adapter)
            if not path.is_file():
                raise self._wrong("adapter", f"there is no file {path}")
            adapter = str(path)
        elif adapter not in (known := adapter_names()):
            near = difflib.get_close_matches(adapter, known, 1, 0.5) or known
            raise self._wrong("adapter", f"there is no adapter {adapter!r}; nearest: {', '.join(near)}")
        elif adapter == EXTERNAL and self._keys.command is None:
            raise self._wrong("command", "is missing: what starts the program that speaks the protocol")
        try:
            _require_source(adapter)
        except TargetError as error:
            raise self._wrong("adapter", str(error)) from None
        return adapter

    def _options(self, adapter: str) -> dict[str, object]:
        options, provider = self._keys.options, self._keys.provider
        for name, value in options.items():
            try:
                json.dumps(value)  # options travel as JSON, which has no dates
            except TypeError:
                complaint = f"must be a string, number, switch, list or table, is {value!r}"
                raise self._wrong(f"options.{name}", complaint) from None
        if provider is not None:
            if adapter in ADAPTERS and adapter != "onnxruntime":
                raise self._wrong("provider", f"adapter {adapter!r} has no providers")
            if options.setdefault("provider", provider) != provider:
                raise self._wrong("provider", "differs from options.provider")
        return options

    def _command(self) -> tuple[str, ...]:
        interpreter, command = self._keys.interpreter, self._keys.command
        if command is None:
            if interpreter is None:
                return ()
            # A bare name is looked up on PATH; anything with a folder in it counts from the file's own folder.
            bare = len(Path(interpreter).parts) == 1 and not interpreter.startswith("~")
            return (interpreter if bare else str(self._near("interpreter", interpreter)), "{worker}")
        if interpreter is not None:
            raise self._wrong("command", "stands beside interpreter; give one of them")
        if re.split(r"[/\\]", command[0])[-1] in ("ssh", "ssh.exe") and "{source}" in command:
            raise self._wrong(
                "command", "the far end of ssh takes {source} apart at its spaces; use {stdin}, without -c"
            )
        return command

    def _accuracy(self) -> str:
        value = self._keys.accuracy
        if value not in ACCURACY_CLASSES:
            raise self._wrong("accuracy", f"there is no class {value!r}; one of {', '.join(ACCURACY_CLASSES)}")
        return value
