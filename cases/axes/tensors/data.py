"""The way in which numbers are drawn: dense ones, of several magnitudes, with few digits, or spoilt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..condition import of_values
from .draft import TensorDraft

# Exponents of X and of states, added to the usual ones. Weights stay as they are, so that cases share a model.
_MAGNITUDES: dict[str, tuple[int, int]] = {"small": (-6, -6), "large": (4, 2), "huge": (10, 0)}
_HEAVY = 2
_NEEDS_NUMBERS = ("nan-row", "inf-row")
_SAID = {
    "small": "small numbers",
    "large": "large numbers",
    "huge": "huge numbers",
    "heavy": "large weights",
    "exact": "exactly representable data",
    "one-sign": "numbers of one sign",
    "numerics": "one-step accuracy",
    "nan-row": "NaN in one row",
    "inf-row": "infinity in one row",
    "nan-padding": "NaN in the padding",
}


class _Data(Axis):
    """``dense``; ``small``, ``large``, ``huge`` (magnitudes; the last saturates every activation, on both sides);
    ``heavy`` (W and R are four times as large: some of their numbers are beyond 1 and sums are steep); ``exact`` (few
    digits: every intermediate of piecewise-linear activations is representable); ``nan-row``, ``inf-row`` (one row of X
    has NaN or infinity: the others must not change); ``nan-padding`` (NaN past the lengths); ``one-sign`` (X and W
    positive: a sum loses digits as it grows); ``numerics`` (one step from given states, where every digit counts)."""

    name = "data"
    fields = (Field("data", str, "dense"),)
    rules = (
        # Something must be there that can be spoilt.
        Rule("data", "dense", ("T", "N"), lambda row: not (row["T"] and row["N"]), _NEEDS_NUMBERS),
        Rule("data", "dense", ("lengths",), lambda row: row["lengths"] in ("absent", "full"), ("nan-padding",)),
        # One step from given states is what makes a case one about accuracy.
        Rule("data", "dense", ("T", "initial"), lambda row: row["T"] != 1 or row["initial"] != "all", ("numerics",)),
    )
    words = {"numerics": "one-step accuracy", "exact": "exactly representable data"}
    columns = ("numerics", "exact")
    marked = "{}"
    conditions = {value: (of_values(words, "data", value),) for value, words in _SAID.items()}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        rare = (
            *("small", "large", "huge", "heavy", "one-sign", "exact", "numerics"),
            *("nan-row", "inf-row", "nan-padding"),
        )
        return {"data": Domain(("dense",), rare=rare, often=("dense", "dense", "dense", "small", "large", "heavy"))}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.illegal and spec.data != "dense":
            return "data", "'dense' in a forbidden model"
        if spec.data == "nan-padding" and spec.lengths == "absent":
            return "data", "nan-padding only where there are lengths"
        if spec.data in _NEEDS_NUMBERS and not spec.T * spec.N:
            return "data", "'nan-row' or 'inf-row' only where T and N are not 0"
        return None

    def scale(self, spec: Any, draft: TensorDraft) -> None:
        if spec.data == "exact":
            # The fewer digits the data has, the more operations pass before the format's are used up.
            draft.precision = 3 if draft.format.precision >= 24 else 2
        draft.of_x, draft.of_states = _MAGNITUDES.get(spec.data, (0, 0))
        draft.of_weights = _HEAVY if spec.data == "heavy" else 0

    def spoil(self, spec: Any, draft: TensorDraft) -> None:
        inputs, X = draft.inputs, draft.X
        if spec.data == "one-sign":
            inputs |= {name: np.abs(inputs[name]) for name in ("X", "W")}
        elif spec.data in _NEEDS_NUMBERS:
            X[draft.T // 2, draft.N // 2, 0] = np.nan if spec.data == "nan-row" else np.inf
        elif spec.data == "nan-padding":
            for row, length in enumerate(inputs["sequence_lens"]):
                X[length:, row] = np.nan

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {name: spec.data == name for name in ("numerics", "exact")}


DATA = _Data()
