"""Cases of ONNX's recurrent operators, built and ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..axes.session import Turn, nearly_own
from ..axes.tensors import OVERRIDDEN
from .case import Case, Course, Feed, Step, Trial
from .features import break_case, violation_of
from .graphs import join
from .model import build_model, inputs_of
from .quantizing import quantized_case
from .spec import CaseSpec

_EXACT = {
    "gru-14.float32.bidirectional.bias.initial-all.activations.exact.T1N3I2H3": "87b4a2 e7703e c43f81 a21ae0",
    "rnn-14.float32.bidirectional.bias.initial-all.activations.exact.T1N3I2H3": "f51479 09aae2 5dfe46 8a8f5c",
    "rnn-14.float64.bidirectional.bias.initial-all.activations.exact.T2N3I2H3": "fbbf63 443a51",
    "rnn-14.float16.bidirectional.bias.initial-all.activations.exact.T1N3I2H3": "7bf09f 4dd948",
    "rnn-22.bfloat16.bidirectional.bias.initial-all.activations.exact.T1N3I2H3": "510cc6 60ba8f",
    "lstm-14.float32.forward.activations.u8.scales-power.T1N40I3H36": "570986 66795a",
    "lstm-14.float32.forward.activations.s8.scales-power.T1N40I3H36": "22af3e e60e01",
    "lstm-14.float32.forward.activations.u16.weights-s8.scales-power.T1N40I3H36": "01e567 19da88",
    "lstm-14.float32.forward.activations.s16.weights-s8.scales-power.T1N40I3H36": "e143f6 d5cabd",
    "gru-14.float32.forward.activations.u8.scales-power.T1N40I3H36": "16ed60 e5be30",
    "gru-14.float32.forward.activations.s8.scales-power.T1N40I3H36": "634771 0fbf4a",
    "gru-14.float32.forward.activations.u16.weights-s8.scales-power.T1N40I3H36": "b74100 9c24c5",
    "gru-14.float32.forward.activations.s16.weights-s8.scales-power.T1N40I3H36": "a14c96 0b352b",
    "rnn-14.float32.forward.activations.u8.scales-power.T1N40I3H36": "c97df2 4e73be",
    "rnn-14.float32.forward.activations.s8.scales-power.T1N40I3H36": "1e4671 cc99e8",
    "rnn-14.float32.forward.activations.u16.weights-s8.scales-power.T1N40I3H36": "d5c256 886933",
    "rnn-14.float32.forward.activations.s16.weights-s8.scales-power.T1N40I3H36": "f8e8d9 dc56e9",
}
"""Cases in which no conforming implementation rounds any number that their outputs depend on, so that their error bound
is 0: the ends of their ids, by beginning. This holds for the default interpretations; others have ordinary bounds.

