"""Runtimes in their own virtual environments, which tox makes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from onnxspec.conformance.targets.target import Target, parse_target

FILE = Path(__file__).parents[2] / "examples" / "targets" / "runtimes.toml"


def missing(reason: str) -> NoReturn:
    """Skip a test whose runtime is not here, or fail it if ONNXSPEC_REQUIRE_RUNTIMES is set."""
    if os.environ.get("ONNXSPEC_REQUIRE_RUNTIMES"):
        pytest.fail(reason)
    pytest.skip(reason)


def runtime(name: str, **options: object) -> Target:
    """Return a target of examples/targets/runtimes.toml, with additional options."""
    target = parse_target(name, FILE)
    environment = Path(target.command[0]).parents[1]
    if not (environment / "bin" / "python").exists():
        missing(f"no environment for it: tox run -e {environment.name} makes one")
    return replace(target, options={**target.options, **options})
