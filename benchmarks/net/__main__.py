"""Compare v0.4.0 and this version on the frozen corpus, recording by recording.

    python -m benchmarks.net [--baseline PYTHON] [--full] [NAME ...]

Without --full a sample is compared, in at most five minutes on two cores; with it everything, in at most thirty. The
baseline is built from its commit in a cache folder, unless --baseline names an interpreter that has v0.4.0; its answers
are cached there, too. Exit code 1 where something differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.net import corpus
from benchmarks.net.former import as_v0_4

COMMIT = "9d8008b"
"""v0.4.0."""

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "onnxspec-net" / COMMIT
SIDE = Path(__file__).with_name("side.py")
RADII = 1e-5
"""Relative difference of radii that counts as equal."""

MARGIN = 8
"""Ratio of error to bound above which a fault counts as caught for certain."""

SAMPLED = {"numbers": (12, 1), "faults": (60, 12), "conforming": (40, 8)}
"""By recording, N for every Nth case: of the fast net and of the full one."""

KERNELS = ROOT / "benchmarks" / "kernels" / "targets.toml"
RECURRENT = ("--op", "LSTM", "--op", "GRU", "--op", "RNN")
"""The operators that the baseline has, too."""

NARROW = ("--profile", "smoke", "--quiet", *RECURRENT)
FORBIDDEN = [row["id"] for row in corpus.corpus() if "illegal" in row["case"]][::8]
"""Models that a target must refuse: `smoke` has none."""

COMMANDS: dict[str, tuple[str, ...]] = {
    "onnxruntime": ("run", *NARROW),
    "onnx-reference": ("run", "--target", "onnx-reference", *NARROW),
    **{
        kernel: ("run", "--targets-file", str(KERNELS), "--target", kernel, *NARROW)
        for kernel in ("plain", "one-activation-list", "batch-first", "converted-peepholes")
    },
    "random": ("run", "--random", "40:7", "--quiet", *RECURRENT),
    "forbidden": ("run", *(part for case in FORBIDDEN for part in ("--case", case)), "--quiet"),
    "unknown-case": ("run", "--case", "nothing"),
    "unknown-target": ("run", "--target", "nothing"),
    "list": ("list", "--profile", "smoke", *RECURRENT),
    "clauses": ("clauses",),
    "missing-model": ("check", "missing.onnx"),
    "no-run": ("report", "nothing"),
}
"""Commands by name; those that run cases are compared by their results, all by exit code."""

FIELDS = ("verdict", "reason", "clause", "accuracy", "diagnosis", "expected", "judged", "elements", "flags")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="recordings (default: all)")
    parser.add_argument("--baseline", type=Path, help="interpreter that has v0.4.0 (default: made from its commit)")
    parser.add_argument("--full", action="store_true", help="compare everything")
    options = parser.parse_args()
    python = options.baseline or _environment()
    failed = False
    with ThreadPoolExecutor(2) as pool:
        for name, recording in _recordings(options.full).items():
            if options.names and name not in options.names:
                continue
            began = time.monotonic()
            record, compare = recording
            old, new = pool.map(record, (python, None), repeat(name), repeat(options.full))
            differences = list(compare(old, new))
            failed |= bool(differences)
            verdict = f"{len(differences)} differences" if differences else "equal"
            print(f"{name:14} {verdict:16} {len(old):7} compared  {time.monotonic() - began:5.0f} s", flush=True)
            for difference in differences[:3]:
                print(f"    {difference}")
    return int(failed)


Recording = tuple[Callable[[Any, str, bool], dict[str, Any]], Callable[[dict[str, Any], dict[str, Any]], Iterator[str]]]


def _recordings(full: bool) -> dict[str, Recording]:
    of_side = dict.fromkeys(SAMPLED, _side)
    compare = {"numbers": _numbers, "faults": _faults, "conforming": _conforming}
    found: dict[str, Recording] = {name: (of_side[name], compare[name]) for name in SAMPLED}
    return {**found, **dict.fromkeys(COMMANDS, (_command, _results))}


def _environment() -> Path:
    """Return the interpreter of an environment that has v0.4.0."""
    python = CACHE / "venv" / "bin" / "python"
    if not python.exists():
        print(f"making an environment of v0.4.0 in {CACHE}", flush=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        source = CACHE / "source"
        if not source.exists():
            subprocess.run(["git", "-C", str(ROOT), "worktree", "prune"], check=True)
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(source)], check=True)
            subprocess.run(["git", "-C", str(source), "checkout", "--quiet", COMMIT], check=True)
        subprocess.run([sys.executable, "-m", "venv", str(CACHE / "venv")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(source)], check=True)
    return python


def _side(python: Path | None, name: str, full: bool) -> dict[str, Any]:
    """Return a recording of one side; None stands for this version, whose answers are not cached."""
    step = SAMPLED[name][full]
    key = _key(name, str(step), *(path.read_bytes() for path in (SIDE, Path(corpus.__file__), corpus.FILE)))
    cached = CACHE / f"{key}.pickle"
    if python is not None and cached.exists():
        recorded: dict[str, Any] = pickle.loads(cached.read_bytes())
        return recorded
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "recording.pickle")
        arguments = [str(python or sys.executable), str(SIDE), name, str(out), str(step)]
        subprocess.run(arguments, check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        answer = out.read_bytes()
    if python is not None:
        _keep(cached, answer)
    recorded = pickle.loads(answer)
    return recorded


def _key(name: str, *parts: str | bytes) -> str:
    """Return the cache key of an answer of the baseline; it depends on all parts of the question."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
        digest.update(b"\0")
    return f"{name}-{digest.hexdigest()[:16]}"


