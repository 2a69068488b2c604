"""The command line, run for real: its files, its output, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from onnxspec.cases import profile
from onnxspec.reference import CELLS, operator_names

from ..miniatures import Command, Inside, command_line, complaints, naming, pick, posix, read_results

PLAIN = ["--profile", "smoke", "--op", "LSTM-14", "--type", "float32"]


(RIGHT,) = pick(1, lambda s: not s.layout and s.hidden_size)
(CLIPPED,) = pick(1, lambda s: s.clip == 0.5 and s.direction == "forward")
(CRASHING,) = pick(1, lambda s: s.N == 0)


# A run of the real runtime


def test_a_run_writes_results_a_description_and_a_report(onnxspec: Command, tmp_path: Path) -> None:
    done = onnxspec("run", *PLAIN, "--type", "float64", "--out", "deep/er")
    assert done.code == 0, done.err
    folder = tmp_path / "deep" / "er"
    results = read_results(folder)
    listed = onnxspec("list", *PLAIN, "--type", "float64").out.split()
    assert [result["case"] for result in results] == listed
    for result in results:
        assert (result["op"], result["domain"], result["version"]) == ("LSTM", "", 14)
        assert result["target"] == "onnxruntime"
        assert isinstance(result["expected"], bool)
        assert result["clauses"]
        assert result["worst"] is None or 0 <= result["worst"] < float("inf")
        assert result["seconds"] >= 0
        assert re.fullmatch(r"[\w.-]{1,200}", result["case"])
    verdicts = [result["verdict"] for result in results]
    assert "pass" in verdicts
    double = onnxspec("run", *naming(pick(1, types=("float64",))), "--out", "double")
    assert double.code == 1, double.err  # nothing was judged
    assert {r["verdict"] for r in read_results(tmp_path / "double")} == {"unsupported"}

    left = sorted(path.name for path in folder.iterdir() if path.is_file())
    assert left == ["results.jsonl", "run.json"], "no half-made files"
    description = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    counts = {verdict: verdicts.count(verdict) for verdict in verdicts}
    assert description["counts"] == counts
    assert description["complete"] is True
    assert description["cases"] == len(listed)
    assert description["digests"].keys() == {"LSTM-14"}
    assert description["environment"]["packages"]["numpy"] == np.__version__
    (target,) = description["targets"]
    assert target["name"] == "onnxruntime"
    assert target["description"]["provider"] == "CPUExecutionProvider"
    page = (folder / "report" / "index.html").read_text(encoding="utf-8")
    assert listed[0] in page
    assert "onnxruntime" in done.out
    assert f"{verdicts.count('pass')} pass" in done.out
    assert "deep/er/report/index.html" in done.out
    assert complaints(done.err) == []


def test_without_out_the_folder_is_fresh_and_dated(inside: Inside, tmp_path: Path) -> None:
    for _ in range(2):
        assert inside("run", "--case", RIGHT).code == 0
    folders = list((tmp_path / "runs").iterdir())
    assert len(folders) == 2
    for folder in folders:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d{6}(-\d+)?", folder.name)
        assert len(read_results(folder)) == 1


def test_known_failures_end_with_0_and_without_the_lists_with_1(inside: Inside, tmp_path: Path) -> None:
    assert inside("run", "--case", CRASHING, "--out", "with").code == 0
    done = inside("run", "--case", CRASHING, "--out", "without", "--expected", "none")
    assert done.code == 1
    assert "\n  fails " in done.out, "nobody knows whether it is new where no list was asked"
    assert "NEW" not in done.out
    (issue,) = [line for line in done.out.splitlines() if line.startswith("issue:   onnxspec ")]
    assert inside(*shlex.split(issue.removeprefix("issue:   onnxspec "))).out.startswith("# ")
    (one,), (other,) = read_results(tmp_path / "with"), read_results(tmp_path / "without")
    assert (one["verdict"], one["expected"]) == ("crashed", True)
    assert (other["verdict"], other["expected"]) == ("crashed", False)


def test_a_refusal_fails_only_where_it_is_required(inside: Inside) -> None:
    refused = ["run", *PLAIN, "--op", "LSTM-1"]
    assert inside(*refused, "--out", "a").code == 0
    done = inside(*refused, "--out", "b", "--require", "LSTM-1:float32")
    assert done.code == 1
    assert "does not support what is required" in done.out


def test_special_values_fail_only_where_they_are_required(inside: Inside, tmp_path: Path) -> None:
    case = next(s for s in profile("core", "GRU", 14) if s.data == "nan-row" and s.type == "float32")
    command = ["run", "--case", case.id]
    free = inside(*command, "--out", "free")
    assert free.code == 0
    assert "NaN is lost" in free.out
    done = inside(*command, "--out", "required", "--require", "special-values", "--junit", "junit.xml")
    assert done.code == 1
    assert "loses special values, which are required" in done.out
    assert "<failure" in (tmp_path / "junit.xml").read_text()
    assert "NaN is lost" in (tmp_path / "required" / "report" / "index.html").read_text()


def test_the_second_lane_is_a_target_of_its_own_by_the_name_that_results_give_it(
    inside: Inside, tmp_path: Path
) -> None:
    both = inside("run", "--case", RIGHT, "--target", "onnxruntime", "--target", "onnxruntime+optimized", "--out", "b")
    assert both.code == 0
    names = [r["target"] for r in read_results(tmp_path / "b")]
    assert names == ["onnxruntime", "onnxruntime+optimized"]
    options = [t["options"] for t in json.loads((tmp_path / "b" / "run.json").read_text())["targets"]]
    assert options == [{}, {"optimize": True}]


# Selection of cases


def test_options_narrow_the_cases(inside: Inside) -> None:
    def listed(*options: str) -> list[str]:
        return inside("list", *options).out.split()

    recurrent = [word for op in CELLS for word in ("--op", op)]
    assert 0 < len(listed("--profile", "smoke", *recurrent)) <= 60
    assert 0 < len(listed("--profile", "smoke")) <= 60 * len(operator_names(""))
    assert {name.split(".")[0] for name in listed("--op", "LSTM-7")} == {"lstm-7"}
    assert {name.split(".")[1] for name in listed("--type", "float16", "--type", "float64")} == {"float16", "float64"}
    ragged = listed("--case", "*lengths-ragged*", "--type", "float32")
    assert ragged
    assert all("lengths-ragged" in name and ".float32." in name for name in ragged)
    assert listed("--case", ragged[0], "--case", ragged[0], "--case", ragged[1][:-1] + "?") == ragged[:2]


def test_features_are_listed_on_request(inside: Inside) -> None:
    line = inside("list", "--case", CLIPPED, "--features").out.split()
    assert line[0] == CLIPPED
    assert {"clip", "forward"} <= set(line[1:])


def test_a_run_in_which_a_target_gets_no_case_is_refused(inside: Inside, tmp_path: Path) -> None:
    assert inside("generate", "--out", "cases", "--case", RIGHT, "--all").code == 0
    done = inside("run", "--case", "./cases", "--target", "onnxruntime+neg", "--out", "o")
    assert done.code == 2
    assert "can be put in the wrap 'neg'" in done.complaint
    assert not (tmp_path / "o").exists()


def test_quantized_cases_are_generated_without_float_ones(inside: Inside, tmp_path: Path) -> None:
    arguments = ("--profile", "quantized", "--op", "RNN-7")
    assert inside("generate", "--out", "cases", *arguments, "--all").code == 0
    manifest = json.loads((tmp_path / "cases" / "manifest.json").read_text(encoding="utf-8"))
    cases = [entry["case"] for entry in (*manifest["cases"], *manifest["left_out"])]
    assert len(cases) == len(inside("list", "--profile", "quantized", "--op", "RNN-7").out.split())
    assert all(re.search(r"\.[us](8|16)\.", case) for case in cases)


def test_a_case_is_explained_by_the_beginning_of_its_id(inside: Inside) -> None:
    assert inside("explain", RIGHT[:-2]).out.splitlines()[0] == inside("explain", RIGHT).out.splitlines()[0]
    extended = inside("list", "--profile", "smoke", "--op", "ExtendedLSTM").out.split()[0]
    assert extended in inside("explain", extended[:-2]).out


def test_going_on_with_nothing_is_told(inside: Inside) -> None:
    assert (
        inside("run", "--case", RIGHT, "--out", "o", "--resume").complaint
        == "nothing to go on with in o: a new run starts"
    )
    assert complaints(inside("run", "--case", RIGHT, "--out", "o", "--resume").err) == []
    other = inside("run", "--case", RIGHT, "--expected", "none", "--out", "o", "--resume")
    assert other.complaint.endswith(f"it was made by: onnxspec run --case {RIGHT} --out o --resume")


# Errors in a command


def test_an_unknown_case_is_named_with_the_nearest(inside: Inside) -> None:
    (name,) = pick(1)
    op = name.partition("-")[0].upper()
    done = inside("run", "--op", f"{op}-14", "--type", "float32", "--case", name[:-1] + "_" + "\n" + "x" * 9)
    assert done.code == 2
    assert name in done.complaint
    excluded = inside("list", "--op", f"{op}-22", "--type", "float32", "--case", name)
    assert excluded.code == 2
    assert f"{op}-22:float32" in excluded.complaint
    assert len(inside("list", "--op", "LSTM-22", "--case", "z" * 100_000).complaint) < 2000


def test_named_targets_may_be_called_anything(onnxspec: Command, tmp_path: Path) -> None:
    name = "my [bold]target[/] \u2603 :boom: $(x)"
    (tmp_path / "lab.toml").write_text(f"['{name}']\nadapter = 'onnxruntime'\n", encoding="utf-8")
    options = ("--case", CRASHING, "--expected", "none", "--no-extra", "--out", "o")
    done = onnxspec("run", "--targets-file", "lab.toml", "--target", name, *options)
    assert done.code == 1
    assert name in done.out
    (result,) = read_results(tmp_path / "o")
    assert result["target"] == name
    # The command in a result works unchanged.
    assert result["repeat"].startswith("onnxspec explain ")
    script = f'{sys.executable} -c "import shlex, sys; print(shlex.split(sys.argv[1])[4:])" "$1"'
    printed = subprocess.run(["sh", "-c", script, "-", result["repeat"]], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == str([name, "--targets-file", "lab.toml"])


# Standard output and standard error


def test_lines_in_a_file_are_whole_and_plain(onnxspec: Command, tmp_path: Path) -> None:
    done = onnxspec("run", "--target", "backend:refusing", "--case", CLIPPED, "--out", "o")
    assert done.code == 1  # nothing was judged
    (result,) = read_results(tmp_path / "o")
    assert result["message"].startswith("NotImplementedError: [bold]clip[/] is \u2603 \\x1b[31m not for me :boom:")
    (line,) = [line for line in done.out.splitlines() if "NotImplementedError" in line]
    assert "NotImplementedError: [bold]clip[/] is \u2603 \\x1b" in line
    assert len(line) > 200
    assert "\x1b" not in done.out
    assert not any(line.endswith(" ") for line in done.out.splitlines())


def test_an_ascii_world_gets_escapes(onnxspec: Command, tmp_path: Path) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = onnxspec(
        "run", "--target", "backend:refusing", "--case", CLIPPED, "--out", "o\u2603", environment=ascii_only
    )
    assert done.code == 1  # nothing was judged
    assert "is \\u2603 " in done.out
    described = json.loads((tmp_path / "o\u2603" / "run.json").read_text(encoding="utf-8"))
    assert described["command"][-1] == "o\u2603"


def unread(environment: Mapping[str, str], folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """Return the exit code and messages of a command whose output nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    options = {"env": environment, "cwd": folder, "stdout": writing, "stderr": subprocess.PIPE, "timeout": 590}
    done = subprocess.run(command_line(*arguments), check=False, **options)  # type: ignore[call-overload]
    os.close(writing)
    return done.returncode, complaints(done.stderr.decode())


