"""Axes of sessions: named sizes, runs before a case's own, other sessions beside it, outputs held between them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import eq, ne
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .axis import Axis, Feature, Rule, choice, needs, needs_numbers, of_values, switch
from .tensors import CONSTANTS, OF_INPUTS

if TYPE_CHECKING:
    from ..specs.model import TensorDraft

Arrays = Mapping[str, NDArray[Any]]


class Turn(NamedTuple):
    """One run.

    run
        Number of the inputs: 0 for the case's own.
    weights
        0 for the case's own, 1 for others.
    session
        0 for the case's own; 1 for another one, of a model with the other weights.
    part
        The part of the inputs that is replaced, while all others are the case's own. If it is empty, all inputs are
        those of `run` and `weights`.
    """

    run: int
    weights: int = 0
    session: int = 0
    part: str = ""


class SessionScript:
    """Draft of the sessions of a case, which axes extend in turn.

    turns
        The runs in their order; the case's own is among them.
    needs
        Abilities that a worker's sessions must have.
    refused
        Whether an attempt that must fail comes before the case's own run is repeated.
    looks
        Whether all outputs are held, and compared in the end.
    """

    def __init__(self) -> None:
        self.turns = [Turn(0)]
        self.needs: set[str] = set()
        self.refused = self.looks = False

    def before(self, *turns: Turn, needs: str = "") -> None:
        """Add runs before all others, and the ability that they need."""
        self.turns[:0] = turns
        self.needs |= {needs} - {""}

    def override(self) -> None:
        """Add a first run that feeds other weights than the model's."""
        self.before(Turn(_OVERRIDING, weights=1), needs="weights")


# Numbers of runs with other data than the case's own, whose number is 0
_RERUN, _UP, _DOWN, _OTHER, _AFTER, _OVERRIDING = 1, 2, 3, 4, 5, 6

# Sizes

# static, or symbolic (seq_length and batch_size have names)
DIMENSIONS = Axis(
    name="dimensions",
    values=("static", "symbolic"),
    # Inputs of another size do not fit a model whose dimensions are numbers.
    rules=(Rule(("reruns",), lambda reruns: reruns in ("sizes", "growing"), instead="symbolic"),),
    level="complete",
    features=(
        Feature("symbolic", "symbolic dimensions", case=lambda spec: spec.dimensions == "symbolic", level="complete"),
    ),
)

_ANY = of_values("a re-used session", "reruns", "data", "sizes", "growing")
_OTHER_SIZES = of_values("an earlier run of another size", "reruns", "sizes", "growing")


def _fewer(draft: TensorDraft) -> None:
    draft.T, draft.N = max(draft.T - 2, 1), max(draft.N - 1, 1)


def _prepare_reruns(spec: Any, draft: TensorDraft) -> None:
    if draft.run == _RERUN and spec.reruns == "sizes":
        draft.T, draft.N = draft.T + 2, draft.N + 1
    if draft.run == _RERUN and spec.reruns == "growing":
        _fewer(draft)


def _simpler_reruns(spec: Any) -> list[Mapping[str, Any]]:
    simpler = {"data": ("none",), "sizes": ("none", "data"), "growing": ("none",)}
    return [{"reruns": less} for less in simpler.get(spec.reruns, ())]


# none, data (others of the same shape), sizes (others of more steps and rows), growing (others of fewer)
RERUNS = Axis(
    name="reruns",
    values=("none", "data", "sizes", "growing"),
    rare=("growing",),
    often=("none", "none", "none", "data", "sizes", "growing"),
    rules=(Rule(("T", "N"), lambda T, N: max(T, N) < 2, ("growing",), "data"),),
    level="complete",
    usual=("none", "data"),
    features=(
        Feature("rerun", "a re-used session", case=lambda spec: spec.reruns != "none", column=True, level="complete"),
    ),
    marked="after-other-{}",
    conditions={
        "data": (_ANY,),
        "sizes": (of_values("an earlier run that is larger", "reruns", "sizes"), _OTHER_SIZES, _ANY),
        "growing": (of_values("an earlier run that is smaller", "reruns", "growing"), _OTHER_SIZES, _ANY),
    },
    simpler=_simpler_reruns,
    prepare=_prepare_reruns,
    script=lambda spec, script: script.before(Turn(_RERUN)),
)

