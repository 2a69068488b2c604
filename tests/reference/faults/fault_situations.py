"""A few cases of every operator in which every fault shows at least once, and the size of its error in radii."""

from __future__ import annotations

from functools import cache
from typing import Any

from onnxspec.cases import Case, CaseSpec, build_case
from onnxspec.cases.specs.space import space_of
from onnxspec.reference import CELLS, Fault, operator_version
from onnxspec.reference.operators.margin import kill_margin

from .activation_sets import activations_of

NEWEST, OLDEST = 22, 1
RICH: dict[str, Any] = {
    "direction": "bidirectional",
    "bias": True,
    "initial": "all",
    "lengths": "ragged",
    "peepholes": True,
    "weights": "input",
}
ALONE = {"weights": "input"}
SHAPE = {"T": 4, "N": 3, "I": 5, "H": 9}

# Rows of the space and other fields of a case of the newest version, in an order in which most faults show early.
SITUATIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rich": (RICH, SHAPE),
    "each": ({**RICH, "activations": "each"}, SHAPE),
    "mixed": ({**RICH, "activations": "mixed"}, SHAPE),
    "layout": ({**RICH, "layout": 1}, SHAPE),
    "clip": ({**RICH, "clip": 0.25}, SHAPE),
    "clip-soft": ({**RICH, "clip": 0.5, "activations": "soft"}, SHAPE),
    "clip-large": ({**RICH, "clip": 1.0, "data": "large"}, SHAPE),
    "clip-one-step": ({**RICH, "clip": 0.25, "lengths": "absent", "data": "large"}, {**SHAPE, "T": 1, "N": 9}),
    "coupled": ({**RICH, "input_forget": 1, "activations": "soft"}, SHAPE),
    "coupled-large": ({**RICH, "input_forget": 1, "data": "large"}, {**SHAPE, "N": 9}),
    "reset-after": ({**RICH, "linear_before_reset": 1}, SHAPE),
    "reset-after-plain": ({**ALONE, "linear_before_reset": 1, "bias": True}, SHAPE),
    "reset-after-2": ({**RICH, "linear_before_reset": 2, "clip": 0.25}, SHAPE),
    "reset-after-straight": ({**RICH, "linear_before_reset": 1, "activations": "straight"}, {**SHAPE, "N": 9}),
    "reset-after-large": ({**RICH, "linear_before_reset": 1, "data": "large"}, {**SHAPE, "N": 17}),
    "reset-after-2-large": ({**RICH, "linear_before_reset": 2, "data": "large"}, {**SHAPE, "N": 9}),
    "reverse": ({**RICH, "direction": "reverse"}, SHAPE),
    "forward": ({**ALONE, "initial": "all"}, SHAPE),
    "plain": ({**ALONE, "hidden_size": False}, SHAPE),
    "plain-bidirectional": ({**ALONE, "direction": "bidirectional"}, SHAPE),
    "h-alone": ({**ALONE, "initial": "h"}, SHAPE),
    "c-alone-large": ({**ALONE, "initial": "c", "data": "large"}, {**SHAPE, "N": 9}),
    "c-alone": ({**ALONE, "initial": "c"}, SHAPE),
    "short-rows": ({**RICH, "lengths": "short"}, SHAPE),
    "states": ({**RICH, "outputs": "states"}, {**SHAPE, "T": 2}),
    "states-initial": ({**ALONE, "initial": "all", "outputs": "states"}, {**SHAPE, "T": 2}),
    "constants": ({**RICH, "weights": "initializer"}, SHAPE),
    "constants-large": ({**RICH, "weights": "initializer", "data": "large"}, SHAPE),
    "constants-straight": (
        {"weights": "initializer", "bias": True, "activations": "straight", "initial": "all"},
        {**SHAPE, "N": 9},
    ),
    "again": ({**ALONE, "reruns": "data", "lengths": "ragged"}, SHAPE),
    "again-initial": ({**RICH, "reruns": "data"}, SHAPE),
    "other-sizes": ({**ALONE, "reruns": "sizes", "dimensions": "symbolic"}, SHAPE),
    "usual": ({**RICH, "activations": "usual"}, SHAPE),
    "steep": ({**RICH, "activations": "steep", "data": "large"}, SHAPE),
    "mixed-large": ({**RICH, "activations": "mixed", "data": "large"}, {**SHAPE, "N": 17}),
    "negative": ({**RICH, "activations": "negative"}, SHAPE),
    "negative-large": ({**RICH, "activations": "negative", "data": "large"}, SHAPE),
    "soft": ({**RICH, "activations": "soft"}, SHAPE),
    "plus": ({**RICH, "activations": "plus"}, SHAPE),
    "straight": ({**RICH, "activations": "straight", "data": "large"}, SHAPE),
    "threshold": ({**RICH, "activations": "threshold"}, SHAPE),
    "alpha-alone": ({**RICH, "activations": "alpha-alone"}, SHAPE),
    "softplus-large": ({**ALONE, "activations": "softplus", "data": "large"}, {"T": 2, "N": 9, "I": 9, "H": 17}),
    "logistic": ({**RICH, "activations": "logistic"}, SHAPE),
    "unknown": ({**ALONE, "activations": "unknown-default"}, SHAPE),
    "lower-case": ({**ALONE, "activations": "lower-case"}, SHAPE),
    "large": ({**ALONE, "data": "large"}, SHAPE),
    "huge": ({**ALONE, "data": "huge"}, SHAPE),
    "huge-soft": ({**ALONE, "activations": "soft", "data": "huge"}, SHAPE),
    "huge-straight": ({**ALONE, "activations": "straight", "data": "huge"}, SHAPE),
    "huge-logistic": ({**ALONE, "activations": "logistic", "data": "huge"}, SHAPE),
    "square": (ALONE, {"T": 3, "N": 3, "I": 4, "H": 5}),
    "square-weights": (ALONE, {"T": 2, "N": 3, "I": 5, "H": 5}),
    "one-step": ({**RICH, "lengths": "absent"}, {**SHAPE, "T": 1}),
    "one-step-large": ({**RICH, "lengths": "absent", "data": "large"}, {**SHAPE, "T": 1, "N": 9}),
    "one-row": (ALONE, {**SHAPE, "N": 1}),
    "blocks": (RICH, {"T": 3, "N": 3, "I": 7, "H": 31}),
    "past-64": (ALONE, {"T": 2, "N": 2, "I": 96, "H": 96}),
    "long": (ALONE, {"T": 66, "N": 9, "I": 2, "H": 3}),
    "many-rows": (RICH, {"T": 20, "N": 18, "I": 2, "H": 3}),
    "empty-rows": ({**RICH, "lengths": "empty"}, SHAPE),
    "no-steps": ({**ALONE, "initial": "all"}, {**SHAPE, "T": 0}),
    "nan-row": ({**ALONE, "data": "nan-row"}, SHAPE),
    "nan-padding": ({**RICH, "data": "nan-padding"}, SHAPE),
    "small": ({**ALONE, "data": "small"}, SHAPE),
    "zeros": (ALONE, {**SHAPE, "zeros": "elements"}),
    "step-of-zeros": (ALONE, {**SHAPE, "zeros": "step"}),
    "subnormal": ({**ALONE, "activations": "straight"}, {**SHAPE, "extremes": "subnormal"}),
    "weights-beyond": (ALONE, {**SHAPE, "extremes": "weights"}),
}

