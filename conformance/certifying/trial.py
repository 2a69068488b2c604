"""Reasons that make a package a trial, which grants nothing: its record lacks parts that the nonce and the plan
require, or contradicts itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...cases.axes.quantized import BLOCK
from ..judging.judgement import UNTRIED
from ..probes.drawn import split_nonce
from ..results.environment import version_of
from ..running.filling import cases_to_add
from ..text import plural
from .placement import unproved
from .replay import Replay

_NOT_CORE = {
    "smoke": "is below core",
    BLOCK: "stands beside core, by whose cases levels are given: certify a lane by core, such as TARGET+qdq-u8",
}
"""The reason for which a profile has no levels."""


def trial_of(replay: Replay, provider: str) -> Iterator[str]:
    """Return the reasons why a package grants nothing, a line each; none if it may."""
    selection = replay.plan.selection
    profile, nonce = split_nonce(selection.profile)
    if profile in _NOT_CORE:
        yield f"profile {profile} {_NOT_CORE[profile]}"
    if not nonce:
        yield "there is no block of fresh cases: run it with --nonce"
    if selection.cases:
        yield "the run was narrowed to single cases"
    there = {result.case for result in replay.results if result.verdict not in UNTRIED}
    if missing := len(replay.probes.keys() - there):
        yield f"{missing} of {len(replay.probes)} cases were not run"
    if open_cases := list(unproved(provider, bool(replay.target.wrap), replay.outcomes)):
        yield f"{_cases(open_cases)} ran without proof of where"
    due = replay.due
    left = due - replay.repeated
    if again := [case for case in replay.probes if case in left]:
        yield f"{_cases(again)} of the {len(due)} that are due were not run once more in a fresh process"
    if replay.uncounted:
        yield f"it is not recorded how often {_cases(replay.uncounted)} were run"
    if profile not in _NOT_CORE:
        yield from _unfilled(replay)
    yield from _contradictions(replay)


def _cases(cases: Sequence[str]) -> str:
    return f"{plural(len(cases))} (such as {cases[0]})"


def _unfilled(replay: Replay) -> Iterator[str]:
    """Yield why cases that the results ask for were not run."""
    if not replay.plan.can_fill:
        yield "parts of operators were run: run whole operators, without a version in --op and without --type"
        return
    if not replay.plan.fills and cases_to_add(replay.plan, replay.target, replay.results):
        yield "cases that its results ask for were left out: run --resume adds them, without --no-extra and --shard"


def _contradictions(replay: Replay) -> Iterator[str]:
    """Contradictions in the record."""
    asked = str(replay.target.options.get("provider") or "")
    named = str(replay.entry["description"].get("provider") or "")
    if asked and named and asked != named:
        yield f"asked for was the provider {asked}, and the runtime names {named}"
    if (by := replay.info["onnxspec"]) != (own := version_of("onnxspec") or ""):
        yield f"the cases were run by onnxspec {by}, and packed by {own}"
