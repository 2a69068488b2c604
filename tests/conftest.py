"""Settings and fixtures for all tests of this repository."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from .conformance.miniatures import KIN, ZOO

# A busy machine draws slowly, which is no fault of the strategy.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run the tests of a file in one process, so that they share their fixtures, if there are several processes.

    An option in pyproject.toml would make pytest fail where xdist is not installed.
    """
    if config.getoption("numprocesses", None) and config.getoption("dist") == "no":
        config.option.dist = "loadfile"


def pytest_configure(config: pytest.Config) -> None:
    """Give the hundreds of processes that tests start one cache of compiled modules.

    Otherwise each compiles them again if the folders of the sources are read-only, as in many containers. The processes
    of xdist inherit the setting.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", "") and "PYTHONPYCACHEPREFIX" not in os.environ:
        os.environ["PYTHONPYCACHEPREFIX"] = compiled = tempfile.mkdtemp(prefix="onnxspec-compiled-")
        config.add_cleanup(lambda: shutil.rmtree(compiled, ignore_errors=True))


@pytest.fixture(scope="session")
def kin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder on the PYTHONPATH of `kin`."""
    return tmp_path_factory.mktemp("backends")


@pytest.fixture(scope="session")
def kin(kin_folder: Path) -> dict[str, str]:
    """Return an environment in which every module of `KIN` can be imported."""
    (kin_folder / "zoo.py").write_text(ZOO)
    for name, text in KIN.items():
        end = "\nBackend = zoo.spoiling(spoil)\n" if "def spoil" in text else "\n"
        module = f"import os, time\nimport numpy as np\nimport zoo\n{text}{end}"
        (kin_folder / f"{name}.py").write_text(module, encoding="utf-8")
    path = os.pathsep.join([str(kin_folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("PYTHONUNBUFFERED", None)  # unread output then shows up in another place
    return environment
