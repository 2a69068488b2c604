"""Cases of ONNX's recurrent operators made ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from .case import Case, Feed, Trial
from .data import inputs_of
from .illegal import break_case, violation_of
from .model import CONSTANTS, build_model
from .spec import CaseSpec

__all__ = ["recurrent_case"]


def recurrent_case(spec: CaseSpec) -> Case:
    """The models and inputs of a case; the same bytes every time."""
    if spec.illegal:
        return _forbidden(spec)
    runs = [0] if spec.reruns == "none" else [1, 0]
    tensors = [inputs_of(spec, run) for run in runs]
    feeds = tuple(_feed(spec, t) for t in tensors)
    model = build_model(spec, spec.node, tensors[-1], spec.outputs)
    trial = Trial(spec.id, model, spec.node, feeds, spec.data == "numerics")
    companion = None
    if "Y" not in spec.outputs:
        everything = spec.node.operator.outputs
        model = build_model(spec, spec.node, tensors[-1], everything)
        companion = Trial(f"{spec.id}~companion", model, replace(spec.node, outputs=everything), feeds)
    return Case(spec, trial, companion)


def _feed(spec: CaseSpec, tensors: Mapping[str, NDArray[Any]]) -> Feed:
    constant = set(CONSTANTS) if spec.weights == "initializer" else set()
    return Feed(tensors, {name: array for name, array in tensors.items() if name not in constant})


def _forbidden(spec: CaseSpec) -> Case:
    """A forbidden model is run once: all that there is to see is whether it runs."""
    node, tensors = break_case(spec)
    model = build_model(spec, node, tensors, node.outputs)
    trial = Trial(spec.id, model, node, (_feed(spec, tensors),), violation=violation_of(spec))
    legal = recurrent_case(replace(spec, illegal="")).trial
    return Case(spec, trial, replace(legal, key=f"{spec.id}~companion"))
