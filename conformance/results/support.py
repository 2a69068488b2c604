"""Support of a target, from its results: operators, types and versions, and other features that refusals name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from ...reference import FORMATS
from ..judging.judgement import DECLINED, OF_FORBIDDEN, UNTRIED, Verdict
from ..text import listed, plural
from .records import Finding
from .result import Result

# The target returned nothing, or the model need not be supported.
_SAYS_NOTHING = frozenset({*UNTRIED, Verdict.NOT_TRIED, Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.NOT_REJECTED})


class Lack(Struct, frozen=True):
    """An unsupported feature; ``problem`` is the index of its finding, None without one."""

    text: str
    problem: int | None


def verdict_of(finding: Finding) -> str:
    return finding["verdict"] or finding["kind"]


def support_of(results: Iterable[Result], findings: Sequence[Finding]) -> tuple[tuple[str, ...], tuple[Lack, ...]]:
    """Return (parts of the supported: operators, types, versions; the unsupported features)."""
    combinations = {(r.op, r.type, r.version or 0, r.verdict in DECLINED) for r in results if _tells_of_support(r)}
    ran = {place[:3] for place in combinations if not place[3]}
    asked = {place[:3] for place in combinations}
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
        # Perhaps no case with a type ran because of other features: findings, if there are any, tell the cause.
        lacking = _refused(name, missing, refusals) if refusals else missing
        other_operators = [op for op in (*running, *missing) if op not in lacking]
        if lacking:
            lacks[name] = _narrowed(name, other_operators, lacking)
    supports = (
        listed(alive),
        ", ".join(name for name, _, running, _ in types if running),
        _span([v for _, v, running, _ in versions if running and v], all_versions),
    )
    runs_in_part = {name for name, *_ in (*types, *versions)} - lacks.keys()
    plain = [Lack(text, _refusal_of(name, findings)) for name, text in lacks.items()]
    return tuple(filter(None, supports)), (*plain, *_other_lacks(findings, lacks.keys(), runs_in_part, alive))


def _tells_of_support(result: Result) -> bool:
    """Return whether a result shows support; results on forbidden models, or possibly forbidden ones, do not."""
    if result.verdict in DECLINED:
        return True
    return result.verdict not in _SAYS_NOTHING and result.reason not in OF_FORBIDDEN


_Place = tuple[str, str, int]


def _split(
    axis: int, value: object, alive: Sequence[str], ran: Collection[_Place], asked: Collection[_Place]
) -> tuple[list[str], list[str]]:
    """Return (operators that run with a value of an axis, operators that were tried with it and do not run)."""
    running = {place[0] for place in ran if place[axis] == value}
    tried = {place[0] for place in asked if place[axis] == value}
    return [op for op in alive if op in running], [op for op in alive if op in tried - running]


def _refused(conditions: str, operators: Sequence[str], refusals: Sequence[Finding]) -> list[str]:
    """Return the operators that refuse these conditions, according to findings."""
    named = {op for finding in refusals if finding["conditions"] == conditions for op in finding["operators"]}
    return [op for op in operators if op in named]


def _narrowed(words: str, others: Sequence[str], missing: Sequence[str]) -> str:
    """Return an unsupported feature, with the operators that lack it if others have it."""
    return f"{words} in {listed(missing)}" if others else words


def _span(running: Sequence[int], tried: Sequence[int]) -> str:
    """Return ``versions 7 to 22`` if all tried versions in between run; else list them."""
    if len(running) < 2:
        return f"version {running[0]}" if running else ""
    gapless = [v for v in tried if running[0] <= v <= running[-1]] == list(running)
    return f"versions {running[0]} to {running[-1]}" if gapless else f"versions {listed([str(v) for v in running])}"


def refused_words(conditions: str) -> str:
    """Return the text for refused conditions: a condition "no ..." becomes "nodes with no ..."."""
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
    count, indices, lacks = 0, [], set()
    for index, finding in enumerate(findings):
        conditions = finding["conditions"]
        if verdict_of(finding) not in DECLINED or conditions.removesuffix(" altogether") in named:
            continue
        if conditions:
            prefix = "some " if conditions in running else ""
            names_operator = conditions.partition(" (")[0] in finding["operators"]
            other_operators = [] if names_operator else [op for op in alive if op not in finding["operators"]]
            text = prefix + _narrowed(refused_words(conditions), other_operators, finding["operators"])
            if text not in lacks:  # one lack, even if refused by one provider and left to another
                lacks.add(text)
                yield Lack(text, index)
        elif not (set(finding["types"]) <= set(named) or set(finding["operators"]) <= set(named)):
            count += len(finding["cases"])
            indices.append(index)
    if count:
        yield Lack(plural(count, "other case"), indices[0] if len(indices) == 1 else None)
