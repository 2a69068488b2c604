"""Exact zeros: kernels skip them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Any

import numpy as np

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..generator import integers
from ..observed import Observed
from .draft import TensorDraft

_WHOLE = ("X", "W", "R", "B", "P", "initial_h", "initial_c")
_SHARE = 3  # of so many elements one is 0


class _Zeros(Axis):
    """``none``; ``elements`` (a third of the elements of X, W and R, some of them -0); ``row`` (a row of X, at all
    steps); ``step`` (a step of X, in all rows); ``mask`` (a step of X in one row); ``ends`` (the last steps of X, in
    each row others); ``weights`` (whole rows of W and R); ``input-bias``, ``recurrent-bias`` (that half of B);
    ``state`` (the first row of the initial states); ``tensor`` (one whole tensor, by the seed)."""

    name = "zeros"
    fields = (Field("zeros", str, "none"),)
    order = (
        *("none", "elements", "row", "step", "weights", "tensor"),
        *("input-bias", "recurrent-bias", "ends", "mask", "state"),
    )
    rules = (
        # Numbers that are spoilt, or exact to the last digit, stay what they are.
        Rule("zeros", "none", ("data",), lambda row: row["data"] not in ("dense", "small", "large"), order[1:]),
        Rule("zeros", "none", ("T", "N"), lambda row: not (row["T"] and row["N"]), order[1:]),
        Rule("zeros", "none", ("T",), lambda row: row["T"] < 2, ("ends",)),
        Rule("zeros", "none", ("bias",), lambda row: not row["bias"], ("input-bias", "recurrent-bias")),
        Rule("zeros", "none", ("initial",), lambda row: row["initial"] == "none", ("state",)),
    )
    words = {"zero-elements": "zeros among the numbers", "zero-tensor": "a tensor of zeros"}
    marked = "zero-{}"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        often = ("none",) * 14 + self.order[1:]
        return {"zeros": Domain(("none",), rare=self.order[1:], often=often)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.illegal and spec.zeros != "none":
            return "zeros", "'none' in a forbidden model"
        return None

    def spoil(self, spec: Any, draft: TensorDraft) -> None:
        inputs, X = draft.inputs, draft.X
        if spec.zeros == "row":
            X[:, draft.N // 2] = 0
        elif spec.zeros == "step":
            X[draft.T // 2] = 0
        elif spec.zeros == "mask":
            X[draft.T // 2, draft.N // 2] = 0
        elif spec.zeros == "ends":
            for row in range(draft.N):
                X[draft.T - (row + 1) % draft.T :, row] = 0
        elif spec.zeros in ("input-bias", "recurrent-bias"):
            B = inputs["B"] = inputs["B"].copy()
            first, last = np.split(B, 2, axis=1)
            (first if spec.zeros == "input-bias" else last)[...] = 0
        elif spec.zeros == "state":
            for name in ("initial_h", "initial_c"):
                if name in inputs:
                    (inputs[name] if spec.layout == 0 else inputs[name].swapaxes(0, 1))[:, 0] = 0
        elif spec.zeros == "elements":
            for name in ("X", "W", "R"):
                inputs[name] = _thinned(inputs[name], draft.key(name, "zeros/") if name == "X" else _own(spec, name))
        elif spec.zeros == "weights":
            for name in ("W", "R"):
                inputs[name] = inputs[name].copy()
                inputs[name][:, ::_SHARE] = 0
        elif spec.zeros == "tensor":
            there = [name for name in _WHOLE if name in inputs]
            chosen = there[spec.seed % len(there)]
            inputs[chosen] = np.zeros_like(inputs[chosen])

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        inputs, least = observed.inputs, observed.magnitudes.least
        having = [name for name, size in least.items() if size == 0 or (isnan(size) and (inputs[name] == 0).any())]
        return {"zero-elements": bool(having), "zero-tensor": any(not inputs[name].any() for name in having)}


def _own(spec: Any, name: str) -> str:
    return f"{spec.op}/zeros/{name}/{spec.weights_seed}"


def _thinned(array: Any, key: str) -> Any:
    """Return the array with zeros in place of some elements, half of them negative."""
    dice = integers(key, array.size, 0, 2 * _SHARE - 1).reshape(array.shape)
    thinned = array.copy()
    thinned[dice == 0] = 0.0
    thinned[dice == 1] = -0.0
    return thinned


ZEROS = _Zeros()
