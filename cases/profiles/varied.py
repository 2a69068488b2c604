"""Cases of axes that are younger than the dense pool: rare values, each once, and sizes.

Ordinary values (the order of rows, where the longest ends) stand in siblings of dense cases (:mod:`.turns`). A rare one
(a tensor of zeros, a constant that is overridden) costs a case an operator: on its newest version, types taking turns.
Sizes stand at, below and above where kernels turn over: blocks, tiles and counters of 32, 64, 128, 256 and 512, and
offsets of 16 bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from ...reference import cell_named, operator_version, versions_of
from ..axes.recurrent import RECURRENT_AXES
from ..specs.space import PINNED_AXES, settle, spec_from
from ..specs.spec import CaseSpec
from .designs import Row, plain_row
from .turns import TURNING

# (T, N, I, H): a long run of more than 65,536 inputs, many rows, many inputs, many units.
_SIZES = (
    (258, 8, 33, 5),
    (2, 31, 5, 127),
    (3, 33, 2, 64),
    (3, 260, 65, 6),
    (2, 2, 257, 129),
    (2, 1, 7, 520),
)
_ORDERS = ("mixed", "falling", "rising", "ends")

# Constants that are overridden: one of several, or all; what a model holds of B, P and states is mostly zeros.
_HELD: tuple[dict[str, Any], ...] = (
    {"held": "zeroed", "constant": "states", "weights": "input"},
    {"held": "listed", "weights": "initializer"},
    {"held": "once", "weights": "initializer"},
    {"held": "once", "constant": "states", "weights": "input", "fed": "initial_h"},
    {"held": "overridden", "constant": "lengths", "weights": "input"},
    *({"held": "overridden", "fed": name, "weights": "initializer"} for name in "WR"),
    *({"held": "zeroed", "fed": name, "weights": "initializer"} for name in "BP"),
    {"held": "overridden", "constant": "states", "weights": "input", "fed": "initial_c"},
)


def varied(op: str, version: int) -> Iterator[CaseSpec]:
    """Cases of one operator version."""
    if version == versions_of(op)[-1]:
        yield from _rare(op, version)
        yield from _large(op, version)
        yield from _graphs(op, version)


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
    # The end of a row is guessed where no length says it.
    rare["zeros"] = [one | ({"lengths": "absent"} if one["zeros"] in ("ends", "mask") else {}) for one in rare["zeros"]]
    # A constant bias half of which is zero may be dropped while a model is loaded.
    places = [one["zeros"] for one in rare["zeros"]], [one["constant"] for one in rare["constant"]]
    half, bias = places[0].index("input-bias"), places[1].index("B")
    rare["zeros"][bias], rare["zeros"][half] = rare["zeros"][half], rare["zeros"][bias]
    # Weights that are subnormal in float16 are common; what is left of products that cancel is little there. Large
    # states show where W is square.
    added: dict[str, Row] = {"subnormal-weights": {"type": "float16"}, "cancel": {"type": "float32"}}
    added["states"] = _square(op)
    rare["extremes"] = [one | added.get(str(one["extremes"]), {}) for one in rare["extremes"]]
    # Sizes that are all the same.
    alike = dict.fromkeys("TNIH", 2)
    rare["constant"] = [one | (alike if one["constant"] == "lengths" else {}) for one in rare["constant"]]
    # Where the reset gate stands between the halves of a bias, these do not cancel.
    reset = {"linear_before_reset": 1} if "linear_before_reset" in operator.attributes else {}
    rare["alike"] = [one | (reset if one["alike"] == "bias" else {}) for one in rare["alike"]]
    held = list(_held([str(one["fed"]) for one in rare.pop("fed")]))
    del rare["held"], rare["neighbours"], rare["placeholders"]
    # Constants hide no zeros, overridden ones no size of numbers, and no session the end of an attribute;
    # and of none of them are others in the run before, or equal, but for the tensor that is constant or zero.
    together = (
        (rare.pop("constant"), rare.pop("zeros"), rare.pop("nearly")),
        (rare.pop("extremes"), held, rare.pop("alike")),
        ([change for changes in rare.values() for change in changes], ends),
    )
    for number, change in enumerate(change for lists in together for change in _abreast(rich, lists)):
        # Cases that differ in no part of the model share one.
        shared = not {"constant", "held"} & change.keys() and bool({"zeros", "nearly"} & change.keys())
        row = {**rich, "type": "float32" if shared else next(kinds), **change}
        if "reweighed" in change:
            row["weights"] = "input"
        yield spec_from(op, version, row, seed=number + 1, weights_seed=number + 1)


def _held(alone: Sequence[str]) -> Iterator[Row]:
    """Constants that are overridden, where those of `alone` can be by themselves."""
    for one in _HELD:
        if one.get("fed", "all") in ("all", *alone):
            yield one
        elif one["fed"] == "initial_h":
            yield {**one, "fed": "all"}  # of one state


def _abreast(rich: Row, lists: Sequence[list[Row]]) -> Iterator[Row]:
    """Changes of several lists in turn, one of each together; of a list whose next one does not go with the others, a
    later one that does."""
    waiting = [list(changes) for changes in lists]
    while any(waiting):
        together: Row = {}
        for changes in waiting:
            for change in changes:
                settled = settle({**rich, **together, **change})
                if not together or all(settled[name] == value for name, value in {**together, **change}.items()):
                    together |= change
                    changes.remove(change)
                    break
        yield together


def _coefficients(op: str) -> list[dict[str, Any]]:
    """Coefficients of 0 and beyond the usual, in functions that use them."""
    each = len(cell_named(op).activations)
    gates = ("HardSigmoid",) * (each - 1)
    rows: list[Row] = []
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
        # A runtime that folds weights into constants folds each of them.
        rows.append({"activations": functions, "alpha": given, "beta": both or None, "weights": "initializer"})
        if name == "ScaledTanh":  # beside what a session does, names of what is not there hide nothing
            rows[-1] |= {
                "placeholders": True,
                "initial": "none",
                "lengths": "absent",
                "peepholes": False,
                "outputs": "Y",
            }
    return rows


def _large(op: str, version: int) -> Iterator[CaseSpec]:
    rich = _rich(op, version)
    for number, (T, N, I, H) in enumerate(_SIZES):
        row = {**rich, "T": T, "N": N, "I": I, "H": H, "seed": number, "weights_seed": number}
        row |= {"direction": ("forward", "reverse")[number % 2], "weights": "initializer"}
        row |= {"row_order": _ORDERS[number % len(_ORDERS)]} if N > 1 else {"lengths": "full"}
        yield spec_from(op, version, row)


def _square(op: str) -> Row:
    """Sizes with which W is square in each direction, a state is, and a row of X."""
    gates = operator_version(op, versions_of(op)[-1]).gates
    return {"T": 3 * gates, "N": 3, "I": 3 * gates, "H": 3}


def _graphs(op: str, version: int) -> Iterator[CaseSpec]:
    """Nodes that share weights, and one behind the last step of a reverse one."""
    rich = {**_rich(op, version), "weights": "initializer"}
    # Kernels that compare nodes may leave coefficients out.
    given = {"activations": ("LeakyRelu",) * 2, "alpha": (0.25, 0.5)} if len(cell_named(op).activations) == 1 else {}
    yield spec_from(op, version, {**rich, **given, "neighbours": "twins"})
    yield spec_from(op, version, {**rich, "direction": "reverse", "lengths": "absent", "neighbours": "last-step"})
