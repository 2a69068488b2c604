"""Proofs of placement, reasons that make a package a trial, and facts that rest on the vendor's word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..judging.judgement import DECLINED, UNTRIED, Verdict
from ..probes.drawn import split_nonce
from ..results.environment import version_of
from ..running.filling import cases_to_add
from ..text import plural
from ..workers.job import Outcome
from .records import PlacementRecord, ReportedRecord
from .replay import Replay

_CPU = "CPUExecutionProvider"
_SOURCES = {"assignment record": "record", "profile": "profile"}
_NODE = re.compile(r"(\w+): (\S+)")
_SURROUNDINGS = ("Cast", "QuantizeLinear", "DequantizeLinear", "Neg", "Add", "Squeeze", "Transpose", "Reshape")
"""Operators that a wrap puts around a node; they may run on other providers."""


def placement_of(provider: str, wrapped: bool, outcomes: Mapping[str, tuple[Outcome, ...]]) -> PlacementRecord:
    """Return the proof that models ran on a provider; a target without one, or on the CPU's, needs none."""
    if not provider or provider == _CPU:
        return PlacementRecord(proof="not needed", provider=provider, cases=0)
    by_case = _proofs(provider, wrapped, outcomes)
    kinds = set[str]().union(*by_case.values()) - {""}
    proof = "mixed" if len(kinds) > 1 else next(iter(kinds), "none")
    return PlacementRecord(proof=proof, provider=provider, cases=sum("" not in found for found in by_case.values()))


def unproved(provider: str, wrapped: bool, outcomes: Mapping[str, tuple[Outcome, ...]]) -> Sequence[str]:
    """Return cases that ran without proof that they ran on the provider."""
    if not provider or provider == _CPU:
        return []
    return [case for case, kinds in _proofs(provider, wrapped, outcomes).items() if "" in kinds]


def _proofs(provider: str, wrapped: bool, outcomes: Mapping[str, tuple[Outcome, ...]]) -> dict[str, set[str]]:
    """Return the kinds of proof of each case that ran, empty where a model ran without."""
    by_case = {
        case: {_source(outcome.proof, provider, wrapped) for outcome in of_case if outcome.status == "ran"}
        for case, of_case in outcomes.items()
    }
    return {case: kinds for case, kinds in by_case.items() if kinds}


def _source(proof: str, provider: str, wrapped: bool) -> str:
    """Return the kind of a proof; empty if it proves nothing. A long proof was cut and ends in a mark."""
    source_kind, _, nodes = proof.partition(": ")
    if source_kind not in _SOURCES:
        return ""
    matches = [match for node in nodes.split("; ") if (match := _NODE.match(node)) is not None]
    counting = [match[1] for match in matches if not (wrapped and match[2] in _SURROUNDINGS)]
    return _SOURCES[source_kind] if counting and all(where == provider for where in counting) else ""


_NOT_CORE = {
    "smoke": "is below core",
    "quantized": "stands beside core, by whose cases levels are given: certify a lane by core, such as TARGET+qdq-u8",
}
"""The reason why a profile has no levels."""


def trial_of(replay: Replay, provider: str) -> Iterator[str]:
    """Return the reasons why a package certifies nothing, a line each; empty if it may certify."""
    selection = replay.plan.selection
    profile, nonce = split_nonce(selection.profile)
    if profile in _NOT_CORE:
        yield f"profile {profile} {_NOT_CORE[profile]}"
    if not nonce:
        yield "there is no block of fresh cases: run it with --nonce"
    if selection.cases:
        yield "the run was narrowed to single cases"
    tried = {result.case for result in replay.results if result.verdict not in UNTRIED}
    if missing := len(replay.probes.keys() - tried):
        yield f"{missing} of {len(replay.probes)} cases were not run"
    if open_cases := unproved(provider, bool(replay.target.wrap), replay.outcomes):
        yield f"{_cases(open_cases)} ran without proof of where"
    due = replay.due
    unrepeated = due - replay.repeated
    if not_repeated := [case for case in replay.probes if case in unrepeated]:
        yield f"{_cases(not_repeated)} of the {len(due)} that are due were not run once more in a fresh process"
    if replay.uncounted:
        yield f"it is not recorded how often {_cases(replay.uncounted)} were run"
    if profile not in _NOT_CORE:
        yield from _unfilled(replay)
    yield from _contradictions(replay)


def _cases(cases: Sequence[str]) -> str:
    return f"{plural(len(cases))} (such as {cases[0]})"


def _unfilled(replay: Replay) -> Iterator[str]:
    """Yield why cases that the results require were not run."""
    if not replay.plan.can_fill:
        yield "parts of operators were run: run whole operators, without a version in --op and without --type"
        return
    if not replay.plan.fills and cases_to_add(replay.plan, replay.target, replay.results):
        yield "cases that its results ask for were left out: run --resume adds them, without --no-extra and --shard"


def _contradictions(replay: Replay) -> Iterator[str]:
    """Yield contradictions in the record."""
    requested = str(replay.target.options.get("provider") or "")
    reported = str(replay.entry["description"].get("provider") or "")
    if requested and reported and requested != reported:
        yield f"asked for was the provider {requested}, and the runtime names {reported}"
    if (by := replay.info["onnxspec"]) != (installed := version_of("onnxspec") or ""):
        yield f"the cases were run by onnxspec {by}, and packed by {installed}"


_BY_EVENTS = DECLINED | {Verdict.CRASHED, Verdict.TIMED_OUT}


def reported_in(replay: Replay) -> Iterator[ReportedRecord]:
    """Return the facts of a run that rest on the vendor's word, each with its number of cases.

    A result rests either on outputs or on an event. The first outcome is the case's own: an invalid model that is
    refused has outputs of its legal counterpart only.
    """
    tried = [result for result in replay.results if result.verdict not in UNTRIED]
    ran = [
        outcomes
        for result in tried
        if result.verdict not in _BY_EVENTS and (outcomes := replay.outcomes[result.case])[0].status == "ran"
    ]
    counts = {
        "that the device made the outputs, in the environment that is named": len(ran),
        "that no repeated run returned anything else": sum(map(_one_output, ran)),
        "that no run changed its inputs, or what it had returned": sum(
            not any(o.changed or o.altered for o in outcomes) for outcomes in ran
        ),
        "that the outputs of a fresh process came from one": len(replay.repeated),
        "that new cases confirmed the causes that are named": sum(
            finding["foretold"] for finding in replay.record["targets"][0]["findings"]
        ),
        "that what was declined, crashed or took too long returned nothing wrong": len(tried) - len(ran),
    }
    return (ReportedRecord(what=fact, cases=cases) for fact, cases in counts.items() if cases)


def _one_output(outcomes: tuple[Outcome, ...]) -> bool:
    return all(len(distinct) == 1 for o in outcomes if o.status == "ran" for distinct in o.outputs)
