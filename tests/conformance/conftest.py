"""Fixtures: backends that can be imported, and the command run for real."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from onnxspec.conformance.cli import main

from .miniatures import KIN, ZOO, Command, Finished


@pytest.fixture(scope="session")
def kin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on the PYTHONPATH of `kin`."""
    return tmp_path_factory.mktemp("backends")


@pytest.fixture(scope="session")
def kin(kin_folder: Path) -> dict[str, str]:
    """An environment in which every module of `KIN` can be imported."""
    (kin_folder / "zoo.py").write_text(ZOO)
    for name, text in KIN.items():
        end = "\nBackend = zoo.spoiling(spoil)\n" if "def spoil" in text else "\n"
        module = f"import os, time\nimport numpy as np\nimport zoo\n{text}{end}"
        (kin_folder / f"{name}.py").write_text(module, encoding="utf-8")
    path = os.pathsep.join([str(kin_folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("PYTHONUNBUFFERED", None)  # what nobody reads shows elsewhere then
    return environment


@pytest.fixture
def onnxspec(kin: dict[str, str], tmp_path: Path) -> Command:
    """The command, in a folder of its own."""
    return Command(kin, tmp_path)


@pytest.fixture
def inside(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kin: dict[str, str], tmp_path: Path
) -> Callable[..., Finished]:
    """The command in this process, which saves the half second that it takes to start."""

    def run(*arguments: object) -> Finished:
        monkeypatch.setattr(sys, "argv", ["onnxspec", *map(str, arguments)])
        monkeypatch.setenv("PYTHONPATH", kin["PYTHONPATH"])
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Finished(int(ended.value.code or 0), out, err)

    return run
