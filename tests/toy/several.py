"""``python -m tests.toy.several``: several commands in one process, with the invented operators.

Standard input has a list of commands, each a list of arguments. Standard output gets a list with the exit code and the
printed text of each command.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from onnxspec.conformance.cli.application import app

from . import ROOT


def commands(module: str, *several: tuple[str | Path, ...]) -> list[dict[str, Any]]:
    """Run commands in a process of a module like this one, and return their exit codes and printed texts.

    No command may end with a traceback.
    """
    done = subprocess.run(
        [sys.executable, "-m", module], cwd=ROOT, capture_output=True, text=True, check=False,
        input=json.dumps([[*map(str, arguments)] for arguments in several]),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    for answer in answers:
        assert "Traceback" not in answer["printed"], answer["printed"]
    return answers


def results(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the results of a run folder by target and case."""
    read: dict[tuple[str, str], dict[str, Any]] = {}
    for row in map(json.loads, (folder / "results.jsonl").read_text().splitlines()):
        if row["record"] in ("result", "update"):
            read.setdefault((row["target"], row["case"]), {}).update(row)
    return read


def answer() -> None:
    """Read commands from standard input, run them and print their exit codes and texts."""
    became = []
    for arguments in json.load(sys.stdin):
        printed, code = io.StringIO(), 0
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                app(arguments, prog_name="onnxspec")
            except SystemExit as ended:
                code = int(ended.code or 0)
        became.append({"code": code, "printed": printed.getvalue()})
    print(json.dumps(became))


if __name__ == "__main__":
    from . import leaky, named  # noqa: F401 - registers them

    answer()
