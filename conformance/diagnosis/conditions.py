"""Conditions, in words: features that failing or refused cases have and passing cases lack."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import combinations

from ...reference import FORMATS, Fault, operator_names
from ...reference.operators.margin import kill_margin
from ..probes.probe import Probe, worded

__all__ = ["condition_of", "condition_text", "distinguishing_traits", "message_kind", "would_show"]

Traits = frozenset[str]

_ENOUGH = 3
"""Minimum number of failing cases for a condition of two traits: with fewer, some pair fits by chance."""


@lru_cache(maxsize=4096)
def would_show(fault: Fault, probe: Probe) -> bool:
    """Return whether a fault would be visible in a case; False if that is unknown."""
    if not fault.applies(probe.op, probe.version):
        return False
    trials = probe.prepare().trials
    if not trials or trials[0].violation is not None:
        return False
    first = trials[0].first
    return kill_margin(fault, first.node, [(feed.inputs, feed.fed) for feed in first.feeds], enough=1.0) > 1


def condition_of(failing: Sequence[Traits], others: Sequence[Traits], pairs: bool = True) -> str:
    """Return, in words, the features that all failing cases have and no passing one has. Return an empty string if
    there are none, or no passing cases."""
    return condition_text(distinguishing_traits(failing, others, pairs))


def condition_text(traits: Iterable[str]) -> str:
    """Return the words for a condition."""
    return " and ".join(map(worded, traits))


def distinguishing_traits(failing: Sequence[Traits], others: Sequence[Traits], pairs: bool = True) -> tuple[str, ...]:
    """Return the traits that all failing cases have and no passing case has together.

    One trait is looked for first, then two together unless `pairs` are not wanted.
    """
    if not others or not failing:
        return ()
    common = sorted(failing[0].intersection(*failing), key=_weight)
    telling = [t for t in common if not any(t in o for o in others)]
    # With one failing case, several traits are ambiguous.
    if telling and (len(failing) > 1 or _identity(telling[0]) or len(set(map(worded, telling))) == 1):
        return (telling[0],)
    if len(failing) < _ENOUGH or not pairs:
        return ()
    return next((p for p in combinations(common, 2) if not any(set(p) <= o for o in others)), ())


def _identity(trait: str) -> bool:
    """Return whether a trait is a type or a version. If that explains the failures, the other traits are
    coincidental."""
    return trait in FORMATS or trait.startswith("version ")


def _weight(trait: str) -> tuple[bool, bool, str]:
    """Return the sort key of a trait. A list of activation functions comes last: it is more specific than needed."""
    return not _identity(trait), trait.startswith("activations "), trait


_PATTERN = (
    r"0x[0-9a-f]+|\{[^}]*\}|\[[^\]]*\]|'[^']*'|\"[^\"]*\"|(?:/[\w.+-]+){2,}\S*|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
    r"|\w*(?:OPERATORS)\w*"
)


@cache
def _variable(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(_PATTERN.replace("OPERATORS", "|".join(names)), re.IGNORECASE)


@lru_cache(maxsize=1024)  # many results have the same message
def message_kind(message: str) -> str:
    """Return a message without the parts that vary between cases: addresses, paths, shapes, lists, names and
    numbers."""
    return " ".join(_variable(operator_names("")).sub("*", message).split())
