"""Conditions: what cases that fail, or are refused, have and cases that pass have not, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import combinations

from ...reference import FORMATS, Fault, operator_names
from ...reference.operators.margin import shows
from ..probes.probe import Probe, worded

__all__ = ["condition_of", "message_kind", "telling_of", "told", "would_show"]

Traits = frozenset[str]

_ENOUGH = 3
"""Failing cases from which two traits together are told: of fewer, some two are true by chance."""


@lru_cache(maxsize=4096)
def would_show(fault: Fault, probe: Probe) -> bool:
    """Tell whether a target that makes a fault would be seen to make it in a case; False where nobody knows."""
    if not fault.applies(probe.op, probe.version):
        return False
    trials = probe.prepare().trials
    if not trials or trials[0].violation is not None:
        return False
    first = trials[0].first
    return shows(fault, first.node, [feed.inputs for feed in first.feeds])


def condition_of(failing: Sequence[Traits], others: Sequence[Traits], pairs: bool = True) -> str:
    """Return features that all failing cases have and no passing one has, in words; empty where nothing tells them
    apart, or where nothing passes to tell them apart from."""
    return told(telling_of(failing, others, pairs))


def told(traits: Iterable[str]) -> str:
    """Traits as a condition that a reader is told of."""
    return " and ".join(map(worded, traits))


def telling_of(failing: Sequence[Traits], others: Sequence[Traits], pairs: bool = True) -> tuple[str, ...]:
    """Return the traits that all failing cases have and no passing one has, together.

    One trait is looked for first, then two together unless `pairs` are not wanted.
    """
    if not others or not failing:
        return ()
    common = sorted(failing[0].intersection(*failing), key=_weight)
    telling = [t for t in common if not any(t in o for o in others)]
    # Where one case fails, two traits tell as much as none: nobody knows which it is.
    if telling and (len(failing) > 1 or _identity(telling[0]) or len(set(map(worded, telling))) == 1):
        return (telling[0],)
    if len(failing) < _ENOUGH or not pairs:
        return ()
    return next((p for p in combinations(common, 2) if not any(set(p) <= o for o in others)), ())


def _identity(trait: str) -> bool:
    """Return whether a trait says what a case is of. Where that tells all, its other traits only come along with it."""
    return trait in FORMATS or trait.startswith("version ")


def _weight(trait: str) -> tuple[bool, bool, str]:
    """Return the order in which traits are tried: a list of functions says more than it needs to, so it comes last."""
    return not _identity(trait), trait.startswith("activations "), trait


_PATTERN = (
    r"0x[0-9a-f]+|\{[^}]*\}|\[[^\]]*\]|'[^']*'|\"[^\"]*\"|(?:/[\w.+-]+){2,}\S*|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
    r"|\w*(?:OPERATORS)\w*"
)


@cache
def _variable(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(_PATTERN.replace("OPERATORS", "|".join(names)), re.IGNORECASE)


@lru_cache(maxsize=1024)  # many results say the same
def message_kind(message: str) -> str:
    """A message without what differs from case to case: addresses, paths, shapes, lists, names and numbers."""
    return " ".join(_variable(operator_names("")).sub("*", message).split())
