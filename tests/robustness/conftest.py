"""Fixtures for faults that run the real command."""

from __future__ import annotations

from ..conformance.conftest import inside as inside
from ..conformance.conftest import onnxspec as onnxspec
