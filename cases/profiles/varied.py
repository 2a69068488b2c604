"""Cases of axes that are younger than the dense pool: rare values, each once, and sizes.

Ordinary values (the order of rows, where the longest ends) stand in siblings of dense cases (:mod:`.turns`). A rare one
(a tensor of zeros, a constant that is overridden) costs a case an operator: on its newest version, types taking turns.
Sizes stand at, below and above where kernels turn over: blocks, tiles and counters of 32, 64, 128, 256 and 512.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ...reference import cell_named, operator_version, versions_of
from ..axes.recurrent import RECURRENT_AXES
from ..specs.space import PINNED_AXES, spec_from
from ..specs.spec import CaseSpec
from .designs import plain_row
from .turns import TURNING

__all__ = ["varied"]

# (T, N, I, H): a long run, many rows, many inputs, many units.
_SIZES = (
    (258, 2, 3, 5),
    (2, 31, 3, 32),
    (3, 33, 2, 64),
    (2, 40, 65, 6),
    (2, 2, 257, 63),
    (2, 2, 5, 127),
    (2, 2, 130, 129),
    (2, 1, 7, 520),
)

# Constants that are overridden one by one.
_ALONE: tuple[dict[str, Any], ...] = (
    {"held": "once", "constant": "states"},
    {"held": "overridden", "constant": "B"},
    {"held": "overridden", "constant": "lengths"},
)


def varied(op: str, version: int) -> Iterator[CaseSpec]:
    """Those of one operator version."""
    if version == versions_of(op)[-1]:
        yield from _rare(op, version)
        yield from _large(op, version)


def _rich(op: str, version: int) -> dict[str, Any]:
    row = plain_row(op, version) | {"T": 5, "N": 4, "I": 4, "H": 5, "bias": True, "initial": "all"}
    row |= {"lengths": "ragged", "direction": "bidirectional", "weights": "input"}
    return row | ({"peepholes": True} if cell_named(op).peepholes else {})


def _rare(op: str, version: int) -> Iterator[CaseSpec]:
    """Each rare value of each later axis, those together that do not hide each other; and the ends of numbers."""
    operator, rich = operator_version(op, version), _rich(op, version)
    kinds = itertools.cycle(("float32", "float64", "float32", "float16", "float32"))
    rare = {
        field: [{field: value} for value in domain.rare]
        for axis in RECURRENT_AXES
        if not axis.block
        for field, domain in axis.domains(operator).items()
        if field not in PINNED_AXES and field not in TURNING
    }
    ends: list[dict[str, Any]] = [{"clip": 2.0**-10}, {"clip": 1e30}, *_coefficients(op)]
    if "linear_before_reset" in operator.attributes:
        ends += [{"linear_before_reset": -1}, {"linear_before_reset": 255}]
    # What is constant hides no zeros, what is overridden no size of numbers, and no session the end of an attribute.
    held = [*rare.pop("held"), *({**one, "weights": "input"} for one in _ALONE)]
    pairs = (
        (rare.pop("constant"), rare.pop("zeros")),
        (rare.pop("extremes"), held),
        ([change for changes in rare.values() for change in changes], ends),
    )
    nothing: dict[str, Any] = {}
    changes: list[dict[str, Any]] = []
    for first, second in pairs:
        changes += [{**one, **other} for one, other in itertools.zip_longest(first, second, fillvalue=nothing)]
    for number, change in enumerate(changes):
        row = {**rich, **change, "type": next(kinds)}
        if "held" in change:
            row["weights"] = change.get("weights", "initializer")
        if "reweighed" in change:
            row["weights"] = "input"
        yield spec_from(op, version, row, seed=number + 1, weights_seed=number + 1)


def _coefficients(op: str) -> list[dict[str, Any]]:
    """Coefficients of 0 and beyond the usual, in functions that use them."""
    each = len(cell_named(op).activations)
    gates = ("HardSigmoid",) * (each - 1)
    rows = []
    for name, alpha, beta in (
        ("LeakyRelu", (0.0,), ()),
        ("Elu", (-4.0,), ()),
        ("ThresholdedRelu", (0.0,), ()),
        ("ScaledTanh", (4.0,), (0.375,)),
        ("Affine", (0.0,), (-4.0,)),
    ):
        functions = (*gates, name) * 2
        given = ((0.25,) * (each - 1) + alpha) * 2
        both = ((0.5,) * (each - 1) + beta) * 2
        # What is folded into constants is folded into each of them.
        rows.append({"activations": functions, "alpha": given, "beta": both or None, "weights": "initializer"})
    return rows


def _large(op: str, version: int) -> Iterator[CaseSpec]:
    rich = _rich(op, version)
    for number, (T, N, I, H) in enumerate(_SIZES):
        row = {**rich, "T": T, "N": N, "I": I, "H": H, "seed": number, "weights_seed": number}
        row |= {"direction": ("forward", "reverse")[number % 2], "weights": "initializer"}
        row |= {"row_order": ("mixed", "falling", "rising")[number % 3]} if N > 1 else {"lengths": "full"}
        yield spec_from(op, version, row)
