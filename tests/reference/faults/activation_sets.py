"""Sets of activation functions by name, for cases in which faults of functions show."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from onnxspec.reference import ACTIVATIONS, cell_named


class ActivationSet(Struct, frozen=True):
    """Functions f, g and h of one direction, and their coefficients: in order, for the functions that use them."""

    names: tuple[str, ...]
    alpha: tuple[float, ...] = ()
    beta: tuple[float, ...] = ()

    def of(self, count: int) -> ActivationSet:
        """Return the set of an operator that has fewer functions: f and h for two, h for one."""
        if count >= len(self.names):
            return self
        kept = (0, 2)[2 - count :]

        def left(values: tuple[float, ...], uses: list[bool]) -> tuple[float, ...]:
            return tuple(values[sum(uses[:k])] for k in kept if uses[k] and sum(uses[:k]) < len(values))

        kinds = [ACTIVATIONS[next(n for n in ACTIVATIONS if n.lower() == name.lower())] for name in self.names]
        return ActivationSet(
            tuple(self.names[k] for k in kept),
            left(self.alpha, [function.uses_alpha for function in kinds]),
            left(self.beta, [function.uses_beta for function in kinds]),
        )


# Functions with and without coefficients, all eleven among them. In `each` every function uses both lists, so there is
# only one way to consume them. In `mixed` the order of consumption matters. In `usual` all coefficients are defaults.
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
    # Functions that cost few roundings and stay in range for any number of steps: bounds of half types are narrow for
    # them.
    "tight": ActivationSet(("HardSigmoid", "LeakyRelu", "Softsign")),
}

# Functions of the backward direction in a bidirectional node: another set, so that swapped directions show.
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


@cache
def activations_of(chosen: str, op: str, both: bool) -> Mapping[str, Any]:
    """Return the fields of a case for the named set.

    In a bidirectional node, the backward direction has another set.
    """
    names = [chosen, _BACKWARD[chosen]] if both else [chosen]
    sets = [ACTIVATION_SETS[name].of(len(cell_named(op).activations)) for name in names]
    alpha = sum((s.alpha for s in sets), ())
    beta = sum((s.beta for s in sets), ())
    return {"activations": sum((s.names for s in sets), ()), "alpha": alpha or None, "beta": beta or None}
