"""Survey of targets that can be started: onnxspec's adapters, those of other packages, and tables of a targets.toml."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...reference.errors import UserError
from ..targets.adapters import ADAPTERS, ADAPTERS_FOLDER, adapter_source
from ..targets.target import Target, TargetError, parse_target, table_names
from ..targets.third_party import third_parties
from .job import TargetUnavailable
from .process import TargetProcess

_TOGETHER = 4  # number of workers that are started at the same time

_PACKAGES = {
    "CUDA": "onnxruntime-gpu",
    "Tensorrt": "onnxruntime-gpu",
    "OpenVINO": "onnxruntime-openvino",
    "Dml": "onnxruntime-directml",
    "QNN": "onnxruntime onnxruntime-qnn",
    "WebGpu": "onnxruntime-webgpu",
}
"""Packages with a provider. Most have the import name onnxruntime, so each needs an environment of its own."""

_AMD = ("ROCM", "MIGraphX", "VitisAI")


@dataclass(frozen=True)
class Surveyed:
    """Target, and the result of the attempt to start it.

    kind
        "adapter", "package" or "table".
    tested
        Versions with which its adapter was tested; empty if unknown.
    described
        The adapter's description of itself; empty if it did not start.
    trouble
        Why it did not start; empty if it did, or was not tried.
    """

    name: str
    kind: str
    target: Target | None = None
    tested: str = ""
    described: Mapping[str, Any] = field(default_factory=dict)
    trouble: str = ""


def facts_of(source: str) -> tuple[str, str]:
    """Return the texts after ``Package:`` and ``Tested:`` in the docstring of an adapter's source; empty if missing."""
    try:
        docstring = ast.get_docstring(ast.parse(source)) or ""
    except SyntaxError:
        return "", ""
    package = re.search(r"\bPackage:\s+([\w-]+(?:\s+[\w-]+)*)", docstring)
    tested = re.search(r"^Tested:\s+(.+?)(?=\n\n|\Z)", docstring, re.MULTILINE | re.DOTALL)
    return (
        " ".join(package[1].split()) if package else "",
        " ".join(tested[1].split()).rstrip(".") if tested else "",
    )


def survey_targets(targets_file: Path | None = None) -> list[Surveyed]:
    """Return all known targets, started but for those with a command of their own, which may be on another machine.

    Raise TargetError for a file that cannot be read.
    """
    named: list[tuple[str, str, Path | None]] = [(name, "adapter", None) for name in ADAPTERS if name != "backend"]
    named += [(name, "package", None) for name in third_parties() if name not in ADAPTERS]
    if targets_file is not None:
        named += [(name, "table", targets_file) for name in table_names(targets_file)]
    with ThreadPoolExecutor(_TOGETHER) as pool:
        return list(pool.map(lambda arguments: _surveyed(*arguments), named))


def _surveyed(name: str, kind: str, file: Path | None) -> Surveyed:
    try:
        target = parse_target(name, file)
    except TargetError as error:
        return Surveyed(name, kind, trouble=str(error))
    _, tested = _facts(target.adapter)
    described: dict[str, Any] = {}
    trouble = ""
    if not target.is_command:
        try:
            with TargetProcess(target) as process:
                described = process.start()
        except TargetUnavailable as error:
            trouble = str(error)
    return Surveyed(name, kind, target, tested, described, trouble)


def _facts(adapter: str) -> tuple[str, str]:
    try:
        if adapter in ADAPTERS:  # the adapter's own text, without the parts that travel with it
            return facts_of((ADAPTERS_FOLDER / ADAPTERS[adapter]).read_text(encoding="utf-8"))
        return facts_of(adapter_source(adapter))
    except (OSError, UserError):
        return "", ""


_MISSING = re.compile(r"No module named '([\w.]+)'")


def way_to_install(target: Target, trouble: str) -> str:
    """Return a command for a target whose runtime is missing; empty if none is known."""
    if target.is_command:
        return ""
    package, _ = _facts(target.adapter)
    provider = str(target.options.get("provider", "")).removesuffix("ExecutionProvider")
    if target.adapter == "onnxruntime" and provider not in ("", "CPU"):
        if provider in _AMD:
            return f"AMD's containers and installers bring it: examples/targets/{provider.lower()}.toml"
        package = _PACKAGES.get(provider, "")
    elif not _MISSING.search(trouble) and "cannot start" not in trouble:
        return ""
    if not package:
        return ""
    if not target.command:
        if provider in _PACKAGES:
            return f"in an environment of its own, and `interpreter` in targets.toml: pip install numpy {package}"
        return f"{shlex.quote(sys.executable)} -m pip install {package}"
    interpreter = Path(os.path.normpath(target.command[0]))
    is_missing = len(interpreter.parts) > 1 and not interpreter.exists()
    made = f"python3 -m venv {shlex.quote(str(interpreter.parents[1]))} && " if is_missing else ""
    return f"{made}{shlex.quote(str(interpreter))} -m pip install numpy {package}"
