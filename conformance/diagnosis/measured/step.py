"""Nodes of one step that a target is asked about, with the attributes of a case that fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....cases import Feed, Trial
from ....cases.specs.model import build_model
from ....cases.specs.spec import RecurrentSpec
from ....reference import Interpretations, cell_named
from ...workers.process import Job, Outcome
from ..failing_case import FailingCase, failing_case_of
from .own_functions import shows_gates

Array = NDArray[Any]
Inputs = dict[str, Array]
Mask = NDArray[np.bool_]
Runs = Callable[[Iterable[Job]], Iterator[Outcome]]

_KEPT = ("direction", "layout", "activations", "alpha", "beta", "clip", "opset", "explicit", "weights")
"""The fields of a case on which its functions depend."""

_INTERPRETATIONS = 4
"""Combinations of answers to open questions that are tried at most."""


def shows_numbers(spec: Any) -> bool:
    """Tell whether a case's node computes with numbers that can be chosen one by one."""
    return isinstance(spec, RecurrentSpec) and shows_gates(spec.op, spec.version) and spec.quantization == "none"


def node_spec(spec: RecurrentSpec, **given: Any) -> RecurrentSpec:
    """A case of one step with the attributes of another one, a bias, all initial states and all outputs."""
    kept: dict[str, Any] = {name: getattr(spec, name) for name in _KEPT}
    outputs = tuple(spec.node.operator.outputs)
    initial = "all" if cell_named(spec.op).inner else "h"
    made: RecurrentSpec = type(spec)(
        spec.op, spec.version, type=spec.type, bias=True, outputs=outputs, initial=initial, **kept, **given
    )
    return made


def asked(spec: RecurrentSpec, keys: Sequence[str], several: Sequence[Inputs], run: Runs) -> list[FailingCase | None]:
    """The answers of a target to a case with other inputs; None where one is of no use."""
    node = spec.node
    trials = []
    for key, inputs in zip(keys, several, strict=True):
        fed = {name: array for name, array in inputs.items() if name not in spec.constants}
        trials.append(Trial(key, build_model(spec, node, inputs, spec.outputs), node, (Feed(inputs, fed),)))
    outcomes = list(run(Job(trial.key, trial.model, (trial.feeds[0].fed,)) for trial in trials))
    cases = [failing_case_of(t.key, t, o, (), (0.0, 0)) for t, o in zip(trials, outcomes, strict=False)]
    return [None if case is None or case.misshapen else case for case in cases]


def numbers_wrong(case: FailingCase, accuracies: Sequence[str]) -> Mask | None:
    """(D, N, H): the numbers of Y in one step that are wrong by whatever may be meant; None where nobody knows."""
    observation: Any = case.observation(accuracies[0])
    choices = list(itertools.islice(Interpretations().alternatives(case.touched), _INTERPRETATIONS))
    every = (observation.misses(choice, accuracy)[0] for choice in choices for accuracy in accuracies)
    several = [wrong["Y"][0] for wrong in every if "Y" in wrong]
    return min(several, key=np.count_nonzero) if several else None
