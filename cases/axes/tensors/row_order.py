"""The order in which long and short rows stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..observed import Observed
from .draft import TensorDraft

_ORDERS = ("mixed", "falling", "rising", "first", "last", "ends")


class _RowOrder(Axis):
    """``mixed`` (the longest row in the middle, an empty one at the end), ``falling`` (as packed sequences have it),
    ``rising``, ``first`` and ``last`` (the longest row stands there, and all others are shorter; an empty one stands in
    the middle), ``ends`` (both of these rows are the longest, and those between them shorter)."""

    name = "row_order"
    fields = (Field("row_order", str, "mixed"),)
    order = _ORDERS
    rules = (
        Rule("row_order", "mixed", ("lengths",), lambda row: row["lengths"] not in ("ragged", "empty"), _ORDERS[1:]),
        Rule("row_order", "mixed", ("N",), lambda row: row["N"] < 2, _ORDERS[1:]),
        Rule("row_order", "mixed", ("N",), lambda row: row["N"] < 3, ("ends",)),
    )
    levels = {"basic": ("mixed",), "sequence": _ORDERS}
    words = {
        "falling-lengths": "lengths that fall",
        "rising-lengths": "lengths that rise",
        "first-row-longest": "a first row that is longer than all others",
        "last-row-longest": "a last row that is longer than all others",
        "empty-row-first": "a first row of length 0",
        "ends-longest": "a first and a last row of the same length beside shorter ones",
    }
    marked = "rows-{}"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        often = ("mixed", "mixed", *_ORDERS[1:])
        return {"row_order": Domain(("mixed",), rare=_ORDERS[1:], often=often)}

    def tensors(self, spec: Any, draft: TensorDraft) -> None:
        if spec.row_order != "mixed":
            given = draft.inputs["sequence_lens"]
            draft.inputs["sequence_lens"] = np.array(_arranged(sorted(given.tolist()), spec.row_order), given.dtype)

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        lengths = observed.configuration.lengths.tolist()
        uneven = len(set(lengths)) > 1
        return {
            "falling-lengths": uneven and lengths == sorted(lengths, reverse=True),
            "rising-lengths": uneven and lengths == sorted(lengths),
            "first-row-longest": uneven and lengths[0] > max(lengths[1:]),
            "last-row-longest": uneven and lengths[-1] > max(lengths[:-1]),
            "empty-row-first": uneven and lengths[0] == 0,
            "ends-longest": uneven and lengths[0] == lengths[-1] == max(lengths),
        }


def _arranged(rising: list[int], order: str) -> list[int]:
    if order in ("rising", "falling") or len(rising) < 2:
        return rising[::-1] if order == "falling" else rising
    *others, longest = rising
    # No other row is as long, but for one step, than which a row cannot be shorter and still be run.
    shorter = [min(steps, max(longest - 1, 1)) for steps in others]
    if order == "ends":
        return [longest, *shorter[:-1], longest]
    middle = len(shorter) // 2
    shorter = [*shorter[1:][:middle], *shorter[:1], *shorter[1:][middle:]]
    return [longest, *shorter] if order == "first" else [*shorter, longest]


ROW_ORDER = _RowOrder()