# By name, the last function of each direction (the functions before it are the defaults), and further fields of the
# case.
LAST_FUNCTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "leaky": (("LeakyRelu",), {"alpha": (1.5,)}),
    "hard-default": (("HardSigmoid",), {}),
    "hard-large": (("HardSigmoid",), {"data": "large"}),
    "threshold-default": (("ThresholdedRelu",), {}),
    "threshold-high": (("ThresholdedRelu",), {"alpha": (0.75,), "data": "large"}),
}


# Sums of many products of one sign, and gates that do not depend on them: HardSigmoid with an alpha of 0.
SUMS: dict[str, Any] = {"data": "one-sign", "T": 1, "N": 2, "I": 8192, "H": 3}

# The fields of cases of an operator of two or three functions.
TAKEN: dict[str, Any] = {"direction": "bidirectional", "alpha": (0.5, 0.25, 0.25), "beta": (0.25, 0.75, 0.375)}
TAKEN_NAMES = ("Sigmoid", "LeakyRelu", "HardSigmoid", "Sigmoid", "Tanh", "Tanh")


def _with_last(op: str, names: tuple[str, ...]) -> tuple[str, ...]:
    usual = CELLS[op].activations[:-1]
    return sum(((*usual, name) for name in names), ())


@cache
def situation(name: str, op: str, kind: str) -> Case | None:
    """Return a case of the newest version, or of the oldest if the name says so; None if there is none."""
    plain, _, seed = name.partition("#")
    seeds = {"seed": int(seed or 0), "weights_seed": int(seed or 0)}
    if plain in LAST_FUNCTIONS or plain == "taken":
        names, fields = LAST_FUNCTIONS.get(plain, ((), TAKEN))
        functions = _with_last(op, names) or TAKEN_NAMES[: 2 * len(CELLS[op].activations)]
        if plain == "taken" and len(functions) < 4:
            return None
        more = {**SHAPE, **fields, **seeds}
        return build_case(CaseSpec(op, NEWEST, kind, **more, activations=functions))
    if plain == "long-sums":
        count = len(CELLS[op].activations)
        functions = ("HardSigmoid", "Relu", "Relu")[:count] if count > 1 else ("Relu",)
        constant = {"alpha": (0.0,), "beta": (0.5,)} if count > 1 else {}
        return build_case(CaseSpec(op, NEWEST, kind, **SUMS, **constant, activations=functions))
    row, extra = SITUATIONS[plain.removesuffix("-oldest")]
    version = OLDEST if plain.endswith("-oldest") else NEWEST
    operator = operator_version(op, version)
    axes = {name: axis.common for name, axis in space_of(operator).items()}
    if kind not in operator.types:
        return None
    special = ("input_forget", "linear_before_reset", "layout")
    if any(field in row and field not in axes for field in special) or row.get("initial", "h") not in axes["initial"]:
        return None
    row = {n: v for n, v in row.items() if n in axes or n in ("activations", "outputs")}
    row = {"outputs": operator.outputs, **row}
    if row["outputs"] == "states":
        row["outputs"] = ("", *operator.outputs[1:])
    if "activations" in row:
        row |= activations_of(row["activations"], op, row.get("direction") == "bidirectional")
    if "output_sequence" in operator.attributes:
        row["output_sequence"] = 1
    return build_case(CaseSpec(op, version, kind, **row, **extra, **seeds))


def names_of(op: str) -> list[str]:
    """Return all situations, then all again with other numbers.

    In coarse types, some draws do not show a small error.
    """
    names = [*SITUATIONS, *LAST_FUNCTIONS, "taken", "long-sums", "rich-oldest", "plain-oldest"]
    return [*names, *(f"{name}#{seed}" for seed in (1, 2, 3) for name in names)]


def discrimination(fault: Fault, name: str, op: str, kind: str) -> float:
    """Return the margin of a fault in a situation, whose runs are repeated for a fault of sessions."""
    case = situation(name, op, kind)
    assert case is not None
    runs = [(feed.inputs, feed.fed) for feed in case.trial.feeds]
    return kill_margin(fault, case.trial.node, runs * (2 if fault.topic.startswith("session") else 1))
