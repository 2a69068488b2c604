"""Further nodes in the model of a case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from .eventful import EVENTFUL

_VALUES = ("twins", "last-step")
_TIMES = 12  # for each time that dice throw twins; few of those cases may have neighbours, and fewer a last step


_RULES = (
    # Sessions that do more, and constants that do not stay what they are, are of lone nodes.
    *(
        Rule("neighbours", "none", (f.name,), lambda row, f=f: row[f.name] != f.default, _VALUES)  # type: ignore[misc]
        for axis in EVENTFUL
        for f in axis.fields
    ),
    Rule("neighbours", "none", ("held",), lambda row: row["held"] != "fixed", _VALUES),
    Rule("neighbours", "none", ("constant",), lambda row: row["constant"] != "weights", _VALUES),
    Rule("neighbours", "none", ("quantization",), lambda row: row["quantization"] != "none", _VALUES),
    Rule("neighbours", "none", ("T", "N"), lambda row: not (row["T"] and row["N"]), _VALUES),
    Rule("neighbours", "none", ("outputs",), lambda row: "Y" not in row["outputs"], ("last-step",)),
    Rule("neighbours", "none", ("output_sequence",), lambda row: row["output_sequence"] == 0, ("last-step",)),
)


class _Neighbours(Axis):
    """``none``; ``twins`` (two more nodes of the same X and W: one that differs from the case's own in clip alone, and
    one of which all else is another); ``last-step`` (a second node begins where the last step of the first one's Y
    ends). Kernels keep what they have made of weights by the name of one of them, merge nodes that are the same but for
    something, and put Y_h in place of the last step of Y. :mod:`...specs.graphs` makes them."""

    name = "neighbours"
    fields = (Field("neighbours", str, "none"),)
    part = "model"
    order = ("none", *_VALUES)
    rules = _RULES
    levels = {"basic": ("none",), "sequence": ("none",)}
    words = {"twin-nodes": "nodes that share weights", "last-step-used": "a node behind the last step of Y"}
    marked = "{}"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if operator.domain:
            return {}
        often = ("none",) * _TIMES + (*_VALUES, "last-step")
        return {"neighbours": Domain(("none",), rare=_VALUES, often=often, share=1 / 16, asked=True)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.neighbours != "none" and (spec.illegal or any(rule.hit(vars(spec)) for rule in self.rules)):
            return "neighbours", "'none' in such a case"
        return None

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"twin-nodes": spec.neighbours == "twins", "last-step-used": spec.neighbours == "last-step"}


NEIGHBOURS = _Neighbours()
