"""Siblings of dense cases with what the pool's dice do not throw: values of later axes, which change inputs alone.

They share the models of the cases that they are siblings of, so a compiler that takes seconds has nothing more to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..specs.space import settle
from ..specs.spec import CaseSpec

FIRST_TURN = 100
"""Numbers of siblings from here on say which turn a sibling takes."""

FIRST_EVENT = 200
"""Numbers of siblings from here on say what the session of a sibling does, which is otherwise as its case is: with rows
of lengths or without."""

TURNS: tuple[Mapping[str, Any], ...] = (
    {"row_order": "falling", "lengths": "ragged"},
    {"reach": "below", "lengths": "empty"},
    {"row_order": "rising", "lengths": "empty"},
    {"row_order": "first", "lengths": "ragged"},
    {"row_order": "last", "reach": "below", "lengths": "ragged"},
    {"row_order": "last", "lengths": "empty"},
    {"row_order": "falling", "reach": "below", "lengths": "empty"},
    {"reach": "one", "lengths": "ragged"},
    {"row_order": "first", "reach": "below", "lengths": "empty"},
    {"row_order": "rising", "reach": "below", "lengths": "ragged"},
)

TURNING = frozenset(field for turn in TURNS for field in turn)

EVENTS: tuple[Mapping[str, Any], ...] = (
    {"reweighed": True, "waves": True, "beside": True, "after_refusal": True, "kept": True},
    {"many": True, "beside": True, "after_refusal": True, "kept": True},
)
"""The events of sessions beside a case's own run. Turns beyond those of TURNS are the same ones with the first of
these, and then with the second."""

_NEEDING = {"reweighed": ("weights", "input"), "waves": ("dimensions", "symbolic")}

_DATA = frozenset({"X", "states", "lengths"})  # constants with which another case is another model
_SHIFT = 104729  # added to seeds, so that siblings have numbers of their own


def can_turn(spec: CaseSpec) -> bool:
    """Tell whether a case has rows of lengths, enough of both for every turn."""
    return bool(spec.lengths != "absent" and spec.N > 1 and spec.T > 2)


def turned(spec: CaseSpec, turn: int) -> CaseSpec | None:
    """The sibling of a case that takes a turn; None where what it is cannot be together."""
    if not can_turn(spec) or spec.constant in _DATA:
        return None
    of_rows = turn % len(TURNS)
    seeds = {"seed": spec.seed + _SHIFT + of_rows}
    if spec.weights == "input" and spec.constant == "weights":
        seeds["weights_seed"] = seeds["seed"]
    events = _events(spec, turn // len(TURNS) - 1) if turn >= len(TURNS) else {}
    changed = replace(spec, **TURNS[of_rows], **seeds, **events)
    row = {name: getattr(changed, name) for name in changed.__dataclass_fields__}
    return changed if settle(row) == row else None


def eventful(spec: CaseSpec, which: int) -> CaseSpec | None:
    """The sibling of a case with what a session does beside its own run; None where what it is cannot be together."""
    events = _events(spec, which)
    changed = replace(spec, **events)
    settled = settle({name: getattr(changed, name) for name in changed.__dataclass_fields__})
    return changed if all(settled[name] == value for name, value in events.items()) else None


def _events(spec: CaseSpec, which: int) -> dict[str, Any]:
    """The events that the session of a case may have without another model."""
    needed = {name: getattr(spec, field) == value for name, (field, value) in _NEEDING.items()}
    return {name: value for name, value in EVENTS[which].items() if needed.get(name, True)}
