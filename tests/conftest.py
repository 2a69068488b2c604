"""What holds for all tests of this repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from .conformance.miniatures import KIN, ZOO

# A machine that has much else to do draws slowly, which says nothing of what is drawn.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """With several processes a file's tests share one, and so what they prepare.

    An option in pyproject.toml would have pytest fail where xdist is not installed.
    """
    if config.getoption("numprocesses", None) and config.getoption("dist") == "no":
        config.option.dist = "loadfile"


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
