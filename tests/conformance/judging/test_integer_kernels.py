"""Integer kernels by somebody who had seen no fault, no case and not the judge: none of them is accused.

``integer_kernels.py`` is as it was handed over, but for its form and for kernels too coarse for any case here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.reference import CELLS, Node
from onnxspec.reference.numbers.affine import Channels

from ...recurrent import recurrent_versions
from . import integer_kernels

Array = NDArray[Any]
Kernel = Callable[..., dict[str, Array]]

ROUNDED_BIAS = ("float_state_bias_integer", "level_state_bias_integer")
"""They hold a bias in steps of x_scale * w_scale, whatever levels it came in: no document allows that."""
EXACT: dict[str, Kernel] = {
    name: kernel
    for name, kernel in {**integer_kernels.FLOAT_STATE, **integer_kernels.LEVEL_STATE}.items()
    if name not in ROUNDED_BIAS
}
SAMPLE = 26
"""A kernel has one case of so many, and each another one."""


def specs() -> list[CaseSpec]:
    versions = [(op, version) for op, version in recurrent_versions() if op in CELLS]
    return [spec for op, version in versions for spec in profile("quantized", op, version)]


def encoded(array: Array, codec: Any) -> Any:
    """Levels with what they stand for, in the form that the kernels take."""
    if codec is None:
        return array
    if not isinstance(codec, Channels):
        return array, codec.scale, codec.zero_point
    shape = [1] * array.ndim
    shape[codec.axis] = -1
    return array, codec.scales.reshape(shape), codec.zero_points.reshape(shape)


def judged(kernel: Kernel, spec: CaseSpec) -> Judgement | None:
    """The verdict; None where an output is a number, which these kernels do not return."""
    case = build_case(spec)
    if any(name not in trial.node.codecs for trial in case.trials for name in trial.node.outputs):
        return None

    def run(node: Node, inputs: Mapping[str, Array]) -> dict[str, Array]:
        kernel_inputs = {name: encoded(array, node.codecs.get(name)) for name, array in inputs.items()}
        outputs = {name: (c.scale, c.zero_point, c.dtype) for name, c in node.codecs.items() if name in node.outputs}  # type: ignore[union-attr]
        with np.errstate(over="ignore"):
            return kernel(node.op_type, dict(node.attributes), kernel_inputs, outputs)

    return judge(case.trials, [staged_outcome(trial, run) for trial in case.trials])


@pytest.mark.parametrize("name", EXACT)
def test_none_is_accused(name: str) -> None:
    passed = accuses(name, list(EXACT).index(name), SAMPLE)
    assert passed > 4


@pytest.mark.long
@pytest.mark.parametrize("name", EXACT)
def test_none_is_accused_of_a_quarter_of_the_cases(name: str) -> None:
    assert accuses(name, list(EXACT).index(name) % 4, 4) > 40


def accuses(name: str, first: int, step: int) -> int:
    """How many cases a kernel has; none of them is anything but right."""
    passed = 0
    for spec in specs()[first::step]:
        judgement = judged(EXACT[name], spec)
        if judgement is not None:
            assert judgement.verdict is Verdict.PASS, f"{spec.id}: {judgement.message}"
            passed += 1
    return passed


@pytest.mark.parametrize("name", ROUNDED_BIAS)
def test_a_bias_that_is_rounded_where_its_steps_are_wide_is_told(name: str) -> None:
    """A scale of X that makes all of it 0 makes steps of x_scale * w_scale wide; else such a kernel is right."""
    kernel = {**integer_kernels.FLOAT_STATE, **integer_kernels.LEVEL_STATE}[name]
    wide = [spec for spec in specs() if spec.scales == "zeroing" and spec.quantization == "s8"]
    judgement = judged(kernel, wide[0])
    assert judgement is not None
    assert judgement.verdict is Verdict.INACCURATE
    usual = judged(kernel, CaseSpec("GRU", 14, bias=True, quantization="u8", bias_type="product"))
    assert usual is not None
    assert usual.verdict is Verdict.PASS
