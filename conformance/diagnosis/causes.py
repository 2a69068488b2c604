"""Causes: findings whose conditions have been tried on the target, not only seen together.

For each group of failures its smallest case is made as small as it can be (:mod:`.experiments`); what remains in that
case, and cannot be left out, is the condition under which the failure shows. Title, message, pictures and scripts then
come from that case.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from ...cases.specs.simpler import SIZES
from ...reference import Fault, Interpretations, fault_named
from ...reference.operators.observation import Observation
from ..judging.judgement import FAILING, Verdict
from ..judging.view import view_of
from ..probes.probe import Probe, SpecProbe
from ..probes.stream import Tried, tried
from ..results.evidence import Kept
from ..results.records import Finding
from ..results.result import Result
from ..workers.process import TargetProcess
from .experiments import Budget, Need, Shrunk, alike, shrink
from .failing_case import DIAGNOSED, failing_case_of
from .findings import alone, consistent, counted, titled
from .foretelling import foretold

__all__ = ["LEAST_SECONDS", "SHARE", "Subject", "explaining", "explains", "needs_in_words", "refuting", "with_causes"]

SHARE = 0.5
"""The part of a run's own time that experiments may take."""

LEAST_SECONDS = 2.0
"""What they may take of a run that took next to none."""

_KINDS = frozenset(v.value for v in FAILING - {Verdict.NOT_REJECTED})
_INTERPRETATIONS = 4
_CAUSES = 8
"""Causes that are looked for among failures that are alike."""

_WORDS: Mapping[str, Mapping[Any, str]] = {
    "direction": {"reverse": "the reverse direction", "bidirectional": "both directions"},
    "layout": {1: "layout 1"},
    "bias": {True: "bias B"},
    "lengths": {
        "full": "sequence_lens",
        "short": "a short row",
        "ragged": "rows of several lengths",
        "empty": "a row of length 0",
    },
    "initial": {"all": "initial states", "h": "initial_h", "c": "initial_c"},
    "peepholes": {True: "peepholes P"},
    "hidden_size": {False: "no hidden_size"},
    "explicit": {True: "defaults written down"},
    "weights": {"initializer": "constant weights"},
    "dimensions": {"symbolic": "symbolic dimensions"},
    "opset": {"last": "a later opset"},
    "reruns": {"data": "another run before", "sizes": "a run of another size before"},
    "data": {
        "small": "small numbers",
        "large": "large numbers",
        "huge": "huge numbers",
        "exact": "numbers of few digits",
        "one-sign": "numbers of one sign",
        "nan-row": "NaN",
        "inf-row": "infinity",
        "nan-padding": "NaN in the padding",
        "nan": "NaN",
        "inf": "infinity",
        "far": "numbers far beyond all levels",
        "ties": "numbers between two levels",
    },
    "T": {0: "no steps"},
    "N": {0: "no rows"},
    "old": {True: "the old name"},
}
_SIZES = {"T": "steps", "N": "rows", "I": "features of X", "H": "units"}
_ATTRIBUTES = {"alpha": "activation_alpha", "beta": "activation_beta"}
_UNSAID = frozenset({"seed", "weights_seed"})
"""Fields that are no feature: other numbers do not show it, which says nothing of when it comes."""


def needs_in_words(needs: Sequence[Need]) -> list[str]:
    """What cannot be left out, for a reader."""
    return [_worded(need) for need in needs if need.field not in _UNSAID]


def _worded(need: Need) -> str:
    known = _WORDS.get(need.field, {})
    if need.value in known:
        return known[need.value]
    if need.field in _SIZES:
        return f"{need.value} {_SIZES[need.field]} or more"
    if need.field == "activations":
        return f"activations {'/'.join(dict.fromkeys(need.value))}"
    if need.field == "outputs":
        return f"outputs {', '.join(name for name in need.value if name)}"
    if need.field == "type":
        return str(need.value)
    if need.field == "fill":
        beyond = any(share > 1 for _, share in need.value)
        return "numbers beyond what levels stand for" if beyond else "numbers that use little of their range"
    if isinstance(need.value, tuple) and len(need.value) == 2 and isinstance(need.value[0], float):
        if set(need.instead) == {None}:  # any will do
            return f"{need.field}_scale"
        scale, zero_point = need.value
        return f"{need.field}_scale {scale:.6g} at zero point {zero_point}"
    return _ATTRIBUTES.get(need.field, need.field)


def explains(faults: Sequence[Fault], accuracy: str) -> Callable[[Tried], bool]:
    """Whether faults explain what a target returned in a case."""

    def holds(one: Tried) -> bool:
        seen = _seen(one, accuracy)
        return seen is not None and _explained(faults, *seen)

    return holds


