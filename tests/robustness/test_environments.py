"""The command in unusual environments: interpreter options, places, users, disks, clocks and concurrent processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ..conformance.miniatures import HEEDING, Finished, naming, pick, read_results
from ..conformance.misbehaving import targets_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")

START = "import sys; from onnxspec.conformance.cli.start import main; sys.argv[0] = 'onnxspec'; main()"
LONG = 590  # seconds that no command needs, even on a machine under load


def command(
    *arguments: object,
    cwd: Path,
    environment: Mapping[str, str],
    python: Sequence[str] = (),
    before: str = "",
    **options: Any,
) -> Finished:
    """Run the command as its entry point starts it."""
    line = [sys.executable, *python, "-c", before + START, *map(str, arguments)]
    done = subprocess.run(
        line, cwd=cwd, env=dict(environment), capture_output=True, check=False, timeout=LONG, **options
    )
    out, err = (stream.decode("utf-8", "backslashreplace") for stream in (done.stdout, done.stderr))
    assert "Traceback" not in out + err, err
    return Finished(done.returncode, out, err)


@pytest.fixture(scope="module")
def few() -> list[str]:
    """Return the options that select three cases."""
    return naming(pick(3))


def whole(folder: Path, count: int = 3) -> bool:
    """Return whether a run folder has exactly ``count`` results, of as many cases, that all pass."""
    results = read_results(folder)
    return len(results) == len({r["case"] for r in results}) == count and {r["verdict"] for r in results} == {"pass"}


SURROUNDINGS: dict[str, dict[str, Any]] = {
    "-O": {"python": ["-O"]},
    "-OO": {"python": ["-OO"]},
    "no UTF-8": {"python": ["-X", "utf8=0"]},
    "warnings as errors": {"python": ["-W", "error"]},
    "the developers' mode": {"python": ["-B", "-X", "dev"]},
    "no home": {"variables": {"HOME": None}},
    "a home that is not there": {"variables": {"HOME": "{place}/nowhere/at all"}},  # which the command may create
    "a locale without letters": {"variables": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}},
    "a locale that is not there": {"variables": {"LC_ALL": "tlh_QO.UTF-8"}},
    "a terminal that is none": {"variables": {"TERM": "dumb", "COLUMNS": "1"}},
    "no PATH": {"variables": {"PATH": None}},
    "next to nothing": {
        "variables": {name: None for name in os.environ if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    },
    "a folder with spaces": {"folder": "with spaces"},
    "a folder with a newline": {"folder": "with\nnewline"},
    "a folder with letters of two directions": {"folder": "ümläut \u202e"},
    "a folder like an option": {"folder": "-o"},
    "a folder for a shell": {"folder": "'\"$(x);&"},
    "a folder with an escape": {"folder": "\x1b[31m"},
    "a clock that jumps": {
        "before": "import time, itertools; real, count = time.time, itertools.count(); "
        "time.time = lambda: real() + (-1) ** next(count) * 10**8; "
    },
}


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_surroundings(kin: dict[str, str], few: list[str], tmp_path: Path, name: str) -> None:
    changes = dict(SURROUNDINGS[name])
    variables = {**kin, **changes.pop("variables", {})}
    environment = {name: value.format(place=tmp_path) for name, value in variables.items() if value is not None}
    folder = tmp_path / changes.pop("folder", "plain")
    folder.mkdir()
    options = ["run", "--target", "backend:conforming", *few, f"--out={folder / 'o'}"]
    done = command(*options, cwd=folder, environment=environment, **changes)
    assert (done.code, whole(folder / "o")) == (0, True), done.err
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    if folder.name != "plain":
        assert command(*options, "--resume", cwd=folder, environment=environment).code == 0


def test_faults_have_summaries_without_docstrings(tmp_path: Path, kin: dict[str, str]) -> None:
    script = "from onnxspec.reference import FAULTS; print(sum(map(len, (d.summary for d in FAULTS.values()))))"
    lengths = [
        int(subprocess.check_output([sys.executable, *options, "-c", script], env=kin)) for options in ((), ("-OO",))
    ]
    assert lengths[0] == lengths[1] > 1000


# Invalid requests

REFUSED = {
    "an empty folder name": ["--out", ""],
    "a name of 5,000 characters": ["--out", "x" * 5000],
    "a target of 5,000 characters": ["--target", "x" * 5000],
    "a backend of 5,000 characters": ["--target", f"backend:{'x' * 5000}"],
    "a case of 5,000 characters": ["--op", "RNN", "--case", "x" * 5000],
    "an operator of 5,000 characters": ["--op", "x" * 5000],
    "a pattern of 5,000 stars": ["--op", "RNN", "--case", "*a" * 5000],
    "a file of 5,000 characters": ["--targets-file", "x" * 5000],
    "a list of 5,000 characters": ["--expected", "x" * 5000],
    "a folder of cases of 5,000 characters": ["--case", "./" + "x" * 5000],
    "a shard of 5,000 digits": ["--shard", f"1/{'9' * 5000}"],
    "a version of 5,000 digits": ["--op", "LSTM-" + "9" * 5000],
    "a profile with escapes": ["--profile", "\x1b[2J\n1000 pass"],
    "a target with escapes": ["--target", "\x1b[2J\n1000 pass\u202e"],
    "a requirement with escapes": ["--require", "\x1b]0;x\x07"],
    "random cases below zero": ["--random", "-1"],
    "a folder that is a file": ["--out", sys.executable],
    "what is under a file": ["--out", f"{sys.executable}/o"],
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_impossible_request_is_refused_in_a_line(inside: Callable[..., Finished], tmp_path: Path, name: str) -> None:
    done = inside("run", "--profile", "smoke", *REFUSED[name])
    assert done.code in (2, 3), done.out
    (line,) = done.err.splitlines() if done.code == 2 else ["-"]
    assert line.isprintable()
    assert len(line) <= 2100
    assert done.out.replace("\n", "").isprintable()
    assert not list(tmp_path.rglob("results.jsonl")) or done.code == 3


DEEP = {
    "arrays": ("a = " + "[" * 5000 + "]" * 5000, "is not TOML: maximum recursion depth exceeded"),
    "tables": ("[" + ".".join("a" * 5000) + "]\nx = 1", "nested more than 32 deep"),
    "inline tables": ("a = " + "{a = " * 5000 + "1" + "}" * 5000, "is not TOML: maximum recursion depth exceeded"),
    "a number": ("a = " + "1" * 6000, "is not TOML: Exceeds the limit"),
    "a hexadecimal number": ("a = 0x" + "f" * 5000, "more than 64 bits"),
    "a number of 64 bits": (f"a = {2**63}", "more than 64 bits"),
    "keys": ("\n".join(f"a{k} = 1" for k in range(20_000)), "[a0]"),
    "no text": ("\xff\xfe\0", "is not TOML: 'utf-8' codec can't decode"),
}


@pytest.mark.parametrize("option", ["--targets-file", "--expected"])
@pytest.mark.parametrize("name", DEEP)
def test_a_file_that_is_nested_or_long_is_named(
    inside: Callable[..., Finished], tmp_path: Path, name: str, option: str
) -> None:
    text, complaint = DEEP[name]
    (tmp_path / "deep.toml").write_bytes(text.encode("latin-1"))
    target = "a0" if option == "--targets-file" else "backend:conforming"
    done = inside("run", "--profile", "smoke", "--target", target, option, "deep.toml")
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert "deep.toml" in line
    assert complaint in line


# Signals


TELLING = """
import sys
class Telling:
    def find_spec(self, name, path=None, target=None):
        if name == 'onnxspec.conformance.cli.application':
            open({flag!r}, 'w').close()
