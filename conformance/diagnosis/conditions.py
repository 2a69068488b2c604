"""Conditions, in words: features that failing or refused cases have and passing cases lack."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import combinations

from ...reference import FORMATS, Fault, operator_names
from ...reference.operators.asking import kill_margin
from ..probes.probe import Probe, worded

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


def condition_of(failing: Sequence[Traits], others: Sequence[Traits]) -> str:
    """Return, in words, the one or two features that all failing cases have and no passing case has together; an empty
    string if there are none, or no passing cases."""
    if not others or not failing:
        return ""
    common = sorted(failing[0].intersection(*failing), key=_weight)
    telling = [t for t in common if not any(t in o for o in others)]
    # With one failing case, several traits are ambiguous.
    if telling and (len(failing) > 1 or is_identity(telling[0]) or len(set(map(worded, telling))) == 1):
        return worded(telling[0])
    pairs = combinations(common, 2) if len(failing) >= _ENOUGH else ()
    return next((" and ".join(map(worded, p)) for p in pairs if not any(set(p) <= o for o in others)), "")


def is_identity(trait: str) -> bool:
    """Return whether a trait is a type or a version. If that explains the failures, the other traits are
    coincidental."""
    return trait in FORMATS or trait.startswith("version ")


def _weight(trait: str) -> tuple[bool, bool, str]:
    """Return the sort key of a trait. A list of activation functions comes last: it is more specific than needed."""
    return not is_identity(trait), trait.startswith("activations "), trait


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
