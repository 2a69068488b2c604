"""Axes of sessions: runs before a case's own, other sessions beside it, outputs held between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import OperatorVersion
from .axis import SELDOM, Axis, Domain, Field, Rule
from .condition import of_values
from .course import CourseDraft, Turn
from .tensors.draft import TensorDraft


class Event(Axis):
    """Something that a session does or does not do, and seldom does. It has one feature, in its ``words``."""

    part = "session"
    levels = {"basic": (False,), "sequence": (False,)}

    def __init__(self) -> None:
        self.fields = (Field(self.name, bool, False),)
        self.marked = self.marked or self.name

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {self.name: SELDOM}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return dict.fromkeys(self.words, getattr(spec, self.name))


class _Dimensions(Axis):
    """``static`` or ``symbolic`` (seq_length and batch_size have names)."""

    name = "dimensions"
    fields = (Field("dimensions", str, "static"),)
    part = "model"
    # Inputs of another size have no place in a model whose dimensions are numbers.
    rules = (
        Rule("dimensions", "symbolic", ("reruns",), lambda row: row["reruns"] in ("sizes", "growing"), ("static",)),
    )
    levels = {"basic": ("static",), "sequence": ("static",)}
    required = {"complete": ("symbolic",)}
    words = {"symbolic": "symbolic dimensions"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"dimensions": Domain(("static", "symbolic"))}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"symbolic": spec.dimensions == "symbolic"}


DIMENSIONS = _Dimensions()


_ANY = of_values("a re-used session", "reruns", "data", "sizes", "growing")
_OTHER_SIZES = of_values("an earlier run of another size", "reruns", "sizes", "growing")


class RerunsAxis(Axis):
    """``none``, ``data`` (others of the same shape), ``sizes`` (others of more steps and rows), ``growing`` (others of
    fewer)."""

    name = "reruns"
    fields = (Field("reruns", str, "none"),)
    part = "session"
    order = ("none", "data", "sizes")
    rules: tuple[Rule, ...] = (
        Rule("reruns", "data", ("T", "N"), lambda row: max(row["T"], row["N"]) < 2, ("growing",)),
    )
    levels = {"basic": ("none", "data"), "sequence": ("none", "data")}
    required = {"complete": ("rerun",)}
    words = {"rerun": "a re-used session"}
    columns = ("rerun",)
    marked = "after-other-{}"
    conditions = {
        "data": (_ANY,),
        "sizes": (of_values("an earlier run that is larger", "reruns", "sizes"), _OTHER_SIZES, _ANY),
        "growing": (of_values("an earlier run that is smaller", "reruns", "growing"), _OTHER_SIZES, _ANY),
    }

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        often = ("none", "none", "none", "data", "sizes", "growing")
        return {"reruns": Domain(("none", "data", "sizes"), rare=("growing",), often=often)}

    def resize(self, spec: Any, draft: TensorDraft) -> None:
        if draft.run == 1 and spec.reruns == "sizes":
            draft.T, draft.N = draft.T + 2, draft.N + 1
        if draft.run == 1 and spec.reruns == "growing":
            draft.T, draft.N = max(draft.T - 2, 1), max(draft.N - 1, 1)

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.reruns != "none":
            draft.turns.insert(0, Turn(1))

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"rerun": spec.reruns != "none"}


RERUNS = RerunsAxis()


class _Reweighed(Event):
    """Fed weights that differ in the run before: a kernel must not keep data that it packed or cached from them."""

    name = "reweighed"
    # Weights that are constants cannot change.
    rules = (Rule("reweighed", False, ("weights",), lambda row: row["weights"] == "initializer", (True,)),)
    words = {"other-weights": "an earlier run with other weights"}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.reweighed:
            draft.needs.add("weights")
            draft.turns.insert(0, Turn(0, weights=1))

    def written(self, row: dict[str, Any], operator: OperatorVersion) -> dict[str, Any]:
        return {**row, "weights": "input"} if row.get("reweighed") else row


REWEIGHED = _Reweighed()


_UP, _DOWN = 2, 3  # numbers of runs; those of `reruns` are 0 and 1


class _Waves(Event):
    """Before the case's own run there are runs of more steps and rows, of fewer, and of more again."""

    name = "waves"
    # Inputs of another size have no place in a model whose dimensions are numbers.
    rules = (Rule("waves", False, ("dimensions",), lambda row: row["dimensions"] == "static", (True,)),)
    words = {"waves": "earlier runs of sizes that go up and down"}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.waves:
            draft.needs.add("sizes")
            draft.turns[:0] = [Turn(_UP), Turn(_DOWN), Turn(_UP)]

    def resize(self, spec: Any, draft: TensorDraft) -> None:
        if draft.run == _UP:
            draft.T, draft.N = draft.T + 3, draft.N + 2
        if draft.run == _DOWN:
            draft.T, draft.N = max(draft.T - 2, 1), max(draft.N - 1, 1)

    def written(self, row: dict[str, Any], operator: OperatorVersion) -> dict[str, Any]:
        return {**row, "dimensions": "symbolic"} if row.get("waves") else row


