"""What makes a package a trial, which grants nothing: a record that lacks what the nonce and the plan ask for."""

from __future__ import annotations

from collections.abc import Iterator

from ..judging.judgement import UNTRIED
from ..probes.drawn import split_nonce
from .derivation import Derivation
from .placement import unproved

__all__ = ["trial_of"]

BELOW_CORE = ("smoke",)


def trial_of(derivation: Derivation, provider: str) -> Iterator[str]:
    """Why a package grants nothing, a line each; none where it may."""
    selection = derivation.plan.selection
    profile, nonce = split_nonce(selection.profile)
    if profile in BELOW_CORE:
        yield f"profile {profile} is below core"
    if not nonce:
        yield "there is no block of fresh cases: run it with --nonce"
    if selection.cases:
        yield "the run was narrowed to single cases"
    if selection.legal:
        yield "forbidden models were left out: run it without --no-illegal"
    there = {result.case for result in derivation.results if result.verdict not in UNTRIED}
    if missing := len(derivation.probes.keys() - there):
        yield f"{missing} of {len(derivation.probes)} cases were not run"
    if open_cases := list(unproved(provider, bool(derivation.target.wrap), derivation.outcomes)):
        yield f"{len(open_cases)} cases ran without proof of where, such as {open_cases[0]}"
    if not derivation.fresh and len(derivation.probes) >= 8:
        yield "no case was run once more in a fresh process"
