"""The inputs that are constants of the model, one by one, and whether they can be overridden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..course import CourseDraft, Turn

OVERRIDDEN = ("overridden", "zeroed")
"""Values of ``held`` for cases whose own run feeds other numbers than the model holds."""

_NAMES: Mapping[str, tuple[str, ...]] = {
    "X": ("X",),
    "W": ("W",),
    "R": ("R",),
    "B": ("B",),
    "P": ("P",),
    "states": ("initial_h", "initial_c"),
    "lengths": ("sequence_lens",),
}
_NEEDS = {"B": "bias", "P": "peepholes", "states": "initial", "lengths": "lengths"}
_OVERRIDING = 6  # number of a run with other data
_ABSENT = (False, "none", "absent")
_ALONE = ("W", "R", "B", "P", "initial_h", "initial_c")


class _Constant(Axis):
    """``weights`` (all or none of W, R, B and P, as the axis of that name says), or the only constant: ``X``, ``W``,
    ``R``, ``B``, ``P``, ``states``, ``lengths``."""

    name = "constant"
    fields = (Field("constant", str, "weights"),)
    part = "model"
    order = ("weights", *_NAMES)
    rules = (
        *(
            Rule("constant", "weights", (field,), lambda row, field=field: row[field] in _ABSENT, (value,))  # type: ignore[misc]
            for value, field in _NEEDS.items()
        ),
        # A constant has one size.
        Rule(
            "constant",
            "weights",
            ("reruns",),
            lambda row: row["reruns"] in ("sizes", "growing"),
            ("X", "states", "lengths"),
        ),
        # An X of another width is what a session is to refuse.
        Rule("constant", "weights", ("after_refusal",), lambda row: row["after_refusal"], ("X",)),
        # Which numbers lie past a row's length changes from run to run.
        Rule("constant", "weights", ("data",), lambda row: row["data"] == "nan-padding", ("X",)),
        Rule("constant", "weights", ("waves",), lambda row: row["waves"], ("X", "states", "lengths")),
        Rule("constant", "weights", ("weights",), lambda row: row["weights"] != "input", tuple(_NAMES)),
    )
    words = {"constant-data": "a constant X, state or sequence_lens", "one-constant": "one weight alone constant"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        values = tuple(value for value, names in _NAMES.items() if set(names) & set(operator.inputs))
        return {"constant": Domain(("weights",), rare=values, often=("weights",) * 8 + values)}

    def constants(self, spec: Any, names: frozenset[str]) -> frozenset[str]:
        return names if spec.constant == "weights" else frozenset(_NAMES[spec.constant])

    def used(self, spec: Any) -> Mapping[str, bool]:
        data = spec.constant in ("X", "states", "lengths")
        return {"constant-data": data, "one-constant": spec.constant != "weights" and not data}

    def mark(self, spec: Any) -> str:
        return "" if spec.constant == "weights" else f"constant-{spec.constant}"


class _Held(Axis):
    """``fixed``; ``listed`` (constants are graph inputs too, and not fed); ``overridden`` (they are fed numbers that
    differ from the model's); ``once`` (they are fed in the run before, and then not); ``zeroed`` (they are fed, and the
    model holds zeros, as exporters write states)."""

    name = "held"
    fields = (Field("held", str, "fixed"),)
    part = "model"
    order = ("fixed", "listed", "overridden", "once", "zeroed")
    rules = (
        Rule(
            "held",
            "fixed",
            ("weights", "constant"),
            lambda row: row["weights"] != "initializer" and row["constant"] == "weights",
            order[1:],
        ),
    )
    words = {
        "overridable": "constants that can be overridden",
        "overridden": "constants that are overridden",
        "overridden-before": "constants that were overridden before",
        "overridden-zeros": "constants of zeros that are overridden",
    }

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"held": Domain(("fixed",), rare=self.order[1:], often=("fixed",) * 6 + self.order[1:])}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.held == "once":
            draft.needs.add("weights")
            draft.turns.insert(0, Turn(_OVERRIDING, weights=1))

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {
            "overridable": spec.held != "fixed",
            "overridden": spec.held in OVERRIDDEN,
            "overridden-zeros": spec.held == "zeroed",
            "overridden-before": spec.held == "once",
        }

    def mark(self, spec: Any) -> str:
        return "" if spec.held == "fixed" else {"once": "overridden-before"}.get(spec.held, str(spec.held))


class _Fed(Axis):
    """``all`` constants that can be overridden are, or that input alone; the others keep the model's numbers, and are
    graph inputs all the same."""

    name = "fed"
    fields = (Field("fed", str, "all"),)
    part = "model"
    order = ("all", *_ALONE)
    rules = (
        Rule("fed", "all", ("held",), lambda row: row["held"] in ("fixed", "listed"), _ALONE),
        Rule("fed", "all", ("constant",), lambda row: row["constant"] != "weights", ("W", "R", "B", "P")),
        Rule("fed", "all", ("constant",), lambda row: row["constant"] != "states", ("initial_h", "initial_c")),
        Rule("fed", "all", ("initial",), lambda row: row["initial"] != "all", ("initial_h", "initial_c")),
        Rule("fed", "all", ("bias",), lambda row: not row["bias"], ("B",)),
        Rule("fed", "all", ("peepholes",), lambda row: not row["peepholes"], ("P",)),
    )
    words = {"overridden-alone": "one of several constants that is overridden"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        states = ("initial_h", "initial_c") if "initial_c" in operator.inputs else ()
        values = tuple(v for v in _ALONE if v in (*states, "W", "R", "B", "P") and v in operator.inputs)
        return {"fed": Domain(("all",), rare=values, often=("all",) * 3 + values, share=0.5)}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"overridden-alone": spec.fed != "all"}

    def mark(self, spec: Any) -> str:
        return "" if spec.fed == "all" else f"fed-{spec.fed.replace('_', '-')}"


CONSTANT, HELD, FED = _Constant(), _Held(), _Fed()