# Sessions with special events


def _event(name: str, feature: str, words: str, **members: Any) -> Axis:
    """Return the axis of a rare event of a session, with its one feature."""
    case = Feature(feature, words, case=lambda spec: bool(getattr(spec, name)))
    return switch(name, level="complete", features=(case,), **members)


# The weights that the run before is fed differ: a kernel must not keep data that it packed or cached from them.
REWEIGHED = _event(
    "reweighed",
    "other-weights",
    "an earlier run with other weights",
    # Constant weights cannot change.
    rules=(Rule(("weights",), lambda weights: weights == "initializer"),),
    script=lambda spec, script: script.before(Turn(0, weights=1), needs="weights"),
)


def _prepare_waves(spec: Any, draft: TensorDraft) -> None:
    if draft.run == _UP:
        draft.T, draft.N = draft.T + 3, draft.N + 2
    if draft.run == _DOWN:
        _fewer(draft)


# Before the case's own run there are runs of more steps and rows, of fewer, and of more again.
WAVES = _event(
    "waves",
    "waves",
    "earlier runs of sizes that go up and down",
    # Inputs of another size do not fit a model whose dimensions are numbers.
    rules=(Rule(("dimensions",), lambda dimensions: dimensions == "static"),),
    prepare=_prepare_waves,
    script=lambda spec, script: script.before(Turn(_UP), Turn(_DOWN), Turn(_UP), needs="sizes"),
)


# A session of the same node with other weights is created and run between two runs of the case's own. Neither may
# affect the other.
BESIDE = _event(
    "beside",
    "two-sessions",
    "another session at the same time",
    script=lambda spec, script: script.before(Turn(0), Turn(0, weights=1, session=1), needs="several"),
)


def _script_many(spec: Any, script: SessionScript) -> None:
    script.needs.add("many")
    if len(set(script.turns)) == 1:
        script.before(Turn(_OTHER))
    script.turns *= 16


# The runs of the session, two at least, are repeated in turn sixteen times: counters, pools and caches come round.
MANY = _event("many", "many-runs", "many earlier runs", script=_script_many)


def _script_refusal(spec: Any, script: SessionScript) -> None:
    script.needs.add("refusals")
    script.refused = True


# The case's own inputs run, then an invalid X with a column too many, then the case's own run again.
AFTER_REFUSAL = _event(
    "after_refusal", "after-refusal", "an earlier run that was refused", marked="refusal", script=_script_refusal
)


def _script_kept(spec: Any, script: SessionScript) -> None:
    script.needs.add("held")
    script.turns.append(Turn(_AFTER))
    script.looks = True


# Outputs of every run that the caller holds, and compares after runs of other data.
KEPT = _event("kept", "held-outputs", "outputs held during later runs", script=_script_kept)

_PLACES = ("middle", "tail", "element")
_NEARLY = (*CONSTANTS, *_PLACES, "lengths", "states", "X", "plain")
_LITTLE = (False, "none", "absent", "full", "short")


def _script_nearly(spec: Any, script: SessionScript) -> None:
    script.before(Turn(0, part=spec.nearly), needs="weights" if spec.nearly in (*CONSTANTS, *_PLACES) else "")


