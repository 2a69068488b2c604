"""Wrong numbers: the first divergence in terms of the operator, and errors that look like rounding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, build_case
from onnxspec.conformance.judging.divergence import apart, ratio_text
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.reference import FAULTS, Node
from onnxspec.reference.kernels.kernel import rounded

from .implementations import Outputs, conforming, each_changed, judged

Array = NDArray[Any]
Arrays = Mapping[str, Array]

PLAIN = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, outputs=("Y", "Y_h", "Y_c"))
RAGGED = replace(PLAIN, lengths="ragged")

# The first divergence, in the order of computation


def test_the_first_wrong_element_leads_and_not_the_worst_one() -> None:
    def change(outputs: Outputs) -> None:
        outputs["Y"][1, 0, 0, 2] += 1e-3
        outputs["Y"][2, 0, 0, 0] += 1.0
        outputs["Y_c"] += 10.0

    judgement = judged(PLAIN, change)
    assert (judgement.verdict, judgement.reason) == (Verdict.WRONG, "value")
    assert judgement.where == {"output": "Y", "index": [1, 0, 0, 2], "step": 1}
    assert judgement.worst > 100
    assert judgement.message.startswith("Y[1, 0, 0, 2] (step 1, forward, row 0) is ")
    assert "the first of " in judgement.message


def test_in_reverse_the_last_position_comes_first() -> None:
    spec = replace(RAGGED, direction="bidirectional")
    lengths = build_case(spec).trial.feeds[0].inputs["sequence_lens"]

    def change(outputs: Outputs) -> None:
        for row in range(3):
            outputs["Y"][: lengths[row], 1, row] += 0.5

    judgement = judged(spec, change)
    assert judgement.where == {"output": "Y", "index": [int(lengths[0]) - 1, 1, 0, 0], "step": 0}
    assert "(step 0, reverse, row 0)" in judgement.message


def test_in_layout_1_the_step_is_the_second_index() -> None:
    def change(outputs: Outputs) -> None:
        outputs["Y"][2, 1, 0, 1] += 0.5
        outputs["Y"][0, 2, 0, 1] += 0.5

    assert judged(replace(PLAIN, layout=1), change).where == {"output": "Y", "index": [2, 1, 0, 1], "step": 1}


def test_states_come_after_y() -> None:
    def change(outputs: Outputs) -> None:
        outputs["Y_c"][0, 1, 2] += 0.5

    judgement = judged(RAGGED, change)
    assert judgement.where == {"output": "Y_c", "index": [0, 1, 2], "step": None}
    assert "(after the last step, forward, row 1)" in judgement.message
    assert "the first of" not in judgement.message


def test_what_is_left_unwritten_is_told_by_its_first_step() -> None:
    """Before, the message was: Y_h[0,0,1] is 0.9158, must be 0 within 1.4e-45."""
    judgement = judge_staged(build_case(RAGGED), FAULTS["bias.ignored"])
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


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["Y", "Y_h", "Y_c"])
def test_what_is_not_finite_where_it_must_be_has_a_reason_of_its_own(name: str, value: float) -> None:
    def change(outputs: Outputs) -> None:
        outputs[name].flat[-1] = value

    judgement = judged(PLAIN, change)
    assert (judgement.verdict, judgement.reason, judgement.worst) == (Verdict.WRONG, "nonfinite", np.inf)


# Within a wider accuracy class


def test_coarse_arithmetic_is_inaccurate_with_the_class_that_explains_it() -> None:
    def coarse(node: Node, inputs: Arrays) -> Outputs:
        return conforming(node, {n: rounded(a, "bfloat16").astype(np.float32) for n, a in inputs.items()})

    case = build_case(replace(PLAIN, bias=False, T=1, initial="all", data="numerics", H=8, N=8))
    judgement = judge_staged(case, coarse)
    assert judgement.verdict is Verdict.INACCURATE
    assert judgement.accuracy is not None
    assert judgement.message.endswith(f"right by the wider class {judgement.accuracy}")
    assert judgement.worst > 1
    assert judge_staged(case, coarse, judgement.accuracy).verdict is Verdict.PASS
    assert judge_staged(case, coarse, "tf32").verdict is Verdict.INACCURATE


def test_only_one_step_cases_are_graded() -> None:
    assert judge_staged(build_case(PLAIN), conforming).strict is None
    assert judge_staged(build_case(replace(PLAIN, T=1, initial="all", data="numerics")), conforming).strict is True


SMALL = CaseSpec("GRU", 14, T=1, N=4, I=3, H=16, outputs=("Y", "Y_h"), initial="h")


def off(share: float, error: float, spec: CaseSpec = SMALL) -> Judgement:
    """Return the verdict on a target with a share of its units off by a relative error, to either side."""
    units = np.arange(spec.H)
    factor = np.where(units < share * len(units), 1 + np.where(units % 2, -1.0, 1.0) * error, 1.0)
    return judged(spec, each_changed(lambda a: (a * factor).astype(np.float32)))


def test_numbers_that_are_stored_in_a_half_type_are_inaccurate() -> None:
    """Of rounded operands the tests of known implementations say more."""
    stored = each_changed(lambda a: rounded(a.astype(float), "bfloat16").astype(np.float32))
    assert judged(SMALL, stored).accuracy in ("f16-storage", "bf16-math", "bf16-storage")


def test_errors_of_a_few_units_in_the_bound_of_a_half_type_are_wrong() -> None:
    assert off(1.0, 2e-3).verdict is Verdict.INACCURATE
    assert off(1 / 16, 2e-3).verdict is Verdict.WRONG


def test_a_class_is_named_only_where_errors_have_the_size_of_its_roundings() -> None:
    assert off(1.0, 2e-3).accuracy is not None
    for approximated in (off(1.0, 1e-2), off(1.0, 1e-5)):
        assert (approximated.verdict, approximated.accuracy) == (Verdict.INACCURATE, None)
    assert approximated.message.endswith("but the values are not rounded like it")


def test_a_class_whose_bound_is_a_fifth_of_the_numbers_is_not_named() -> None:
    spec = CaseSpec("RNN", 14, T=1, N=4, I=3000, H=16, outputs=("Y", "Y_h"), initial="h", activations=("Relu",))
    judgement = off(1.0, 0.1, spec)
    assert (judgement.verdict, judgement.accuracy) == (Verdict.INACCURATE, None)


@pytest.mark.parametrize("lost", [True, False])
def test_flushing_is_named_only_where_subnormal_numbers_become_zeros(lost: bool) -> None:
    """In float16, a flushing class has wide bounds for small numbers."""

    def flushing(node: Node, inputs: Arrays) -> Outputs:
        halves = {n for n, a in inputs.items() if a.dtype == np.float16}
        return conforming(
            node, {n: np.where(abs(a) < 2.0**-14, np.float16(0), a) if n in halves else a for n, a in inputs.items()}
        )

    spec = CaseSpec("RNN", 14, type="float16", N=64, H=2, activations=("Affine",), data="small")
    raised = each_changed(lambda a: (a.astype(float) + 3e-4).astype(a.dtype))
    judgement = judge_staged(build_case(spec), flushing) if lost else judged(spec, raised)
    assert judgement.verdict is not Verdict.PASS
    assert (judgement.accuracy == "flushing") is lost


@pytest.mark.parametrize("data", ["small", "dense"])
def test_a_wrong_sign_is_wrong_however_wide_the_bound(data: str) -> None:
    for spec in (replace(SMALL, data=data), replace(SMALL, data=data, T=1, N=1, H=1)):
        assert judged(spec, each_changed(np.negative)).verdict is Verdict.WRONG


@pytest.mark.parametrize("type", ["float16", "bfloat16"])
def test_what_lies_in_bounds_too_wide_to_show_anything_is_not_judged(type: str) -> None:
    judgement = judge_staged(build_case(replace(SMALL, type=type, version=22, T=4)), conforming)
    if type == "bfloat16":
        assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, "wide")
    assert judgement.judged < 0.7 * judgement.elements


def test_no_wide_class_makes_a_pass_of_what_it_cannot_tell() -> None:
    assert judged(SMALL, lambda outputs: None).verdict is Verdict.PASS
    too_large = each_changed(lambda a: (a * 1.01).astype(a.dtype))
    assert judged(SMALL, too_large, "bf16-storage").verdict is not Verdict.PASS
