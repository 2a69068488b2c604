"""Help of every command, completion in three shells, and the command as a module."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer.main

from onnxspec.conformance.cli.application import COMMANDS as TABLE
from onnxspec.conformance.cli.application import app

from ..miniatures import Finished

Inside = Callable[..., Finished]
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_in_words(inside: Inside, command: str) -> None:
    text = inside(command, "--help").out
    usage = text.splitlines()[0]
    assert re.fullmatch(rf"Usage: onnxspec {command} \[OPTIONS\]( \[?[A-Z]+(\[-VERSION\])?(\.\.\.)?\]?)*", usage)
    for type_name in ("<str>", "<path>", "<list", "<int", "TEXT", "INTEGER", " PATH ", "{"):
        assert type_name not in text
    (made,) = (c for name, c in typer.main.get_command(app).commands.items() if name == command)  # type: ignore[attr-defined]
    flat = " ".join(text.split())
    for option in (p for p in made.params if p.param_type_name == "option" and not p.hidden):
        name = re.search(rf"{option.opts[0]}[ ,]", flat)
        assert name or option.opts[0] == "--help"
        start = name.start() if name else 0
        if option.multiple:
            assert "repeatable" in flat[start:]
    assert flat.count("repeatable") == sum(p.param_type_name == "option" and p.multiple for p in made.params)


def test_the_help_of_run_fits_on_two_screens(monkeypatch: pytest.MonkeyPatch, inside: Inside) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(inside("run", "--help").out.splitlines()) <= 2 * 24


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    """The list is printed without loading the commands."""
    made = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert {name: command.get_short_help_str(1000) for name, command in made.items()} == {
        name: summary for name, (_, summary) in TABLE.items()
    }


def test_help_loads_no_command() -> None:
    code = """
import sys
from onnxspec.conformance.cli import start
sys.argv[1:] = ["--help"]
sys.exit = print
start.main()
print({"numpy", "onnx"} & set(sys.modules))"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("\n0\nset()\n"), done.stderr


@pytest.mark.parametrize("command", ["certify", "generate", "merge", "prove", "report", "run"])
def test_what_writes_writes_to_out(command: str) -> None:
    made = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    shown = {name for p in made.params if not getattr(p, "hidden", False) for name in p.opts}
    assert "--out" in shown
    assert not {"--to", "--output"} & shown


def test_a_command_that_writes_a_folder_asks_for_it(inside: Inside) -> None:
    assert "--out is missing" in inside("merge", "o").complaint
    assert "--out is missing" in inside("generate", "--case", '{"op":"RNN","version":14}').complaint


def test_an_opset_is_told_its_operator_version(inside: Inside) -> None:
    complaint = inside("list", "--op", "LSTM-13").complaint
    assert complaint.endswith("; a model of opset 13 holds LSTM-7")
    assert inside("list", "--op", "GRU-4").complaint.endswith("; a model of opset 4 holds GRU-3")


def test_the_command_is_a_module_too(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "onnxspec.conformance"]
    done = subprocess.run([*arguments, "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert re.fullmatch(r"onnxspec \d+\.\d+\.\d+\S*\n", done.stdout)
    done = subprocess.run([*arguments, "list", "--op", "X"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr[:27]) == (2, "onnxspec: unknown operator ")


# Completion

SHELLS = {
    "bash": """
        eval "$(_ONNXSPEC_COMPLETE=source_bash onnxspec)"
        COMP_WORDS=(@words); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _onnxspec_completion onnxspec
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    "zsh": """
        compdef() { :; }
        _arguments() { print -rl -- "$@"; }
        eval "$(_ONNXSPEC_COMPLETE=source_zsh onnxspec)"
        words=(@words); CURRENT=${#words}
        _onnxspec_completion onnxspec
    """,
    "fish": """
        _ONNXSPEC_COMPLETE=source_fish onnxspec | source
        complete -C "@words"
    """,
}


@pytest.fixture(scope="module")
def path_with_the_command(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "onnxspec"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m onnxspec.conformance "$@"\n')
    script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(shell: str, path_with_the_command: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    plain = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    environment = {**os.environ, "PATH": path_with_the_command, "HOME": str(tmp_path)}

    def offered(words: str) -> str:
        text = SHELLS[shell].replace("@words", words)
        done = subprocess.run([shell, *plain, "-c", text], capture_output=True, text=True, env=environment, timeout=120)
        assert "Traceback" not in done.stderr
        return done.stdout

    assert "explain" in offered("onnxspec ex")
    assert "--profile" in offered("onnxspec run --pro")
