"""Faults are staged with the command, run for real."""

from __future__ import annotations

from ..conformance.conftest import onnxspec as onnxspec
