"""Support of a target, as its results show: operators, types and versions, and what else findings on refusals name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from ...reference import FORMATS
from ..judging.judgement import DECLINED, OF_FORBIDDEN, UNTRIED, Verdict
from ..text import listed, plural
from .records import Finding
from .result import Result

# Nothing came back, or the model was none that anybody need support.
_SAYS_NOTHING = frozenset({*UNTRIED, Verdict.NOT_TRIED, Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.NOT_REJECTED})


class Lack(Struct, frozen=True):
    """A feature that is not supported; ``problem`` is the index of the finding that says so, None without one."""

    what: str
    problem: int | None


def verdict_of(finding: Finding) -> str:
    return finding["verdict"] or finding["kind"]


def support_of(results: Iterable[Result], findings: Sequence[Finding]) -> tuple[tuple[str, ...], tuple[Lack, ...]]:
    """Return (what runs, in parts: operators, types, versions; what does not)."""
    places = {(r.op, r.type, r.version or 0, r.verdict in DECLINED) for r in results if _tells_of_support(r)}
    ran = {place[:3] for place in places if not place[3]}
    asked = {place[:3] for place in places}
    alive = sorted({op for op, _, _ in ran})
    order = list(FORMATS)
    all_types = sorted({t for _, t, _ in asked}, key=lambda t: (order.index(t) if t in order else len(order), t))
    types = [(t, t, *_split(1, t, alive, ran, asked)) for t in all_types]
    all_versions = sorted({version for _, _, version in asked})
    versions = [(f"version {v}", v, *_split(2, v, alive, ran, asked)) for v in all_versions]
    refusals = [finding for finding in findings if verdict_of(finding) in DECLINED]
    without = sorted({op for op, _, _ in asked} - set(alive))
    if refusals:
        about = {op for f in refusals if f["conditions"] for op in f["operators"]}
        without = [op for op in without if _refused(f"{op} altogether", [op], refusals) or op not in about]
    lacks = {op: op for op in without}
    for name, _, running, missing in (*types, *versions):
        # Nothing may have run with a type for what else its cases have: the findings know, where there are some.
        lacking = _refused(name, missing, refusals) if refusals else missing
        others = [op for op in (*running, *missing) if op not in lacking]
        if lacking:
            lacks[name] = _narrowed(name, others, lacking)
    supports = (
        listed(alive),
        ", ".join(name for name, _, running, _ in types if running),
        _span([v for _, v, running, _ in versions if running and v], all_versions),
    )
    runs_in_part = {name for name, *_ in (*types, *versions)} - lacks.keys()
    plain = [Lack(words, _refusal_of(name, findings)) for name, words in lacks.items()]
    return tuple(filter(None, supports)), (*plain, *_other_lacks(findings, lacks.keys(), runs_in_part, alive))


def _tells_of_support(result: Result) -> bool:
    """Tell whether a result says what is supported: one on a forbidden model, or on one that may be, does not."""
    if result.verdict in DECLINED:
        return True
    return result.verdict not in _SAYS_NOTHING and result.reason not in OF_FORBIDDEN


_Place = tuple[str, str, int]


def _split(
    axis: int, value: object, alive: Sequence[str], ran: Collection[_Place], asked: Collection[_Place]
) -> tuple[list[str], list[str]]:
    """Return (operators that run with a value of an axis, those that were tried with it and do not)."""
    running = {place[0] for place in ran if place[axis] == value}
    tried = {place[0] for place in asked if place[axis] == value}
    return [op for op in alive if op in running], [op for op in alive if op in tried - running]


def _refused(conditions: str, operators: Sequence[str], refusals: Sequence[Finding]) -> list[str]:
    """Return the operators that decline this, as findings say."""
    named = {op for finding in refusals if finding["conditions"] == conditions for op in finding["operators"]}
    return [op for op in operators if op in named]


def _narrowed(words: str, others: Sequence[str], missing: Sequence[str]) -> str:
    """Return a lacking feature, with the operators that lack it where others have it."""
    return f"{words} in {listed(missing)}" if others else words


def _span(running: Sequence[int], tried: Sequence[int]) -> str:
    """Return ``versions 7 to 22`` where all that were tried in between run; else one by one."""
    if len(running) < 2:
        return f"version {running[0]}" if running else ""
    whole = [v for v in tried if running[0] <= v <= running[-1]] == list(running)
    return f"versions {running[0]} to {running[-1]}" if whole else f"versions {listed([str(v) for v in running])}"


def refused_words(conditions: str) -> str:
    """Return the words for what is refused: what a node lacks is no thing that a target could have."""
    return f"nodes with {conditions}" if conditions.startswith("no ") else conditions


def _refusal_of(name: str, findings: Sequence[Finding]) -> int | None:
    names = (name, f"{name} altogether")
    return next((k for k, f in enumerate(findings) if verdict_of(f) in DECLINED and f["conditions"] in names), None)


def _other_lacks(
    findings: Sequence[Finding], named: Collection[str], running: Collection[str], alive: Sequence[str]
) -> Iterator[Lack]:
    """Yield further conditions that are not supported, in the words of the findings; the rest as a number.

    ``named`` has what is said to be lacking already, ``running`` the types and versions that do run.
    """
    rest, indices, lacks = 0, [], set()
    for index, finding in enumerate(findings):
        conditions = finding["conditions"]
        if verdict_of(finding) not in DECLINED or conditions.removesuffix(" altogether") in named:
            continue
        if conditions:
            some = "some " if conditions in running else ""
            about = conditions.partition(" (")[0] in finding["operators"]
            others = [] if about else [op for op in alive if op not in finding["operators"]]
            what = some + _narrowed(refused_words(conditions), others, finding["operators"])
            if what not in lacks:  # refused here and left to another provider there is one lack
                lacks.add(what)
                yield Lack(what, index)
        elif not (set(finding["types"]) <= set(named) or set(finding["operators"]) <= set(named)):
            rest += len(finding["cases"])
            indices.append(index)
    if rest:
        yield Lack(plural(rest, "other case"), indices[0] if len(indices) == 1 else None)
