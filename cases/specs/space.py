"""The space of configurations of an operator version: its axes, and what restricts them.

One description, walked two ways: covering designs pick the pinned profiles from it, and strategies search it. What is
said here once holds for both: which axes a version has, which values, simplest first, and which do not go together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Set
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...reference import ACTIVATIONS, CELLS, OperatorVersion, operator_version
from .spec import CaseSpec

__all__ = [
    "ACTIVATION_SETS",
    "SIZES",
    "ActivationSet",
    "Axis",
    "axes_of",
    "functions_of",
    "output_subsets",
    "settle",
    "space_of",
    "spec_from",
]

Row = dict[str, Hashable]


@dataclass(frozen=True)
class Axis:
    """One thing in which configurations differ: a field of :class:`.spec.CaseSpec`, or ``size`` for four of them.

    values
        Simplest first. What covering designs combine; where not all can be listed, they stand for the others.
    rare
        Further legal values: they open a question, spoil the data, or say in other words what another value says. They
        would make combinations hard to read, so profiles have them in cases of their own; search draws them seldom.
    between
        Any float32 number from the first to the second is a value too.
    """

    name: str
    values: tuple[Hashable, ...]
    rare: tuple[Hashable, ...] = ()
    between: tuple[float, float] | None = None

    def holds(self, value: Hashable) -> bool:
        """Whether that is a value of the axis."""
        # True is no layout 1.
        if any(value == v and isinstance(value, bool) == isinstance(v, bool) for v in (*self.values, *self.rare)):
            return True
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and self.between is not None and self.between[0] <= value <= self.between[1]  # type: ignore


@dataclass(frozen=True)
class ActivationSet:
    """f, g and h of one direction, and the coefficients that they are given: in order, for those that use them."""

    names: tuple[str, ...]
    alpha: tuple[float, ...] = ()
    beta: tuple[float, ...] = ()

    def of(self, count: int) -> ActivationSet:
        """The set of an operator that has fewer functions: f and h for two, h for one."""
        if count >= len(self.names):
            return self
        kept = (0, 2)[2 - count :]

        def left(values: tuple[float, ...], uses: list[bool]) -> tuple[float, ...]:
            return tuple(values[sum(uses[:k])] for k in kept if uses[k] and sum(uses[:k]) < len(values))

        kinds = [ACTIVATIONS[next(n for n in ACTIVATIONS if n.lower() == name.lower())] for name in self.names]
        return ActivationSet(
            tuple(self.names[k] for k in kept),
            left(self.alpha, [kind.uses_alpha for kind in kinds]),
            left(self.beta, [kind.uses_beta for kind in kinds]),
        )


# Functions with and without coefficients, all eleven among them. In `each` every function uses both lists, so that how
# they are consumed is no question; `mixed` makes the order of consumption show; `usual` leaves all to defaults.
ACTIVATION_SETS: dict[str, ActivationSet] = {
    "default": ActivationSet(()),
    "named": ActivationSet(("Sigmoid", "Tanh", "Tanh")),
    "each": ActivationSet(("HardSigmoid", "ScaledTanh", "Affine"), (0.3125, 1.25, 0.75), (0.4375, 0.875, 0.125)),
    "usual": ActivationSet(("HardSigmoid", "Elu", "LeakyRelu")),
    "soft": ActivationSet(("Sigmoid", "Softsign", "Softplus")),
    "straight": ActivationSet(("HardSigmoid", "Relu", "Relu")),
    "mixed": ActivationSet(("Sigmoid", "LeakyRelu", "Elu"), (1.375, 0.1875)),
    "threshold": ActivationSet(("Sigmoid", "Tanh", "ThresholdedRelu"), (0.1875,)),
    "threshold-default": ActivationSet(("Sigmoid", "Tanh", "ThresholdedRelu")),
    "unknown-default": ActivationSet(("Sigmoid", "ScaledTanh", "Affine")),
    "lower-case": ActivationSet(("sigmoid", "tanh", "tanh")),
    "tanh-gates": ActivationSet(("Tanh", "Sigmoid", "Softsign")),
    "negative": ActivationSet(("Sigmoid", "LeakyRelu", "ScaledTanh"), (-0.5, -1.5), (0.625,)),
    "plus": ActivationSet(("Sigmoid", "Softplus", "Tanh")),
    "steep": ActivationSet(("HardSigmoid", "Elu", "LeakyRelu"), (0.25, 2.0, 1.5), (0.5,)),
    "logistic": ActivationSet(("Sigmoid", "Tanh", "Sigmoid")),
    "hard": ActivationSet(("HardSigmoid", "Tanh", "HardSigmoid"), (0.25, 0.3125), (0.5, 0.625)),
    "hard-usual": ActivationSet(("Tanh", "Softplus", "HardSigmoid")),
    "curved": ActivationSet(("Softsign", "Sigmoid", "Elu")),
    "alpha-alone": ActivationSet(("HardSigmoid", "Softplus", "HardSigmoid"), (0.3125, 0.375)),
    "softplus": ActivationSet(("Sigmoid", "Softplus", "Softplus")),
    # Functions that cost few roundings and stay in range for any number of steps: bounds of half types are tight there.
    "tight": ActivationSet(("HardSigmoid", "LeakyRelu", "Softsign")),
}

# What the backward direction has in a bidirectional node: another set, so that the two show.
_BACKWARD = {
    "named": "named",
    "each": "steep",
    "usual": "straight",
    "soft": "tanh-gates",
    "straight": "soft",
    "mixed": "negative",
    "threshold": "soft",
    "tanh-gates": "usual",
    "negative": "threshold",
    "plus": "named",
    "steep": "each",
    "logistic": "threshold",
    "hard": "each",
    "hard-usual": "curved",
    "curved": "hard",
    "alpha-alone": "softplus",
    "softplus": "named",
    "threshold-default": "named",
    "unknown-default": "threshold-default",
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


@cache
def space_of(operator: OperatorVersion) -> dict[str, Axis]:
    """All axes of an operator version, in the order in which designs take them.

    Search goes beyond three of them: sizes are any, activations are any of :func:`functions_of` with any coefficients
    between those of ``alpha`` and ``beta``, outputs are any of :func:`output_subsets`.
    """
    cell = CELLS[operator.op_type]
    coefficients = (-4.0, 4.0)  # beyond which a few steps leave the range of float16
    axes = [
        Axis("type", tuple(t for t in ("float32", "float64", "float16", "bfloat16") if t in operator.types)),
        Axis("direction", ("forward", "reverse", "bidirectional")),
        Axis("size", ("small", "one", "square", "wide", "single-row")),
        Axis("bias", (False, True)),
        Axis("lengths", ("absent", "ragged", "full", "short"), rare=("empty",)),
        Axis("initial", ("none", "all", "h", *cell.inner) if cell.inner else ("none", "all", "h")),
        Axis("activations", ("default", "each", "usual", "soft", "mixed", "negative")),
        Axis("clip", (None, 0.5, 8.0), rare=(0.0,), between=(2.0**-6, 64.0)),
        Axis("hidden_size", (True, False)),
        Axis("explicit", (False, True)),
        Axis("outputs", ("all", "Y", "no-Y_h", "states")),
        Axis("weights", ("initializer", "input")),
        Axis("dimensions", ("static", "symbolic")),
        Axis("opset", ("first", "last")),
        Axis("reruns", ("none", "data", "sizes"), rare=("growing",)),
    ]
    if cell.peepholes:
        axes.append(Axis("peepholes", (False, True)))
    for name, values, rare in (
        ("input_forget", (None, 1), (0,)),
        ("linear_before_reset", (None, 1), (0, 2)),
        ("layout", (0, 1), ()),
        ("output_sequence", (None, 1, 0), ()),
    ):
        if name in operator.attributes:
            axes.append(Axis(name, values, rare))
    axes += [
        Axis("alpha", (None,), between=coefficients),
        Axis("beta", (None,), between=coefficients),
        Axis(
            "data",
            ("dense",),
            rare=(
                *("small", "large", "huge", "heavy", "one-sign", "exact", "numerics"),
                *("nan-row", "inf-row", "nan-padding"),
            ),
        ),
    ]
    return {axis.name: axis for axis in axes}


def axes_of(operator: OperatorVersion) -> dict[str, tuple[Hashable, ...]]:
    """The axes of an operator version that designs combine, with their values; simplest first."""
    return {name: axis.values for name, axis in space_of(operator).items() if len(axis.values) > 1}


def functions_of(operator: OperatorVersion) -> tuple[str, ...]:
    """The names of the activation functions that a node may list, the operator's own first."""
    usual = dict.fromkeys(CELLS[operator.op_type].activations)
    return (*usual, *(name for name in ACTIVATIONS if name not in usual))


