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


def test_a_passing_case_loads_few_modules(tmp_path: Path) -> None:
    code = """
import sys
from onnxspec.conformance.cli import start
sys.argv[1:] = ["run", "--case", "lstm-14.float32.forward.bias.T4N3I2H5.e49129"]
try:
    start.main()
except SystemExit as end:
    loaded = [name for name in sys.modules if name.startswith("onnxspec")]
    print(end.code, *loaded)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    code, *loaded = done.stdout.splitlines()[-1].split()
    assert code == "0", done.stderr
    assert len(loaded) <= 165
    assert not [name for name in loaded if ".faults.tables" in name or ".cases.directories" in name]


def test_the_command_is_a_module_too(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "onnxspec.conformance"]
    done = subprocess.run([*arguments, "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert re.fullmatch(r"onnxspec \d+\.\d+\.\d+\S*\n", done.stdout)
    done = subprocess.run([*arguments, "list", "--op", "X"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr[:27]) == (2, "onnxspec: unknown operator ")
