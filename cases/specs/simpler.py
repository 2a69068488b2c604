"""Simpler cases: what can be taken from a case, one thing at a time.

Every field of a spec has the simplest value as its default. A change takes one feature away, or the values in between,
or makes one size smaller; whatever else must change with it (coefficients with their functions) goes along. Nothing
here asks which operator it is: an axis that a spec does not have is not changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields, replace
from typing import Any

from ...reference import ACTIVATIONS, operator_version
from .family import family_of
from .space import functions_of, output_subsets, settle
from .spec import CaseSpec

__all__ = ["SIZES", "Simpler", "simpler_cases"]

SIZES = ("T", "N", "I", "H")

_FIXED = frozenset({"op", "version", "about", "illegal", "weights_seed", "x", "w", "r", "b", "fill"})
"""Fields that say what a case is, or numbers that go with others."""

_OTHERS = 3
"""Draws of other numbers with which a smaller size is tried."""

_ORDER: dict[str, tuple[Any, ...]] = {
    "direction": ("forward", "reverse", "bidirectional"),
    "lengths": ("absent", "full", "short", "ragged", "empty"),
    "initial": ("none", "h", "c", "all"),
    "reruns": ("none", "data", "sizes"),
    "type": ("float32", "float64", "float16", "bfloat16"),
}
"""Values of fields that have more than a simplest one: what comes before is simpler."""


@dataclass(frozen=True)
class Simpler:
    """A case with one thing less.

    field
        Which one: the name of the spec's field.
    """

    field: str
    spec: Any


def simpler_cases(spec: Any, only: str | None = None) -> list[Simpler]:
    """All cases that are simpler by one change, for each field those first that take most away. Whether the document
    allows one, in which several things may clash, shows when it is built.

    only
        The one field that may be changed.
    """
    by_case: dict[Any, Simpler] = {}
    for field in fields(spec):
        for changed in _changes(spec, field) if only in (None, field.name) else ():
            if changed is not None and changed != spec and changed not in by_case and _settled(changed):
                by_case[changed] = Simpler(field.name, changed)
    return list(by_case.values())


def _changes(spec: Any, field: Field[Any]) -> Iterator[Any]:
    name, value = field.name, getattr(spec, field.name)
    for value_of, plain in family_of(spec.op).plainer(spec):
        if value_of == name:
            yield _made(spec, {name: plain})
    if name in _FIXED or (field.default is MISSING and name not in SIZES):
        return
    if name in SIZES:
        # Of nothing at all, one is the plainer size.
        for size in dict.fromkeys((1, 2, 3, value // 2, value - 1)):
            if 0 < size < value or (size == 1 and not value):
                yield _made(spec, {name: size})
                # Of few numbers it depends on which they are whether anything shows.
                for other in range(1, _OTHERS + 1) if size in (1, value - 1) else ():
                    seeds = {n: spec.seed + other for n in ("seed", "weights_seed") if hasattr(spec, n)}
                    yield _made(spec, {name: size, **seeds})
    elif name == "seed":
        if value:
            yield _made(spec, {"seed": 0, **({"weights_seed": 0} if hasattr(spec, "weights_seed") else {})})
    elif name == "activations":
        yield from _with_plainer_functions(spec, value)
    elif name == "outputs":
        for outputs in sorted(output_subsets(operator_version(spec.op, spec.version)), key=lambda o: sum(map(bool, o))):
            if sum(map(bool, outputs)) < sum(map(bool, value)) or outputs == field.default:
                yield _made(spec, {name: outputs})
    elif name in _ORDER and value in _ORDER[name]:
        for simpler in _ORDER[name][: _ORDER[name].index(value)]:
            yield _made(spec, {name: simpler})
    elif value != field.default:
        yield _made(spec, {name: field.default})


def _with_plainer_functions(spec: CaseSpec, names: tuple[str, ...] | None) -> Iterator[CaseSpec | None]:
    """Without the list of functions; and with one after the other replaced by what stands there by default, where no
    coefficient then belongs to another function."""
    if names is None:
        return
    yield _made(spec, {"activations": None, "alpha": None, "beta": None})
    usual = functions_of(operator_version(spec.op, spec.version))
    each = len(names) // spec.directions
    for position, name in enumerate(names):
        plain = usual[min(position % each, 1)] if each > 1 else usual[0]
        if name != plain and spec.alpha is None and spec.beta is None:
            yield _made(spec, {"activations": (*names[:position], plain, *names[position + 1 :])})


def _made(spec: Any, changed: dict[str, Any]) -> Any | None:
    """The spec with other fields, and with as many functions as it then has directions; None where its operator version
    has no such value."""
    names = getattr(spec, "activations", None)
    if names and "direction" in changed and spec.directions == 2:
        # Each direction has functions of its own: those of the one that is left stay, with coefficients for them.
        left = slice(None, len(names) // 2) if changed["direction"] == "forward" else slice(len(names) // 2, None)
        if spec.alpha is None and spec.beta is None:
            changed = {**changed, "activations": names[left]}
        else:
            changed = {**changed, **_first_coefficients(spec, left)}
    try:
        return replace(spec, **changed)
    except ValueError:
        return None


def _first_coefficients(spec: CaseSpec, left: slice) -> dict[str, Any]:
    names = spec.activations or ()
    kinds = [ACTIVATIONS[n] for n in names if n in ACTIVATIONS]
    if len(kinds) != len(names):
        return {"activations": names[left], "alpha": None, "beta": None}
    chosen = range(len(names))[left]

    def kept(values: tuple[float, ...] | None, uses: list[bool]) -> tuple[float, ...] | None:
        if values is None:
            return None
        places = [sum(uses[:k]) for k in chosen if uses[k]]
        return tuple(values[p] for p in places if p < len(values)) or None

    return {
        "activations": names[left],
        "alpha": kept(spec.alpha, [kind.uses_alpha for kind in kinds]),
        "beta": kept(spec.beta, [kind.uses_beta for kind in kinds]),
    }


def _settled(spec: Any) -> bool:
    """Whether its values go together."""
    if not isinstance(spec, CaseSpec) or spec.illegal:
        return True
    row = {field.name: getattr(spec, field.name) for field in fields(spec)}
    return bool(settle(row, search=True) == row)
