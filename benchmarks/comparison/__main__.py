"""Record the outputs of onnxspec, and compare two recordings field by field.

    python -m benchmarks.comparison record --out DIR [--python INTERPRETER] [--only NAME ...] [--prove OP[:TYPE] ...]
    python -m benchmarks.comparison compare BEFORE AFTER [--only NAME ...] [--files NAME ...] [--examples N]
    python -m benchmarks.comparison steps

A recording uses the onnxspec that is installed for an interpreter, and continues where it ended. A step whose target is
not installed is reported as not recorded. Exit code 1 where recordings differ, except in fields that vary from run to
run (``--varying`` lists these, with the reasons).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from .comparing import compare, shown
from .recording import record
from .steps import PROVEN, Step, steps
from .varying import variations

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TARGETS = Path(__file__).resolve().parents[2] / "examples" / "targets" / "runtimes.toml"


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--varying", action="store_true", help="list what varies from run to run, and end")
    commands = parser.add_subparsers(dest="command")
    recording = commands.add_parser("record")
    recording.add_argument("--out", type=Path, required=True)
    recording.add_argument("--python", default=sys.executable, help="whose onnxspec is recorded")
    recording.add_argument("--targets-file", type=Path, default=TARGETS)
    recording.add_argument("--prove", nargs="*", metavar="OP[:TYPE]", help="operators and types to prove the suite for")
    recording.add_argument("--fresh", action="store_true", help="again what is recorded already")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--examples", type=int, default=3, help="differences of a kind that are printed")
    comparing.add_argument("--files", nargs="+", default=["*"], metavar="NAME", help="files of each, with wildcards")
    for each in (recording, comparing):
        each.add_argument("--only", nargs="+", default=["*"], metavar="NAME", help="steps, with wildcards")
    commands.add_parser("steps", help="list the steps")
    options = parser.parse_args(given)
    if options.varying:
        print(variations())
        return 0
    if options.command == "compare":
        differences = compare(options.before, options.after, options.only, options.files)
        print(shown(differences, options.examples))
        return int(bool(differences))
    if options.command == "record":
        proved = PROVEN if options.prove is None else [_pair(each) for each in options.prove]
        selected_steps = [step for step in _steps(options.targets_file, proved) if _named(step.name, options.only)]
        for line in record(options.out, selected_steps, options.python, fresh=options.fresh):
            print(line)
        return 0
    for step in _steps(TARGETS, PROVEN):
        print(step.name)
    return 0


def _steps(file: Path, proven: Sequence[tuple[str, str]]) -> list[Step]:
    names = ["onnx-reference", *tomllib.loads(file.read_text(encoding="utf-8"))]
    return steps(names, str(file.resolve()), proven)


def _pair(text: str) -> tuple[str, str]:
    op, _, number_type = text.partition(":")
    return op, number_type


def _named(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


if __name__ == "__main__":
    sys.exit(main())
