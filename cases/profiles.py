"""Profiles: pinned lists of cases. Made by rule from the space, and held to a digest for every operator version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from ..reference import CELLS, OPERATORS, operator_version, versions_of
from .covering import cover
from .data import inputs_of
from .space import ACTIVATION_SETS, axes_of, settle, spec_from
from .spec import CaseSpec

__all__ = ["PROFILES", "digest_of", "digests_for", "pinned_digests", "profile"]

PROFILES: tuple[str, ...] = ("smoke", "core", "full")

_SMOKE_PER_VERSION = 14


@cache
def profile(name: str, op: str, version: int) -> tuple[CaseSpec, ...]:
    """The cases of a profile for one operator version, in a fixed order. Raises KeyError for an unknown profile."""
    core = list(_unique(_core(op, version)))
    if name == "smoke":
        return tuple(_smoke(core))
    if name == "core":
        return tuple(core)
    if name == "full":
        return tuple(_unique([*core, *_full(op, version)]))
    raise KeyError(name)


def _unique(specs: Any) -> Iterator[CaseSpec]:
    seen: set[str] = set()
    for spec in specs:
        if spec.digest not in seen:
            seen.add(spec.digest)
            yield spec


def _smoke(core: list[CaseSpec]) -> list[CaseSpec]:
    """Evenly spread over core, its first and last cases among them."""
    count = min(_SMOKE_PER_VERSION, len(core))
    return [core[round(k * (len(core) - 1) / (count - 1))] for k in range(count)]


# One feature at a time, on a plain node: what fails here needs no diagnosis.
_ALONE: tuple[dict[str, Any], ...] = (
    {},
    {"direction": "reverse"},
    {"direction": "bidirectional"},
    {"bias": True},
    {"initial": "all"},
    {"initial": "h"},
    {"initial": "c"},
    {"peepholes": True},
    {"peepholes": True, "initial": "all", "bias": True},
    {"lengths": "ragged"},
    {"lengths": "ragged", "direction": "reverse"},
    {"lengths": "ragged", "direction": "bidirectional"},
    {"lengths": "short"},
    {"lengths": "full"},
    {"clip": 0.5},
    {"clip": 0.125, "bias": True, "initial": "all"},
    {"clip": 0.25, "peepholes": True, "initial": "all"},
    {"input_forget": 1},
    {"input_forget": 1, "bias": True, "peepholes": True, "initial": "all"},
    {"explicit": True},
    {"hidden_size": False},
    {"weights": "input"},
    {"dimensions": "symbolic", "reruns": "sizes"},
    {"reruns": "data"},
    {"layout": 1},
    {"layout": 1, "direction": "bidirectional", "initial": "all"},
    {"layout": 1, "direction": "bidirectional", "lengths": "ragged"},
    {"layout": 1, "direction": "bidirectional", "activations": "each", "outputs": "states", "initial": "all"},
    {"layout": 1, "direction": "reverse", "clip": 0.5, "lengths": "ragged", "bias": True},
    {"layout": 1, "input_forget": 1, "peepholes": True, "initial": "all", "reruns": "data"},
    *({"activations": name} for name in ACTIVATION_SETS if name != "default"),
    {"activations": "each", "direction": "bidirectional"},
    {"activations": "mixed", "direction": "bidirectional"},
    # Kernels go wrong where e^x overflows, where Relu is clamped, and past the sizes that were tried.
    {"activations": "soft", "data": "huge"},
    {"activations": "soft", "data": "large"},
    {"activations": "plus", "data": "large"},
    {"activations": "usual", "data": "large"},
    {"activations": "straight", "data": "large", "initial": "all"},
    {"T": 130, "N": 2, "I": 2, "H": 3, "bias": True},
    {"T": 3, "N": 2, "I": 9, "H": 128, "bias": True, "initial": "all"},
    {"activations": "negative", "direction": "bidirectional", "initial": "all"},
    # Open questions: legal, with more than one right answer.
    {"lengths": "empty", "initial": "all"},
    {"lengths": "empty", "direction": "bidirectional"},
    {"clip": 0.0},
    {"T": 0, "initial": "all"},
    {"N": 0},
    {"data": "nan-row", "direction": "bidirectional"},
    {"data": "inf-row"},
    {"data": "nan-padding", "lengths": "ragged", "direction": "bidirectional"},
)


def _fits(row: dict[str, Any], axes: dict[str, Any]) -> bool:
    """Whether a version has what a row asks for."""
    return all(name in axes or name in ("data", "T", "N", "H", "I") for name in row)


# All features in few models, for versions that repeat what another one defines.
_TOGETHER: tuple[dict[str, Any], ...] = (
    {},
    {"direction": "reverse", "lengths": "ragged", "bias": True, "initial": "all", "peepholes": True},
    {"direction": "bidirectional", "activations": "mixed", "initial": "c", "lengths": "ragged"},
    {"direction": "bidirectional", "activations": "each", "bias": True, "initial": "h"},
    {"clip": 0.25, "bias": True, "initial": "all", "reruns": "data"},
    {"input_forget": 1, "bias": True, "peepholes": True, "initial": "all"},
    {"layout": 1, "direction": "bidirectional", "initial": "all", "lengths": "ragged", "bias": True},
    {"outputs": "states", "lengths": "ragged", "direction": "bidirectional"},
    {"hidden_size": False, "dimensions": "symbolic", "reruns": "sizes", "weights": "input"},
)


def _widely_taken(axes: Mapping[str, tuple[Hashable, ...]]) -> dict[str, tuple[Hashable, ...]]:
    """The axes without those whose other value many runtimes refuse outright: a refused row tries nothing of all that
    it combines. Those values have cases of their own."""
    return {name: values for name, values in axes.items() if name not in ("hidden_size", "layout")}


def _main_version(op: str) -> int:
    """The version that gets the whole design: the newest one in which only types were added later."""
    return 14 if 14 in versions_of(op) else versions_of(op)[-1]


def _core(op: str, version: int) -> Iterator[CaseSpec]:
    """Device compilers take seconds a model, so models are few: one version has every feature alone and in pairs, the
    others have all features together, and every type of theirs."""
    operator = operator_version(op, version)
    axes = axes_of(operator)
    main = version == _main_version(op)
    plain: dict[str, Any] = {"weights": "initializer", "outputs": "all"}
    if "output_sequence" in operator.attributes:
        plain["output_sequence"] = 1
    for row in _ALONE if main else _TOGETHER:
        if _fits(row, axes):
            yield spec_from(op, version, {**plain, **row})
    if "output_sequence" in operator.attributes:
        yield spec_from(op, version, {"outputs": "all", "weights": "initializer"})
        yield spec_from(op, version, {"outputs": "states", "weights": "initializer", "output_sequence": 0})
    if main:
        # Every subset of outputs, absent ones in every position. Each that lacks Y has a twin with all.
        for outputs in ("Y", "Y_h", "last", "no-Y_h", "states"):
            for row in ({}, {"lengths": "ragged", "direction": "bidirectional", "initial": "all"}):
                yield spec_from(op, version, {**plain, **row, "outputs": outputs})
    for kind in axes["type"]:
        whole = main or kind not in operator_version(op, _main_version(op)).types
        yield from _of_type(op, version, str(kind), plain, whole=whole)
    # Everything with everything else, two at a time; elsewhere each value once.
    for number, row in enumerate(cover(_widely_taken(axes), settle, strength=2 if main else 1, seed=version)):
        yield spec_from(op, version, row, seed=number)


def _of_type(op: str, version: int, kind: str, plain: dict[str, Any], *, whole: bool) -> Iterator[CaseSpec]:
    """What a type needs: accuracy, exactness, all structure at once, data of other magnitudes, sizes around blocks.

    whole
        False for a type and version whose like another version has: accuracy and one case of all structure.
    """
    base = {**plain, "type": kind}
    # One step from given states, every state exact: here drift that hides inside a radius shows as a bias. The weights
    # are inputs, so all seeds share a model.
    numerics = {**base, "weights": "input", "bias": True, "initial": "all"}
    for seed in range(6 if whole else 2):
        yield spec_from(op, version, numerics, T=1, N=8, I=3, H=8, seed=seed, weights_seed=seed, data="numerics")
    rich = {**base, "bias": True, "initial": "all", "peepholes": True, "lengths": "ragged"}
    rich["direction"] = "bidirectional"
    if not whole:
        yield spec_from(op, version, rich, H=33)
        return
    # Piecewise-linear activations on few digits: every intermediate is representable, so the tolerance is zero.
    each = len(CELLS[op].activations)
    straight = {
        "activations": ("HardSigmoid", "Relu", "Relu")[:each] if each > 1 else ("Relu",),
        "alpha": (0.25,) if each > 1 else None,
        "beta": (0.5,) if each > 1 else None,
        "data": "exact",
    }
    for row in ({}, {"bias": True, "initial": "all"}, {"bias": True, "initial": "all", "direction": "reverse"}):
        for seed in (0, 1):
            steps = 2 if kind == "float64" else 1
            yield spec_from(op, version, {**base, **row}, T=steps, N=3, I=2, H=3, seed=seed, **straight)
    for data in ("dense", "large", "small", "huge"):
        yield spec_from(op, version, numerics, T=6, data=data)
    # All structure at once, beside and on the edge of blocks of 8 to 64. Other lengths and data share the model.
    variants: tuple[dict[str, Any], ...] = ({}, {"activations": "each"}, {"clip": 0.25}, {"input_forget": 1})
    for H, I in ((33, 5), (64, 65)):
        for row in variants:
            for seed in (0, 1):
                yield spec_from(op, version, {**rich, **row}, T=4, N=3, I=I, H=H, seed=seed)
    # States without Y, soon after the start: a free run's radius is still small there, in half types too.
    for seed in (0, 1):
        row = {**base, "lengths": "ragged", "direction": "bidirectional", "initial": "all", "outputs": "states"}
        yield spec_from(op, version, row, T=2, N=3, seed=seed)
    for data in ("nan-row", "nan-padding"):
        yield spec_from(op, version, rich, T=4, N=3, I=5, H=33, data=data)
    yield spec_from(op, version, {**rich, "lengths": "empty"}, T=4, N=3, I=5, H=33)
    # Past the numbers of steps, rows and terms at which kernels change their ways.
    # (In half types peepholes feed the inner state's radius back into itself, and so long a case is not judged whole.)
    long = {**rich, "peepholes": kind in ("float32", "float64")}
    yield spec_from(op, version, long, T=40, N=17, I=3, H=6)
    yield spec_from(op, version, {**long, "direction": "reverse"}, T=40, N=17, I=3, H=6)
    relu = {"activations": ("Sigmoid", "Relu", "Relu")[:each] if each > 1 else ("Relu",), "data": "one-sign"}
    yield spec_from(op, version, base, T=1, N=2, I=2048, H=2, **relu)
    yield spec_from(op, version, {**rich, "activations": "mixed"}, H=33)
    if "layout" in axes_of(operator_version(op, version)):
        yield spec_from(op, version, {**rich, "layout": 1}, T=5, N=3, I=4, H=33)
    for H in (7, 8, 9, 15, 16, 17, 31, 32) if kind == "float32" else ():
        yield spec_from(op, version, {**base, "bias": True}, I=H + 1, H=H, N=2, T=3)


def _full(op: str, version: int) -> Iterator[CaseSpec]:
    operator = operator_version(op, version)
    axes = axes_of(operator)
    for number, row in enumerate(cover(_widely_taken(axes), settle, strength=3, seed=version, candidates=8)):
        yield spec_from(op, version, row, seed=number)
    for number, row in enumerate(cover(axes, settle, strength=2, seed=version)):
        yield spec_from(op, version, row, seed=number)
    for kind in axes["type"]:
        rich = {"type": kind, "bias": True, "initial": "all", "peepholes": True, "lengths": "ragged"}
        for direction in ("forward", "reverse", "bidirectional"):
            for T, N, I, H in ((50, 4, 64, 64), (100, 3, 33, 65), (17, 2, 128, 127)):
                row = {**rich, "direction": direction, "outputs": "all", "weights": "initializer"}
                if "output_sequence" in operator.attributes:
                    row["output_sequence"] = 1
                yield spec_from(op, version, row, T=T, N=N, I=I, H=H)


def digest_of(specs: tuple[CaseSpec, ...]) -> str:
    """SHA-256 over the cases and every byte of their inputs: what "the same profile" means."""
    total = hashlib.sha256()
    for spec in specs:
        total.update(spec.digest.encode())
        for name, array in sorted(inputs_of(spec).items()):
            total.update(name.encode())
            total.update(array.tobytes())
    return total.hexdigest()


def digests_for(name: str, versions: Iterable[tuple[str, int]]) -> dict[str, str]:
    """The digest of a profile for each of some operator versions (``LSTM-14``), pinned or computed."""
    pinned = pinned_digests().get(name, {})
    return {f"{op}-{v}": pinned.get(f"{op}-{v}") or digest_of(profile(name, op, v)) for op, v in versions}


@cache
def pinned_digests() -> dict[str, dict[str, str]]:
    """Profile to operator version to digest, as pinned with this release."""
    text = resources.files(__package__ or "onnxspec.cases").joinpath("digests.json").read_text(encoding="utf-8")
    pinned: dict[str, dict[str, str]] = json.loads(text)
    return pinned


def operator_versions() -> Iterator[tuple[str, int]]:
    """Every (operator, since_version) that profiles exist for."""
    for op in OPERATORS:
        for version in versions_of(op):
            yield op, version
