"""Conditions: what cases that fail, or are refused, have and cases that pass have not, in words."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import combinations

from ...cases.specs.features import WORDS
from ...reference import FORMATS, Fault, operator_names
from ...reference.operators.discrimination import discrimination
from ..probes.probe import Probe
from ..results.result import Result

__all__ = ["condition_of", "message_kind", "refusals", "telling_of", "told", "worded", "would_show"]

Traits = frozenset[str]

_ENOUGH = 3
"""Failing cases from which two traits together are told: of fewer, some two are true by chance."""

_ENOUGH_REFUSED = 6
"""Cases with a trait that are refused, all of them, from which it is told: where one case in three is refused for no
reason that anybody sees, six in a row are so once in 729 times, and an operator has some hundred traits."""

_WORDS = {feature.replace("-", " "): words for feature, words in WORDS.items()}
"""Traits as readers are told of them: a trait is a feature without hyphens."""


def worded(trait: str) -> str:
    """A trait as a reader is told of it."""
    return _WORDS.get(trait) or trait.removeprefix("uses ").removeprefix("about ")


@lru_cache(maxsize=4096)
def would_show(fault: Fault, probe: Probe) -> bool:
    """Whether a target that makes a fault would be seen to make it in a case; False where nobody knows."""
    if not fault.applies(probe.op, probe.version):
        return False
    trials = probe.prepare().trials
    if not trials or trials[0].violation is not None:
        return False
    first = trials[0].first
    return discrimination(fault, first.node, [feed.inputs for feed in first.feeds], enough=1.0) > 1


def condition_of(failing: Sequence[Traits], others: Sequence[Traits], pairs: bool = True) -> str:
    """In words, what all failing cases have that no passing one has; empty where nothing tells them apart, or where
    nothing passes to tell them apart from."""
    return told(telling_of(failing, others, pairs))


def told(traits: Iterable[str]) -> str:
    """Traits as a condition that a reader is told of."""
    return " and ".join(map(worded, traits))


def telling_of(failing: Sequence[Traits], others: Sequence[Traits], pairs: bool = True) -> tuple[str, ...]:
    """The traits that all failing cases have and no passing one has, together.

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
    """Whether a trait says what a case is of. Where that tells all, its other traits only come along with it."""
    return trait in FORMATS or trait.startswith("version ")


def _weight(trait: str) -> tuple[bool, bool, str]:
    """The order in which traits are tried: a list of functions says more than it needs to, so it comes last."""
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


def refusals(
    refused: Iterable[Result], running: Iterable[Result], traits: Callable[[Result], Traits]
) -> list[tuple[str, list[Result]]]:
    """Refused results with what is refused, in words, the largest group first.

    A type or a version that no case of an operator runs with is refused as such. What is left belongs together by its
    message, and those messages whose cases have the same in common. So operators that refuse the same stand in one
    group, whatever their words. Of a group the results with the commonest message come first.
    """
    ran: defaultdict[str, list[Traits]] = defaultdict(list)
    for result in running:
        ran[result.op].append(traits(result))
    seen = {op: frozenset().union(*others) for op, others in ran.items()}  # once, not for every refused result
    groups: defaultdict[tuple[str, str], list[Result]] = defaultdict(list)
    left: list[tuple[Result, list[str]]] = []
    for result in refused:
        if ran and result.op not in ran:
            groups[f"{result.op} altogether", ""].append(result)
        else:
            left.append((result, [t for t in traits(result) if ran and _identity(t) and t not in seen[result.op]]))
    commonest = Counter(trait for _, unseen in left for trait in unseen)
    alike: defaultdict[str, list[Result]] = defaultdict(list)
    for result, unseen in left:
        if unseen:
            groups[max(unseen, key=lambda trait: (commonest[trait], trait)), ""].append(result)
        else:
            alike[message_kind(result.message)].append(result)
    for kind, members in alike.items():
        others = [o for op in {result.op for result in members} for o in ran.get(op, ())]
        condition = condition_of([traits(result) for result in members], others, pairs=False)
        if condition:
            groups[condition, ""] += members
            continue
        for one, own in _apart(members, seen, traits):
            groups[one, "" if one else kind] += own
    named = [(condition, _representative(members)) for (condition, _), members in groups.items()]
    return sorted(named, key=lambda group: -len(group[1]))


def _apart(
    members: Sequence[Result], seen: Mapping[str, Traits], traits: Callable[[Result], Traits]
) -> list[tuple[str, list[Result]]]:
    """Refusals with one message, taken apart by what is refused: providers say the same whatever they do not take.
    ``seen`` has the traits with which cases of an operator run.

    What may be refused is a trait with which no case of the operator runs, and of which there are enough cases. Of some
    case it may be the only one, since whatever else that case has runs elsewhere: those come first, and of them what
    most have. What is left has no condition.
    """
    suspects: list[tuple[Result, dict[str, None]]] = []
    for result in members:
        runs = seen.get(result.op, frozenset())
        never = [t for t in sorted(traits(result), key=_weight) if runs and t not in runs]
        suspects.append((result, dict.fromkeys(map(worded, never))))
    times = Counter(word for _, words in suspects for word in words)
    suspects = [(result, {w: None for w in words if times[w] >= _ENOUGH_REFUSED}) for result, words in suspects]
    alone = {(result.op, *words) for result, words in suspects if len(words) == 1}
    apart: defaultdict[str, list[Result]] = defaultdict(list)
    for sure in (True, False):
        while True:
            fitting = [[w for w in words if not sure or (result.op, w) in alone] for result, words in suspects]
            commonest = Counter(word for words in fitting for word in words).most_common(1)
            if not commonest:
                break
            ((word, _),) = commonest
            apart[word] += [one for (one, _), words in zip(suspects, fitting, strict=True) if word in words]
            suspects = [one for one, words in zip(suspects, fitting, strict=True) if word not in words]
    apart[""] += [result for result, _ in suspects]
    return [(word, own) for word, own in apart.items() if own]


def _representative(members: Sequence[Result]) -> list[Result]:
    """Results with the commonest message first, in their order otherwise."""
    kinds = Counter(message_kind(result.message) for result in members)
    return sorted(members, key=lambda result: -kinds[message_kind(result.message)])
