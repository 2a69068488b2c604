"""Any case of ExtendedLSTM, for searches beyond the profiles: what the document allows, usual or not."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from .codec import HIGHEST, MIDDLE, Affine
from .spec import extended

__all__ = ["any_extended"]

_STEPS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 9, 17, 33)
_ROWS = (1, 1, 1, 1, 1, 1, 2, 3, 5)  # one row is what every implementation has
_INPUTS = (1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 33)
_UNITS = (1, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33)
_NOTHING = 0.02  # the share of cases without steps, and of those without rows
_SEEDS = 1_000_000
_ZERO_POINTS = (0, MIDDLE - 1, MIDDLE, HIGHEST)
# Levels reach as far as 2**(exponent + 16). Most numbers are of a usual size; of the others products of two scales
# leave what a mantissa of 16 bits and a shift of 32 hold.
_USUAL, _RARE = (-18, -14), (-30, -6)
_FILLS = (1.0, 1.0, 1.0, 1.0, 0.25, 0.02, 1.5)


def any_extended(random: Random) -> Any | None:
    """A case; None where what was drawn cannot be together."""
    row: dict[str, Any] = {
        "T": 0 if random.random() < _NOTHING else random.choice(_STEPS),
        "N": 0 if random.random() < _NOTHING else random.choice(_ROWS),
        "I": random.choice(_INPUTS),
        "H": random.choice(_UNITS),
        **{name: _affine(random) for name in "xwrb"},
        "y": None if random.random() < 0.1 else _output(random) if random.random() < 0.6 else _affine(random),
        "bias": random.random() < 0.8,
        "hidden_size": random.random() < 0.85,
        "explicit": random.random() < 0.3,
        "old": random.random() < 0.2,
        "weights": random.choice(("initializer", "input")),
        "reruns": random.choice(("none", "none", "data", "sizes")),
        "data": random.choice(("dense",) * 12 + ("ties", "far", "inf")),
        "fill": tuple((name, share) for name in "XWRB" if (share := random.choice(_FILLS)) != 1.0),
        "seed": random.randrange(_SEEDS),
    }
    try:
        return extended("drawn", **row)
    except ValueError:
        return None


def _affine(random: Random) -> Affine:
    low, high = _RARE if random.random() < 0.15 else _USUAL
    mantissa = random.choice((1.0, 1.5, random.uniform(1.0, 2.0), random.uniform(1.0, 2.0)))
    scale = float(np.float32(mantissa * 2.0 ** random.randint(low, high)))
    return scale, random.choice(_ZERO_POINTS) if random.random() < 0.5 else random.randrange(HIGHEST + 1)


def _output(random: Random) -> Affine:
    """A range in which outputs lie, which are between -1 and 1."""
    reach = 1.0 + random.random() / 4
    return float(np.float32(2 * reach / HIGHEST)), MIDDLE + random.randrange(-1000, 1000)
