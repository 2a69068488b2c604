"""A target: a runtime in one configuration, and how people name it.

Names are ``onnxruntime``, ``onnxruntime:NAMEExecutionProvider``, ``onnx-reference``, ``openvino``, ``tract``,
``quark``, ``backend:package.module``, an adapter of another package, or a table of a ``targets.toml``::

    [migraphx]
    adapter = "onnxruntime"                     # or onnx-reference, backend, external, or a path ending in .py
    provider = "MIGraphXExecutionProvider"      # short for options.provider
    options = { optimize = true }               # what the adapter takes
    interpreter = "/opt/rocm-venv/bin/python"   # runs the worker; or a whole command in front of it:
    # command = ["docker", "exec", "-i", "rocm", "python3", "-c", "{source}"]
    # command = ["ssh", "rocm-box", "python3", "{stdin}"]
    environment = { HIP_VISIBLE_DEVICES = "0" }
    time_limit = 120                            # seconds for one case
    memory_limit = 8_000_000_000                # bytes beyond what the loaded runtime holds
    output_limit = 268_435_456                  # bytes that one case may return
    accuracy = "standard"                       # accuracy class it is judged by
    expected = "migraphx-failures.toml"         # its expected failures, in place of shipped ones

docs/targets.md says all of it. What is wrong with a file is told with its line.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...cases.specs.family import context_space
from ...reference import ACCURACY_CLASSES, operator_names
from .adapters import EXTERNAL, adapter_names, adapter_source
from .third_party import ThirdPartyError, third_party
from .toml_lines import line_of, parse_toml

TIME_LIMIT = 60.0
"""Seconds for one case unless a target says otherwise: compilers of devices take several."""

OUTPUT_LIMIT = 256 << 20
"""Bytes that one case may return, all its runs together, unless a target says otherwise. The largest case of a profile
returns 2 MB; and this process holds what comes three times over while it is judged."""

ACCURACY = "standard"
"""Accuracy class of a target that declares none."""

_LONGEST_NAME = 200
_LONGEST = 1_000_000  # seconds: eleven days; some systems count what they wait for in milliseconds of 32 bits

OPTIMIZED = "+optimized"
"""What the name of a target in its second lane ends with."""

PROVIDERS = tuple(
    name + "ExecutionProvider"
    for name in (
        *("ACL", "ArmNN", "Azure", "CANN", "CPU", "CUDA", "CoreML", "Dml", "JS", "MIGraphX", "NvTensorRTRTX", "Nnapi"),
        *("OpenVINO", "QNN", "ROCM", "Rknpu", "Tensorrt", "VSINPU", "VitisAI", "WebGpu", "WebNN", "Xnnpack"),
    )
)
"""Providers that onnxruntime's sources name; used for suggestions only, any other name ending alike is tried too."""

_PLAIN = (
    "onnxruntime",
    "onnx-reference",
    "openvino",
    "tract",
    "iree",
    "emx-onnx-cgen",
    "opencv",
    "mnn",
    "quark",
    "rknn",
)
"""Adapters that are targets by their own names."""

_ABOUT = {"quark": "com.amd.quark"}
"""Adapters that are there for the operators of another domain than ONNX's own."""

_KEYS = (
    "adapter",
    "provider",
    "options",
    "interpreter",
    "command",
    "environment",
    "time_limit",
    "memory_limit",
    "output_limit",
    "accuracy",
    "expected",
    "lacks",
)


class TargetError(ValueError):
    """A target's name or its table cannot be used; the text says which and why, in one line."""


class UnknownTarget(TargetError):
    """No target has this name; the text gives the nearest ones that exist."""


