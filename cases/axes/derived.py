"""Features that follow from several axes together, and belong to none."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .observed import Observed

# Functions that go to a limit on both sides by way of e^x.
_SATURATING = frozenset({"Tanh", "Sigmoid", "ScaledTanh"})

DERIVED: Mapping[str, str] = {
    "nonfinite": "NaN or infinity",
    "infinity": "infinity",
    "saturating": "arguments at which functions are flat",
    "overflow": "numbers that leave the range of their type",
}
"""Noun phrase of each feature, for all readers."""


def derived_features(observed: Observed) -> Mapping[str, bool]:
    """Return each such feature, and whether a node with its inputs has it."""
    c, magnitudes = observed.configuration, observed.magnitudes
    product = magnitudes.largest["X"] * magnitudes.largest["W"]
    # One product may bring an argument to where e^x leaves the range of T.
    steep = bool(product >= np.log(c.format.largest))
    return {
        "nonfinite": not magnitudes.finite,
        "infinity": magnitudes.infinite,
        "saturating": steep and bool(observed.functions & _SATURATING),
        "overflow": (steep and "Softplus" in observed.functions) or product * c.I >= c.format.largest,
    }
