"""A run of the session before, whose inputs differ from the case's own in a part only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from .turns import CourseDraft, Turn

Arrays = Mapping[str, NDArray[Any]]

_WEIGHTS = ("W", "R", "B", "P")
_PLACES = ("middle", "tail", "element")
_ABSENT = (False, "none", "absent", "full", "short")
_NEEDS = {"B": "bias", "P": "peepholes", "states": "initial", "lengths": "lengths"}


class _Nearly(Axis):
    """``none``; or in what the run before differs: weights in their ``middle`` (neither in the first nor in the last
    quarter of their elements), their ``tail`` (the last quarter) or one ``element``; ``W``, ``R``, ``B``, ``P`` alone;
    the ``lengths`` (the same ones, of other rows), the initial ``states``, the middle of ``X``; ``plain`` where all of
    its rows are whole and its states zeros. Kernels keep what they have made of an input, and look whether that is the
    same now: at its first elements, its sum, or at another input; or decide in the first run what later ones need.
    """

    name = "nearly"
    fields = (Field("nearly", str, "none"),)
    part = "session"
    order = ("none", *_WEIGHTS, *_PLACES, "lengths", "states", "X", "plain")
    rules = (
        # Constants cannot change.
        Rule("nearly", "none", ("weights",), lambda row: row["weights"] == "initializer", (*_WEIGHTS, *_PLACES)),
        Rule("nearly", "none", ("constant",), lambda row: row["nearly"] == row["constant"], order[1:]),
        Rule("nearly", "none", ("T", "N"), lambda row: not (row["T"] and row["N"]), order[1:]),
        Rule("nearly", "none", ("N",), lambda row: row["N"] < 2, ("lengths",)),
        Rule(
            "nearly",
            "none",
            ("lengths", "initial", "constant", "data"),
            lambda row: (
                (row["lengths"] in _ABSENT and row["initial"] == "none")
                or row["constant"] in ("lengths", "states")
                or row["data"] == "nan-padding"
            ),
            ("plain",),
        ),
        *(
            Rule("nearly", "none", (field,), lambda row, field=field: row[field] in _ABSENT, (value,))  # type: ignore[misc]
            for value, field in _NEEDS.items()
        ),
    )
    levels = {"basic": ("none",), "sequence": ("none",)}
    words = {
        "nearly-same-weights": "an earlier run with weights of which a part was another",
        "nearly-same-data": "an earlier run with data of which a part was another",
    }
    marked = "nearly-{}"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        values = tuple(v for v in self.order[1:] if v not in _WEIGHTS or v in operator.inputs)
        return {"nearly": Domain(("none",), rare=values, often=("none",) * 30 + values, share=1 / 8)}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.nearly != "none":
            if spec.nearly in (*_WEIGHTS, *_PLACES):
                draft.needs.add("weights")
            draft.turns.insert(0, Turn(0, part=spec.nearly))

    def used(self, spec: Any) -> Mapping[str, bool]:
        data = spec.nearly in ("lengths", "states", "X", "plain")
        return {"nearly-same-weights": spec.nearly != "none" and not data, "nearly-same-data": data}


def nearly_own(part: str, own: Arrays, others: Arrays, fixed: frozenset[str], steps: int) -> Arrays:
    """A case's inputs with that part of other ones; those that are `fixed` stay. A whole row has so many steps."""
    if part in _WEIGHTS:
        return {**own, part: others[part]}
    if part == "lengths":
        return {**own, "sequence_lens": np.roll(own["sequence_lens"], 1)}
    if part == "plain":
        states = {name: np.zeros_like(array) for name, array in own.items() if name.startswith("initial_")}
        whole = {name: np.full_like(own[name], steps) for name in ("sequence_lens",) if name in own}
        return {**own, **states, **whole}
    if part == "states":
        return {name: others[name] if name.startswith("initial_") else array for name, array in own.items()}
    names, part = (("X",), "middle") if part == "X" else (_WEIGHTS, part)
    return {n: _mixed(part, array, others[n]) if n in names and n not in fixed else array for n, array in own.items()}


def _mixed(part: str, own: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    quarter = own.size // 4
    places = {
        "middle": slice(quarter, own.size - quarter),
        "tail": slice(own.size - max(quarter, 1), own.size),
        "element": slice(own.size // 2, own.size // 2 + 1),
    }
    mixed = own.copy()
    mixed.reshape(-1)[places[part]] = other.reshape(-1)[places[part]]
    return mixed


NEARLY = _Nearly()
