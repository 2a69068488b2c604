"""Implementations that are right, but for a change of their outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, build_case
from onnxspec.conformance.judging.judgement import Judgement
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.reference import Interpretations, Node, evaluate

Outputs = dict[str, Any]
"""Outputs by name: arrays, or what a faulty target returns for them."""


def conforming(
    node: Node, inputs: Mapping[str, NDArray[Any]], interpretations: Interpretations | None = None
) -> Outputs:
    """Return the outputs of a right target."""
    return {n: a.astype(inputs["X"].dtype) for n, a in evaluate(node, inputs, interpretations).items()}


def judged(spec: CaseSpec, change: Callable[[Outputs], None], accuracy: str = "standard") -> Judgement:
    """Return the verdict on a target whose outputs are changed, in place."""

    def implementation(node: Node, inputs: Mapping[str, NDArray[Any]]) -> Outputs:
        outputs = conforming(node, inputs)
        change(outputs)
        return outputs

    return judge_staged(build_case(spec), implementation, accuracy)


def each_changed(change: Callable[[NDArray[Any]], Any]) -> Callable[[Outputs], None]:
    """Return a change of all outputs from one of an array."""
    return lambda outputs: outputs.update({name: change(array) for name, array in outputs.items()})
