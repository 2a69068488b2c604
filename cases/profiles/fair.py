"""Cases for runners with one fixed tolerance: dense ones that such a runner may judge.

Most dense cases are not fair there: they touch a question that the document leaves open, or their right results differ
by more than the tolerance. These are the ones among many draws of small sizes that are (``directories/fairness.py``
says when; a test looks at them again), in the two types whose error bounds lie within it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec

from ..specs.spec import CaseSpec
from .dense import Supported, dense_spec

SEED = "fair"

_NO_PADDING: Supported = {"lengths": ("absent", "full")}  # what stands past a length is a convention
SPACES: Mapping[str, Supported] = {
    "float64": _NO_PADDING,
    "float32": {**_NO_PADDING, "T": (1, 2, 3), "I": (1, 2, 3, 4), "H": (1, 2, 3, 4, 5)},
}
"""The ranges in which they are drawn, by type: numbers close to zero come out of long sums, and their relative error is
large."""


@cache
def _drawn() -> Mapping[str, Mapping[str, tuple[int, ...]]]:
    """Numbers of the draws, by operator and type."""
    text = resources.files(__package__ or "onnxspec.cases.profiles").joinpath("fair.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, dict[str, tuple[int, ...]]])


def fair_cases(op: str, version: int) -> tuple[CaseSpec, ...]:
    """The fair dense cases of an operator version, in a fixed order; none of an operator that has no list."""
    drawn = (
        dense_spec(op, index, None, kind, SPACES[kind], SEED)
        for kind, indices in _drawn().get(op, {}).items()
        for index in indices
    )
    return tuple(spec for spec in drawn if spec is not None and spec.version == version)
