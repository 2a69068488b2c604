"""What holds for all tests of this repository."""

from __future__ import annotations

import os
import shutil
import tempfile
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


def pytest_configure(config: pytest.Config) -> None:
    """Have the hundreds of processes that tests start compile a module once, not each for itself, where nothing may be
    written beside the sources, as in many containers. Those of xdist inherit the place."""
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", "") and "PYTHONPYCACHEPREFIX" not in os.environ:
        os.environ["PYTHONPYCACHEPREFIX"] = compiled = tempfile.mkdtemp(prefix="onnxspec-compiled-")
        config.add_cleanup(lambda: shutil.rmtree(compiled, ignore_errors=True))


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