WAVES = _Waves()


class _Beside(Event):
    """A session of the same node with other weights is made and run between two runs of the case's own: neither may
    know of the other."""

    name = "beside"
    words = {"two-sessions": "another session at the same time"}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.beside:
            draft.needs.add("several")
            draft.turns[:0] = [Turn(0), Turn(0, weights=1, session=1)]


BESIDE = _Beside()


_OTHER = 4  # number of a run with other data
_TIMES = 16


class _Many(Event):
    """The runs of the session, two at least, take turns sixteen times: counters, pools and caches come round."""

    name = "many"
    words = {"many-runs": "many earlier runs"}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.many:
            draft.needs.add("many")
            if len(set(draft.turns)) == 1:
                draft.turns.insert(0, Turn(_OTHER))
            draft.turns *= _TIMES


MANY = _Many()


class _AfterRefusal(Event):
    """The case's own inputs run, then X comes with a column too many, which cannot be right, then its own run again."""

    name = "after_refusal"
    marked = "refusal"
    words = {"after-refusal": "an earlier run that was refused"}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.after_refusal:
            draft.needs.add("refusals")
            draft.refused = True


AFTER_REFUSAL = _AfterRefusal()


_AFTER = 5  # number of a run with other data


class _Kept(Event):
    """Outputs of every run that the caller holds, and compares after runs of other data."""

    name = "kept"
    words = {"held-outputs": "outputs held during later runs"}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.kept:
            draft.needs.add("held")
            draft.turns.append(Turn(_AFTER))
            draft.looks = True


KEPT = _Kept()


Arrays = Mapping[str, NDArray[Any]]

_WEIGHTS = ("W", "R", "B", "P")
_PLACES = ("middle", "tail", "element")
_ABSENT = (False, "none", "absent", "full", "short")
_NEEDS = {"B": "bias", "P": "peepholes", "states": "initial", "lengths": "lengths"}


class _Nearly(Axis):
    """``none``; or the difference of the run before: weights in their ``middle`` (neither in the first nor in the last
    quarter of their elements), their ``tail`` (the last quarter) or one ``element``; ``W``, ``R``, ``B``, ``P`` alone;
    the ``lengths`` (the same ones, of other rows), the initial ``states``, the middle of ``X``; ``plain``: its rows are
    whole and its states zeros. Kernels cache data made from an input, and check whether the input is the same by its
    first elements, its sum, or another input; or decide in the first run for later ones."""

    name = "nearly"
    fields = (Field("nearly", str, "none"),)
    part = "session"
    order = ("none", *_WEIGHTS, *_PLACES, "lengths", "states", "X", "plain")
    rules = (
        # Constants cannot change.
        Rule("nearly", "none", ("weights",), lambda row: row["weights"] == "initializer", (*_WEIGHTS, *_PLACES)),
        Rule("nearly", "none", ("constant",), lambda row: row["nearly"] == row["constant"], order[1:]),
        Rule("nearly", "none", ("T", "N"), lambda row: not (row["T"] and row["N"]), order[1:]),
        Rule("nearly", "none", ("N",), lambda row: row["N"] < 2, ("lengths",)),
        Rule(
            "nearly",
            "none",
            ("lengths", "initial", "constant", "data"),
            lambda row: (
                (row["lengths"] in _ABSENT and row["initial"] == "none")
                or row["constant"] in ("lengths", "states")
                or row["data"] == "nan-padding"
            ),
            ("plain",),
        ),
        *(
            Rule("nearly", "none", (field,), lambda row, field=field: row[field] in _ABSENT, (value,))  # type: ignore[misc]
            for value, field in _NEEDS.items()
        ),
    )
    levels = {"basic": ("none",), "sequence": ("none",)}
    words = {
        "nearly-same-weights": "an earlier run with weights of which a part was another",
        "nearly-same-data": "an earlier run with data of which a part was another",
    }
    marked = "nearly-{}"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        values = tuple(v for v in self.order[1:] if v not in _WEIGHTS or v in operator.inputs)
        return {"nearly": Domain(("none",), rare=values, often=("none",) * 30 + values, share=1 / 8)}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.nearly != "none":
            if spec.nearly in (*_WEIGHTS, *_PLACES):
                draft.needs.add("weights")
            draft.turns.insert(0, Turn(0, part=spec.nearly))

    def used(self, spec: Any) -> Mapping[str, bool]:
        data = spec.nearly in ("lengths", "states", "X", "plain")
        return {"nearly-same-weights": spec.nearly != "none" and not data, "nearly-same-data": data}


