"""Fixtures that run the real command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from onnxspec.conformance.cli.application import main

from .miniatures import Command, Finished


@pytest.fixture
def onnxspec(kin: dict[str, str], tmp_path: Path) -> Command:
    """Return the command, in a temporary folder."""
    return Command(kin, tmp_path)


@pytest.fixture
def inside(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kin: dict[str, str], tmp_path: Path
) -> Callable[..., Finished]:
    """Return the command in this process, which saves the half second of starting it."""

    def run(*arguments: object) -> Finished:
        monkeypatch.setattr(sys, "argv", ["onnxspec", *map(str, arguments)])
        monkeypatch.setenv("PYTHONPATH", kin["PYTHONPATH"])
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Finished(int(ended.value.code or 0), out, err)

    return run
