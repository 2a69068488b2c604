"""A static site of many runs: which runtime computes what rightly, and since when."""

from __future__ import annotations

from .writing import write_site

__all__ = ["write_site"]
