"""Tests that run every command of README and docs on few cases.

A command that needs something not installed here says so behind a #.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onnxspec import RunOutcome
from onnxspec import run as run_cases
from onnxspec.cases import CaseSpec, build_case
from onnxspec.cases.directories.directory import write_directory
from onnxspec.cases.directories.manifest import data_sets_of
from onnxspec.conformance.cli.application import main

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
DOCUMENTS = ("README.md", *(f"docs/{name}" for name in PAGES))
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
NEWCOMERS = "python3 -m venv .venv"  # .ci/run runs these two, which tests/test_project.py checks
FEW = {"--profile": "smoke", "--op": "RNN-14", "--type": "float32"}
# In a document, these options have values for hours of work.
SHORT = {"--minutes": "0.05", "--examples": "5", "--random": "2:1"}
# Whole profiles take minutes. No other commands need these options.
NARROWED = {"run": FEW, "generate": FEW, "prove": {**FEW, "--fault": "rnn.state.added"}}
ONE_FAULT = {"RNN": "rnn.state.added", "ExtendedLSTM": "extended.quantization.wraps"}
FINE = {0, 1}  # 1 is a verdict, not a failure of the command


def commands(document: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for body in SHELL.findall(text) for line in body.splitlines()]
    return [line for line in lines if line.strip() and not line.startswith(("#", NEWCOMERS))]


def smallest_backend() -> str:
    """Return the backend that docs/write-a-runtime.md has to copy."""
    text = (ROOT / "docs" / "write-a-runtime.md").read_text(encoding="utf-8")
    (backend,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return str(backend)


def test_the_smallest_backend_returns_outputs_in_the_order_of_the_graph() -> None:
    names: dict[str, Any] = {}
    exec(smallest_backend(), names)
    model = build_case(CaseSpec("RNN", 14, T=2, N=1, I=2, H=3, outputs=("Y", "Y_h"))).trial.model
    proto = onnx.load_model_from_string(model)
    feeds = [np.ones([d.dim_value for d in value.type.tensor_type.shape.dim], "f") for value in proto.graph.input]
    Y, Y_h = names["prepare"](proto).run(feeds)
    proto.graph.output.reverse()
    swapped = names["prepare"](proto).run(feeds)
    assert [array.shape for array in swapped] == [Y_h.shape, Y.shape] == [(1, 1, 3), (2, 1, 1, 3)]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small run folder."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    run_cases("onnxruntime", case=CaseSpec("RNN", 14, T=2), out=folder)
    return folder


@pytest.fixture
def place(tmp_path: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the files that the documents assume: runs, models, and cases in the forms that they name."""
    (tmp_path / "runs").mkdir()
    for name in ("before", "after", "a", "b", "yesterday"):
        (tmp_path / "runs" / name).symlink_to(recorded, target_is_directory=True)
    model = build_case(CaseSpec("LSTM", 14, T=2, weights="initializer")).trial.model
    (tmp_path / "models").mkdir()
    for name in ("model.onnx", "models/encoder.onnx", "models/decoder.onnx", "models/asr.onnx"):
        (tmp_path / name).write_bytes(model)
    (tmp_path / "onnxspec.toml").write_text("", encoding="utf-8")
    (tmp_path / "mine.py").write_text(smallest_backend(), encoding="utf-8")
    case = build_case(CaseSpec("RNN", 14, T=2)).trial
    write_directory(tmp_path / "onnx-cases" / "one", case.model, data_sets_of(case))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shortened(words: list[str]) -> list[str]:
    return [SHORT.get(before, word) for before, word in zip(["", *words], words, strict=False)]


def narrowed(words: list[str]) -> list[str]:
    words = shortened(words)
    present = {word.split("=")[0] for word in words}
    if "--case" in present or any(word.endswith(".onnx") for word in words):
        return words
    options = {o: v for o, v in NARROWED.get(words[1], {}).items() if o not in present}
    if "--require" in present:
        options["--op"] = words[words.index("--require") + 1].partition("-")[0]
    if "--random" in present:
        options.pop("--profile")
    if "--op" in present and "--fault" in options:  # the fault may be of another operator
        options["--fault"] = ONE_FAULT[words[words.index("--op") + 1]]
    return [*words, *(word for pair in options.items() for word in pair)]


WITH_COMMANDS = [d for d in DOCUMENTS if commands(d)]


