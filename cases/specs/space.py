"""Space of configurations of an operator version: the values of its axes, and their restrictions.

Random cases and strategies draw rows from it: values by field, made legal before they become a case.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from typing import Any

from ...reference import OperatorVersion
from ..axes.axis import Axis, Rule, rules_of
from .spec import RECURRENT_AXES

Row = dict[str, Any]


@cache
def space_of(operator: OperatorVersion, axes: tuple[Axis, ...] = RECURRENT_AXES) -> dict[str, Axis]:
    """Return the axes of an operator version that list values, restricted to the version's values, by name.

    Search goes beyond three of them: sizes are any, activations are any of :func:`functions_of` with any coefficients
    between those of ``alpha`` and ``beta``, outputs are any of :func:`output_subsets`.
    """
    return {axis.name: own for axis in axes if axis.values and (own := axis.of(operator)) is not None}


@cache
def in_order(axes: tuple[Axis, ...]) -> tuple[Rule, ...]:
    """Return the rules of some axes; each rule follows those that may change a field that it reads."""
    rules = rules_of(axes)
    own = dict.fromkeys(rule.field for rule in rules)
    reads = {name: {read for rule in rules if rule.field == name for read in rule.reads if read in own} for name in own}
    order = list(TopologicalSorter(reads).static_order())
    return tuple(sorted(rules, key=lambda rule: order.index(rule.field)))


def settle(row: Mapping[str, Any], *, search: bool = False, axes: tuple[Axis, ...] = RECURRENT_AXES) -> Row:
    """Return the row made legal: values that cannot be combined with others are replaced by simpler ones.

    row
        Values by field.
    search
        Whether valid values that make an ambiguity matter may stay.
    axes
        Axes of the operator's cases, whose rules apply.
    """
    settled = dict(row)
    for rule in _applying(axes, search, tuple(settled)):
        if rule.hit(settled):
            settled[rule.field] = rule.instead
    return settled


@cache
def _applying(axes: tuple[Axis, ...], search: bool, names: tuple[str, ...]) -> tuple[Rule, ...]:
    """Return the rules that a row with these fields may break."""
    rules = (rule for rule in in_order(axes) if not (search and rule.kind == "open"))
    return tuple(rule for rule in rules if {rule.field, *rule.reads} <= set(names))
