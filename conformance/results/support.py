"""Support of a target, and what it lacks, as its results show: operators, types and versions, and whatever else
the findings on refusals name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from ...reference import FORMATS
from ..judging.judgement import DECLINED, NO_CLEAN_REFUSAL, OF_FORBIDDEN, RANDOM_WEIGHTS, UNTRIED, Verdict
from ..text import listed, plural
from .records import Finding
from .result import Result

# Nothing came back, or the model was none that anybody need support.
_SAYS_NOTHING = frozenset(
    verdict.value
    for verdict in (
        *(*UNTRIED, Verdict.NOT_TRIED),
        *(Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.NOT_REJECTED),
    )
)


class ResultsAlike(NamedTuple):
    """Results that are alike in all that is told of them at first; ``times`` says how many, ``clean`` whether what was
    declined was declined in an orderly way, ``random_weights`` whether weights of a model's node were made up."""

    op: str
    version: int | None
    type: str
    verdict: str
    reason: str
    expected: bool
    times: int = 1
    clean: bool = True
    random_weights: bool = False


def tried_of(results: Iterable[Result]) -> list[ResultsAlike]:
    """Results of one target, put together where they are alike."""
    alike = Counter(
        ResultsAlike(
            r.op,
            r.version,
            r.type,
            r.verdict.value,
            r.reason or "",
            r.expected,
            0,
            NO_CLEAN_REFUSAL not in r.flags,
            RANDOM_WEIGHTS in r.flags,
        )
        for r in results
    )
    return [one._replace(times=count) for one, count in alike.items()]


class ShortFinding(NamedTuple):
    """A finding as a summary needs it; ``new`` counts its failures that are on no list, ``why`` is the reason to expect
    it."""

    title: str
    kind: str
    verdict: str
    reason: str
    conditions: str
    clauses: tuple[str, ...]
    operators: tuple[str, ...]
    types: tuple[str, ...]
    cases: tuple[str, ...]
    new: int
    expected: bool
    why: str
    smallest: str


def short_finding(finding: Finding, reason: str) -> ShortFinding:
    """A finding, as far as the answer needs it. ``reason`` is that of its smallest case."""
    return ShortFinding(
        finding["title"],
        finding["kind"],
        finding["verdict"] or finding["kind"],
        reason,
        finding["conditions"],
        tuple(finding["clauses"]),
        tuple(finding["operators"]),
        tuple(finding["types"]),
        tuple(finding["cases"]),
        finding["new"],
        finding["expected"],
        finding["why"],
        finding["smallest"],
    )


class Lack(Struct, frozen=True):
    """A feature that is not supported; ``problem`` is the place of the finding that says so, None without one."""

    what: str
    problem: int | None


class _Place(NamedTuple):
    op: str
    type: str
    version: int


def support_of(
    tried: Iterable[ResultsAlike], problems: Sequence[ShortFinding]
) -> tuple[tuple[str, ...], tuple[Lack, ...]]:
    """(what runs, in parts: operators, types, versions; what does not)."""
    ran: set[_Place] = set()
    declined: set[_Place] = set()
    for some in tried:
        place = _Place(some.op, some.type, some.version or 0)
        if some.verdict in DECLINED:
            declined.add(place)
        # Verdicts on a forbidden model, or on one that may be, say nothing of what is supported.
        elif some.verdict not in _SAYS_NOTHING and some.reason not in OF_FORBIDDEN:
            ran.add(place)
    places = ran | declined
    alive = sorted({place.op for place in ran})
    without = sorted({place.op for place in places} - set(alive))
    types = {t: _operators(t, alive, ran, places, "type") for t in _by_width(place.type for place in places)}
    versions = {v: _operators(v, alive, ran, places, "version") for v in sorted({place.version for place in places})}
    asked = {name: [*running, *missing] for name, (running, missing) in [*types.items(), *versions.items()]}
    # Nothing may have run with a type for what else its cases have: the findings know, where there are some.
    told = [problem for problem in problems if problem.verdict in DECLINED]
    if told:
        types = {t: (running, _told(t, missing, told)) for t, (running, missing) in types.items()}
        versions = {v: (running, _told(f"version {v}", missing, told)) for v, (running, missing) in versions.items()}
        without = [op for op in without if _told(f"{op} altogether", [op], told) or not _about([op], told)]
    lacks = [(op, op) for op in without]
    lacks += [(t, _narrowed(t, _but(asked[t], lacking), lacking)) for t, (_, lacking) in types.items() if lacking]
    lacks += [
        (f"version {v}", _narrowed(f"version {v}", _but(asked[v], lacking), lacking))
        for v, (_, lacking) in versions.items()
        if lacking
    ]
    parts = (
        listed(alive),
        ", ".join(t for t, (running, _) in types.items() if running),
        _span([v for v, (running, _) in versions.items() if running and v], list(versions)),
    )
    plain = [Lack(words, _problem_about(name, problems)) for name, words in lacks]
    running = {*types, *(f"version {v}" for v in versions)} - {name for name, _ in lacks}
    return tuple(filter(None, parts)), (*plain, *_others(problems, {name for name, _ in lacks}, running, alive))


