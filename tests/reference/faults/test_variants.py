"""Tests of faults outside the table: each changes its subject, and explains the outputs of a target with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxspec.cases import CaseSpec, build_case
from onnxspec.reference import fault_named, operator_for
from onnxspec.reference.faults.contexts import Run

SHAPE: dict[str, Any] = {"T": 4, "N": 3, "I": 2, "H": 5, "outputs": ("Y", "Y_h"), "seed": 3}
LARGE: dict[str, Any] = {**SHAPE, "data": "large"}
AFFINE: dict[str, Any] = {"activations": ("Affine", "Affine", "Tanh"), "alpha": (0.5, 0.7), "beta": (0.1, 0.2)}


@pytest.mark.parametrize(
    ("id", "op", "fields"),
    [
        ("sizes.states-of-rows-past-8", "LSTM", {**SHAPE, "N": 11, "initial": "all"}),
        ("sizes.states-of-rows-past-8@initial_c", "LSTM", {**SHAPE, "N": 11, "initial": "all"}),
        ("sizes.states-by-halves", "GRU", {**SHAPE, "N": 5, "initial": "h"}),
        ("session.padding-kept", "GRU", {**SHAPE, "T": 5, "N": 6, "lengths": "ragged", "reruns": "data"}),
        ("lstm.clip.on-carried-cell", "LSTM", {**SHAPE, "clip": 0.25, "initial": "all"}),
        ("lstm.clip.cell-in-place", "LSTM", {**SHAPE, "clip": 0.25, "initial": "all", "peepholes": True}),
        ("lstm.cell.carried-in-float16", "LSTM", SHAPE),
        ("gru.hidden.in-place-by-4", "GRU", {**SHAPE, "initial": "h", "H": 9}),
        ("tanh.clamped-above-3", "RNN", LARGE),
        ("tanh.clamped-below-3", "RNN", LARGE),
        ("coefficients.by-name", "LSTM", {**SHAPE, **AFFINE}),
        ("lengths.longest-of-4", "RNN", {**SHAPE, "N": 6, "lengths": "ragged"}),
    ],
)
def test_a_fault_beside_the_table_explains_what_it_does(id: str, op: str, fields: dict[str, Any]) -> None:
    case, fault = build_case(CaseSpec(op, 14, **fields)), fault_named(id)
    assert fault is not None
    node, memory = case.trial.node, dict[str, Any]()
    runs = []
    for feed in case.trial.feeds:
        with np.errstate(all="ignore"):
            answer = operator_for(node).answer(node, feed.inputs, (fault,), fed=dict(feed.fed), memory=memory)
        runs.append(Run(feed.inputs, {name: answer[name] for name in node.outputs}, feed.fed))
    observation = operator_for(node).observation(node, tuple(runs), "standard")
    fit = observation.fit((fault,))
    assert fit is not None
    assert fit.evidence > 20
    assert observation.fit(()) is None
    assert any(mask.any() for masks in observation.misses() for mask in masks.values())
