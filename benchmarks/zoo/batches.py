"""Batches of the zoo by name: those of this folder, and older ones from git's history."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from benchmarks.net.__main__ import COMMIT

_FOLDER = Path(__file__).parent


def batches(names: Sequence[str]) -> Iterator[ModuleType]:
    """Yield the modules of these batches; without names those of this folder."""
    for name in names or sorted(path.stem for path in _FOLDER.glob("batch_*.py")):
        path = _FOLDER / f"{name}.py"
        yield _module(path if path.is_file() else _from_history(name))


@cache
def _module(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look it up here
    spec.loader.exec_module(module)
    return module


@cache
def _from_history(name: str) -> Path:
    """Return the file of a batch of v0.4.0, from git's history."""
    source = f"{COMMIT}:benchmarks/zoo/{name}.py"
    result = subprocess.run(["git", "show", source], cwd=_FOLDER, capture_output=True, check=False)
    if result.returncode:
        sys.exit(f"there is no batch {name}: it is neither in benchmarks/zoo nor in the history ({source})")
    path = Path(tempfile.mkdtemp(prefix="onnxspec-zoo-")) / f"{name}.py"
    path.write_bytes(result.stdout)
    return path
