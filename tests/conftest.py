"""What holds for all tests of this repository."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

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
