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
from .derivation import Derivation
from .placement import unproved

_NOT_CORE = {
    "smoke": "is below core",
    BLOCK: "stands beside core, by whose cases levels are given: certify a lane by core, such as TARGET+qdq-u8",
}
"""The reason for which a profile has no levels."""


def trial_of(derivation: Derivation, provider: str) -> Iterator[str]:
    """Return the reasons why a package grants nothing, a line each; none if it may."""
    selection = derivation.plan.selection
    profile, nonce = split_nonce(selection.profile)
    if profile in _NOT_CORE:
        yield f"profile {profile} {_NOT_CORE[profile]}"
    if not nonce:
        yield "there is no block of fresh cases: run it with --nonce"
    if selection.cases:
        yield "the run was narrowed to single cases"
    there = {result.case for result in derivation.results if result.verdict not in UNTRIED}
    if missing := len(derivation.probes.keys() - there):
        yield f"{missing} of {len(derivation.probes)} cases were not run"
    if open_cases := list(unproved(provider, bool(derivation.target.wrap), derivation.outcomes)):
        yield f"{_cases(open_cases)} ran without proof of where"
    due = derivation.due
    left = due - derivation.repeated
    if again := [case for case in derivation.probes if case in left]:
        yield f"{_cases(again)} of the {len(due)} that are due were not run once more in a fresh process"
    if derivation.uncounted:
        yield f"it is not recorded how often {_cases(derivation.uncounted)} were run"
    if profile not in _NOT_CORE:
        yield from _unfilled(derivation)
    yield from _contradictions(derivation)


def _cases(cases: Sequence[str]) -> str:
    return f"{plural(len(cases))} (such as {cases[0]})"


def _unfilled(derivation: Derivation) -> Iterator[str]:
    """Yield why cases that the results ask for were not run."""
    if not derivation.plan.can_fill:
        yield "parts of operators were run: run whole operators, without a version in --op and without --type"
        return
    if derivation.left_out and cases_to_add(derivation.plan, derivation.target, derivation.results):
        yield f"cases that its results ask for were left out: {derivation.left_out}"


def _contradictions(derivation: Derivation) -> Iterator[str]:
    """Contradictions in the record."""
    asked = str(derivation.target.options.get("provider") or "")
    named = str(derivation.entry["description"].get("provider") or "")
    if asked and named and asked != named:
        yield f"asked for was the provider {asked}, and the runtime names {named}"
    if (by := derivation.info["onnxspec"]) != (own := version_of("onnxspec") or ""):
        yield f"the cases were run by onnxspec {by}, and packed by {own}"
