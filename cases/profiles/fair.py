"""Cases for runners with one fixed tolerance: dense ones that such a runner may judge.

Most dense cases are not fair there: they touch a question that the document leaves open, or their right results differ
by more than the tolerance. These are the ones among many draws of small sizes that are (``directories/fairness.py``
says when; a test looks at them again), in the two types whose error bounds lie within it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..specs.spec import CaseSpec
from .dense import Supported, dense_spec

__all__ = ["SEED", "SPACES", "fair_cases"]

SEED = "fair"

_NO_PADDING: Supported = {"lengths": ("absent", "full")}  # what stands past a length is a convention
SPACES: Mapping[str, Supported] = {
    "float64": _NO_PADDING,
    "float32": {**_NO_PADDING, "T": (1, 2, 3), "I": (1, 2, 3, 4), "H": (1, 2, 3, 4, 5)},
}
"""Where they are drawn, by type: numbers close to zero come out of long sums, and their relative error is large."""

# Numbers of the draws, by operator and type.
# fmt: off
_FAIR: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "LSTM": {
        "float64": (
            1, 15, 20, 26, 27, 29, 31, 48, 51, 60, 64, 68, 93, 97, 118, 125, 132, 145, 184, 196,
            201, 203, 206, 215, 219, 225, 226, 230, 244, 246, 248, 281, 283, 298,
        ),
        "float32": (
            15, 33, 36, 47, 50, 62, 86, 97, 104, 115, 118, 127, 129, 130, 132, 135, 141,
            156, 173, 176, 185, 189, 194, 207, 215, 220, 237, 286, 288, 311, 324, 336,
            375,
        ),
    },
    "GRU": {
        "float64": (
            2, 3, 8, 11, 17, 19, 22, 23, 24, 25, 27, 33, 34, 35, 36, 37, 40, 41, 43, 46, 49, 50, 53,
            54, 58, 63, 69, 74, 75, 78, 84, 86, 89,
        ),
        "float32": (
            0, 1, 5, 6, 8, 9, 18, 19, 23, 26, 27, 28, 29, 30, 32, 33, 34, 39, 40, 42,
            43, 48, 49, 52, 55, 57, 58, 59, 60, 62, 63, 64, 65, 66, 67, 71, 81, 85, 88,
            89, 90, 92, 95, 96,
        ),
    },
    "RNN": {
        "float64": (
            0, 5, 6, 8, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 23, 25, 29, 30, 32, 33, 35, 36,
            37, 39, 40, 41, 43, 44, 46, 47, 48, 50, 51, 53, 56, 57, 58, 63, 64, 65, 66, 67, 68, 71,
            74, 75, 76, 79,
        ),
        "float32": (
            0, 2, 8, 9, 10, 11, 12, 15, 16, 18, 19, 25, 26, 27, 28, 29, 30, 31, 32, 33,
            34, 37, 40, 41, 42, 43, 45, 48, 50, 55, 57, 60, 61, 62, 63, 67, 70, 73, 74,
            76, 78, 79, 81, 83, 85,
        ),
    },
}
# fmt: on


def fair_cases(op: str, version: int) -> tuple[CaseSpec, ...]:
    """The fair dense cases of an operator version, in a fixed order; none of an operator that has no list."""
    drawn = (
        dense_spec(op, index, None, kind, SPACES[kind], SEED)
        for kind, indices in _FAIR.get(op, {}).items()
        for index in indices
    )
    return tuple(spec for spec in drawn if spec is not None and spec.version == version)
