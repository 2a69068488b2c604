"""Results of a check, as plain values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .problem import Checked, Problem

SCHEMA = 1


def plain(everything: Sequence[Checked], version: str, unused: Sequence[str]) -> dict[str, Any]:
    """The keys are documented in docs/check.md."""
    return {"schema": SCHEMA, "onnxspec": version, "models": [*map(_model, everything)], "unused": list(unused)}


def _model(checked: Checked) -> dict[str, Any]:
    return {
        "file": checked.file,
        "unreadable": checked.unreadable,
        "nodes": [{"node": node, "operator": operator} for node, operator in checked.nodes],
        "inconclusive": [{"node": node, "operator": operator} for node, operator in checked.inconclusive],
        "problems": [*map(_problem, checked.problems)],
        "unchecked": [
            {"rule": u.rule, "node": u.node, "operator": u.operator, "missing": u.missing} for u in checked.unchecked
        ],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    values = {name: value for name, value in vars(problem).items() if name != "file"}
    return {**values, "level": problem.level.value}