def _keep(path: Path, answer: bytes) -> None:
    """Write the baseline's answer atomically, because other checkouts may read it meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(answer)
    unfinished.replace(path)


def _command(python: Path | None, name: str, full: bool) -> dict[str, Any]:
    """Return the exit code of a command, and the results of a run by case."""
    arguments = list(COMMANDS[name])
    cached = CACHE / f"{_key(name, *arguments, *FIELDS)}.json"
    if python is not None and cached.exists():
        record: dict[str, Any] = json.loads(cached.read_bytes())
        return record
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "run", "results.jsonl")
        if arguments[0] == "run":
            arguments += ["--out", str(results.parent)]
        if python is not None:
            arguments = as_v0_4(arguments)
        command = [str(python or sys.executable), "-m", "onnxspec.conformance", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, "COLUMNS": "100"})
        record = {"exit code": done.returncode}
        if results.exists():
            rows: dict[str, dict[str, Any]] = {}
            for row in map(json.loads, results.read_text().splitlines()):
                if row.get("record", "result") in ("result", "update"):  # results of 0.4 have no `record`
                    rows.setdefault(row["case"], {}).update(row)
            record |= {case: [row.get(field) for field in FIELDS] for case, row in rows.items()}
        elif arguments[0] == "list":
            record["output"] = done.stdout
    answer = json.dumps(record).encode()
    if python is not None:
        _keep(cached, answer)
    record = json.loads(answer)
    return record


def _results(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            yield f"{name}: {old.get(name)} -> {new.get(name)}"


def _numbers(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Yield expectations whose values differ in a bit, or whose radii differ by more than RADII."""
    for name, before in old.items():
        after = new.get(name)
        if isinstance(before, str) or isinstance(after, str) or after is None:
            if before != after:
                yield f"{name}: {before!s:.60} -> {after!s:.60}"
            continue
        if [(e[0], e[1]) for e in before] != [(e[0], e[1]) for e in after]:
            yield f"{name}: other outputs or clauses"
            continue
        for (output, _, value, radius, mask), (_, _, value2, radius2, mask2) in zip(before, after, strict=True):
            undefined, undefined2 = (np.zeros(value.shape, bool) if m is None else m for m in (mask, mask2))
            where = np.broadcast_to(~undefined, value.shape)
            if not np.array_equal(undefined, undefined2):
                yield f"{name} {output}: other elements are undefined"
            elif not np.array_equal(value[where], value2[where], equal_nan=True):
                yield f"{name} {output}: values differ by {np.abs(value - value2)[where].max():.3g}"
            elif not np.allclose(np.broadcast_to(radius, value.shape)[where],
                                 np.broadcast_to(radius2, value.shape)[where], rtol=RADII, atol=0):  # fmt: skip
                yield f"{name} {output}: radii differ"


def _faults(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Yield faults that a case showed and no longer shows, and faults that are gone."""
    for name, before in old.items():
        after = new.get(name)
        if after is None or isinstance(before, str) or isinstance(after, str):
            if before != after:
                yield f"{name}: {before} -> {after}"
        elif before > 1 >= after or before >= MARGIN > after:
            yield f"{name}: caught by {before:.3g} bounds, now {after:.3g}"


def _conforming(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Yield right kernels that fail now and did not before; styles may be gone.

    (Some break a convention on padding, which is no failure, and are far off on both sides.)
    """
    accused = (name for name, ratio in new.items() if not ratio <= 1 and old.get(name, 0.0) <= 1)
    yield from (f"{name}: {new[name]:.3g} bounds off" for name in accused)
    if not new:
        yield "no conforming kernel was run"


if __name__ == "__main__":
    sys.exit(main())
