"""Fixtures for faults that are staged with the real command."""

from __future__ import annotations

from ..conformance.conftest import onnxspec as onnxspec
