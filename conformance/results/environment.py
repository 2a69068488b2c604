"""Environment of the parent process, for the record of a run."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib import metadata

from .records import EnvironmentRecord


@cache
def version_of(distribution: str) -> str | None:
    """Return the installed version of a distribution; None where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def environment() -> EnvironmentRecord:
    """Return the versions of Python, platform, processor and packages."""
    packages = ("onnxspec", "onnx", "numpy", "ml_dtypes", "onnxruntime", "hypothesis", "pytest")
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "packages": {name: version for name in packages if (version := version_of(name))},
    }
