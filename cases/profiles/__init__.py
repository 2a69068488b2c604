"""Profiles: lists of cases in a fixed order; random cases and levels of certificates are in modules of their own.

``smoke``, ``core`` and ``quantized`` are JSON lines in this folder, one case a line. ``full`` is ``core``, the lines of
``full.jsonl``, random cases, and every invalid model in every version. ``python -m onnxspec.cases.write_profiles``
checks the files and explains how to add a case.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from ...reference.errors import UserError, format_internal_error
from ..specs.case import Spec
from ..specs.family import family_of

PROFILES: tuple[str, ...] = ("smoke", "core", "full", "quantized")
"""Names of the profiles. Each of the first three contains the one before it; the last one is separate."""

FILES = ("smoke", "core", "full", "quantized", "fair")
"""The lists that are files.

``fair`` has cases for runners with one fixed tolerance: they depend on no ambiguity, and the error bounds of their
outputs are within that tolerance (``directories/manifest.py``).
"""


class NotListed(UserError):
    """The cases of an operator version cannot be listed, because the code that lists them raises an error."""

    def __init__(self, op: str, version: int, error: Exception) -> None:
        super().__init__(
            f"the cases of {op}-{version} cannot be listed, which is the suite's fault or the operator's: "
            f"{format_internal_error(error)}"
        )


@cache
def profile(name: str, op: str, version: int) -> tuple[Any, ...]:
    """Return the cases of a profile for one operator version, in a fixed order.

    Raise KeyError for an unknown profile, and NotListed where the operator's own code raises an error.
    """
    if name not in PROFILES:
        raise KeyError(name)
    try:
        return tuple(family_of(op).profile(name, op, version))
    except Exception as error:  # an operator's own code may raise any exception
        raise NotListed(op, version, error) from error


def written_cases(name: str, op: str, version: int) -> Iterator[Any]:
    """Yield the cases of an operator version that a file of :data:`FILES` lists."""
    kind = family_of(op).spec
    for line in _lines(name).get((op, version), ()):
        yield msgspec.convert({field: part for field, part in line.items() if field in kind.__dataclass_fields__}, kind)


@cache
def _lines(name: str) -> Mapping[tuple[str, int], Sequence[Mapping[str, Any]]]:
    """Return the lines of a file by operator and version."""
    lines: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    text = resources.files(__package__ or "onnxspec.cases.profiles").joinpath(f"{name}.jsonl").read_bytes()
    for line in text.splitlines():
        value = msgspec.json.decode(line)
        lines.setdefault((value["op"], value["version"]), []).append(value)
    return lines


def digest_of(specs: Iterable[Spec]) -> str:
    """Return the SHA-256 over the cases and all of their bytes: the identity of a profile."""
    total = hashlib.sha256()
    for spec in specs:
        total.update(spec.digest.encode())
        try:
            for part in family_of(spec.op).content(spec):
                total.update(part)
        except Exception as error:  # an operator's own code may raise any exception; its case cannot be built
            total.update(format_internal_error(error).encode())
    return total.hexdigest()


def digests_for(name: str, versions: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Return the digest of a profile for each of some operator versions (``LSTM-14``), pinned or computed."""
    pinned = pinned_digests().get(name, {})
    return {f"{op}-{v}": pinned.get(f"{op}-{v}") or digest_of(profile(name, op, v)) for op, v in versions}


@cache
def pinned_digests() -> dict[str, dict[str, str]]:
    """Return the digests of this release: profile to operator version to digest."""
    text = resources.files(__package__ or "onnxspec.cases").joinpath("digests.json").read_text(encoding="utf-8")
    pinned: dict[str, dict[str, str]] = json.loads(text)
    return pinned
