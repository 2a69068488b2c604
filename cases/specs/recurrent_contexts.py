"""Contexts of ONNX's recurrent operators: what may be there in a case, and what parts of them need to show."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

from ...reference import OperatorVersion, operator_version, versions_of
from ..axes.axis import Axis, Rule
from ..axes.context import HALVES, Context, Need, values_of
from ..axes.recurrent import RECURRENT_AXES
from ..axes.session.eventful import EVENTFUL
from .contexts import ContextSpace, Relation
from .recurrent import recurrent_case
from .space import settle
from .spec import CaseSpec

_LARGEST = 1500  # T*N*H and I*H of cases that are measured: larger ones are there for other reasons
_EVENTFUL = tuple(field for axis in EVENTFUL for field in axis.fields)


class RecurrentContexts(ContextSpace):
    """The contexts of LSTM, GRU or RNN; see :class:`.contexts.ContextSpace`."""

    def __init__(self, op: str, axes: tuple[Axis, ...] = RECURRENT_AXES) -> None:
        self._op, self._axes = op, axes

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Over all versions and types."""
        return _contexts(self._op, self._axes)

    @property
    def occurring(self) -> Mapping[str, Sequence[Any]]:
        """The words of each axis, over all versions."""
        return _occurring(self._op, self._axes)

    @property
    def relations(self) -> Sequence[Relation]:
        """The rules of axes, and what each version has."""
        return _relations(self._op, self._axes)

    def needs(self, names: frozenset[str], *, half: bool = False) -> tuple[Need, ...]:
        """Needs of parts, in the words of :mod:`....reference.faults.parts`."""
        chosen = names - _EXCUSED if half else names
        needs = _needs(self._axes)
        return tuple(needs[name] for name in sorted(chosen if chosen & _STEPLESS else chosen | {"some-step"}))

    def halves(self, spec: CaseSpec) -> tuple[Any, ...]:
        """The fields of the case, and which direction it is."""
        fields = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
        directions = HALVES if spec.direction == "bidirectional" else (spec.direction,)
        return tuple(SimpleNamespace(**fields, half=half) for half in directions)

    def measurable(self, spec: CaseSpec) -> bool:
        """Neither large nor with special numbers."""
        small = 0 < spec.T * spec.N * spec.H <= _LARGEST and 0 < spec.I * spec.H <= _LARGEST
        plain = (axis.plain is None or getattr(spec, axis.fields[0].name) in axis.plain for axis in self._axes)
        return not spec.illegal and small and all(plain)

    def models(self, spec: CaseSpec) -> int:
        """Without Y there is a companion with all outputs."""
        return 1 if "Y" in spec.outputs else 2

    def measured(self, spec: CaseSpec) -> CaseSpec:
        """Without what the axes of its session do, but for the run before."""
        given = {each.name: getattr(spec, each.name, each.default) for each in _EVENTFUL}
        eventful = {each.name: each.default for each in _EVENTFUL if given[each.name] != each.default}
        return replace(spec, **eventful) if eventful else spec

    def earlier(self, spec: CaseSpec) -> CaseSpec | None:
        """None too where sizes are so small that the word for its lengths means something else."""
        if spec.reruns == "none":
            return None
        X = recurrent_case(spec).trial.feeds[0].inputs["X"]
        T, N = X.shape[:2] if spec.layout == 0 else X.shape[1::-1]
        earlier = replace(spec, T=int(T), N=int(N), reruns="none")
        row = {name: getattr(earlier, name) for name in earlier.__dataclass_fields__}
        return earlier if settle(row, search=True, axes=self._axes) == row else None


def _versions(op: str) -> list[OperatorVersion]:
    return [operator_version(op, version) for version in versions_of(op)]


@cache
def _contexts(op: str, axes: tuple[Axis, ...]) -> tuple[Context, ...]:
    operators = _versions(op)
    own = (context for axis in axes for context in axis.contexts(operators))
    return (*(values_of("version", versions_of(op)) if len(operators) > 1 else ()), *own)


@cache
def _by_version(op: str, axes: tuple[Axis, ...]) -> Mapping[str, Mapping[int, tuple[Any, ...]]]:
    """Values that stand for all, by field and version."""
    fields: dict[str, dict[int, tuple[Any, ...]]] = {}
    for operator in _versions(op):
        for axis in axes:
            for name, values in axis.occurring(operator).items():
                fields.setdefault(name, {})[operator.since_version] = values
    return fields


@cache
def _occurring(op: str, axes: tuple[Axis, ...]) -> Mapping[str, tuple[Any, ...]]:
    every = {name: itertools.chain.from_iterable(own.values()) for name, own in _by_version(op, axes).items()}
    union = {name: tuple(dict.fromkeys(values)) for name, values in every.items()}
    return {"version": versions_of(op), **union}


@cache
def _relations(op: str, axes: tuple[Axis, ...]) -> tuple[Relation, ...]:
    operator = _versions(op)[-1]
    occurring = _occurring(op, axes)
    rules = (rule for axis in axes for rule in axis.relations(operator) if rule.kind != "same")
    # Values that occur may be none of those that clash.
    told = (r for r in rules if r.values is None or set(r.values) & set(occurring.get(r.field, ())))
    return (*_of_versions(op, axes), *map(_kept, told))


def _of_versions(op: str, axes: tuple[Axis, ...]) -> Iterator[Relation]:
    """Fields that not every version has alike."""
    for name, own in _by_version(op, axes).items():
        if len(set(map(frozenset, own.values()))) > 1:
            yield Relation((name, "version"), _had(name, own))


def _had(name: str, own: Mapping[int, tuple[Any, ...]]) -> Callable[[Any], bool]:
    return lambda row: getattr(row, name) in own[row.version]


def _kept(rule: Rule) -> Relation:
    return Relation((rule.field, *rule.reads), lambda row: not rule.hit(vars(row)))


# Faults that rows without a step show as well: which state they end with, and what takes them for rows that have steps.
_STEPLESS = frozenset(
    {"initial", "initial_h", "initial_c", "out-Y_h", "out-Y_c", "two-directions", "short-row", "earlier-lengths"}
)
# Where the document leaves open with which state a row without a step ends, its loss is excused; but not by halves.
_EXCUSED = frozenset({"last-row"})


@cache
def _needs(axes: tuple[Axis, ...]) -> Mapping[str, Need]:
    return {name: Need(name, having.fields, having.holds) for axis in axes for name, having in axis.having.items()}
