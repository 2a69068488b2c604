"""Session scripts through real workers: outcomes, and error messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxspec.cases import ABILITIES, CaseSpec, Course, Step, Trial, build_case
from onnxspec.conformance.judging.judgement import DECLINED, FAILING, UNTRIED, Judgement, Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.probes.probe import job_of
from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.conformance.workers.in_process import run_in_process
from onnxspec.conformance.workers.job import Outcome

from ..misbehaving import outcomes
from .test_in_process import reference

ADAPTER = '''
"""The reference as a target, and sessions that go wrong in the ways of option `fault`."""

import numpy as np

from onnxspec.cases.directories.graph_reading import read_model
from onnxspec.reference import evaluate, format_of

SESSIONS = {sessions!r}
KEPT = {{}}


class Adapter:
    def __init__(self, options):
        self.fault = options.get("fault", "")

    def describe(self):
        return {{"runtime": "sessions", "version": "1"}}

    def prepare(self, model):
        return Session(model, self.fault)


class Session:
    def __init__(self, model, fault):
        self.one, self.fault, self.kept, self.buffers = read_model(model), fault, {{}}, {{}}
        if fault == "last model wins":
            KEPT["model"] = self.one

    def run(self, feeds):
        if self.fault == "refused for ever" and self.kept.get("refused"):
            raise ValueError("this session is broken")
        one = KEPT["model"] if self.fault == "last model wins" else self.one
        if self.fault == "weights of the first run":
            feeds = {{**feeds, **{{n: self.kept.setdefault(n, a) for n, a in feeds.items() if n in "WRB"}}}}
        inputs = one.bind(feeds)
        try:
            computed = evaluate(one.node, inputs)
        except Exception:
            self.kept["refused"] = True
            raise
        outputs = [array.astype(format_of(inputs["X"].dtype).dtype) for array in computed.values()]
        if self.fault == "one buffer":
            for place, array in enumerate(outputs):
                kept = self.buffers.setdefault((place, array.shape), array)
                kept[...] = array
                outputs[place] = kept
        return outputs
'''

SPEC = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, weights="input", outputs=("Y", "Y_h"))


def of_two(need: str, *steps: Step, spec: CaseSpec = SPEC) -> Trial:
    """Return a trial with two feeds of different data and weights, and a second model with the second weights."""
    first, second = (build_case(replace(spec, seed=k, weights_seed=k)).trial for k in (0, 1))
    models = (second.model,) if need == "several" else ()
    return replace(first, feeds=(*first.feeds, *second.feeds), course=Course(frozenset({need}), steps, models))


def refused() -> Trial:
    """Return a trial with a run after an attempt whose X has one feature too many."""
    right = build_case(SPEC).trial
    wrong = {name: np.concatenate((a, a[..., :1]), -1) if name == "X" else a for name, a in right.feeds[0].fed.items()}
    steps = (Step("run", 0, 0), Step("try", 0, 0), Step("run", 0, 0))
    return replace(right, course=Course(frozenset({"refusals"}), steps, attempts=(wrong,)))


FIRST, SECOND = Step("run", 0, 0), Step("run", 0, 1)
TRIALS: dict[str, Trial] = {
    "held": of_two("held", FIRST, SECOND, Step("look", 0, 0), Step("look", 0, 1)),
    "weights": of_two("weights", FIRST, SECOND, FIRST),
    "several": of_two("several", FIRST, Step("run", 1, 1), FIRST, spec=replace(SPEC, weights="initializer")),
    "refusals": refused(),
}


def target(folder: Path, fault: str = "", sessions: object = tuple(ABILITIES)) -> Target:
    (folder / "adapter.py").write_text(ADAPTER.format(sessions=sessions), encoding="utf-8")
    return Target("mine", str(folder / "adapter.py"), {"fault": fault})


def judged(outcomes: Iterable[Outcome]) -> dict[str, Judgement]:
    """Return the judgements of the outcomes of all trials."""
    return {name: judge((trial,), (outcome,)) for (name, trial), outcome in zip(TRIALS.items(), outcomes, strict=True)}


def failures(judgements: Mapping[str, Judgement]) -> dict[str, tuple[Verdict, str]]:
    return {name: (j.verdict, j.reason) for name, j in judgements.items() if j.verdict is not Verdict.PASS}


FAULTS: dict[str, dict[str, tuple[Verdict, str]]] = {
    "": {},
    "one buffer": {"held": (Verdict.UNSTABLE, "held")},
    "weights of the first run": {"held": (Verdict.WRONG, "value"), "weights": (Verdict.WRONG, "value")},
    "last model wins": {"several": (Verdict.UNSTABLE, "value")},
    "refused for ever": {"refusals": (Verdict.UNSUPPORTED, "run")},
}
"""Verdicts and reasons that are no pass, by the adapter's fault."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_session_that_goes_wrong_is_found_out(tmp_path: Path, fault: str) -> None:
    ended = outcomes(target(tmp_path, fault), *map(job_of, TRIALS.values()))
    judgements = judged(ended)
    assert failures(judgements) == FAULTS[fault]
    if not fault:
        assert [len(distinct) for outcome in ended for distinct in outcome.outputs] == [1] * 7
    assert [outcome.altered for outcome in ended] == [(0,) if fault == "one buffer" else (), (), (), ()]
    if fault == "one buffer":
        message = "outputs of run 1 of 2, held by the caller, had changed after a later run"
        assert judgements["held"].message == message


@pytest.mark.parametrize("declared", [(), ("held", "word-of-a-later-version")])
def test_abilities_that_an_adapter_does_not_declare_are_not_tried(tmp_path: Path, declared: tuple[str, ...]) -> None:
    plain = job_of(build_case(SPEC).trial)
    mine = target(tmp_path, sessions=declared)
    first, *ended, last = outcomes(mine, plain, *map(job_of, TRIALS.values()), plain)
    assert (first.status, last.status) == ("ran", "ran")
    for name, judgement in judged(ended).items():
        if name in declared:
            assert judgement.verdict is Verdict.PASS
        else:
            assert ABILITIES[name] in judgement.message
            assert judgement.verdict is Verdict.NOT_TRIED
            assert judgement.verdict not in FAILING | DECLINED | UNTRIED


def test_onnxruntime_takes_them_all() -> None:
    judgements = judged(outcomes(parse_target("onnxruntime"), *map(job_of, TRIALS.values())))
    assert {judgement.verdict for judgement in judgements.values()} == {Verdict.PASS}, judgements


def test_functions_follow_courses_too() -> None:
    buffers: dict[Any, Any] = {}

    def in_one_buffer(model: bytes, inputs: dict[str, Any]) -> list[Any]:
        outputs = reference(model, inputs)
        kept = [buffers.setdefault((number, array.shape), array) for number, array in enumerate(outputs)]
        for buffer, array in zip(kept, outputs, strict=True):
            buffer[...] = array
        return kept

    for run, fault in ((reference, ""), (in_one_buffer, "one buffer")):
        judgements = judged(run_in_process(run, trial) for trial in TRIALS.values())
        assert failures(judgements) == FAULTS[fault]
