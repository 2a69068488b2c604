"""Hypothesis strategies: any legal configuration of an operator version, for property tests.

::

    from hypothesis import given
    from onnxspec.cases import strategies
    from onnxspec.conformance import assert_conforms

    @given(strategies.cases("GRU", 14))
    def test_gru(case):
        assert_conforms(case, my_backend)

A draw is a :class:`.spec.CaseSpec`: a configuration and the seed of its numbers, from which
:func:`onnxspec.cases.build_case` makes the model and its inputs. What is drawn comes from the space that the profiles
come from too (:mod:`.space`). Failures shrink towards one step, one row, one input, one unit, every attribute at its
default, and no optional input.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ..reference import CELLS, OPERATORS, OperatorVersion, operator_version, versions_of
from .space import functions_of, output_subsets, settle, space_of
from .spec import CaseSpec

__all__ = ["cases", "operator_cases"]

# Usual values stand for so many draws of an axis, where rare ones stand for one.
_USUAL = 3
_SEEDS = 1000
_DEFAULTS: dict[str, Any] = {f.name: f.default for f in fields(CaseSpec)}
# Axes that `only` does not take, and what to use instead.
_ELSEWHERE = {
    "type": "types",
    "size": "max_steps, max_rows, max_inputs and max_size",
    "activations": "activations",
    "alpha": "activations",
    "beta": "activations",
}


def cases(
    op: str,
    version: int,
    *,
    types: str | Collection[str] | None = None,
    max_steps: int = 6,
    max_rows: int = 4,
    max_inputs: int = 8,
    max_size: int = 8,
    min_steps: int = 1,
    min_rows: int = 1,
    activations: Collection[str] | None = None,
    only: Mapping[str, Collection[Any]] | None = None,
) -> SearchStrategy[CaseSpec]:
    """Legal configurations of one operator version.

    op, version
        The operator and its since_version: ``"GRU", 14``.
    types
        NumPy's name of the type that tensors may have, or several; all of the version without it.
    max_steps, max_rows, max_inputs, max_size
        The largest seq_length, batch_size, input_size and hidden_size.
    min_steps, min_rows
        The smallest seq_length and batch_size. 0 is legal too, but some runtimes end the whole process on it, so it is
        drawn where 0 is given here.
    activations
        Names of the functions that a node may list; all eleven without it, and none at all where it is empty: then no
        node lists any.
    only
        For axes of the configuration, named as the fields of CaseSpec, the values that they may have:
        ``{"layout": [0], "lengths": ["absent", "full"], "clip": [None]}``. Values of ``outputs`` are tuples.

    Raises UnknownOperator for an operator version that there is not, and ValueError for anything else that cannot be
    had, with a sentence that says what could; both at once and not when the first case is drawn.
    """
    bounds = _Bounds(min_steps, max_steps, min_rows, max_rows, max_inputs, max_size)
    return _strategy(_plan(operator_version(op, version), bounds, types, activations, only or {}))


def operator_cases(
    operators: str | Collection[str] | None = None,
    *,
    types: str | Collection[str] | None = None,
    max_steps: int = 6,
    max_rows: int = 4,
    max_inputs: int = 8,
    max_size: int = 8,
    min_steps: int = 1,
    min_rows: int = 1,
    activations: Collection[str] | None = None,
    only: Mapping[str, Collection[Any]] | None = None,
) -> SearchStrategy[CaseSpec]:
    """Legal configurations of every version of some operators; of all operators without any.

    All else as for :func:`cases`, where a version may have something of it: one that has none of the types, or that
    lacks an axis or all of its values, is left out. Raises UnknownOperator and ValueError at once, the latter also when
    no version is left.
    """
    bounds = _Bounds(min_steps, max_steps, min_rows, max_rows, max_inputs, max_size)
    chosen = OPERATORS if operators is None else _listed("operators", operators)
    plans, reasons = [], []
    for op in chosen:
        # The newest version first: that is what a failure of all of them shrinks to.
        for version in reversed(versions_of(op)):
            try:
                plans.append(_plan(operator_version(op, version), bounds, types, activations, only or {}))
            except ValueError as error:
                reasons.append(error)
    if not plans:
        raise reasons[0] if reasons else ValueError("operators is empty; it names at least one operator")
    return st.one_of([_strategy(plan) for plan in plans])


@dataclass(frozen=True)
class _Bounds:
    """The smallest and largest sizes. Raises ValueError for any that cannot be."""

    min_steps: int
    max_steps: int
    min_rows: int
    max_rows: int
    max_inputs: int
    max_size: int

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(f"{field.name} is an integer, not {value!r}")
        for name in ("min_steps", "min_rows"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is 0 or more, not {getattr(self, name)}")
        for name, least in (
            *(("max_steps", max(1, self.min_steps)), ("max_rows", max(1, self.min_rows))),
            *(("max_inputs", 1), ("max_size", 1)),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {least} or more, not {getattr(self, name)}")


@dataclass(frozen=True)
class _Plan:
    """What may be drawn for one operator version.

    choices
        For each axis with listed values, those, the default first; a value stands there as often as is its weight.
    between
        Numbers that an axis may have besides.
    allowed
        Axes whose values were restricted, since settling a row may bring in another.
    """

    operator: OperatorVersion
    bounds: _Bounds
    choices: Mapping[str, Sequence[Any]]
    between: Mapping[str, tuple[float, float]]
    functions: tuple[str, ...]
    allowed: Mapping[str, Collection[Any]]


def _plan(
    operator: OperatorVersion,
    bounds: _Bounds,
    types: str | Collection[str] | None,
    activations: Collection[str] | None,
    only: Mapping[str, Collection[Any]],
) -> _Plan:
    space = space_of(operator)
    choices: dict[str, Sequence[Any]] = {}
    between: dict[str, tuple[float, float]] = {}
    for name, axis in space.items():
        if name not in ("size", "activations", "outputs"):
            usual = sorted(axis.values, key=lambda value, name=name: value != _DEFAULTS.get(name))  # type: ignore[misc]
            often = -(-_USUAL * len(axis.rare) // len(usual)) if axis.rare else 1
            choices[name] = [*usual, *usual * (often - 1), *axis.rare]
            if axis.between is not None:
                between[name] = axis.between
    choices["outputs"] = output_subsets(operator)

    allowed: dict[str, Collection[Any]] = {}
    if types is not None:
        given = _listed("types", types)
        choices["type"] = allowed["type"] = _known(operator, "type", given, space["type"].values)
    functions = functions_of(operator)
    if activations is not None:
        given = _listed("activations", activations)
        functions = tuple(_known(operator, "activation function", given, functions)) if given else ()
    for name, values in only.items():
        if name in _ELSEWHERE:
            raise ValueError(f"only takes no {name!r}; use {_ELSEWHERE[name]}")
        if name not in choices:
            known = ", ".join(sorted(set(choices) - set(_ELSEWHERE)))
            raise ValueError(f"{operator.name} has no axis {name!r}; only takes {known}")
        if isinstance(values, str) or not isinstance(values, Collection) or not values:
            raise ValueError(f"only: {name} is a list of at least one value, not {values!r}")
        if name == "outputs":
            _known(operator, name, values, choices[name])
        else:
            for value in values:
                if not space[name].holds(value):
                    raise ValueError(_not_among(operator, name, value, choices[name], space[name].between))
        # The order of the space stays: it is what shrinks.
        first = list(dict.fromkeys(choices[name]))
        choices[name] = [v for v in first if v in values] + [v for v in values if v not in first]
        allowed[name] = choices[name]
        between.pop(name, None)
    plan = _Plan(operator, bounds, choices, between, functions, allowed)
    return _narrowed(plan) if allowed.keys() & set(_ENTANGLED) else plan


def _listed(name: str, values: str | Collection[str]) -> list[str]:
    """One or several names as a list."""
    if isinstance(values, str):
        return [values]
    if not isinstance(values, Collection) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} is a list of names, not {values!r}")
    return list(values)


def _known(operator: OperatorVersion, what: str, given: Collection[Any], known: Sequence[Any]) -> list[Any]:
    """The values that are given, in the order in which they are known."""
    for value in given:
        if value not in known:
            raise ValueError(_not_among(operator, what, value, known))
    if not given:
        raise ValueError(f"{operator.name}: no {what} is left; give at least one of {', '.join(map(str, known))}")
    return [value for value in known if value in given]


def _not_among(
    operator: OperatorVersion, what: str, value: Any, known: Sequence[Any], between: tuple[float, float] | None = None
) -> str:
    shown = ", ".join(repr(v) for v in dict.fromkeys(known))
    numbers = f", and any number from {between[0]:g} to {between[1]:g}" if between else ""
    return f"{operator.name} has no {what} {value!r}; there are {shown}{numbers}"


# The axes that legal rows tie to each other and to the numbers of steps and rows.
_ENTANGLED = ("lengths", "initial", "dimensions", "reruns", "data")


def _narrowed(plan: _Plan) -> _Plan:
    """The plan without values that go with none of what was restricted. Raises ValueError where nothing is left."""
    bounds = plan.bounds
    steps = [T for T in (0, 1, 2, bounds.max_steps) if bounds.min_steps <= T <= bounds.max_steps]
    rows = [N for N in (0, 1, 2, bounds.max_rows) if bounds.min_rows <= N <= bounds.max_rows]
    axes = {"T": steps, "N": rows, **{name: list(dict.fromkeys(plan.choices[name])) for name in _ENTANGLED}}
    every = (dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))
    legal = [row for row in every if settle(row, search=True) == row]
    if not legal:
        given = ", ".join(f"{name} {' or '.join(map(repr, values))}" for name, values in plan.allowed.items())
        sizes = f"{bounds.min_steps} to {bounds.max_steps} steps and {bounds.min_rows} to {bounds.max_rows} rows"
        raise ValueError(f"{plan.operator.name} has no legal configuration with {given} and {sizes}")
    left = {name: {row[name] for row in legal} for name in axes}

    def ends(name: str, most: int) -> tuple[int, int]:
        # What holds for two steps (rows) holds for more.
        return min(left[name]), most if max(left[name]) >= 2 else max(left[name])

    (min_steps, max_steps), (min_rows, max_rows) = ends("T", bounds.max_steps), ends("N", bounds.max_rows)
    return replace(
        plan,
        bounds=replace(bounds, min_steps=min_steps, max_steps=max_steps, min_rows=min_rows, max_rows=max_rows),
        choices={**plan.choices, **{name: [v for v in plan.choices[name] if v in left[name]] for name in _ENTANGLED}},
    )


def _count(least: int, most: int) -> SearchStrategy[int]:
    """Sizes, 1 first; 0 is the last one to shrink to, if it is asked for."""
    if least:
        return st.integers(least, most)
    return st.integers(1, most + 1).map(lambda n: 0 if n > most else n)


def _numbers(low: float, high: float) -> SearchStrategy[float]:
    """float32 numbers, which attributes are: of few digits, with which results may be exact, or any."""
    few = st.integers(math.ceil(4 * low), math.floor(4 * high)).map(lambda n: n / 4)
    return few | st.floats(low, high, width=32, allow_subnormal=False).map(lambda x: x + 0.0)  # no negative zero


def _strategy(plan: _Plan) -> SearchStrategy[CaseSpec]:
    """Rows of the space, settled, as cases."""
    operator, bounds, op = plan.operator, plan.bounds, plan.operator.op_type
    each = len(CELLS[op].activations)
    steps, rows = _count(bounds.min_steps, bounds.max_steps), _count(bounds.min_rows, bounds.max_rows)
    inputs, units = st.integers(1, bounds.max_inputs), st.integers(1, bounds.max_size)
    listed = {n: st.sampled_from(v) for n, v in plan.choices.items() if n not in ("alpha", "beta", "clip")}
    drawn = [(name, strategy) for name, strategy in listed.items() if len(set(plan.choices[name])) > 1]
    fixed = {name: plan.choices[name][0] for name in listed if len(set(plan.choices[name])) == 1}
    clips: SearchStrategy[float | None] = st.sampled_from(plan.choices["clip"])
    if "clip" in plan.between:
        clips = clips | _numbers(*plan.between["clip"])
    functions = st.sampled_from(plan.functions) if plan.functions else None
    coefficients = {
        (name, count): st.none() | st.lists(_numbers(*plan.between[name]), min_size=1, max_size=count).map(tuple)
        for name in ("alpha", "beta")
        for count in (each, 2 * each)
    }
    written, seeds = st.booleans(), st.integers(0, _SEEDS - 1)

    @st.composite
    def configurations(draw: DrawFn) -> CaseSpec:
        row: dict[str, Any] = {"T": draw(steps), "N": draw(rows), "I": draw(inputs), "H": draw(units), **fixed}
        for name, strategy in drawn:
            row[name] = draw(strategy)
        row["clip"] = draw(clips)
        if functions is not None and draw(written):
            count = each * (2 if row["direction"] == "bidirectional" else 1)
            row["activations"] = tuple(draw(functions) for _ in range(count))
            for name in ("alpha", "beta"):
                row[name] = draw(coefficients[name, count])
        row["seed"] = row["weights_seed"] = draw(seeds)
        legal: dict[str, Any] = settle(row, search=True)
        if any(legal[name] not in values for name, values in plan.allowed.items()):
            reject()
        return CaseSpec(op, operator.since_version, **legal)

    return configurations()
