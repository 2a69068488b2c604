"""Space of configurations of an operator version: the values of its axes, and their restrictions.

Random cases are drawn from it, and strategies search it: the axes of a version, their values, simplest first, and the
values that do not go together.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from graphlib import TopologicalSorter
from typing import Any

from ...reference import OperatorVersion, operator_version
from ..axes.axis import Axis, Domain, Rule, acting
from ..axes.recurrent import RECURRENT_AXES
from ..axes.tensors.size import SIZES
from .spec import CaseSpec

Row = dict[str, Hashable]


@cache
def space_of(operator: OperatorVersion, axes: tuple[Axis, ...] = RECURRENT_AXES) -> dict[str, Domain]:
    """Return the domains of all axes of an operator version by name.

    Search goes beyond three of them: sizes are any, activations are any of :func:`functions_of` with any coefficients
    between those of ``alpha`` and ``beta``, outputs are any of :func:`output_subsets`.
    """
    return {name: domain for axis in axes for name, domain in axis.domains(operator).items()}


def axes_of(operator: OperatorVersion, axes: tuple[Axis, ...] = RECURRENT_AXES) -> dict[str, tuple[Hashable, ...]]:
    """Return the axes of an operator version that are combined, with their values, simplest first."""
    return {name: domain.values for name, domain in space_of(operator, axes).items() if len(domain.values) > 1}


@cache
def in_order(axes: tuple[Axis, ...]) -> tuple[Rule, ...]:
    """Return the rules of some axes, each behind those that may change a field that it reads."""
    rules = [rule for axis in axes for rule in axis.rules]
    own = dict.fromkeys(rule.field for rule in rules)
    reads = {name: {read for rule in rules if rule.field == name for read in rule.reads if read in own} for name in own}
    order = list(TopologicalSorter(reads).static_order())
    return tuple(sorted(rules, key=lambda rule: order.index(rule.field)))


def settle(row: Mapping[str, Hashable], *, search: bool = False, axes: tuple[Axis, ...] = RECURRENT_AXES) -> Row:
    """Return the row made legal: values that do not go with others are replaced by simpler ones.

    row
        Axis values by name; T and N in place of ``size``, and a tuple of names for ``outputs``, in a search.
    search
        Whether valid values that open a question may stay.
    axes
        Of the operator's cases, whose rules hold.
    """
    settled = dict(row)
    if "T" not in settled and "size" in settled:
        settled |= dict(zip("TN", SIZES[str(settled["size"])], strict=False))
    for rule in _applying(axes, search, tuple(settled)):
        if (rule.values is None or settled[rule.field] in rule.values) and rule.clashes(settled):
            settled[rule.field] = rule.instead
    return {name: settled[name] for name in row}


@cache
def _applying(axes: tuple[Axis, ...], search: bool, names: tuple[str, ...]) -> tuple[Rule, ...]:
    """Return the rules that a row with these fields may break: few apply to the thousands of rows of a design."""
    rules = (rule for rule in in_order(axes) if not (search and rule.kind == "open"))
    return tuple(rule for rule in rules if {rule.field, *rule.reads} <= set(names))


def spec_from(op: str, version: int, row: Mapping[str, Any], kind: type[CaseSpec] = CaseSpec, **extra: Any) -> CaseSpec:
    """Return the case of a row of axis values and of fields of a case; `extra` fields replace those of the row.

    kind
        The class of the operator's cases.
    """
    operator, fields = operator_version(op, version), dict(row)
    for written in acting(kind.axes, "written"):
        fields = written(fields, operator)
    return kind(op, version, **{**fields, **extra})
