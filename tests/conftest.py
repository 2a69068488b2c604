"""What holds for all tests of this repository."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """With several processes a file's tests share one, and so what they prepare.

    An option in pyproject.toml would have pytest fail where xdist is not installed.
    """
    if config.getoption("numprocesses", None) and config.getoption("dist") == "no":
        config.option.dist = "loadfile"