def nearly_own(part: str, own: Arrays, others: Arrays, fixed: frozenset[str], steps: int) -> Arrays:
    """Return a case's inputs with that part replaced; `fixed` ones stay. A whole row has so many steps."""
    if part in _WEIGHTS:
        return {**own, part: others[part]}
    if part == "lengths":
        return {**own, "sequence_lens": np.roll(own["sequence_lens"], 1)}
    if part == "plain":
        states = {name: np.zeros_like(array) for name, array in own.items() if name.startswith("initial_")}
        whole = {name: np.full_like(own[name], steps) for name in ("sequence_lens",) if name in own}
        return {**own, **states, **whole}
    if part == "states":
        return {name: others[name] if name.startswith("initial_") else array for name, array in own.items()}
    names, part = (("X",), "middle") if part == "X" else (_WEIGHTS, part)
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


NEARLY = _Nearly()


EVENTFUL: tuple[Axis, ...] = (REWEIGHED, NEARLY, WAVES, BESIDE, MANY, AFTER_REFUSAL, KEPT)
"""Axes of sessions, in the order in which phases take them. Cases are measured, and quantized, without."""


_NEIGHBOURS = ("twins", "last-step")
# For each time that dice throw twins: few of those cases may have neighbours, and fewer a last step.
_NEIGHBOURS_TIMES = 12


_RULES = (
    # Sessions that do more, and constants that do not stay what they are, are of lone nodes.
    *(
        Rule("neighbours", "none", (f.name,), lambda row, f=f: row[f.name] != f.default, _NEIGHBOURS)  # type: ignore[misc]
        for axis in EVENTFUL
        for f in axis.fields
    ),
    Rule("neighbours", "none", ("held",), lambda row: row["held"] != "fixed", _NEIGHBOURS),
    Rule("neighbours", "none", ("constant",), lambda row: row["constant"] != "weights", _NEIGHBOURS),
    Rule("neighbours", "none", ("quantization",), lambda row: row["quantization"] != "none", _NEIGHBOURS),
    Rule("neighbours", "none", ("T", "N"), lambda row: not (row["T"] and row["N"]), _NEIGHBOURS),
    Rule("neighbours", "none", ("outputs",), lambda row: "Y" not in row["outputs"], ("last-step",)),
    Rule("neighbours", "none", ("output_sequence",), lambda row: row["output_sequence"] == 0, ("last-step",)),
)


class _Neighbours(Axis):
    """``none``; ``twins`` (two more nodes with the same X and W: one that differs from the case's own only in clip, and
    one with different other inputs); ``last-step`` (a second node begins where the last step of the first one's Y
    ends). Kernels cache packed weights by the name of one of them, merge nodes that are nearly the same, and replace
    the last step of Y by Y_h. :mod:`...specs.graphs` makes them."""

    name = "neighbours"
    fields = (Field("neighbours", str, "none"),)
    part = "model"
    order = ("none", *_NEIGHBOURS)
    rules = _RULES
    levels = {"basic": ("none",), "sequence": ("none",)}
    words = {"twin-nodes": "nodes that share weights", "last-step-used": "a node behind the last step of Y"}
    marked = "{}"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if operator.domain:
            return {}
        often = ("none",) * _NEIGHBOURS_TIMES + (*_NEIGHBOURS, "last-step")
        return {"neighbours": Domain(("none",), rare=_NEIGHBOURS, often=often, share=1 / 16, asked=True)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.neighbours != "none" and (spec.illegal or any(rule.hit(vars(spec)) for rule in self.rules)):
            return "neighbours", "'none' in such a case"
        return None

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"twin-nodes": spec.neighbours == "twins", "last-step-used": spec.neighbours == "last-step"}


NEIGHBOURS = _Neighbours()