Data and coefficients are multiples of powers of 2, and every partial sum, in any order, is a number of the tensors'
type. ``tests/cases/specs/test_exact.py`` proves this for each case. A case that differs in any field is not exact.
"""

EXACT_CASES = frozenset(f"{beginning}.{end}" for beginning, ends in _EXACT.items() for end in ends.split())


def mark_exact(case: Case) -> Case:
    """Return the case, with nodes that are marked as exact if it is one of EXACT_CASES."""
    if case.spec.id not in EXACT_CASES:
        return case
    return case.changed(lambda trial: replace(trial, node=replace(trial.node, exact=True)))


_OTHER_WEIGHTS = 7919  # added to the seed of weights
_ANOTHER = 7  # number of a run with other data, for partly changed inputs


def recurrent_case(spec: CaseSpec) -> Case:
    """Return the models and inputs of a case; the same bytes every time."""
    if spec.illegal:
        return _forbidden(spec)
    if spec.quantized:
        return mark_exact(quantized_case(spec, recurrent_case))
    trial, companion = _trial(spec, spec.id, spec.outputs), None
    if "Y" not in spec.outputs:
        companion = replace(_trial(spec, f"{spec.id}~companion", spec.node.operator.outputs), graded=False)
    case = mark_exact(Case(spec, trial, companion))
    return case if spec.graph == "none" else join(case, spec.graph)


def _trial(spec: CaseSpec, key: str, asked: tuple[str, ...]) -> Trial:
    """Return the sessions of a case, with the requested outputs."""
    script = spec.script
    own = inputs_of(spec)
    # The case's own run comes last, because readers look at it first.
    turns = [*dict.fromkeys(turn for turn in script.turns if turn != Turn(0)), Turn(0)]
    feeds = tuple(_feed(spec, _tensors(spec, turn, own), turn) for turn in turns)
    node = replace(spec.node, outputs=tuple(name for name in asked if name))
    model = build_model(spec, spec.node, own, asked)
    course = None
    if script.needs:
        steps = [Step("run", turn.session, turns.index(turn)) for turn in script.turns]
        attempts: tuple[Mapping[str, NDArray[Any]], ...] = ()
        if script.refused:
            attempts = (_of_another_width(feeds[-1].fed),)
            steps += [Step("try", 0, 0), Step("run", 0, len(turns) - 1)]
        if script.looks:
            steps += [Step("look", 0, number) for number, step in enumerate(steps) if step.does == "run"]
        others: tuple[bytes, ...] = ()
        if any(turn.session for turn in turns):
            other = _other(spec)
            others = (build_model(other, spec.node, inputs_of(other), asked),)
        course = Course(frozenset(script.needs), tuple(steps), others, attempts)
    return Trial(key, model, node, feeds, spec.data == "numerics", alone=spec.alone, course=course)


def _other(spec: CaseSpec) -> CaseSpec:
    """Return the case with other weights."""
    return replace(spec, weights_seed=spec.weights_seed + _OTHER_WEIGHTS)


def _tensors(spec: CaseSpec, turn: Turn, own: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    """Return all inputs of a run; constants are those of the model of its session."""
    if turn.part:
        return nearly_own(turn.part, own, inputs_of(_other(spec), _ANOTHER), spec.constants, spec.T)
    weighed = _other(spec) if turn.weights else spec
    tensors = inputs_of(weighed, turn.run)
    overridden = _overridden(spec, turn)
    held = inputs_of(weighed) if turn.session else own
    tensors = {name: held[name] if name in spec.constants - overridden else array for name, array in tensors.items()}
    if overridden and turn.weights:
        # A constant is the same in every run, so other numbers come from another seed.
        others = inputs_of(replace(weighed, seed=spec.seed + _OTHER_WEIGHTS), turn.run)
        tensors |= {name: others[name] for name in overridden if name in others}
    return tensors


def _overridden(spec: CaseSpec, turn: Turn) -> frozenset[str]:
    """Return the constants that a run overrides."""
    # In a further session, the other weights are in its model.
    once = spec.held == "once" and turn.weights and not turn.session
    return spec.overridden if once or spec.held in OVERRIDDEN else frozenset()


def _of_another_width(fed: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    """Return inputs whose X has one column too many."""
    X = fed["X"]
    return {**fed, "X": np.concatenate((X, X[..., :1]), axis=-1)}


def _feed(spec: CaseSpec, tensors: Mapping[str, NDArray[Any]], turn: Turn) -> Feed:
    constant = spec.constants - _overridden(spec, turn)
    return Feed(tensors, {name: array for name, array in tensors.items() if name not in constant})


_legal_case = lru_cache(maxsize=32)(recurrent_case)  # consecutive invalid cases have the same legal case


def _forbidden(spec: CaseSpec) -> Case:
    """Return an invalid case; its model runs once, because only success or refusal matters."""
    node, tensors = break_case(spec)
    model = build_model(spec, node, tensors, node.outputs)
    trial = Trial(
        spec.id, model, node, (_feed(spec, tensors, Turn(0)),), violation=violation_of(spec), alone=spec.alone
    )
    legal = _legal_case(replace(spec, illegal="")).trial
    return Case(spec, trial, replace(legal, key=f"{spec.id}~companion"))
