"""Numbers that are the same in several places: kernels look cached data up by its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..observed import Observed
from .draft import TensorDraft

_WEIGHTS = ("W", "R", "B", "P")
_TIED = {"W": ("W",), "R": ("R",), "directions": _WEIGHTS}


class _Alike(Axis):
    """``none``; ``W``, ``R`` (that tensor is the same in both directions), ``directions`` (all weights are); ``steps``
    (X is the same at each step), ``rows`` (X and the initial states are the same in each row), ``states`` (all initial
    states have the same numbers), ``bias`` (the halves of B are the same but for the sign: their sum is zero)."""

    name = "alike"
    fields = (Field("alike", str, "none"),)
    order = ("none", "W", "R", "directions", "steps", "rows", "states", "bias")
    rules = (
        Rule("alike", "none", ("direction",), lambda row: row["direction"] != "bidirectional", tuple(_TIED)),
        Rule("alike", "none", ("data",), lambda row: row["data"] not in ("dense", "small", "large"), order[1:]),
        # Zeros of one place are not copied to others.
        Rule("alike", "none", ("zeros",), lambda row: row["zeros"] != "none", ("steps", "rows", "states", "bias")),
        Rule("alike", "none", ("T", "N"), lambda row: not (row["T"] and row["N"]), order[1:]),
        Rule("alike", "none", ("T",), lambda row: row["T"] < 2, ("steps",)),
        Rule("alike", "none", ("N",), lambda row: row["N"] < 2, ("rows",)),
        Rule("alike", "none", ("bias",), lambda row: not row["bias"], ("bias",)),
        Rule("alike", "none", ("initial",), lambda row: row["initial"] != "all", ("states",)),
    )
    words = {
        "tied-weights": "weights that are the same in both directions",
        "same-steps": "the same X at each step",
        "same-rows": "the same X in each row",
        "opposite-biases": "biases that cancel",
    }
    marked = "alike-{}"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        values = tuple(v for v in self.order[1:] if v != "states" or "initial_c" in operator.inputs)
        return {"alike": Domain(("none",), rare=values, often=("none",) * 30 + values, share=1 / 8)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.illegal and spec.alike != "none":
            return "alike", "'none' in a forbidden model"
        return None

    def spoil(self, spec: Any, draft: TensorDraft) -> None:
        inputs, X = draft.inputs, draft.X
        for name in _TIED.get(spec.alike, ()):
            if name in inputs:
                inputs[name] = np.repeat(inputs[name][:1], draft.D, axis=0)
        states = [name for name in inputs if name.startswith("initial_")]
        if spec.alike == "steps":
            X[...] = X[:1]
        elif spec.alike == "rows":
            X[...] = X[:, :1]
            for name in states:
                by_row = inputs[name] if spec.layout == 0 else inputs[name].swapaxes(0, 1)
                by_row[...] = by_row[:, :1]
        elif spec.alike == "bias":
            first, _ = np.split(inputs["B"], 2, axis=1)
            inputs["B"] = np.concatenate((first, -first), axis=1)
        elif spec.alike == "states":
            for name in states:
                inputs[name] = inputs[states[0]].copy()

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        X, c = observed.inputs["X"], observed.configuration
        steps = X if c.layout == 0 else X.swapaxes(0, 1)
        tied = [name for name in ("W", "R") if (a := observed.inputs[name]).shape[0] == 2 and (a[0] == a[1]).all()]
        B = observed.inputs.get("B", np.empty((0, 0)))
        half = B.shape[1] // 2
        return {
            "opposite-biases": half > 0 and bool((B[:, :half] == -B[:, half:]).all()) and bool(B.any()),
            "tied-weights": bool(tied),
            "same-steps": c.T > 1 and c.N > 0 and bool((steps == steps[:1]).all()),
            "same-rows": c.N > 1 and c.T > 0 and bool((steps == steps[:, :1]).all()),
        }


ALIKE = _Alike()
