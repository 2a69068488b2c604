"""Help of every command, and the command as a module."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from onnxspec.conformance.cli.application import COMMANDS, load_command

from ..miniatures import Inside


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_every_option(inside: Inside, command: str) -> None:
    text = " ".join(inside(command, "--help").out.split())
    assert text.startswith(f"Usage: onnxspec {command} [OPTIONS]")
    options = [p for p in load_command(command).params if p.param_type_name == "option" and not p.hidden]
    assert [option.opts[0] for option in options if option.opts[0] not in text] == []
    assert text.count("repeatable") == sum(option.multiple for option in options)


def test_the_help_of_run_fits_on_two_screens(monkeypatch: pytest.MonkeyPatch, inside: Inside) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(inside("run", "--help").out.splitlines()) <= 2 * 24


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    """The list is printed without loading the commands."""
    loaded = {name: load_command(name).get_short_help_str(1000) for name in COMMANDS}
    assert loaded == {name: summary for name, (_, summary) in COMMANDS.items()}


def loaded_by(folder: Path, *words: str) -> set[str]:
    """Return the names of all modules that a command loads, which must end with 0."""
    code = f"""
import sys
from onnxspec.conformance.cli import start
sys.argv[1:] = {words}
try:
    start.main()
except SystemExit as end:
    print(end.code, *sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    ended, *names = done.stdout.splitlines()[-1].split()
    assert ended == "0", done.stderr
    return {*names}


def test_help_and_a_passing_case_load_few_modules(tmp_path: Path) -> None:
    assert not {"numpy", "onnx"} & loaded_by(tmp_path, "--help")
    case = "lstm-14.float32.forward.bias.T4N3I2H5.e49129"
    ours = [name for name in loaded_by(tmp_path, "run", "--case", case) if name.startswith("onnxspec")]
    assert len(ours) <= 165
    assert not [name for name in ours if ".faults.tables" in name or ".cases.directories" in name]


def test_the_command_is_a_module_too(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "onnxspec.conformance"]
    done = subprocess.run([*arguments, "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert re.fullmatch(r"onnxspec \d+\.\d+\.\d+\S*\n", done.stdout)
    done = subprocess.run([*arguments, "list", "--op", "X"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr[:27]) == (2, "onnxspec: unknown operator ")
