"""Profiles: pinned lists of cases. Made by rule from the space, and held to a digest for every operator version."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from ...reference import operator_version, versions_of
from ...reference.operators.mishap import told_mishap
from ..axes.quantized.quantization import BLOCK
from ..specs.case import Spec
from ..specs.family import family_of
from ..specs.illegal import illegal_cases
from ..specs.space import axes_of, settle, spec_from
from ..specs.spec import CaseSpec
from .block import block
from .covering import cover, scatter
from .designs import alone, together
from .pool import pinned_dense, quick_dense
from .quantized import quantized_cases
from .varied import varied

PROFILES: tuple[str, ...] = ("smoke", "core", "full", BLOCK)
"""Each of the first three holds the one before it; the last one stands beside them."""

# Single features in smoke, for an operator; as many as leave place for its dense cases.
_SINGLE = 5
# Rows of full that are drawn at random, for each type of a version.
_SCATTERED = 160


class NotListed(ValueError):
    """The cases of an operator version cannot be listed: the code that lists them raises something."""

    def __init__(self, op: str, version: int, error: Exception) -> None:
        super().__init__(
            f"the cases of {op}-{version} cannot be listed, which is the suite's fault or the operator's: "
            f"{told_mishap(error)}"
        )


_LISTED: dict[tuple[str, str, int], tuple[Any, ...]] = {}


def profile(name: str, op: str, version: int) -> tuple[Any, ...]:
    """The cases of a profile for one operator version, in a fixed order. Raises KeyError for an unknown profile,
    NotListed for what the operator's own code raises."""
    if (name, op, version) not in _LISTED:
        case_named("", name, op, version)
    return _LISTED[name, op, version]


def case_named(id: str, name: str, op: str, version: int) -> Any | None:
    """The case of a profile that has this id, None where none has: no more are made than it takes. Raises what
    :func:`profile` does."""
    if name not in PROFILES:
        raise KeyError(name)
    family, made = family_of(op), []
    within = name != BLOCK or any(axis.block == BLOCK for axis in getattr(family.spec, "axes", ()))
    try:
        for spec in _LISTED.get((name, op, version)) or (family.profile(name, op, version) if within else ()):
            if id and spec.id == id:
                return spec
            made.append(spec)
    except Exception as error:  # whatever it is, it is the operator's
        raise NotListed(op, version, error) from error
    _LISTED[name, op, version] = tuple(made)
    return None


def recurrent_profile(name: str, op: str, version: int) -> Iterator[CaseSpec]:
    """The cases of a profile of one of ONNX's recurrent operators."""
    if name == BLOCK:
        return quantized_cases(op, version)
    core = _unique(_core(op, version))
    if name == "smoke":
        return _smoke(op, version, [spec for spec in core if not spec.illegal])
    return core if name == "core" else _unique(itertools.chain(core, _full(op, version)))


def _unique(specs: Any) -> Iterator[CaseSpec]:
    seen: set[str] = set()
    for spec in specs:
        if spec.digest not in seen:
            seen.add(spec.digest)
            yield spec


def _smoke(op: str, version: int, core: list[CaseSpec]) -> Iterator[CaseSpec]:
    """Cases of a type: of a version that has the whole design single features, of others their first case; and of all
    of them those few dense cases that show most."""
    if version == main_version(op):
        yield from itertools.islice(alone(op, version), _SINGLE)
    else:
        yield core[0]
    yield from quick_dense(op, version)


def _widely_taken(axes: Mapping[str, tuple[Hashable, ...]]) -> dict[str, tuple[Hashable, ...]]:
    """The axes without those whose other value many runtimes refuse outright: a refused row tries nothing of all that
    it combines. Those values have cases of their own."""
    return {name: values for name, values in axes.items() if name not in ("hidden_size", "layout")}


def main_version(op: str) -> int:
    """The version that gets the whole design: the newest one in which only types were added later."""
    return 14 if 14 in versions_of(op) else versions_of(op)[-1]