@cache
def output_subsets(operator: OperatorVersion) -> tuple[tuple[str, ...], ...]:
    """Every legal subset of outputs, by position as ``CaseSpec.outputs`` has them: those that the version demands are
    in each. First comes what needs no attribute: Y, or Y_h where Y must be announced by output_sequence."""
    plain = "Y_h" if "output_sequence" in operator.attributes else "Y"
    optional = sorted(set(operator.outputs) - operator.required_outputs, key=lambda n: (n != plain, n))
    counts = range(0 if operator.required_outputs else 1, len(optional) + 1)
    chosen = [set(some) for count in counts for some in itertools.combinations(optional, count)]
    return tuple(_by_position(operator, some) for some in chosen)


@dataclass(frozen=True)
class Restriction:
    """Values that do not go together.

    axis, instead
        What gives way, and to which value.
    clashes
        clashes(row, T, N): whether the row has what does not go together.
    legal
        Whether the document allows it all the same. Designs keep clear of it, since a question that is open would make
        all the rest of a row hard to read; search does not.
    """

    axis: str
    instead: Hashable
    clashes: Callable[[Mapping[str, Hashable], int, int], bool]
    legal: bool = False


# In this order: a later one sees what an earlier one has put in place.
RESTRICTIONS: tuple[Restriction, ...] = (
    Restriction("lengths", "full", lambda row, T, N: row.get("lengths") in ("ragged", "short") and T < 2),
    Restriction("lengths", "full", lambda row, T, N: row.get("lengths") == "empty" and not (T and N)),
    Restriction("lengths", "short", lambda row, T, N: row.get("lengths") == "ragged" and N < 2),
    # Inputs of another size have no place in a model whose dimensions are numbers.
    Restriction("reruns", "data", lambda row, T, N: row.get("reruns") == "growing" and max(T, N) < 2),
    Restriction("dimensions", "symbolic", lambda row, T, N: row.get("reruns") in ("sizes", "growing")),
    Restriction("explicit", False, lambda row, T, N: row.get("hidden_size") is False, legal=True),
    # Whether Y is given against output_sequence is an open question that other cases are for.
    Restriction(
        "output_sequence", 1, lambda row, T, N: not row.get("output_sequence") and _asks_for_y(row), legal=True
    ),
    # Something must be there that can be spoilt.
    Restriction("data", "dense", lambda row, T, N: row.get("data") in ("nan-row", "inf-row") and not (T and N)),
    Restriction(
        "data", "dense", lambda row, T, N: row.get("data") == "nan-padding" and row.get("lengths") in ("absent", "full")
    ),
    # One step from given states is what makes a case one about accuracy.
    Restriction(
        "data", "dense", lambda row, T, N: row.get("data") == "numerics" and (T != 1 or row.get("initial") != "all")
    ),
)


