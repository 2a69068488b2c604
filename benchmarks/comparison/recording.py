"""Recording: the folders of steps, and ``recording.json`` with the outcome of each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.former import as_v0_4

from .steps import Step

FILE = "recording.json"
COMMAND = Path(__file__).with_name("unhurried.py").read_text(encoding="utf-8")
NOT_THERE = 3
"""Exit code of a command whose target could not start."""

PAUSE = 3600
"""Time limit of a command in seconds."""

_ASKED = """
import onnxspec.reference as r, pathlib, sys
print(pathlib.Path(r.__file__).parents[1])
print(sys.prefix)
"""


def record(folder: Path, chosen: Sequence[Step], python: str, *, fresh: bool = False) -> list[str]:
    """Run the steps that the recording lacks (all of them if ``fresh``). Return a line for each failed step."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    recording = _read(folder)
    recording["places"] = _places(folder, python)
    left_out = []
    for step in chosen:
        if step.name in recording["steps"] and not fresh:
            continue
        print(f"{step.name} ...", flush=True)
        recording["steps"][step.name] = _run(step, folder / step.name, python)
        reason = recording["steps"][step.name].get("not_recorded", "")
        if reason:
            left_out.append(f"{step.name}: not recorded: {reason}")
        (folder / FILE).write_text(json.dumps(recording, indent=1) + "\n", encoding="utf-8")
    return left_out


def _read(folder: Path) -> dict[str, Any]:
    try:
        recording: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"steps": {}}
    return recording


def _places(folder: Path, python: str) -> dict[str, str]:
    """Return the path prefixes that differ between recordings, by name."""
    answer = subprocess.run([python, "-c", _ASKED], cwd=folder, capture_output=True, text=True, check=True)
    code, environment = answer.stdout.splitlines()
    repository = str(Path(__file__).resolve().parents[2])
    return {"recording": str(folder), "environment": environment, "code": code, "comparison": repository}


def _run(step: Step, folder: Path, python: str) -> dict[str, Any]:
    """Run the commands of a step until one cannot start its target. Return exit codes, or why nothing was recorded."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    version_command = [python, "-c", "import importlib.metadata as m; print(m.version('onnxspec'))"]
    former = subprocess.run(version_command, capture_output=True, text=True).stdout.startswith("0.4.")
    codes = []
    for number, command in enumerate(step.commands):
        arguments = [part for argument in command for part in _files(argument, folder)]
        if former:
            arguments = as_v0_4(arguments)
        code, errors = _command([python, "-c", COMMAND, *arguments], folder, number)
        if code == NOT_THERE:
            shutil.rmtree(folder)
            return {"not_recorded": errors.strip() or "the target could not start"}
        codes.append(code)
    for package in folder.glob("*.zip"):
        with zipfile.ZipFile(package) as opened:
            opened.extractall(package.with_suffix(""))
        package.unlink()
    return {"exit_codes": codes}


def _command(command: list[str], folder: Path, number: int) -> tuple[int, str]:
    """Return exit code and standard error of a command; its outputs are kept in the folder."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100", "NO_COLOR": "1"}
    with open(folder / f"{number}.out", "wb") as out, open(folder / f"{number}.err", "wb") as err:
        code = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, timeout=PAUSE
        ).returncode
    return code, (folder / f"{number}.err").read_text(encoding="utf-8", errors="replace")


def _files(argument: str, folder: Path) -> list[str]:
    """Return the sorted files that match an argument with a *; any other argument unchanged."""
    if "*" not in argument:
        return [argument]
    return [os.path.relpath(path, folder) for path in sorted(folder.parent.glob(argument.removeprefix("../")))]