@posix
@pytest.mark.parametrize("more", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"])
def test_a_reader_that_has_enough_ends_the_list_without_a_word(
    kin: dict[str, str], tmp_path: Path, more: dict[str, str]
) -> None:
    assert unread({**kin, **more}, tmp_path, "list") == (0, [])


@posix
def test_nobody_listening_changes_nothing_of_a_run(kin: dict[str, str], tmp_path: Path) -> None:
    assert unread(kin, tmp_path, "run", "--case", CRASHING, "--expected", "none", "--no-extra", "--out", "o") == (1, [])
    assert (tmp_path / "o" / "report" / "index.html").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_what_cannot_be_written_is_an_error_and_the_results_are_there(onnxspec: Command, tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        for command in (
            ["list", "--case", RIGHT],
            ["explain", RIGHT],
            ["run", "--case", RIGHT, "--out", "o"],
            ["--help"],
        ):
            done = onnxspec(*command, stdout=full)
            assert done.code == 2, command
            assert done.complaint.startswith("onnxspec: the disk is full"), command
        assert onnxspec("list", "--op", "none", stderr=full).code == 2
    assert len(read_results(tmp_path / "o")) == 1


@posix
@pytest.mark.parametrize("command", ["run", "list"])
def test_a_closed_output_is_nowhere(kin: dict[str, str], tmp_path: Path, command: str) -> None:
    arguments = [command, "--case", RIGHT, *(["--out", "o"] if command == "run" else [])]
    closing = ["sh", "-c", 'exec "$@" >&-', "sh", *command_line(*arguments)]
    done = subprocess.run(closing, env=kin, cwd=tmp_path, stderr=subprocess.PIPE, check=False, timeout=590)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert (tmp_path / "o" / "results.jsonl").exists() is (command == "run")


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Yield the two ends of a terminal of 40 columns."""
    pty, fcntl, termios = (pytest.importorskip(name) for name in ("pty", "fcntl", "termios"))
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    yield master, slave
    for end in (master, slave):
        os.close(end)


@pytest.mark.parametrize("colour", [True, False])
def test_a_narrow_terminal_is_not_overrun(
    kin: dict[str, str], tmp_path: Path, terminal: tuple[int, int], colour: bool
) -> None:
    master, slave = terminal
    environment = {k: v for k, v in kin.items() if k not in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")}
    environment |= {"TERM": "xterm-256color"} | ({} if colour else {"NO_COLOR": "1"})
    arguments = command_line("run", *PLAIN, "--expected", "none", "--out", "o")
    process = subprocess.Popen(arguments, env=environment, cwd=tmp_path, stdin=slave, stdout=slave, stderr=slave)
    shown = bytearray()
    ended = False
    while not ended or select.select([master], [], [], 0)[0]:
        ended = process.poll() is not None
        if select.select([master], [], [], 0.1)[0]:
            shown += os.read(master, 1 << 16)
    assert process.returncode in (0, 1)
    text = shown.decode("utf-8")
    assert ("\x1b[31m" in text or "\x1b[32m" in text) is colour
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", plain)]
    assert any(" pass" in line for line in lines)
    # Lines that users copy are left to the terminal to wrap.
    copied = ("onnxspec explain", "results:", "report:")
    assert [line for line in lines if len(line) > 40 and not line.strip().startswith(copied)] == []