def settle(row: Mapping[str, Hashable], *, search: bool = False) -> Row:
    """The row made legal: values that do not go with others replaced by simpler ones.

    row
        Axis values by name; T and N in place of ``size``, and a tuple of names for ``outputs``, where search has them.
    search
        Whether what is legal but opens a question may stay.
    """
    row = dict(row)
    T, N = (row["T"], row["N"]) if "T" in row else SIZES[str(row["size"])][:2]
    assert isinstance(T, int)
    assert isinstance(N, int)
    for restriction in RESTRICTIONS:
        if restriction.axis in row and not (search and restriction.legal) and restriction.clashes(row, T, N):
            row[restriction.axis] = restriction.instead
    return row


def _asks_for_y(row: Mapping[str, Hashable]) -> bool:
    outputs = row["outputs"]
    return "Y" in outputs if isinstance(outputs, tuple) else outputs in ("all", "Y", "no-Y_h")


def _asked(operator: OperatorVersion, choice: str) -> tuple[str, ...]:
    """Output names by position for a named subset, with those that the version demands."""
    outputs = operator.outputs
    wanted = {
        "all": set(outputs),
        "Y": {"Y"},
        "Y_h": {"Y_h"},
        "last": {outputs[-1]},
        "no-Y_h": set(outputs) - {"Y_h"} if len(outputs) > 2 else {"Y"},
        "states": set(outputs) - {"Y"},
    }[choice]
    return _by_position(operator, wanted)


def _by_position(operator: OperatorVersion, wanted: Set[str]) -> tuple[str, ...]:
    """Those outputs, and those that the version demands, each in its place; an empty string keeps the place of one that
    is not asked for."""
    named = [name if name in wanted | operator.required_outputs else "" for name in operator.outputs]
    while not named[-1]:
        named.pop()
    return tuple(named)


def spec_from(op: str, version: int, row: Mapping[str, Any], **extra: Any) -> CaseSpec:
    """The case of a row of axis values, and of fields of a case; `extra` fields replace what the row says."""
    fields = dict(row)
    T, N, I, H = SIZES[fields.pop("size", "small")]
    fields["outputs"] = _asked(operator_version(op, version), fields.get("outputs", "all"))
    chosen = fields.pop("activations", "default")
    if isinstance(chosen, tuple):
        fields["activations"] = chosen
    elif chosen != "default":
        names = [chosen, _BACKWARD[chosen]] if fields.get("direction") == "bidirectional" else [chosen]
        sets = [ACTIVATION_SETS[name].of(len(CELLS[op].activations)) for name in names]
        alpha = sum((s.alpha for s in sets), ())
        beta = sum((s.beta for s in sets), ())
        fields |= {"activations": sum((s.names for s in sets), ()), "alpha": alpha or None, "beta": beta or None}
    return CaseSpec(op, version, **{"T": T, "N": N, "I": I, "H": H, **fields, **extra})
