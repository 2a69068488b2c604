"""The suite as it is installed: a digest of onnxspec's own files, and of the cases that it makes."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path

from ...cases import digest_of
from ..probes.probe import Probe, SpecProbe

_PACKAGES = ("cases", "conformance", "reference", "reports")
_KINDS = (".py", ".toml", ".json", ".html", ".css", ".js")


@cache
def own_sources() -> str:
    """SHA-256 over the paths and contents of all files of onnxspec that anything depends on. Ends of lines are taken as
    one, since tools change them on the way."""
    total = hashlib.sha256()
    for package in _PACKAGES:
        place = Path(str(resources.files(f"onnxspec.{package}")))
        for path in sorted(place.rglob("*"), key=lambda path: path.relative_to(place).as_posix()):
            if path.suffix in _KINDS and path.is_file() and "__pycache__" not in path.parts:
                content = path.read_bytes().replace(b"\r\n", b"\n")
                name = f"{package}/{path.relative_to(place).as_posix()}"
                total.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()


def case_digests(probes: Iterable[Probe]) -> dict[str, str]:
    """Return a digest of the cases of each operator version, with every byte of their content."""
    specs = defaultdict(list)
    for probe in probes:
        if isinstance(probe, SpecProbe):
            specs[f"{probe.op}-{probe.version}"].append(probe.spec)
    return {name: digest_of(specs[name]) for name in sorted(specs)}
