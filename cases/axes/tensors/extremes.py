"""Numbers at the ends: subnormal ones, weights and states beyond the usual, sums that cancel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....reference import FORMATS, OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..observed import Observed
from .draft import TensorDraft, gain

# By word, the tensors and by which power of two they are larger than usual. Tables and clamps of kernels end at 8 or
# 16, int8 scales at 127.
_LARGER = {
    "weights": (("W", "R"), 5),
    "bias": (("B",), 6),
    "peepholes": (("P",), 5),
    "states": (("initial_h", "initial_c"), 7),
}
_STEEP = {"float16": 5, "float64": 11}
"""The power of two by which X is larger, for e^x of some arguments to leave the range of the type; 8 in other types."""
_NEEDS = {"bias": "bias", "peepholes": "peepholes", "states": "initial"}
_PLAIN = ("dense", "small", "large")


class _Extremes(Axis):
    """``none``; ``subnormal`` (all elements of X); ``cancel`` (products of X and W cancel in pairs, to exactly 0);
    ``top`` (some of X as large as its type can hold); ``weights``, ``bias``, ``peepholes``, ``states`` (these are many
    times as large as usual); ``subnormal-weights`` (all elements of W, and X so large that products are as usual);
    ``steep`` (e^x of some arguments leaves the range of the type)."""

    name = "extremes"
    fields = (Field("extremes", str, "none"),)
    order = (
        *("none", "subnormal", "cancel", "weights", "bias", "peepholes", "states", "top"),
        *("subnormal-weights", "steep"),
    )
    rules = (
        Rule("extremes", "none", ("data",), lambda row: row["data"] not in _PLAIN, order[1:]),
        Rule("extremes", "none", ("T", "N"), lambda row: not (row["T"] and row["N"]), order[1:]),
        *(
            Rule("extremes", "none", (field,), lambda row, field=field: row[field] in (False, "none"), (value,))  # type: ignore[misc]
            for value, field in _NEEDS.items()
        ),
        Rule("extremes", "none", ("I",), lambda row: row["I"] < 2, ("cancel",)),
        Rule("extremes", "none", ("data",), lambda row: row["data"] != "dense", ("subnormal-weights", "steep")),
    )
    words = {
        "subnormal": "subnormal numbers",
        "subnormal-weights": "subnormal weights",
        "large-weights": "weights beyond 16",
        "large-bias": "a bias beyond 8",
    }
    marked = "extreme-{}"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        values = tuple(v for v in self.order[1:] if v != "peepholes" or "P" in operator.inputs)
        return {"extremes": Domain(("none",), rare=values, often=("none",) * 14 + values)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.illegal and spec.extremes != "none":
            return "extremes", "'none' in a forbidden model"
        return None

    def spoil(self, spec: Any, draft: TensorDraft) -> None:
        inputs, X = draft.inputs, draft.X
        form = FORMATS[spec.type]
        if spec.extremes == "subnormal":
            least = float(form.least_normal)
            # By a power of two that leaves the largest below the least normal number: as many digits as there are.
            exponent = np.frexp(np.abs(X.astype(np.float64)).max(initial=1.0))[1]
            X[...] = (X.astype(np.float64) * least * 2.0 ** -float(exponent)).astype(X.dtype)
        elif spec.extremes == "subnormal-weights":
            least, larger = float(form.least_normal), 2.0 ** -float(gain(draft.I))
            inputs["W"] = (inputs["W"].astype(np.float64) * least * larger).astype(inputs["W"].dtype)
            X[...] = (X.astype(np.float64) / least / larger).astype(X.dtype)
        elif spec.extremes == "steep":
            X[...] = (X.astype(np.float64) * 2.0 ** _STEEP.get(spec.type, 8)).astype(X.dtype)
        elif spec.extremes == "top":
            X[draft.T // 2, :, 0] = X.dtype.type(form.largest)
        elif spec.extremes == "cancel":
            pairs = draft.I // 2
            X[..., 1 : 2 * pairs : 2] = X[..., 0 : 2 * pairs : 2]
            W = inputs["W"] = inputs["W"].copy()
            W[..., 1 : 2 * pairs : 2] = -W[..., 0 : 2 * pairs : 2]
        elif spec.extremes in _LARGER:
            names, exponent = _LARGER[spec.extremes]
            for name in names:
                if name in inputs:
                    # A power of two: no digit is lost.
                    larger = inputs[name].astype(np.float64) * 2.0**exponent
                    inputs[name] = larger.astype(inputs[name].dtype)

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        largest = observed.magnitudes.largest
        return {
            "subnormal": _subnormal(observed, "X"),
            "subnormal-weights": _subnormal(observed, "W"),
            "large-weights": max(largest["W"], largest["R"]) > 16,
            "large-bias": largest.get("B", 0.0) > 8,
        }


def _subnormal(observed: Observed, name: str) -> bool:
    """Tell whether an input has a subnormal number."""
    least_normal = float(observed.configuration.format.least_normal)
    if observed.magnitudes.least.get(name, least_normal) >= least_normal:
        return False
    array = observed.inputs[name]
    return bool(((array != 0) & (np.abs(array.astype(np.float64)) < least_normal)).any())


EXTREMES = _Extremes()
