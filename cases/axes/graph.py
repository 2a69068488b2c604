"""Whether a second node stands in the same model, and what binds the two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...reference import OperatorVersion, operator_version
from .axis import Axis, Domain, Field, Rule
from .node.output_sequence import asks_for_y

__all__ = ["CHAINS", "GRAPH", "GRAPHS", "MOVING"]

CHAINS = ("chain", "two-operators")
"""Graphs in which the second node gets Y of the first as its X."""

GRAPHS = ("chain", "side-by-side", "shared", "two-operators")
"""Names of the graphs, which :mod:`..specs.graphs` describes."""

MOVING: Mapping[str, int] = {"float32": 6, "float64": 6, "float16": 6, "bfloat16": 13}
"""By type the first opset whose Squeeze, Transpose and Reshape take it: they bring Y to the form of X. Operators that
have bfloat16 are younger than that."""

# What sessions do beyond running, and what is held in integers, is said of models of one node.
_ALONE: Mapping[str, Any] = {
    **dict.fromkeys(("reweighed", "waves", "beside", "many", "after_refusal", "kept"), (False, "none", 0)),
    "quantization": ("none",),
}


class _Graph(Axis):
    """``none``; ``chain``, ``two-operators``: the second gets Y of the first as its X; ``side-by-side``: both get the
    same X; ``shared``: both have the same weights."""

    name = "graph"
    fields = (Field("graph", str, "none"),)
    part = "model"
    order = ("none", *GRAPHS)
    rules = (
        *(
            Rule("graph", "none", (field,), lambda row, f=field, v=values: row[f] not in v, GRAPHS)  # type: ignore[misc]
            for field, values in _ALONE.items()
        ),
        Rule("graph", "none", ("outputs",), lambda row: not asks_for_y(row), CHAINS),
        Rule("graph", "none", ("output_sequence",), lambda row: not row["output_sequence"], CHAINS),
    )
    levels = {"basic": ("none",), "sequence": ("none",)}
    words = {
        "two-nodes": "a second recurrent node in the model",
        "in-a-chain": "two nodes in a chain",
        "shared-weights": "two nodes with the same weights",
    }

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if operator.domain:
            return {}
        graphs = GRAPHS if operator.last_opset >= min(MOVING.values()) else ("side-by-side", "shared")
        return {"graph": Domain(("none",), rare=graphs, often=("none",) * 60 + graphs, share=1 / 32)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.graph == "none":
            return None
        if spec.illegal:
            return "graph", "'none' in a forbidden model"
        lacked = {"output_sequence"} - operator_version(spec.op, spec.version).attributes.keys()
        row = {name: value for name, value in vars(spec).items() if name not in lacked}
        broken = next((rule for rule in self.rules if rule.hit(row)), None)
        if broken is None:
            return None
        fields = " and ".join(f"{name} {row[name]!r}" for name in broken.reads)
        return "graph", f"'none' with {fields}"

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {
            "two-nodes": spec.graph != "none",
            "in-a-chain": spec.graph in CHAINS,
            "shared-weights": spec.graph == "shared",
        }

    def mark(self, spec: Any) -> str:
        return "" if spec.graph == "none" else str(spec.graph)


GRAPH = _Graph()