# none; or the difference of the run before: weights in their middle (neither in the first nor in the last quarter of
# their elements), their tail (the last quarter) or one element; W, R, B, P alone; the lengths (the same ones, of other
# rows), the initial states, the middle of X; plain (its rows are whole and its states zeros). Kernels cache data made
# from an input, and check whether the input is the same by its first elements, its sum, or another input. Or they
# decide in the first run for later ones.
NEARLY = choice(
    "nearly",
    "none",
    _NEARLY,
    30,
    there=lambda operator, value: value not in CONSTANTS or value in operator.inputs,
    rules=(
        # Constants cannot change.
        Rule(("weights",), lambda weights: weights == "initializer", (*CONSTANTS, *_PLACES)),
        *(Rule(("constant",), partial(eq, name), (name,)) for name in _NEARLY),
        needs_numbers(),
        Rule(("N",), lambda N: N < 2, ("lengths",)),
        Rule(("lengths", "initial"), lambda lengths, initial: lengths in _LITTLE and initial == "none", ("plain",)),
        Rule(("constant",), lambda constant: constant in ("lengths", "states"), ("plain",)),
        Rule(("data",), lambda data: data == "nan-padding", ("plain",)),
        *needs(OF_INPUTS, _LITTLE),
    ),
    level="complete",
    features=(
        Feature(
            "nearly-same-weights",
            "an earlier run with weights of which a part was another",
            case=lambda spec: spec.nearly in (*CONSTANTS, *_PLACES),
        ),
        Feature(
            "nearly-same-data",
            "an earlier run with data of which a part was another",
            case=lambda spec: spec.nearly in ("lengths", "states", "X", "plain"),
        ),
    ),
    marked="nearly-{}",
    script=_script_nearly,
)


def nearly_own(part: str, own: Arrays, others: Arrays, fixed: frozenset[str], steps: int) -> Arrays:
    """Return a case's inputs with one part replaced by that of other inputs.

    Inputs in `fixed` stay. A whole row has `steps` steps.
    """
    if part in CONSTANTS:
        return {**own, part: others[part]}
    if part == "lengths":
        return {**own, "sequence_lens": np.roll(own["sequence_lens"], 1)}
    if part == "plain":
        states = {name: np.zeros_like(array) for name, array in own.items() if name.startswith("initial_")}
        whole = {name: np.full_like(own[name], steps) for name in ("sequence_lens",) if name in own}
        return {**own, **states, **whole}
    if part == "states":
        return {name: others[name] if name.startswith("initial_") else array for name, array in own.items()}
    names, part = (("X",), "middle") if part == "X" else (CONSTANTS, part)
    return {n: _mixed(part, array, others[n]) if n in names and n not in fixed else array for n, array in own.items()}


def _mixed(part: str, own: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    quarter = own.size // 4
    places = {
        "middle": slice(quarter, own.size - quarter),
        "tail": slice(own.size - max(quarter, 1), own.size),
        "element": slice(own.size // 2, own.size // 2 + 1),
    }
    mixed = own.copy()
    mixed.reshape(-1)[places[part]] = other.reshape(-1)[places[part]]
    return mixed


EVENTFUL: tuple[Axis, ...] = (REWEIGHED, NEARLY, WAVES, BESIDE, MANY, AFTER_REFUSAL, KEPT)
"""Axes of sessions, in the order in which they extend a script. Quantized cases do not use them."""

# Neighbours

_LONE: Mapping[str, Any] = {
    **{axis.name: axis.values[0] for axis in EVENTFUL},
    **{"held": "fixed", "constant": "weights", "quantization": "none", "illegal": ""},
}
"""Values that fields must have in cases with neighbours.

Events of sessions, and constants that change, are for single nodes.
"""

# none; twins (two more nodes with the same X and W: one that differs from the case's own only in clip, and one with
# different other inputs); last-step (a second node begins where the last step of the first one's Y ends). Kernels cache
# packed weights by the name of one of them, merge nodes that are nearly the same, and replace the last step of Y by
# Y_h. The models are built in specs/graphs.py.
NEIGHBOURS = choice(
    "neighbours",
    "none",
    ("twins", "last-step"),
    12,
    often=("none",) * 12 + ("twins", "last-step", "last-step"),
    there=lambda operator, value: not operator.domain,
    rules=(
        *(Rule((field,), partial(ne, value), kind="illegal") for field, value in _LONE.items()),
        needs_numbers(kind="illegal"),
        Rule(("outputs",), lambda outputs: "Y" not in outputs, ("last-step",), kind="illegal"),
        Rule(("output_sequence",), lambda announced: announced == 0, ("last-step",), kind="illegal"),
    ),
    level="complete",
    features=(
        Feature("twin-nodes", "nodes that share weights", case=lambda spec: spec.neighbours == "twins"),
        Feature("last-step-used", "a node behind the last step of Y", case=lambda spec: spec.neighbours == "last-step"),
    ),
    marked="{}",
)
