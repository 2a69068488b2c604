"""A result within a wider accuracy class is "inaccurate" only if its errors look like rounding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, build_case
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.reference import Node, evaluate
from onnxspec.reference.kernels.kernel import Style, rounded, run_kernel

Outputs = dict[str, NDArray[Any]]

SMALL = CaseSpec("GRU", 14, T=1, N=4, I=3, H=16, outputs=("Y", "Y_h"), initial="h")


def right(node: Node, inputs: Any) -> Outputs:
    return {n: a.astype(inputs["X"].dtype) for n, a in evaluate(node, inputs).items()}


def changed(share: float, off: float) -> Judgement:
    """Return the verdict on a target with a share of its units off by a relative error, to either side."""

    def implementation(node: Node, inputs: Any) -> Outputs:
        outputs = right(node, inputs)
        units = np.arange(outputs["Y"].shape[-1])
        sign = np.where(units % 2, -1.0, 1.0)
        factor = np.where(units < share * len(units), 1 + sign * off, 1.0)
        return {n: (a * factor).astype(np.float32) for n, a in outputs.items()}

    return judge_staged(build_case(SMALL), implementation)


def test_coarse_rounding_of_operands_or_of_everything_is_inaccurate() -> None:
    def stored(node: Node, inputs: Any) -> Outputs:
        return {n: rounded(a.astype(float), "bfloat16").astype(np.float32) for n, a in right(node, inputs).items()}

    for operands in ("tf32", "bfloat16"):
        style = Style("s", operands=operands)
        judgement = judge_staged(build_case(SMALL), lambda node, inputs, style=style: run_kernel(node, inputs, style))
        assert judgement.verdict is Verdict.INACCURATE
    assert judge_staged(build_case(SMALL), stored).accuracy in ("f16-storage", "bf16-math", "bf16-storage")


def test_errors_of_a_few_units_in_the_bound_of_a_half_type_are_wrong() -> None:
    assert changed(1.0, 2e-3).verdict is Verdict.INACCURATE
    assert changed(1 / 16, 2e-3).verdict is Verdict.WRONG


def test_a_class_is_named_only_where_errors_have_the_size_of_its_roundings() -> None:
    assert changed(1.0, 2e-3).accuracy is not None
    for approximated in (changed(1.0, 1e-2), changed(1.0, 1e-5)):
        assert (approximated.verdict, approximated.accuracy) == (Verdict.INACCURATE, None)
    assert approximated.message.endswith("but the values are not rounded like it")


def test_a_class_whose_bound_is_a_fifth_of_the_numbers_is_not_named() -> None:
    spec = CaseSpec("RNN", 14, T=1, N=4, I=3000, H=16, outputs=("Y", "Y_h"), initial="h", activations=("Relu",))

    def off(node: Node, inputs: Any) -> Outputs:
        outputs = evaluate(node, inputs)
        sign = np.where(np.arange(spec.H) % 2, -1.0, 1.0)
        return {n: (a * (1 + sign * 0.1)).astype(np.float32) for n, a in outputs.items()}

    judgement = judge_staged(build_case(spec), off)
    assert (judgement.verdict, judgement.accuracy) == (Verdict.INACCURATE, None)


@pytest.mark.parametrize("lost", [True, False])
def test_flushing_is_named_only_where_subnormal_numbers_become_zeros(lost: bool) -> None:
    """In float16, a flushing class has wide bounds for small numbers."""

    def implementation(node: Node, inputs: Any) -> Outputs:
        if not lost:
            return {n: (a.astype(float) + 3e-4).astype(a.dtype) for n, a in right(node, inputs).items()}
        least = 2.0**-14
        kept = {
            n: np.where(abs(a) < least, np.float16(0), a) if a.dtype == np.float16 else a for n, a in inputs.items()
        }
        return right(node, kept)

    spec = CaseSpec("RNN", 14, type="float16", N=64, H=2, activations=("Affine",), data="small")
    judgement = judge_staged(build_case(spec), implementation)
    assert judgement.verdict is not Verdict.PASS
    assert (judgement.accuracy == "flushing") is lost


@pytest.mark.parametrize("data", ["small", "dense"])
def test_a_wrong_sign_is_wrong_however_wide_the_bound(data: str) -> None:
    def turned(node: Node, inputs: Any) -> Outputs:
        return {n: -a for n, a in right(node, inputs).items()}

    for spec in (replace(SMALL, data=data), replace(SMALL, data=data, T=1, N=1, H=1)):
        assert judge_staged(build_case(spec), turned).verdict is Verdict.WRONG


@pytest.mark.parametrize("type", ["float16", "bfloat16"])
def test_what_lies_in_bounds_too_wide_to_show_anything_is_not_judged(type: str) -> None:
    case = build_case(replace(SMALL, type=type, version=22, T=4))
    judgement = judge_staged(case, right)
    if type == "bfloat16":
        assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, "wide")
    assert judgement.judged < 0.7 * judgement.elements


def test_no_wide_class_makes_a_pass_of_what_it_cannot_tell() -> None:
    def too_large(node: Node, inputs: Any) -> Outputs:
        return {n: (a * 1.01).astype(a.dtype) for n, a in right(node, inputs).items()}

    case = build_case(SMALL)
    assert judge_staged(case, right).verdict is Verdict.PASS
    assert judge_staged(case, too_large, "bf16-storage").verdict is not Verdict.PASS
