"""Space of configurations of an operator version: the values of its axes, and their restrictions.

Random cases and strategies draw rows from it: values by field, made legal before they become a case.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ...reference import OperatorVersion
from ..axes.axis import Axis, rules_of
from .spec import RECURRENT_AXES

Row = dict[str, Any]


@cache
def space_of(operator: OperatorVersion, axes: tuple[Axis, ...] = RECURRENT_AXES) -> dict[str, Axis]:
    """Return the axes of an operator version that list values, restricted to the version's values, by name.

    Search goes beyond three of them: sizes are any, activations are any of :func:`functions_of` with any coefficients
    between those of ``alpha`` and ``beta``, outputs are any of :func:`output_subsets`.
    """
    return {axis.name: own for axis in axes if axis.values and (own := axis.of(operator)) is not None}


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
    for rule in rules_of(axes):
        if not (search and rule.kind == "open") and rule.hit(settled):
            settled[rule.field] = rule.instead
    return settled