@dataclass(frozen=True)
class Target:
    """A runtime in one configuration.

    Attributes:
        name: what the user calls it.
        adapter: name of a shipped adapter, or path of a file that holds one.
        options: what the adapter gets; JSON values.
        command: starts the worker; ``{worker}``, ``{source}`` and ``{stdin}`` in it say how the worker gets there, see
            `launch`. Empty: this interpreter.
        environment: variables set beside those of the caller, and in the worker before it loads the adapter.
        time_limit: seconds that one case may take.
        memory_limit: bytes of address space that the cases may take beyond what the loaded runtime holds, or None.
        output_limit: bytes that one case may return, all its runs together.
        accuracy: name of the accuracy class by which the target is judged.
        expected: path of its own file of expected failures; empty where it has none.
        wrap: name of the wrap that its cases are put in, one of ``cases.wrapping.WRAPS``; empty for none.
        lacks: ids of contexts (``layout=1``, ``clip``; ``cases.specs.contexts``) that it is declared not to support.
        folder: where a program that is a target by itself is started; empty for the current one.
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
    lacks: tuple[str, ...] = ()

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators that it is run with where none are asked for."""
        return operator_names(_ABOUT.get(self.adapter, ""))


def usual_target(domain: str) -> Target:
    """The target that is meant for the operators of a domain where none is named."""
    name = next((adapter for adapter, own_domain in _ABOUT.items() if own_domain == domain), "onnxruntime")
    return Target(name, name)


def parse_target(text: str, targets_toml: Path | None = None) -> Target:
    """The target called `text`.

    `targets_toml` is the file with the named ones, if there is one; it must then be readable. Raises `UnknownTarget`
    for a name that nothing has, `TargetError` for a file or table that is wrong.
    """
    named = _read_tables(targets_toml) if targets_toml is not None else {}
    if text in named and targets_toml is not None:
        return _Table(targets_toml, text, named[text]).target()
    kind, _, rest = text.partition(":")
    if text in _PLAIN:
        return Target(text, text)
    if kind == "onnxruntime" and re.fullmatch(r"\w+ExecutionProvider", rest):
        return Target(text, "onnxruntime", {"provider": rest})
    if kind == "backend" and re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", rest):
        return Target(text, "backend", {"module": rest})
    if text in third_party():
        _require_source(text)
        return Target(text, text)
    raise UnknownTarget(f"unknown target {_short(text)!r}; nearest: {', '.join(map(_shown, _nearest(text, named)))}")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}..."


def _shown(name: str) -> str:
    """A name that anybody gave, as part of a line."""
    return _short(name if name.isprintable() else ascii(name)[1:-1])


def _require_source(adapter: str) -> None:
    """Raise TargetError where an adapter's source is not to be had."""
    try:
        adapter_source(adapter)
    except ThirdPartyError as error:
        raise TargetError(str(error)) from None
    except UnicodeDecodeError:
        raise TargetError(f"adapter {adapter!r} is no text in UTF-8") from None
    except OSError as error:
        raise TargetError(f"adapter {adapter!r} cannot be read: {error.strerror or error}") from None


def lane(target: Target, optimize: bool) -> Target:
    """The target in its lane: as it is, or with the runtime's graph optimizations on."""
    if not optimize or target.adapter != "onnxruntime":
        return target
    return replace(target, name=f"{target.name}{OPTIMIZED}", options={**target.options, "optimize": True})


def table_names(targets_toml: Path) -> list[str]:
    """The names of the tables of a file. Raises TargetError."""
    return list(_read_tables(targets_toml))


def target_names() -> list[str]:
    """The names of targets that need no file, but for those of backends."""
    return [*_PLAIN, *third_party(), *(f"onnxruntime:{name}" for name in PROVIDERS)]


def _nearest(text: str, named: Mapping[str, object]) -> list[str]:
    candidates = [*named, *target_names()]
    if text.startswith("backend"):
        return ["backend:package.module"]
    folded = {name.lower(): name for name in candidates}
    wanted = text.lower()
    if wanted.startswith("onnxruntime:") and not wanted.endswith("executionprovider"):
        wanted += "executionprovider"
    near = [folded[name] for name in difflib.get_close_matches(wanted, list(folded), 3, 0.6)]
    return near or [*named, *_PLAIN, *third_party(), "backend:package.module"]


