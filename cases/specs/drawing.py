"""The strategy behind :func:`..strategies.cases` for ONNX's recurrent operators, and the bounds that callers set.

It draws rows from the space of random cases (:mod:`.space`), and makes them legal.

This module imports Hypothesis, which is slow to load, so only modules that draw cases import it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ...reference import OperatorVersion, cell_named, operator_version
from ..axes.activations import functions_of
from ..axes.axis import Axis, Rule, rules_of
from ..axes.node import output_subsets
from .space import settle, space_of
from .spec import CaseSpec

# Weight of usual values among rare ones, for an axis without weights.
_USUAL = 3
# Of these only the default is drawn unless `only` names the field, so that kernels for one node are not given several.
_ON_REQUEST = ("neighbours",)
_SEEDS = 1000
# Fields that `only` does not accept, and the alternatives.
_ELSEWHERE = {
    "type": "types",
    **dict.fromkeys("TNIH", "max_steps, max_rows, max_inputs and max_size"),
    **dict.fromkeys(("activations", "alpha", "beta"), "activations"),
}
_LEAST = {"min_steps": 0, "min_rows": 0, "max_steps": 1, "max_rows": 1, "max_inputs": 1, "max_size": 1}


@dataclass(frozen=True)
class Bounds:
    """Limits of sizes and other values of a strategy; see :func:`..strategies.cases`.

    Raise ValueError for impossible sizes. An operator's strategy checks types, functions and axes.
    """

    min_steps: int = 1
    max_steps: int = 6
    min_rows: int = 1
    max_rows: int = 4
    max_inputs: int = 8
    max_size: int = 8
    types: str | Collection[str] | None = None
    activations: Collection[str] | None = None
    only: Mapping[str, Collection[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(f"{name} is an integer, not {value!r}")
            bound = max(least, getattr(self, name.replace("max", "min"), 0))
            if value < bound:
                raise ValueError(f"{name} is {bound} or more, not {value}")


def listed(name: str, values: str | Collection[str]) -> list[str]:
    """Return one or several names as a list. Raise ValueError for other values."""
    if isinstance(values, str):
        return [values]
    if not isinstance(values, Collection) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} is a list of names, not {values!r}")
    return list(values)


def known_among(operator: OperatorVersion, noun: str, given: Collection[Any], known: Sequence[Any]) -> list[Any]:
    """Return the given values in the order of the known ones. Raise ValueError for an unknown value, or if there is
    none."""
    for value in given:
        if value not in known:
            raise ValueError(not_among(operator, noun, value, known))
    if not given:
        raise ValueError(f"{operator.name}: no {noun} is left; give at least one of {', '.join(map(str, known))}")
    return [value for value in known if value in given]


def recurrent_cases(op: str, version: int, bounds: Bounds, kind: type[CaseSpec] = CaseSpec) -> SearchStrategy[CaseSpec]:
    """Return a strategy of legal configurations of an operator that has a cell; `kind` is the class of its cases.

    Raise ValueError for bounds that leave none.
    """
    return _strategy(_plan(operator_version(op, version), bounds, kind))


@dataclass(frozen=True)
class _Plan:
    """Values that may be drawn for one operator version.

    choices
        The listed values of each axis, the default first; a value is repeated according to its weight.
    between
        Further numbers of an axis, as an interval.
    allowed
        Values of restricted axes, because making a row legal may introduce others.
    own
        For a field, a strategy of values that cannot be listed.
    """

    operator: OperatorVersion
    kind: type[CaseSpec]
    bounds: Bounds
    choices: Mapping[str, Sequence[Any]]
    between: Mapping[str, tuple[float, float]]
    functions: tuple[str, ...]
    allowed: Mapping[str, Collection[Any]]
    own: Mapping[str, SearchStrategy[Any]]


def _plan(operator: OperatorVersion, bounds: Bounds, kind: type[CaseSpec]) -> _Plan:
    space = space_of(operator, kind.axes)
    own = {axis.name: axis.drawn(st) for axis in kind.axes if axis.drawn is not None}
    choices: dict[str, Sequence[Any]] = {}
    for name, axis in space.items():
        usual = sorted(axis.common, key=lambda value, name=name: value != getattr(kind, name))  # type: ignore[misc]
        rare = () if name in _ON_REQUEST else axis.rare
        weighted = [value for value in axis.often if value in (*usual, *rare)] or usual * _USUAL
        # The default comes first, because draws shrink to it.
        choices[name] = [*usual, *weighted, *rare]
    between = {name: axis.between for name, axis in space.items() if axis.between is not None}
    # Operators with fixed outputs and functions have no such axes.
    free = {axis.name for axis in kind.axes}
    if "outputs" in free:
        choices["outputs"] = output_subsets(operator)

    allowed: dict[str, Collection[Any]] = {}
    if bounds.types is not None:
        given = listed("types", bounds.types)
        known_types = space["type"].values if "type" in space else operator.types
        types = known_among(operator, "type", given, known_types)
        if "type" in space:
            choices["type"] = allowed["type"] = types
    functions = functions_of(operator) if "activations" in free else ()
    if bounds.activations and not functions:
        raise ValueError(f"{operator.name} lists no activation functions; leave activations out")
    if bounds.activations is not None:
        given = listed("activations", bounds.activations)
        functions = tuple(known_among(operator, "activation function", given, functions)) if given else ()
    for name, values in bounds.only.items():
        _require_known(operator, name, values, choices, space)
        # The order of the space stays the same, because it determines shrinking.
        first = list(dict.fromkeys(choices[name]))
        choices[name] = [v for v in first if v in values] + [v for v in values if v not in first]
        allowed[name] = choices[name]
        between.pop(name, None)
        own.pop(name, None)
    plan = _Plan(operator, kind, bounds, choices, between, functions, allowed, own)
    return _narrowed(plan) if allowed else plan


def _require_known(
    operator: OperatorVersion,
    name: str,
    values: Any,
    choices: Mapping[str, Sequence[Any]],
    space: Mapping[str, Axis],
) -> None:
    """Raise ValueError for an unknown axis in `only`, and for invalid values of it."""
    if name in _ELSEWHERE:
        raise ValueError(f"only takes no {name!r}; use {_ELSEWHERE[name]}")
    if name not in choices:
        known = ", ".join(sorted(set(choices) - set(_ELSEWHERE)))
        raise ValueError(f"{operator.name} has no axis {name!r}; only takes {known}")
    if isinstance(values, str) or not isinstance(values, Collection) or not values:
        raise ValueError(f"only: {name} is a list of at least one value, not {values!r}")
    if name == "outputs":
        known_among(operator, name, values, choices[name])
        return
    for value in values:
        if not space[name].holds(value):
            raise ValueError(not_among(operator, name, value, choices[name], space[name]))


def not_among(operator: OperatorVersion, noun: str, value: Any, known: Sequence[Any], axis: Axis | None = None) -> str:
    """Return a message with the possible values."""
    shown = ", ".join(repr(v) for v in dict.fromkeys(known))
    others = f", and {axis.others}" if axis is not None and axis.others else ""
    return f"{operator.name} has no {noun} {value!r}; there are {shown}{others}"


def _narrowed(plan: _Plan) -> _Plan:
    """Return the plan without values that no restricted value can be combined with. Raise ValueError if nothing is
    left."""
    bounds = plan.bounds
    steps = [T for T in (0, 1, 2, 3, bounds.max_steps) if bounds.min_steps <= T <= bounds.max_steps]
    rows = [N for N in (0, 1, 2, bounds.max_rows) if bounds.min_rows <= N <= bounds.max_rows]
    left: dict[str, list[Any]] = {name: list(dict.fromkeys(values)) for name, values in plan.choices.items()}
    left |= {"T": list(dict.fromkeys(steps)), "N": list(dict.fromkeys(rows)), "I": [bounds.max_inputs]}
    rules = [
        rule for rule in rules_of(plan.kind.axes) if rule.kind != "open" and {rule.field, *rule.reads} <= left.keys()
    ]
    while sum(_without_support(left, rule) for rule in rules):
        pass
    if not all(left.values()):
        given = ", ".join(f"{name} {' or '.join(map(repr, values))}" for name, values in plan.allowed.items())
        sizes = f"{bounds.min_steps} to {bounds.max_steps} steps and {bounds.min_rows} to {bounds.max_rows} rows"
        raise ValueError(f"{plan.operator.name} has no legal configuration with {given} and {sizes}")

    def ends(name: str, enough: int, most: int) -> tuple[int, int]:
        # A restriction that holds for `enough` steps (rows) holds for more.
        return min(left[name]), most if max(left[name]) >= enough else max(left[name])

    (min_steps, max_steps), (min_rows, max_rows) = ends("T", 3, bounds.max_steps), ends("N", 2, bounds.max_rows)
    return replace(
        plan,
        bounds=replace(bounds, min_steps=min_steps, max_steps=max_steps, min_rows=min_rows, max_rows=max_rows),
        choices={name: [v for v in values if v in left[name]] for name, values in plan.choices.items()},
    )


def _without_support(left: dict[str, list[Any]], rule: Rule) -> bool:
    """Remove the values of a rule's fields that no values of the others can be combined with; return whether there were
    any."""
    fields = (rule.field, *rule.reads)
    legal = [
        values
        for values in itertools.product(*(left[name] for name in fields))
        if not rule.hit(dict(zip(fields, values, strict=True)))
    ]
    changed = False
    for position, name in enumerate(fields):
        supported = [value for value in left[name] if any(values[position] == value for values in legal)]
        changed, left[name] = changed or len(supported) < len(left[name]), supported
    return changed


def sizes(least: int, most: int) -> SearchStrategy[int]:
    """Return a strategy of sizes that shrinks to 1; 0 is drawn only if `least` is 0, and shrinks last."""
    if least:
        return st.integers(least, most)
    return st.integers(1, most + 1).map(lambda n: 0 if n > most else n)


def _numbers(low: float, high: float) -> SearchStrategy[float]:
    """Return a strategy of float32 numbers, the type of attributes: numbers of few digits, for exact results, or
    any."""
    few = st.integers(math.ceil(4 * low), math.floor(4 * high)).map(lambda n: n / 4)
    return few | st.floats(low, high, width=32, allow_subnormal=False).map(lambda x: x + 0.0)  # no negative zero


def _strategy(plan: _Plan) -> SearchStrategy[Any]:
    """Return a strategy of cases from rows of the space that were made legal."""
    operator, bounds, op = plan.operator, plan.bounds, plan.operator.op_type
    each = len(cell_named(op).activations) if plan.functions else 0
    steps, rows = sizes(bounds.min_steps, bounds.max_steps), sizes(bounds.min_rows, bounds.max_rows)
    inputs, units = st.integers(1, bounds.max_inputs), st.integers(1, bounds.max_size)
    apart = ("alpha", "beta", "clip", *plan.own)
    listed = {n: st.sampled_from(v) for n, v in plan.choices.items() if n not in apart}
    drawn = [(name, strategy) for name, strategy in listed.items() if len(set(plan.choices[name])) > 1]
    fixed = {name: plan.choices[name][0] for name in listed if len(set(plan.choices[name])) == 1}
    clips: SearchStrategy[float | None] = st.sampled_from(plan.choices.get("clip", (None,)))
    if "clip" in plan.between:
        clips = clips | _numbers(*plan.between["clip"])
    # The functions of a direction are one draw, so that a failure can shrink to either direction.
    functions = st.tuples(*[st.sampled_from(plan.functions)] * each) if plan.functions else None
    coefficients = {
        (name, count): st.none() | st.lists(_numbers(*plan.between[name]), min_size=1, max_size=count).map(tuple)
        for name in (("alpha", "beta") if plan.functions else ())
        for count in (each, 2 * each)
    }
    written, seeds = st.booleans(), st.integers(0, _SEEDS - 1)
    seeded = [axis.name for axis in plan.kind.axes if axis.name in ("seed", "weights_seed")]

    @st.composite
    def configurations(draw: DrawFn) -> Any:
        row: dict[str, Any] = {"T": draw(steps), "N": draw(rows), "I": draw(inputs), "H": draw(units), **fixed}
        for name, strategy in drawn:
            row[name] = draw(strategy)
        for name, strategy in plan.own.items():
            row[name] = draw(strategy)
        if "clip" in plan.choices:
            row["clip"] = draw(clips)
        if functions is not None and draw(written):
            directions = 2 if row["direction"] == "bidirectional" else 1
            row["activations"] = sum((draw(functions) for _ in range(directions)), ())
            for name in ("alpha", "beta"):
                row[name] = draw(coefficients[name, each * directions])
        row |= dict.fromkeys(seeded, draw(seeds))
        legal = settle(row, search=True, axes=plan.kind.axes)
        if any(legal[name] not in values for name, values in plan.allowed.items()):
            reject()
        return plan.kind(op, operator.since_version, **legal)

    return configurations()
