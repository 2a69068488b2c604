"""The environment of the parent process: for the record that a reader of results needs."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib import metadata

from .records import EnvironmentRecord


@cache
def version_of(distribution: str) -> str | None:
    """The installed version of a distribution, None where there is none."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def environment() -> EnvironmentRecord:
    """Python, platform, processor and the packages that take part."""
    packages = ("onnxspec", "onnx", "numpy", "ml_dtypes", "onnxruntime", "hypothesis", "pytest")
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "packages": {name: version for name in packages if (version := version_of(name))},
    }
