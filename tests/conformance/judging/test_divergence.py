"""The first divergence of a target, in the order of computation and in terms of the operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onnxspec.cases import CaseSpec, build_case
from onnxspec.conformance.judging.divergence import apart, ratio_text
from onnxspec.conformance.judging.judgement import Judgement
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.reference import FAULTS, Node, evaluate

SPEC = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, lengths="ragged", outputs=("Y", "Y_h", "Y_c"))


def _judged(spec: CaseSpec, change: Any) -> Judgement:
    def run(node: Node, inputs: Any) -> Any:
        outputs = {n: a.astype(inputs["X"].dtype) for n, a in evaluate(node, inputs).items()}
        change(outputs)
        return outputs

    return judge_staged(build_case(spec), run)


def test_the_first_wrong_element_leads_and_not_the_worst_one() -> None:
    def change(outputs: Any) -> None:
        outputs["Y"][1, 0, 0, 2] += 1e-3
        outputs["Y"][2, 0, 0, 0] += 1.0
        outputs["Y_c"] += 10.0

    judgement = _judged(replace(SPEC, lengths="absent"), change)
    assert judgement.where == {"output": "Y", "index": [1, 0, 0, 2], "step": 1}
    assert judgement.message.startswith("Y[1, 0, 0, 2] (step 1, forward, row 0) is ")
    assert "the first of " in judgement.message


def test_in_reverse_the_last_position_comes_first() -> None:
    spec = replace(SPEC, direction="bidirectional")
    trial = build_case(spec).trial
    lengths = trial.feeds[0].inputs["sequence_lens"]

    def change(outputs: Any) -> None:
        for row in range(3):
            outputs["Y"][: lengths[row], 1, row] += 0.5

    judgement = _judged(spec, change)
    assert judgement.where == {"output": "Y", "index": [int(lengths[0]) - 1, 1, 0, 0], "step": 0}
    assert "(step 0, reverse, row 0)" in judgement.message


def test_with_layout_1_as_well() -> None:
    def change(outputs: Any) -> None:
        outputs["Y"][2, 0, 0, 1] += 0.5
        outputs["Y"][0, 1, 0, 1] += 0.5

    judgement = _judged(replace(SPEC, layout=1, lengths="absent"), change)
    assert judgement.where == {"output": "Y", "index": [2, 0, 0, 1], "step": 0}


def test_states_come_after_y() -> None:
    def change(outputs: Any) -> None:
        outputs["Y_c"][0, 1, 2] += 0.5

    judgement = _judged(SPEC, change)
    assert judgement.where == {"output": "Y_c", "index": [0, 1, 2], "step": None}
    assert "(after the last step, forward, row 1)" in judgement.message
    assert "the first of" not in judgement.message


def test_what_is_left_unwritten_is_told_by_its_first_step() -> None:
    """Before, the message was: Y_h[0,0,1] is 0.9158, must be 0 within 1.4e-45."""
    judgement = judge_staged(build_case(replace(SPEC, bias=True)), FAULTS["bias.ignored"])
    assert judgement.where is not None
    assert (judgement.where["output"], judgement.where["step"]) == ("Y", 0)


@pytest.mark.parametrize(
    ("got", "must", "texts"),
    [
        (1.0, 2.0, ("1", "2")),
        (0.1, 0.1 + 1e-12, ("0.1", "0.100000000001")),
        (2 / 3, 2 / 3 + 1e-14, ("0.6666666666666666", "0.6666666666666766")),
        (float("nan"), 0.25, ("nan", "0.25")),
        (0.0, 0.149, ("0", "0.149")),
    ],
)
def test_numbers_have_the_digits_that_tell_them_apart(got: float, must: float, texts: tuple[str, str]) -> None:
    assert apart(got, must) == texts


def test_a_ratio_that_means_nothing_is_far_outside() -> None:
    assert [ratio_text(r) for r in (1.234, 123.4, 6.5e44, np.inf)] == ["1.2", "123", "> 1e6", "> 1e6"]
