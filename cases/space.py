"""The space of configurations of an operator version: its axes, and what restricts them.

One description, walked two ways: covering designs pick the pinned profiles from it, and strategies search it. Values of
an axis stand simplest first.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from ..reference import CELLS, OperatorVersion, operator_version
from .spec import CaseSpec

__all__ = ["ACTIVATION_SETS", "SIZES", "ActivationSet", "axes_of", "settle", "spec_from"]

Row = dict[str, Hashable]


@dataclass(frozen=True)
class ActivationSet:
    """f, g, h of one direction, and the coefficients that they consume, in order."""

    names: tuple[str, ...]
    alpha: tuple[float, ...] = ()
    beta: tuple[float, ...] = ()


# Functions with and without coefficients, all eleven among them. In `each` every function uses both lists, so that how
# they are consumed is no question; `mixed` makes the order of consumption show; `usual` leaves all to defaults.
ACTIVATION_SETS: dict[str, ActivationSet] = {
    "default": ActivationSet(()),
    "named": ActivationSet(("Sigmoid", "Tanh", "Tanh")),
    "each": ActivationSet(("HardSigmoid", "ScaledTanh", "Affine"), (0.3125, 1.25, 0.75), (0.4375, 0.875, 0.125)),
    "usual": ActivationSet(("HardSigmoid", "Elu", "LeakyRelu")),
    "soft": ActivationSet(("Sigmoid", "Softsign", "Softplus")),
    "straight": ActivationSet(("HardSigmoid", "Relu", "Relu")),
    "mixed": ActivationSet(("Sigmoid", "LeakyRelu", "Elu"), (0.125, 0.625)),
    "threshold": ActivationSet(("Sigmoid", "Tanh", "ThresholdedRelu"), (0.1875,)),
    "threshold-default": ActivationSet(("Sigmoid", "Tanh", "ThresholdedRelu")),
    "unknown-default": ActivationSet(("Sigmoid", "ScaledTanh", "Affine")),
    "lower-case": ActivationSet(("sigmoid", "tanh", "tanh")),
    "tanh-gates": ActivationSet(("Tanh", "Sigmoid", "Softsign")),
    "negative": ActivationSet(("Sigmoid", "LeakyRelu", "ScaledTanh"), (-0.5, -1.5), (0.625,)),
    "plus": ActivationSet(("Sigmoid", "Softplus", "Tanh")),
    "steep": ActivationSet(("HardSigmoid", "LeakyRelu", "Elu"), (0.25, 1.5, 2.0), (0.5,)),
}

# What the backward direction has in a bidirectional node: another set, so that the two show.
_BACKWARD = {
    "named": "named",
    "each": "each",
    "usual": "straight",
    "soft": "tanh-gates",
    "straight": "soft",
    "mixed": "threshold",
    "threshold": "soft",
    "tanh-gates": "usual",
    "negative": "mixed",
    "plus": "named",
    "steep": "each",
    "threshold-default": "named",
    "unknown-default": "named",
    "lower-case": "named",
}

# (T, N, I, H): small and all different; ones; T == N; a size that is no multiple of any block.
SIZES: dict[str, tuple[int, int, int, int]] = {
    "small": (4, 3, 2, 5),
    "one": (1, 1, 1, 1),
    "long": (7, 2, 5, 3),
    "square": (3, 3, 4, 4),
    "wide": (2, 5, 9, 17),
    "single-row": (5, 1, 3, 8),
    "block": (3, 4, 16, 16),
}


def axes_of(operator: OperatorVersion) -> dict[str, tuple[Hashable, ...]]:
    """The axes of an operator version; values simplest first."""
    cell = CELLS[operator.op_type]
    axes: dict[str, tuple[Hashable, ...]] = {
        "type": tuple(t for t in ("float32", "float64", "float16", "bfloat16") if t in operator.types),
        "direction": ("forward", "reverse", "bidirectional"),
        "size": ("small", "one", "square", "wide", "single-row"),
        "bias": (False, True),
        "lengths": ("absent", "ragged", "full", "short"),
        "initial": ("none", "all", "h", *cell.inner),
        "activations": ("default", "each", "usual", "soft", "mixed", "negative"),
        "clip": (None, 0.5, 8.0),
        "hidden_size": (True, False),
        "explicit": (False, True),
        "outputs": ("all", "Y", "no-Y_h", "states"),
        "weights": ("initializer", "input"),
        "dimensions": ("static", "symbolic"),
        "opset": ("first", "last"),
        "reruns": ("none", "data", "sizes"),
    }
    if cell.peepholes:
        axes["peepholes"] = (False, True)
    if "input_forget" in operator.attributes:
        axes["input_forget"] = (None, 1)
    if "layout" in operator.attributes:
        axes["layout"] = (0, 1)
    if "output_sequence" in operator.attributes:
        axes["output_sequence"] = (None, 1, 0)
    return axes


def settle(row: Mapping[str, Hashable]) -> Row:
    """The row made legal: values that do not go with others replaced by simpler ones."""
    row = dict(row)
    T, N, _, _ = SIZES[str(row["size"])]
    if row["lengths"] in ("ragged", "short") and T < 2:
        row["lengths"] = "full"
    if row["lengths"] == "ragged" and N < 2:
        row["lengths"] = "short"
    if row["reruns"] == "sizes":
        row["dimensions"] = "symbolic"
    if row.get("hidden_size") is False:
        row["explicit"] = False
    # Whether Y is given against output_sequence is an open question that other cases are for.
    if "output_sequence" in row and not row["output_sequence"] and row["outputs"] in ("all", "Y", "no-Y_h"):
        row["output_sequence"] = 1
    return row


def _asked(outputs: tuple[str, ...], choice: str) -> tuple[str, ...]:
    """Output names by position for a named subset."""
    wanted = {
        "all": set(outputs),
        "Y": {"Y"},
        "Y_h": {"Y_h"},
        "last": {outputs[-1]},
        "no-Y_h": set(outputs) - {"Y_h"} if len(outputs) > 2 else {"Y"},
        "states": set(outputs) - {"Y"},
    }[choice]
    named = [name if name in wanted else "" for name in outputs]
    while not named[-1]:
        named.pop()
    return tuple(named)


def spec_from(op: str, version: int, row: Mapping[str, Any], **extra: Any) -> CaseSpec:
    """The case of a row of axis values; `extra` fields replace what the row says."""
    fields = dict(row)
    T, N, I, H = SIZES[fields.pop("size", "small")]
    fields["outputs"] = _asked(operator_version(op, version).outputs, fields.get("outputs", "all"))
    chosen = fields.pop("activations", "default")
    if chosen != "default":
        sets = [ACTIVATION_SETS[chosen]]
        if fields.get("direction") == "bidirectional":
            sets.append(ACTIVATION_SETS[_BACKWARD[chosen]])
        alpha = sum((s.alpha for s in sets), ())
        beta = sum((s.beta for s in sets), ())
        fields |= {"activations": sum((s.names for s in sets), ()), "alpha": alpha or None, "beta": beta or None}
    return CaseSpec(op, version, **{"T": T, "N": N, "I": I, "H": H, **fields, **extra})