def _core(op: str, version: int) -> Iterator[CaseSpec]:
    """One version is tried with everything, in every type; others with all features together in few models, and with
    everything in the types that only they have."""
    main = main_version(op)
    known = operator_version(op, main).types if version != main else ()
    for number, kind in enumerate(map(str, axes_of(operator_version(op, version))["type"])):
        if kind in known and number == 0:
            yield from together(op, version, kind, first=True)
        elif kind == "float16" and version == versions_of(op)[0]:
            # The first version says some things otherwise, and a half type hides more than others.
            yield from together(op, version, kind, first=False)
        elif kind in known:
            continue  # dense cases are of every version and type
        else:
            yield from block(op, version, kind, first=kind == "float32")
    if version == main:
        yield from alone(op, version)
    yield from pinned_dense(op, version)
    yield from varied(op, version)
    yield from illegal_cases(op, version, main)


def _full(op: str, version: int) -> Iterator[CaseSpec]:
    operator = operator_version(op, version)
    axes = axes_of(operator)
    of_any_type = {name: values for name, values in axes.items() if name != "type"}
    threes = list(cover(_widely_taken(of_any_type), settle, strength=3, seed=version, candidates=6))
    for number, row in enumerate(cover(axes, settle, strength=2, seed=version, candidates=6)):
        yield spec_from(op, version, row, seed=number)
    for which, kind in enumerate(axes["type"]):
        # Every three values together, in every type; and many together, as chance has it.
        drawn = scatter(of_any_type, settle, _SCATTERED, seed=16 * version + which)
        for number, row in enumerate((*threes, *drawn)):
            yield spec_from(op, version, {**row, "type": kind}, seed=number)
        rich = {"type": kind, "bias": True, "initial": "all", "lengths": "ragged"}
        rich |= {"peepholes": True} if "peepholes" in axes else {}
        for direction in ("forward", "reverse", "bidirectional"):
            for T, N, I, H in ((50, 4, 64, 64), (100, 3, 33, 65), (17, 2, 128, 127)):
                row = {**rich, "direction": direction, "outputs": "all", "weights": "initializer"}
                if "output_sequence" in operator.attributes:
                    row["output_sequence"] = 1
                yield spec_from(op, version, row, T=T, N=N, I=I, H=H)
        for H in (7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64):
            row = {"type": kind, "bias": True, "outputs": "all", "weights": "initializer"}
            row |= {"output_sequence": 1} if "output_sequence" in operator.attributes else {}
            yield spec_from(op, version, row, I=H + 1, H=H, N=2, T=3)
    yield from illegal_cases(op, version)


def digest_of(specs: Iterable[Spec]) -> str:
    """SHA-256 over the cases and every byte of what they are made of: what "the same profile" means."""
    total = hashlib.sha256()
    for spec in specs:
        total.update(spec.digest.encode())
        try:
            for part in family_of(spec.op).content(spec):
                total.update(part)
        except Exception as error:  # whatever it is, it is the operator's: what cannot be built is no case
            total.update(told_mishap(error).encode())
    return total.hexdigest()


def digests_for(name: str, versions: Iterable[tuple[str, int]]) -> dict[str, str]:
    """The digest of a profile for each of some operator versions (``LSTM-14``), pinned or computed."""
    pinned = pinned_digests().get(name, {})
    return {f"{op}-{v}": pinned.get(f"{op}-{v}") or _digest_made(name, op, v) for op, v in versions}


def _digest_made(name: str, op: str, version: int) -> str:
    """The digest of a profile; of cases that cannot be listed, that of what was raised."""
    try:
        return digest_of(profile(name, op, version))
    except NotListed as error:
        return hashlib.sha256(str(error).encode()).hexdigest()


@cache
def pinned_digests() -> dict[str, dict[str, str]]:
    """Profile to operator version to digest, as pinned with this release."""
    text = resources.files(__package__ or "onnxspec.cases").joinpath("digests.json").read_text(encoding="utf-8")
    pinned: dict[str, dict[str, str]] = json.loads(text)
    return pinned