sys.meta_path.insert(0, Telling())
"""
"""Code that creates a file when the command has set up its handling of Ctrl-C and begins to load the rest."""


@pytest.mark.parametrize("after", [0, 0.02, 0.1, 0.3, 0.6])
def test_interrupted_while_it_loads(kin: dict[str, str], tmp_path: Path, after: float) -> None:
    """Interrupt at any time after our first module has started; output of Python before that is Python's own."""
    flag = tmp_path / "begun"
    arguments = [sys.executable, "-c", HEEDING + TELLING.format(flag=str(flag)) + START, "list", "--profile", "smoke"]
    with subprocess.Popen(
        arguments, cwd=tmp_path, env=kin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        while not flag.exists():
            time.sleep(0.002)
        time.sleep(after)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=LONG)
    assert "Traceback" not in err
    assert run.returncode in (130, 0, -signal.SIGINT)  # Python itself, while it ends, has no handler any more


# Concurrent runs


def test_three_runs_in_one_folder_at_once(kin: dict[str, str], few: list[str], tmp_path: Path) -> None:
    line = [sys.executable, "-c", START, "run", "--target", "backend:conforming", *few, "--out", "o"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    runs = [subprocess.Popen(line, cwd=tmp_path, env=kin, **pipes) for _ in range(3)]
    complaints = [run.communicate(timeout=LONG)[1] for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 2, 2], complaints
    assert not any("Traceback" in complaint for complaint in complaints)
    assert whole(tmp_path / "o")


# Output of targets


def test_a_target_cannot_write_to_the_terminal(kin: dict[str, str], few: list[str], tmp_path: Path) -> None:
    """The target tries it in its name, its version, its messages and its printed output."""
    name = "x\x1b[2J\n  1000 pass\u202e"
    opening = "description['version'] = '1\\x1b[31m\\n  1000 pass' + 'v' * 5000"
    opening += "\nos.write(2, b'\\x1b[2J')"
    targets_file(tmp_path, name, opening)
    shown = command("run", "--target", name, *few, "--out", "o", cwd=tmp_path, environment=kin)
    assert shown.code == 1
    merged = command("merge", "o", "--out", "m", cwd=tmp_path, environment=kin)
    resumed = command("run", "--target", name, *few, "--out", "o", "--resume", cwd=tmp_path, environment=kin)
    # Results that were edited by hand.
    journal = tmp_path / "o" / "results.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in (line for line in lines if line["record"] == "result"):
        line["message"] = "\x1b]0;x\x07\n  1000 pass\n" + "m" * 100_000
        line["verdict"] = "crashed"
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    forged = command("merge", "o", "--out", "n", cwd=tmp_path, environment=kin)
    for done in (shown, merged, resumed, forged):
        for line in (done.out + done.err).split("\n"):
            assert line.isprintable(), line
            assert len(line) < 2500
            assert not line.strip().startswith("1000 pass")


def test_the_suite_leaves_no_files_behind(kin: dict[str, str], few: list[str], tmp_path: Path) -> None:
    room = tmp_path / "tmp"
    room.mkdir()
    environment = {**kin, "TMPDIR": str(room)}
    arguments = ("run", "--target", "backend:aborting", *few, "--no-extra", "--out", "o")
    command(*arguments, cwd=tmp_path, environment=environment)
    assert list(room.iterdir()) == []
    shutil.rmtree(tmp_path / "o")
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"]
