"""Tests of the modules that are loaded: those of the operator whose cases are used, and none for judging."""

from __future__ import annotations

import subprocess
import sys

import pytest

UNUSED = ("attention", "conv", "extended", "dynamic", "faults", "kernels")


@pytest.mark.parametrize(
    ("use", "most"),
    [
        ("pass", 40),
        ("cases.profile('smoke', 'LSTM', 14)", 54),
        ("[cases.build_case(spec) for spec in cases.profile('smoke', 'LSTM', 14)]", 54),
    ],
)
def test_cases_of_an_operator_load_no_other_operator_and_no_fault(use: str, most: int) -> None:
    code = (
        f"import sys; from onnxspec import cases; {use}; print(*(m for m in sys.modules if m.startswith('onnxspec.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert len(loaded) <= most
    assert not [name for name in loaded if any(unused in name for unused in UNUSED)]