# README's are for newcomers; those of all documents take minutes.
@pytest.mark.parametrize(
    "document", [pytest.param(d, marks=() if d == "README.md" else pytest.mark.long) for d in WITH_COMMANDS]
)
def test_commands_of_a_document_do_what_it_says(
    document: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in commands(document):
        arguments = shlex.split(line, comments=True)
        if re.search(r"# (.*; )?needs ", line):
            continue
        if arguments[0] == "pytest":
            arguments = shortened(arguments)
            few = ["-p", "no:cacheprovider"]
            few += [] if "random-" in line else ["--onnxspec-profile", "smoke"]
            few += [] if "-case" in line else ["--onnxspec-op", "RNN"]
            done = subprocess.run([sys.executable, "-m", *arguments, *few], capture_output=True, text=True)
            assert done.returncode in FINE, f"{line}\n{done.stdout}"
            continue
        assert arguments[0] == "onnxspec", (
            f"{document} shows what nothing here runs, and does not say what it needs: {line}"
        )
        into = None
        if ">" in arguments:
            arguments, into = arguments[: arguments.index(">")], arguments[-1]
        monkeypatch.setattr(sys, "argv", narrowed(arguments))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert int(ended.value.code or 0) in FINE, f"{line}\n{out}\n{err}"
        if into is not None:
            (place / into).write_text(out, encoding="utf-8")


def test_every_command_stands_in_a_block_that_is_run() -> None:
    block = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    for document in DOCUMENTS:
        for language, body in block.findall((ROOT / document).read_text(encoding="utf-8")):
            shown = re.findall(r"^(?:onnxspec|pytest|python|tox) .*", body, re.MULTILINE)
            assert language or not shown, f"{document}: {shown}"


def test_what_is_marked_as_needing_something_is_little() -> None:
    marked = [line for document in DOCUMENTS for line in commands(document) if "# needs" in line or "; needs" in line]
    shown = [line for document in DOCUMENTS for line in commands(document)]
    assert 0 < len(marked) < len(shown) / 2


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_command_of_a_document_writes_among_the_sources(document: str) -> None:
    """A user who types the command in a clone must not get the error that the folder holds other things."""
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()}
    sources = {path.name for path in ROOT.iterdir() if path.is_dir()} - ignored
    for line in commands(document):
        arguments = shlex.split(line, comments=True)
        written = [word for before, word in itertools.pairwise(arguments) if before in WRITES]
        assert not {Path(word).parts[0] for word in written} & sources, line


WRITES = ("--out", "-o", "--keep", "--junit", "--record")


def printed(document: str, command: str) -> list[str]:
    """Return the lines that a document shows below a block with that command."""
    text = (ROOT / document).read_text(encoding="utf-8")
    (shown,) = re.findall(rf"^```sh\n[^`]*{re.escape(command)}[^`]*```\n\n```text\n(.*?)^```", text, re.M | re.S)
    return [line for line in shown.splitlines() if line.strip() != "..."]


def run_as_shown(document: str, beginning: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the commands of the block that begins with `beginning`, without restrictions."""
    text = (ROOT / document).read_text(encoding="utf-8")
    (block,) = [body for body in SHELL.findall(text) if body.startswith(beginning)]
    for line in block.splitlines():
        monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
        with pytest.raises(SystemExit):
            main()


def test_what_generate_prints_is_what_the_document_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    beginning = "onnxspec generate --out lstm-cases"
    run_as_shown("docs/directories.md", beginning, monkeypatch)
    out = capsys.readouterr()
    told = [line.strip() for line in (out.out + out.err).splitlines()]
    shown = printed("docs/directories.md", beginning)
    assert len(shown) == 3
    runtime = f"onnxruntime {version('onnxruntime')}: "
    for line in shown:
        # The results of other versions of the runtime are not tested here.
        assert line in told or (line.startswith("onnxruntime ") and not line.startswith(runtime)), line


@pytest.mark.parametrize("document", ["README.md", "docs/notebook-and-ci.md"])
def test_python_of_a_document_runs_from_top_to_bottom(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec("\n".join(line for line in block.splitlines() if "# needs " not in line), names)
    assert isinstance(names["outcome"], RunOutcome)


def test_what_an_outcome_prints_is_what_the_document_shows(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    ((block, shown),) = re.findall(r"^```python\n([^`]*)```\n\n```text\n([^`]*)```", text, re.MULTILINE)
    exec(block, {})
    printed = capsys.readouterr().out.splitlines()
    lines = [line for line in shown.splitlines() if line.strip() != "..."]
    assert len(lines) == 5
    # Other versions of the runtime may have other results.
    if lines[0].startswith(f"onnxruntime {version('onnxruntime')}:"):
        assert [line for line in lines if line not in printed] == []


def _pytest(*arguments: str, without_plugins: bool = False) -> subprocess.CompletedProcess[str]:
    """Run pytest in the clone as README describes."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    if without_plugins:
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_pytest_works_in_a_clone_where_only_the_package_is_installed() -> None:
    """The state after the first of README's commands: the packages that only ``[test]`` adds are not installed."""
    cases = ["--pyargs", "onnxspec.conformance", "--onnxspec-op", "RNN", "--onnxspec-profile", "smoke"]
    done = _pytest("-p", "onnxspec.conformance.pytest_plugin.plugin", *cases, without_plugins=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("more", "scheduling"), [((), "LoadFileScheduling"), (("--dist", "load"), "LoadScheduling")])
def test_with_several_processes_a_files_tests_share_one_if_nothing_else_is_said(
    more: tuple[str, ...], scheduling: str
) -> None:
    pytest.importorskip("xdist")
    few = ["tests/cases/specs/test_data.py", "-k", "no_test_has_this_name"]
    assert f" {scheduling}" in _pytest("-n", "1", "-v", *more, *few).stdout


def test_the_smallest_backend_of_a_document_runs_as_it_says(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "write-a-runtime.md").read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text(smallest_backend(), encoding="utf-8")
    (line,) = [line for line in commands("docs/write-a-runtime.md") if "backend:mine" in line]
    arguments = [sys.executable, "-m", "onnxspec.conformance", *shlex.split(line, comments=True)[1:]]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "backend:mine: 2 pass  10 unsupported" in done.stdout
    assert "Two cases pass, ten are unsupported." in text
    arguments += ["--profile", "core", "--case", "rnn-*.float32.*.illegal-*", "--out", "invalid"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert " pass " in done.stdout, done.stderr
    assert "not-rejected" not in done.stdout, "the smallest backend refuses every invalid model of core"