def _read_tables(path: Path) -> dict[str, object]:
    try:
        text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except OSError as error:
        raise TargetError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TargetError(f"{path}: is not TOML: {error}") from error
    try:
        return parse_toml(text)
    except ValueError as error:
        raise TargetError(f"{path}: {error}") from None


class _Table:
    """One table of a targets file, read with checks; every complaint names file, line, table and key."""

    def __init__(self, path: Path, name: str, content: object) -> None:
        self._path = path
        self._name = name
        if not isinstance(content, dict):
            raise TargetError(f"{self._place(name)}: {_shown(name)}: must be a table [{_shown(name)}]")
        self._content = content
        for key in content:
            if key not in _KEYS:
                near = difflib.get_close_matches(key, _KEYS, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(_KEYS)}"
                raise self._error(key, f"unknown key; {hint}")

    def target(self) -> Target:
        """The target that the table describes."""
        adapter = self._adapter()
        return Target(
            self._name,
            adapter,
            self._options(adapter),
            self._command(),
            self._environment(),
            self._time_limit(),
            self._bytes("memory_limit"),
            self._accuracy(),
            self._expected(),
            folder=str(self._path.parent) if adapter == EXTERNAL else "",
            output_limit=self._bytes("output_limit") or OUTPUT_LIMIT,
            lacks=self._lacks(),
        )

    def _error(self, key: str, complaint: str) -> TargetError:
        place = self._place(self._name, *key.split("."))
        return TargetError(f"{place}: [{_shown(self._name)}] {_shown(key)}: {complaint}")

    def _place(self, *path: str) -> str:
        """File and line of a key; of the table where it does not have the key."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):  # gone since it was read
            return str(self._path)
        lines = (line_of(text, path[:length]) for length in range(len(path), 0, -1))
        line = next((number for number in lines if number is not None), None)
        return f"{self._path}:{line}" if line is not None else str(self._path)

    def _text(self, key: str) -> str | None:
        value = self._content.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise self._error(key, f"must be a string that is not empty, is {value!r}")
        if value is not None and "\0" in value:
            raise self._error(key, "holds a zero character, which no path or name can")
        return value

    def _near(self, key: str, value: str) -> Path:
        """The path that a key holds, counted from the file's own folder."""
        try:
            return self._path.parent / Path(value).expanduser()
        except RuntimeError:  # ~name, and nobody is called so
            raise self._error(key, f"there is no home folder for {value!r}") from None

    def _table(self, key: str) -> dict[str, object]:
        value = self._content.get(key, {})
        if not isinstance(value, dict):
            raise self._error(key, f"must be a table, is {value!r}")
        return value

    def _adapter(self) -> str:
        adapter = self._text("adapter")
        if adapter is None:
            raise self._error("adapter", f"is missing; one of {', '.join(adapter_names())}, or the path of a .py file")
        if adapter.endswith(".py"):
            path = self._near("adapter", adapter)
            if not path.is_file():
                raise self._error("adapter", f"there is no file {path}")
            adapter = str(path)
            self._require(adapter)
            return adapter
        known = adapter_names()
        if adapter not in known:
            near = difflib.get_close_matches(adapter, known, 1, 0.5) or known
            raise self._error("adapter", f"there is no adapter {adapter!r}; nearest: {', '.join(near)}")
        if adapter == EXTERNAL and "command" not in self._content:
            raise self._error("command", "is missing: what starts the program that speaks the protocol")
        self._require(adapter)
        return adapter

    def _require(self, adapter: str) -> None:
        try:
            _require_source(adapter)
        except TargetError as error:
            raise self._error("adapter", str(error)) from None

    def _options(self, adapter: str) -> dict[str, object]:
        options = dict(self._table("options"))
        self._check_plain("options", options)
        provider = self._text("provider")
        if provider is not None:
            if adapter in (*_PLAIN[1:], "backend"):
                raise self._error("provider", f"adapter {adapter!r} has no providers")
            if options.setdefault("provider", provider) != provider:
                raise self._error("provider", "differs from options.provider")
        return options

    def _check_plain(self, key: str, value: object) -> None:
        """Options travel as JSON, which has no dates."""
        if isinstance(value, dict):
            for name, inner in value.items():
                self._check_plain(f"{key}.{name}", inner)
        elif isinstance(value, list):
            for inner in value:
                self._check_plain(key, inner)
        elif not isinstance(value, (str, bool, int, float)) or value in (float("inf"), float("-inf")) or value != value:
            raise self._error(key, f"must be a string, number, switch, list or table, is {value!r}")

    def _command(self) -> tuple[str, ...]:
        interpreter = self._text("interpreter")
        command = self._content.get("command")
        if command is None:
            if interpreter is None:
                return ()
            # A bare name is looked up on PATH; anything with a folder in it counts from the file's own folder.
            bare = len(Path(interpreter).parts) == 1 and not interpreter.startswith("~")
            return (interpreter if bare else str(self._near("interpreter", interpreter)), "{worker}")
        if interpreter is not None:
            raise self._error("command", "stands beside interpreter; give one of them")
        if not isinstance(command, list) or not command or not all(isinstance(part, str) and part for part in command):
            raise self._error("command", f"must be a list of strings, is {command!r}")
        if any("\0" in part for part in command):
            raise self._error("command", "holds a zero character, which no word of a command can")
        if re.split(r"[/\\]", command[0])[-1] in ("ssh", "ssh.exe") and "{source}" in command:
            raise self._error(
                "command", "the far end of ssh takes {source} apart at its spaces; use {stdin}, without -c"
            )
        return tuple(command)

    def _environment(self) -> dict[str, str]:
        environment = {}
        for name, value in self._table("environment").items():
            if not isinstance(value, str):
                raise self._error(f"environment.{name}", f"must be a string, is {value!r}")
            if not name or "=" in name or "\0" in name + value:
                raise self._error("environment", f"no variable can be {name!r} = {value!r}")
            environment[name] = value
        return environment

    def _time_limit(self) -> float:
        value = self._content.get("time_limit", TIME_LIMIT)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= _LONGEST:
            raise self._error("time_limit", f"must be a positive number of seconds up to {_LONGEST:,}, is {value!r}")
        return float(value)

    def _bytes(self, key: str) -> int | None:
        value = self._content.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 62:
            raise self._error(key, f"must be a positive whole number of bytes, is {value!r}")
        return value

    def _accuracy(self) -> str:
        value = self._text("accuracy") or ACCURACY
        if value not in ACCURACY_CLASSES:
            raise self._error("accuracy", f"there is no class {value!r}; one of {', '.join(ACCURACY_CLASSES)}")
        return value

    def _expected(self) -> str:
        value = self._text("expected")
        return str(self._near("expected", value)) if value is not None else ""

    def _lacks(self) -> tuple[str, ...]:
        value = self._content.get("lacks", [])
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self._error("lacks", f'must be a list of words like "layout=1", is {value!r}')
        known = _contexts() if value else []
        for word in value:
            if word not in known:
                near = difflib.get_close_matches(word, known, 3, 0.4) or [*known[:6], "..."]
                raise self._error("lacks", f"there is no {_shown(word)!r} that a target may lack; {', '.join(near)}")
        return tuple(value)


def _contexts() -> list[str]:
    """The contexts that a target may lack: all that may be there in a case of some operator."""
    spaces = [space for op in operator_names() if (space := context_space(op)) is not None]
    return list(dict.fromkeys(c.id for space in spaces for c in space.contexts if not c.half))
