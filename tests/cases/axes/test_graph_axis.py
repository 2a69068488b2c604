"""Two nodes in a model, as cases say it."""

from __future__ import annotations

import json

import onnx
import pytest

from onnxspec.cases import CaseSpec, build_case, case_from_json, case_text
from onnxspec.cases.specs import GRAPHS, can_wrap

LIKE = {"T": 3, "N": 2, "I": 3, "H": 4, "bias": True, "direction": "bidirectional", "lengths": "ragged"}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(("op", "version"), [("LSTM", 7), ("GRU", 22), ("RNN", 14)])
def test_both_nodes_stand_in_a_legal_model_and_are_judged(op: str, version: int, graph: str) -> None:
    spec = CaseSpec(op, version, graph=graph, outputs=CaseSpec(op, version).outputs, **LIKE)
    assert case_from_json(json.loads(case_text(spec))) == spec
    assert graph in spec.id
    trial = build_case(spec).trial
    assert trial.key == spec.id
    assert len(trial.subject.nodes) == 2
    onnx.checker.check_model(onnx.load_model_from_string(trial.model), full_check=True)
    assert not any(can_wrap(spec, wrap) for wrap in ("neg", *GRAPHS))


@pytest.mark.parametrize(
    ("op", "version", "fields", "why"),
    [
        ("LSTM", 14, {"graph": "chain", "outputs": ("", "Y_h")}, "outputs"),
        ("LSTM", 1, {"graph": "chain"}, "output_sequence"),
        ("LSTM", 14, {"graph": "shared", "kept": True}, "kept"),
        ("LSTM", 14, {"graph": "shared", "quantization": "u8"}, "quantization"),
        ("LSTM", 14, {"graph": "chain", "illegal": "x.rank"}, "forbidden"),
        ("GRU", 1, {"graph": "chain", "outputs": ("Y", "Y_h"), "output_sequence": 1}, "side-by-side"),
        ("LSTM", 14, {"graph": "ring"}, "two-operators"),
    ],
)
def test_what_no_second_node_goes_with_is_refused(op: str, version: int, fields: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=f"graph of {op}-{version} is .*{why}"):
        CaseSpec(op, version, **fields)


def test_a_lone_node_is_simpler() -> None:
    spec = CaseSpec("LSTM", 14, graph="shared", T=3)
    (axis,) = (axis for axis in CaseSpec.axes if axis.name == "graph")
    assert next(iter(axis.simpler(spec))) == ("graph", {"graph": "none"})
