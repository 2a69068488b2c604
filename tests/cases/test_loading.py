"""Tests of the modules that are loaded: only those of the operator whose cases are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

OTHERS = ("attention", "conv", "extended", "dynamic")


@pytest.mark.parametrize(
    ("use", "most"),
    [
        ("pass", 55),
        ("cases.profile('smoke', 'LSTM', 14)", 65),
        ("[cases.build_case(spec) for spec in cases.profile('smoke', 'LSTM', 14)]", 65),
    ],
)
def test_cases_of_an_operator_load_no_other_operator(use: str, most: int) -> None:
    code = (
        f"import sys; from onnxspec import cases; {use}; print(*(m for m in sys.modules if m.startswith('onnxspec.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert len(loaded) <= most
    assert not [name for name in loaded if any(other in name for other in OTHERS)]
