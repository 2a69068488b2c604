"""Survey of targets that can be started: onnxspec's adapters, those of other packages, and tables of a targets.toml."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...reference.errors import UserError
from ..targets.adapters import ADAPTERS, ADAPTERS_FOLDER, EXTERNAL, adapter_source
from ..targets.target import Target, TargetError, parse_target, table_names
from ..targets.third_party import third_parties
from .job import TargetUnavailable
from .process import TargetProcess

_TOGETHER = 4  # number of workers that are started at the same time

_PACKAGES = {
    "CUDAExecutionProvider": "onnxruntime-gpu",
    "TensorrtExecutionProvider": "onnxruntime-gpu",
    "OpenVINOExecutionProvider": "onnxruntime-openvino",
    "DmlExecutionProvider": "onnxruntime-directml",
    "QNNExecutionProvider": "onnxruntime onnxruntime-qnn",
    "WebGpuExecutionProvider": "onnxruntime-webgpu",
}
"""Packages with a provider. Most have the import name onnxruntime, so each needs an environment of its own."""

_AMD = {"ROCM": "rocm.toml", "MIGraphX": "migraphx.toml", "VitisAI": "vitisai.toml"}


@dataclass(frozen=True)
class Facts:
    """Facts from an adapter's docstring: its pip packages, and the tested versions; empty if missing."""

    package: str = ""
    tested: str = ""


@dataclass(frozen=True)
class Surveyed:
    """Target, and the result of the attempt to start it.

    kind
        "adapter", "package" or "table".
    described
        The adapter's description of itself; empty if it did not start.
    trouble
        Why it did not start; empty if it did, or was not tried.
    """

    name: str
    kind: str
    target: Target | None = None
    facts: Facts = field(default_factory=Facts)
    described: Mapping[str, Any] = field(default_factory=dict)
    trouble: str = ""


def facts_of(source: str) -> Facts:
    """Return the text after ``Package:`` and ``Tested:`` in the docstring of an adapter's source."""
    try:
        docstring = ast.get_docstring(ast.parse(source)) or ""
    except SyntaxError:
        return Facts()
    package = re.search(r"\bPackage:\s+([\w-]+(?:\s+[\w-]+)*)", docstring)
    tested = re.search(r"^Tested:\s+(.+?)(?=\n\n|\Z)", docstring, re.MULTILINE | re.DOTALL)
    return Facts(
        " ".join(package[1].split()) if package else "", " ".join(tested[1].split()).rstrip(".") if tested else ""
    )


def survey_targets(targets_file: Path | None = None) -> list[Surveyed]:
    """Return all known targets, started but for those with a command of their own, which may be on another machine.

    Raise TargetError for a file that cannot be read.
    """
    findings = [_found(name, "adapter") for name in ADAPTERS if name != "backend"]
    findings += [_found(name, "package") for name in third_parties() if name not in ADAPTERS]
    if targets_file is not None:
        findings += [_found(name, "table", targets_file) for name in table_names(targets_file)]
    with ThreadPoolExecutor(_TOGETHER) as pool:
        return list(pool.map(_started, findings))


def _found(name: str, kind: str, file: Path | None = None) -> Surveyed:
    try:
        target = parse_target(name, file)
    except TargetError as error:
        return Surveyed(name, kind, trouble=str(error))
    return Surveyed(name, kind, target, _facts(target.adapter))


def _facts(adapter: str) -> Facts:
    try:
        if adapter in ADAPTERS:  # the adapter's own text, without the parts that travel with it
            return facts_of((ADAPTERS_FOLDER / ADAPTERS[adapter]).read_text(encoding="utf-8"))
        return facts_of(adapter_source(adapter))
    except (OSError, UserError):
        return Facts()


def _started(finding: Surveyed) -> Surveyed:
    target = finding.target
    if target is None or target.is_command:
        return finding
    try:
        with TargetProcess(target) as process:
            return replace(finding, described=process.start())
    except TargetUnavailable as error:
        return replace(finding, trouble=str(error))


def start_hint(target: Target, trouble: str) -> str:
    """Return advice for a target that could not start because a module is missing; empty if there is none."""
    missing = re.search(r"No module named '([\w.]+)'", trouble)
    if not missing or target.is_command or target.adapter == "backend":
        return ""
    if way_to_install(Surveyed(target.name, "table", target, _facts(target.adapter), trouble=trouble)):
        return "'onnxspec targets' says what installs it"
    if not target.adapter.endswith(".py"):
        return ""
    interpreter = target.command[0] if target.command else sys.executable
    beside = Path(target.adapter).absolute().parent
    return (
        f"{missing[1]} is neither installed for {interpreter} nor in {beside}: install it, or name its folder in "
        'targets.toml, environment = { PYTHONPATH = "..." }'
    )


def way_to_install(finding: Surveyed) -> str:
    """Return advice for a target whose runtime is missing; empty if there is none."""
    target, package = finding.target, finding.facts.package
    if target is None or target.adapter == EXTERNAL or target.is_command:
        return ""
    provider = str(target.options.get("provider", ""))
    if target.adapter == "onnxruntime" and provider not in ("", "CPUExecutionProvider"):
        for name, file in _AMD.items():
            if provider == f"{name}ExecutionProvider":
                return f"AMD's containers and installers bring it: examples/targets/{file}"
        package = _PACKAGES.get(provider, "")
    missing = re.search(r"No module named '([\w.]+)'", finding.trouble)
    if missing and missing[1].split(".")[0] == "numpy":
        package = f"numpy {package}"
    if not package or not (missing or provider or "cannot start" in finding.trouble):
        return ""
    if not target.command:
        if provider in _PACKAGES:
            return f"in an environment of its own, and `interpreter` in targets.toml: pip install numpy {package}"
        return f"{shlex.quote(sys.executable)} -m pip install {package}"
    interpreter = Path(os.path.normpath(target.command[0]))
    python = shlex.quote(str(interpreter))
    if interpreter.exists() or len(interpreter.parts) == 1:
        return f"{python} -m pip install {package}"
    folder = shlex.quote(str(interpreter.parents[1]))
    return f"python3 -m venv {folder} && {python} -m pip install numpy {package}"


def providers_of(finding: Surveyed) -> Iterable[str]:
    """Return the execution providers that a runtime lists."""
    listed = finding.described.get("available_providers", ())
    return [str(name) for name in listed] if isinstance(listed, (list, tuple)) else ()
