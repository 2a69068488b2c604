"""Three cases of every recurrent operator for tests of faults."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from onnxspec.cases import Case, CaseSpec, build_case
from onnxspec.reference import operator_version

_SITUATIONS: dict[str, dict[str, Any]] = {
    "plain": {"hidden_size": False},
    "rich": {"direction": "bidirectional", "bias": True, "initial": "all", "lengths": "ragged"},
}
_SITUATIONS["layout"] = {**_SITUATIONS["rich"], "layout": 1}


@cache
def situation(name: str, op: str, type: str) -> Case:
    """Return the case of that name, of the newest version."""
    spec = CaseSpec(op, 22, type, T=4, N=3, I=5, H=9, weights="input", outputs=operator_version(op, 22).outputs)
    return build_case(replace(spec, **_SITUATIONS[name], peepholes=op == "LSTM" and name != "plain"))