def _told(conditions: str, operators: Sequence[str], problems: Sequence[ShortFinding]) -> list[str]:
    """The operators that decline this, as findings say."""
    named = {op for problem in problems if problem.conditions == conditions for op in problem.operators}
    return [op for op in operators if op in named]


def _about(operators: Sequence[str], problems: Sequence[ShortFinding]) -> bool:
    """Tell whether a finding says of one of the operators what it declines."""
    return any(problem.conditions and {*operators} & {*problem.operators} for problem in problems)


def _operators(
    value: object, alive: Sequence[str], ran: set[_Place], places: set[_Place], axis: str
) -> tuple[list[str], list[str]]:
    """(operators that run with a value of an axis, those that were tried with it and do not)."""
    running = {place.op for place in ran if getattr(place, axis) == value}
    asked = {place.op for place in places if getattr(place, axis) == value}
    return [op for op in alive if op in running], [op for op in alive if op in asked - running]


def _by_width(types: Iterable[str]) -> list[str]:
    order = list(FORMATS)
    return sorted(set(types), key=lambda t: (order.index(t) if t in order else len(order), t))


def _but(operators: Sequence[str], some: Sequence[str]) -> list[str]:
    return [op for op in operators if op not in some]


def _narrowed(words: str, others: Sequence[str], missing: Sequence[str]) -> str:
    """Lacking features, with the operators that lack them where of others that is not said."""
    return f"{words} in {listed(missing)}" if others else words


def _span(running: Sequence[int], tried: Sequence[int]) -> str:
    """``versions 7 to 22`` where all that were tried in between run; else one by one."""
    if len(running) < 2:
        return f"version {running[0]}" if running else ""
    whole = [v for v in tried if running[0] <= v <= running[-1]] == list(running)
    return f"versions {running[0]} to {running[-1]}" if whole else f"versions {listed([str(v) for v in running])}"


def refused_words(conditions: str) -> str:
    """The words for what is refused: what a node lacks is no thing that a target could have."""
    return f"nodes with {conditions}" if conditions.startswith("no ") else conditions


def _problem_about(name: str, problems: Sequence[ShortFinding]) -> int | None:
    names = (name, f"{name} altogether")
    return next((k for k, p in enumerate(problems) if p.verdict in DECLINED and p.conditions in names), None)


def _others(
    problems: Sequence[ShortFinding], named: set[str], running: set[str], alive: Sequence[str]
) -> Iterable[Lack]:
    """Further conditions that are not supported, in the words of the findings; the rest as a number.

    ``named`` has what is said to be lacking already, ``running`` the types and versions that do run.
    """
    rest, places, lacks = 0, [], set()
    for place, problem in enumerate(problems):
        if problem.verdict not in DECLINED or problem.conditions.removesuffix(" altogether") in named:
            continue
        if problem.conditions:
            some = "some " if problem.conditions in running else ""
            about = problem.conditions.partition(" (")[0] in problem.operators
            others = [] if about else _but(alive, problem.operators)
            what = some + _narrowed(refused_words(problem.conditions), others, problem.operators)
            if what not in lacks:  # refused here and left to another provider there is one lack
                lacks.add(what)
                yield Lack(what, place)
        elif not (set(problem.types) <= named or set(problem.operators) <= named):
            rest += len(problem.cases)
            places.append(place)
    if rest:
        yield Lack(plural(rest, "other case"), places[0] if len(places) == 1 else None)