def explaining(accuracy: str, beside: Sequence[Fault] = ()) -> Callable[[Fault, Tried], bool]:
    """Whether one fault or another, alone or beside those that the target has, explains what it returned in a case:
    many are asked of a few cases."""
    seen: dict[int, tuple[Tried, tuple[Observation, list[Interpretations]] | None]] = {}

    def holds(fault: Fault, one: Tried) -> bool:
        if id(one) not in seen:
            seen[id(one)] = one, _seen(one, accuracy)
        what = seen[id(one)][1]
        if what is None or not what[0].changes(fault, what[1][0]):
            return False
        others = [d for d in beside if d is not fault and fault.id.partition("@")[0] != d.id.partition("@")[0]]
        op, version = one.probe.op, one.probe.version
        together = [d for d in others if d.applies(op, version) and what[0].changes(d, what[1][0])]
        return _explained((fault,), *what) or (bool(together) and _explained((fault, *together), *what))

    return holds


def refuting(accuracy: str) -> Callable[[Fault, Tried], bool]:
    """Whether a fault says that a target returns other numbers in a case than it does."""
    seen: dict[int, tuple[Tried, tuple[Observation, list[Interpretations]] | None]] = {}

    def holds(fault: Fault, one: Tried) -> bool:
        if id(one) not in seen:
            seen[id(one)] = one, _seen(one, accuracy)
        what = seen[id(one)][1]
        return what is not None and what[0].changes(fault, what[1][0]) and not _explained((fault,), *what)

    return holds


def _seen(one: Tried, accuracy: str) -> tuple[Observation, list[Interpretations]] | None:
    """What a target returned in a case, and how its document may be read there; None where it returned nothing."""
    if not one.prepared.trials:
        return None
    trial, outcome = view_of(one.prepared.trials, one.outcomes, one.judgement).own
    failing_case = failing_case_of(one.probe.id, trial, outcome, one.probe.clauses, one.probe.size)
    if failing_case is None:
        return None
    choices = itertools.islice(Interpretations().alternatives(trial.touched), _INTERPRETATIONS)
    return failing_case.observation(accuracy), list(choices)


def _explained(faults: Sequence[Fault], observation: Observation, choices: Sequence[Interpretations]) -> bool:
    return any(observation.fit(faults, interpretations) is not None for interpretations in choices)


@dataclass(frozen=True)
class Subject:
    """The failures of one target, and the target to ask about them.

    process
        At work or not yet started.
    repeat
        The command that shows a case on the target.
    results
        All of them.
    probes, kept
        What the results are of, by id, and what the target returned; both get the smallest cases too.
    observe
        Called with the id of the case that experiments began with, every experiment, and the name of the field that
        was changed.
    """

    process: TargetProcess
    accuracy: str
    repeat: Callable[[Probe], str]
    results: Sequence[Result]
    probes: dict[str, Probe]
    kept: Kept
    observe: Callable[[str, Tried, str], None] = lambda smallest, one, changed: None


def with_causes(findings: Sequence[Finding], subject: Subject, budget: Budget) -> list[Finding]:
    """The findings, those that time was enough for with their smallest case and what it cannot do without.

    Failures that nothing explains fail alike, but may have several causes: those that have not what the smallest case
    cannot do without are a finding of their own.
    """
    # What nobody knows yet comes first.
    order = sorted(findings, key=lambda f: bool(f["expected"]))
    asked = [f for f in order if _open(f, subject.probes)]
    by_finding: dict[int, list[Finding]] = {}
    for number, finding in enumerate(asked):
        # Twice its part: what the others leave over is theirs.
        part = budget.part(min(1.0, 2 / (len(asked) - number)))
        by_finding[id(finding)] = _apart(finding, subject, part)
    return [each for finding in findings for each in by_finding.get(id(finding), [finding])]


def _apart(finding: Finding, subject: Subject, budget: Budget) -> list[Finding]:
    """A finding by its causes, each with the cases that meet its conditions, and last what is left."""
    causes: list[Finding] = []
    results = {r.case: r for r in subject.results}
    while len(causes) < _CAUSES and budget.left > 0 and _open(finding, subject.probes):
        shrunk = _shrunk(finding, subject, budget.part(0.7))
        if shrunk is None:
            break
        thought = bool(finding["fault"])
        caused = _caused(_named(finding, shrunk, subject, budget), shrunk, subject)
        if thought or not shrunk.needs:
            return [*causes, caused]
        others = [case for case in finding["cases"] if not _met(shrunk.needs, subject.probes[case])]
        if not others or len(others) == len(finding["cases"]):
            return [*causes, caused]
        mine = [results[case] for case in finding["cases"] if case not in set(others)]
        causes.append(cast(Finding, {**caused, **counted(mine)}))
        finding = alone([results[case] for case in others], subject.results, subject.probes)
    return [*causes, finding]


