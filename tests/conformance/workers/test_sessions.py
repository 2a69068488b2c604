"""Session scripts through real workers: outcomes, and error messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxspec.cases import ABILITIES, CaseSpec, Course, Step, Trial, build_case
from onnxspec.cases.directories.graph_reading import read_model
from onnxspec.conformance.judging.judgement import DECLINED, FAILING, UNTRIED, Judgement, Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.probes.probe import job_of
from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.conformance.workers.in_process import run_in_process
from onnxspec.conformance.workers.job import Outcome
from onnxspec.conformance.workers.process import TargetProcess
from onnxspec.reference import evaluate, format_of

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
HELD = Course(frozenset({"held"}), (Step("run", 0, 0), Step("run", 0, 1), Step("look", 0, 0), Step("look", 0, 1)))
WEIGHTS = Course(frozenset({"weights"}), (Step("run", 0, 0), Step("run", 0, 1), Step("run", 0, 0)))


def trial(course: Course, spec: CaseSpec = SPEC) -> Trial:
    """Return a trial with two feeds of different data and weights."""
    first, second = (build_case(replace(spec, seed=k, weights_seed=k)).trial for k in (0, 1))
    return replace(first, feeds=(*first.feeds, *second.feeds), course=course)


def several(spec: CaseSpec = SPEC) -> Trial:
    """Return a trial with two models of different constants; each model keeps its own."""
    spec = replace(spec, weights="initializer")
    first, second = (build_case(replace(spec, seed=k, weights_seed=k)).trial for k in (0, 1))
    steps = (Step("run", 0, 0), Step("run", 1, 1), Step("run", 0, 0))
    course = Course(frozenset({"several"}), steps, models=(second.model,))
    return replace(first, feeds=(*first.feeds, *second.feeds), course=course)


def refused(spec: CaseSpec = SPEC) -> Trial:
    """Return a trial with a run after an attempt whose X has one feature too many."""
    right = build_case(spec).trial
    wrong = {name: np.concatenate((a, a[..., :1]), -1) if name == "X" else a for name, a in right.feeds[0].fed.items()}
    steps = (Step("run", 0, 0), Step("try", 0, 0), Step("run", 0, 0))
    return replace(right, course=Course(frozenset({"refusals"}), steps, attempts=(wrong,)))


TRIALS: dict[str, Callable[[], Trial]] = {
    "held": lambda: trial(HELD),
    "weights": lambda: trial(WEIGHTS),
    "several": several,
    "refusals": refused,
}


def target(folder: Path, fault: str = "", sessions: object = tuple(ABILITIES)) -> Target:
    folder.mkdir(exist_ok=True)
    (folder / "adapter.py").write_text(ADAPTER.format(sessions=sessions), encoding="utf-8")
    table = f'[mine]\nadapter = "adapter.py"\n[mine.options]\nfault = "{fault}"\n'
    (folder / "targets.toml").write_text(table, encoding="utf-8")
    return parse_target("mine", folder / "targets.toml")


def outcome(mine: Target, one: Trial) -> Outcome:
    with TargetProcess(mine) as process:
        (result,) = process.run([job_of(one)])
    return result


def judged(one: Trial, became: Outcome) -> Judgement:
    return judge((one,), (became,))


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TargetProcess]:
    with TargetProcess(target(tmp_path_factory.mktemp("right"))) as process:
        yield process


@pytest.mark.parametrize("name", TRIALS)
def test_a_right_target_passes(right: TargetProcess, name: str) -> None:
    session = TRIALS[name]()
    (became,) = right.run([job_of(session)])
    assert (became.status, became.altered) == ("ran", ())
    assert [len(distinct) for distinct in became.outputs] == [1] * len(session.feeds)
    assert judged(session, became).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("fault", "name", "verdict", "reason"),
    [
        ("one buffer", "held", Verdict.UNSTABLE, "held"),
        ("one buffer", "weights", Verdict.PASS, None),
        ("weights of the first run", "weights", Verdict.WRONG, "value"),
        ("last model wins", "several", Verdict.UNSTABLE, "value"),
        ("refused for ever", "refusals", Verdict.UNSUPPORTED, "run"),
    ],
)
def test_a_session_that_goes_wrong_is_found_out(
    tmp_path: Path, fault: str, name: str, verdict: Verdict, reason: str | None
) -> None:
    session = TRIALS[name]()
    judgement = judged(session, outcome(target(tmp_path, fault), session))
    assert (judgement.verdict, judgement.reason) == (verdict, reason), judgement.message


def test_held_outputs_say_which_run_they_are_of(tmp_path: Path) -> None:
    session = trial(HELD)
    became = outcome(target(tmp_path, "one buffer"), session)
    assert became.altered == (0,)
    assert judged(session, became).message == "outputs of run 1 of 2, held by the caller, had changed after a later run"


@pytest.mark.parametrize("declared", [(), ("held", "word-of-a-later-version")])
def test_what_an_adapter_does_not_declare_is_not_tried(tmp_path: Path, declared: tuple[str, ...]) -> None:
    trials, plain = [make() for make in TRIALS.values()], build_case(SPEC).trial
    with TargetProcess(target(tmp_path, sessions=declared)) as process:
        first, *outcomes, last = process.run(map(job_of, (plain, *trials, plain)))
    assert (first.status, last.status) == ("ran", "ran")
    for name, session, became in zip(TRIALS, trials, outcomes, strict=True):
        judgement = judged(session, became)
        if name in declared:
            assert judgement.verdict is Verdict.PASS
        else:
            assert became.status == "not-tried"
            assert ABILITIES[name] in judgement.message
            assert judgement.verdict is Verdict.NOT_TRIED
            assert judgement.verdict not in FAILING | DECLINED | UNTRIED


def test_onnxruntime_takes_them_all() -> None:
    trials = [make() for make in TRIALS.values()]
    with TargetProcess(parse_target("onnxruntime")) as process:
        for session, became in zip(trials, process.run(map(job_of, trials)), strict=True):
            judgement = judged(session, became)
            assert judgement.verdict is Verdict.PASS, judgement.message


# In this process.


def reference(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    parsed = read_model(model)
    bound = parsed.bind(inputs)
    return [array.astype(format_of(bound["X"].dtype).dtype) for array in evaluate(parsed.node, bound).values()]


class OneBuffer:
    """Session that returns the same arrays each time."""

    def __init__(self) -> None:
        self.buffers: dict[tuple[int, tuple[int, ...]], Any] = {}

    def __call__(self, model: bytes, inputs: dict[str, Any]) -> list[Any]:
        outputs = []
        for position, array in enumerate(reference(model, inputs)):
            kept = self.buffers.setdefault((position, array.shape), array)
            kept[...] = array
            outputs.append(kept)
        return outputs


@pytest.mark.parametrize("name", TRIALS)
def test_functions_follow_courses_too(name: str) -> None:
    session = TRIALS[name]()
    assert judged(session, run_in_process(reference, session)).verdict is Verdict.PASS
    kept = judged(session, run_in_process(OneBuffer(), session))
    assert (kept.verdict, kept.reason) == ((Verdict.UNSTABLE, "held") if name == "held" else (Verdict.PASS, None))