def _named(finding: Finding, shrunk: Shrunk, subject: Subject, budget: Budget) -> Finding:
    """A finding with what foretells the target's answers in fresh cases of the same kind, if anything."""
    if not shrunk.complete or shrunk.one.judgement.verdict not in DIAGNOSED:
        return finding
    thought = fault_named(finding["fault"]) if finding["fault"] else None
    name = foretold(
        shrunk.one,
        lambda probes: tried(subject.process, probes, subject.accuracy),
        explaining(subject.accuracy, _beside(finding, subject)),
        lambda: budget.left <= 0,
        thought if isinstance(thought, Fault) else None,
        refuting(subject.accuracy),
    )
    if name is None:
        return finding
    # What explains all cases of a run together is the better name where nothing tells it from what explains these.
    if name.others and finding["fault"]:
        return finding
    summary = name.fault.summary.rstrip(".")
    if name.others:
        return {**finding, "what": f"{finding['what']}, {consistent(summary)}"}
    return {**finding, "what": summary, "fault": name.fault.id, "foretold": name.cases}


def _beside(finding: Finding, subject: Subject) -> list[Fault]:
    """The faults that explain other failures of the target: it has them in every case."""
    ids = dict.fromkeys(id for r in subject.results for id in r.diagnosis if id != finding["fault"])
    return [d for d in map(fault_named, ids) if d is not None and not d.accepts]


def _met(needs: Sequence[Need], probe: Probe) -> bool:
    return isinstance(probe, SpecProbe) and all(n.met(probe.spec) for n in needs if n.field not in _UNSAID)


def shared(needs: Sequence[Need], specs: Sequence[Any]) -> list[Need]:
    """Those conditions of one case that all the others have, too: the same value or more, and all of several names."""
    return [
        need
        for need in needs
        if all(
            set(filter(None, need.value)) <= set(getattr(spec, need.field) or ())
            if isinstance(need.value, tuple)
            else need.met(spec)
            for spec in specs
            if hasattr(spec, need.field)
        )
    ]


def _specs(finding: Finding, subject: Subject) -> list[Any]:
    probes = (subject.probes[case] for case in finding["cases"])
    return [probe.spec for probe in probes if isinstance(probe, SpecProbe)]


def _mentions(sentence: str, words: str) -> bool:
    """Whether a sentence has some words already, or the input's name that they end with."""
    name = re.search(r"\b([A-Z])$", words)
    return words.casefold() in sentence.casefold() or bool(name and re.search(rf"\b{name[1]}\b", sentence))


def _shrunk(finding: Finding, subject: Subject, budget: Budget) -> Shrunk | None:
    """The smallest case of a finding; None where its case does not fail again."""
    running = tried(subject.process, [subject.probes[finding["smallest"]]], subject.accuracy)
    first = next(iter(running))
    if first.judgement.verdict.value != finding["verdict"]:
        return None  # it comes and goes: nothing can be concluded from one try
    fault = fault_named(finding["fault"]) if finding["fault"] else None
    why = None
    if isinstance(fault, Fault):
        why = partial(explaining(subject.accuracy, _beside(finding, subject)), fault)
    same = alike(first, why if why is not None and why(first) else None)
    shrunk = shrink(
        subject.process, first, same, subject.accuracy, budget, partial(subject.observe, finding["smallest"])
    )
    if first.judgement.verdict is Verdict.INACCURATE:
        # The more numbers there are, the likelier is one that lies outside: their count is no condition of it.
        return replace(shrunk, needs=tuple(need for need in shrunk.needs if need.field not in SIZES))
    return shrunk


def _open(finding: Finding, probes: Mapping[str, Probe]) -> bool:
    """Whether there is something to try: a legal case that fails, and that is made from a few values."""
    probe = probes.get(finding["smallest"])
    return finding["kind"] in _KINDS and isinstance(probe, SpecProbe) and not probe.spec.illegal


def _caused(finding: Finding, shrunk: Shrunk, subject: Subject) -> Finding:
    probe, judgement = shrunk.one.probe, shrunk.one.judgement
    if probe.id != finding["smallest"]:
        subject.probes[probe.id] = probe
        subject.kept.offer(shrunk.one)
        finding = {
            **finding,
            "smallest": probe.id,
            "message": judgement.message,
            "repeat": subject.repeat(probe),
        }
    if not (shrunk.complete or shrunk.needs):
        return {**finding, "title": titled(finding, finding["conditions"], tried=False)}
    # What has a name may come from less than one case shows: a condition that some of its cases lack is none of it.
    needs = shared(shrunk.needs, _specs(finding, subject)) if finding["fault"] else shrunk.needs
    words = [w for w in needs_in_words(needs) if not _mentions(finding["what"], w)]
    conditions = " and ".join(words)
    return {
        **finding,
        "title": titled(finding, conditions, tried=True),
        "conditions": conditions,
        "tried": True,
        "tries": shrunk.tries,
        "needs": [
            {
                "field": n.field,
                "value": str(n.value),
                "instead": [str(i) for i in n.instead],
                "verdict": n.verdict.value,
            }
            for n in shrunk.needs
        ],
    }
