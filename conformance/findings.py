"""Findings: failing results that belong together, said once.

Results are one finding when the same mistake explains them (see :mod:`.diagnosis`); those that nothing explains when
they fail alike: same verdict, same reason, same broken clause, same reason to expect it. What failing cases have and
cases that pass have not is the condition under which it shows (see :mod:`.conditions`). Refusals are put together by
what is refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..reference import clause_named, clauses_of, mistake_named
from ..reference.readings import ASKED_ANEW
from .conditions import condition_of, message_kind, refusals, would_show
from .judgement import Verdict
from .probe import Probe
from .result import Result
from .signed_errors import biases

__all__ = ["findings_of"]

_TOLD = 2
"""Forbidden models that a title names."""

_ORDER = {"convention": 1, "mixed": 1, "biased": 1}
"""Kinds of findings that are no failures stand behind those that are, and refusals behind all."""

_COMPARED = 40
"""Passing cases in which a mistake is looked for that others show: the smallest that exercise its clause."""


def findings_of(results: Sequence[Result], probes: Mapping[str, Probe]) -> list[dict[str, Any]]:
    """The findings of one target, as run.json holds them. `probes` has what the results are of, by id."""
    explained: dict[str, list[Result]] = defaultdict(list)
    groups: dict[tuple[Any, ...], list[Result]] = defaultdict(list)
    refused: list[Result] = []
    # What was refused, and rightly, tells nothing of what is computed rightly.
    right = (r for r in results if r.verdict is Verdict.PASS and "illegal" not in probes[r.case].features)
    passing = [r for r in right if "unconventional" not in r.flags]
    for result in results:
        if result.failing and result.diagnosis:
            for mistake in result.diagnosis:
                explained[mistake].append(result)
        elif result.failing or "unconventional" in result.flags:
            # Operators are built alike: what fails in the same place of each, for the same reason, is one thing.
            kind = "failing" if result.failing else "convention"
            topic = (result.clause or "").partition(".")[2]
            reason = "" if result.verdict is Verdict.ACCEPTED else result.reason
            if result.verdict is Verdict.INACCURATE:
                reason = result.accuracy  # the wider class that it is right by
            groups[kind, result.verdict, reason, topic, result.why].append(result)
        elif result.verdict is Verdict.REFUSED:
            refused.append(result)
    found = [_mistake(id, members, passing, probes) for id, members in explained.items()]
    found += [_finding(kind, members, passing, probes) for (kind, *_), members in groups.items()]
    found += _mixed_readings(passing, probes)
    found += [_bias_finding(kind, bias, results) for kind, bias in biases(results).items() if bias["biased"]]
    found.sort(key=lambda finding: (_ORDER.get(finding["kind"], 0), -len(finding["cases"])))
    groups_of_refused = refusals(refused, passing, lambda result: _lawful(probes[result.case].traits))
    return found + [_refusal(condition, members, probes) for condition, members in groups_of_refused]


def _lawful(traits: frozenset[str]) -> frozenset[str]:
    """Traits without what is forbidden: where such a case is refused, so is the same model without it."""
    return frozenset(trait for trait in traits if not trait.startswith("illegal"))


def _gist(message: str, length: int = 240) -> str:
    """A long message shortened in its middle: what failed stands at its beginning, why at its end."""
    if len(message) <= length:
        return message
    return f"{message[:60]} ... {message[60 - length :]}"


def _entry(
    title: str, kind: str, clauses: Iterable[str], members: Sequence[Result], first: Result, **more: Any
) -> dict[str, Any]:
    """A finding as run.json holds it."""
    ids = list(dict.fromkeys(clauses))
    return {
        "title": title,
        "kind": kind,
        "clauses": ids,
        "statuses": sorted({clause_named(id).status for id in ids}),
        "verdict": first.verdict.value,
        "deviation": "",
        "conditions": "",
        "types": sorted({r.type for r in members}),
        "versions": sorted({r.version for r in members}),
        "operators": sorted({r.op for r in members}),
        "cases": [r.case for r in members],
        "smallest": first.case,
        "expected": False,
        "new": sum(r.failing and not r.expected for r in members),
        "why": "",
        "message": _gist(first.message),
        "repeat": first.repeat,
        **more,
    }


def _smallest(members: Iterable[Result], probes: Mapping[str, Probe]) -> Result:
    return min(members, key=lambda r: (probes[r.case].size, r.case))


def _mistake(id: str, members: list[Result], passing: Iterable[Result], probes: Mapping[str, Probe]) -> dict[str, Any]:
    """The finding that a mistake is, with where it shows and where not."""
    # A case that shows it and nothing else shows it best.
    alone = [r for r in members if r.diagnosis == (id,)] or members
    first = _smallest(alone, probes)
    mistake = mistake_named(id)
    verdicts = {r.verdict for r in members}
    kind = first.verdict.value if len(verdicts) == 1 else min(verdicts, key=list(Verdict).index).value
    conditions = ""
    if mistake is not None:
        ops = {r.op for r in members}
        about = {mistake.clause(op) for op in ops}
        unharmed = [r.case for r in passing if r.op in ops and about & set(r.clauses)]
        unharmed = sorted(unharmed, key=lambda case: (probes[case].size, case))[:_COMPARED]
        others = [probes[case].traits for case in unharmed if would_show(mistake, probes[case])]
        conditions = condition_of([probes[r.case].traits for r in members], others)
    summary = mistake.summary.rstrip(".") if mistake is not None else id
    reasons = Counter(r.why for r in alone if r.why)
    return _entry(
        f"{summary}{f' (with {conditions})' if conditions else ''}",
        kind,
        (mistake.clause(r.op) for r in members) if mistake is not None else (),
        members,
        first,
        deviation=id,
        conditions=conditions,
        expected=all(r.expected for r in members),
        # Of what is new in part nothing is excused, so that it is not to be read as if it were.
        why=reasons.most_common(1)[0][0] if all(r.expected for r in members) else "",
    )


def _finding(
    kind: str, members: list[Result], passing: Iterable[Result], probes: Mapping[str, Probe]
) -> dict[str, Any]:
    """The finding that results are which fail alike and which nothing explains, or which need no explanation."""
    first = _smallest(members, probes)
    if first.verdict is Verdict.ACCEPTED:
        return _taken(members, first)
    ops = {r.op for r in members}
    others = [probes[r.case].traits for r in passing if r.op in ops]
    condition = condition_of([probes[r.case].traits for r in members], others)
    verdict = members[0].verdict.value
    broken = kind == "convention"
    title = f"breaks a convention ({first.reason})" if broken else _briefly(verdict, first.reason)
    if first.verdict is Verdict.INACCURATE and first.accuracy:
        title = f"inaccurate (no better than {first.accuracy})"
    return _entry(
        f"{title} with {condition}" if condition else title,
        kind if broken else verdict,
        [r.clause for r in members if r.clause],
        members,
        first,
        conditions=condition,
        expected=all(r.expected for r in members),
        why=first.why,
    )


def _briefly(verdict: str, reason: str | None) -> str:
    return f"{verdict} ({reason})" if reason else verdict


def _refusal(condition: str, members: list[Result], probes: Mapping[str, Probe]) -> dict[str, Any]:
    """The finding that refusals are: the smallest case that says what most of them say stands for all."""
    kind = message_kind(members[0].message)
    first = _smallest((r for r in members if message_kind(r.message) == kind), probes)
    title = f"refuses {condition}" if condition else f"refuses, saying: {_gist(first.message, 100)}"
    return _entry(title, "refused", (), members, first, conditions=condition)


def _taken(members: list[Result], first: Result) -> dict[str, Any]:
    """The finding that forbidden models are which ran, all against one clause of their operators."""
    what = list(dict.fromkeys(result.message.partition(": ")[2] for result in members))
    more = f"; and {len(what) - _TOLD} more" if len(what) > _TOLD else ""
    return _entry(
        f"accepts what the document forbids: {'; '.join(what[:_TOLD])}{more}",
        first.verdict.value,
        (result.clause for result in members if result.clause),
        members,
        first,
        expected=all(r.expected for r in members),
        why=first.why,
    )


def _mixed_readings(passing: Iterable[Result], probes: Mapping[str, Probe]) -> Iterable[dict[str, Any]]:
    """A finding for every open question that a target answers in more than one way: any answer is right, but it must
    be the same one everywhere."""
    answers: dict[tuple[str, str], dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for result in passing:
        for reading, option in result.readings.items():
            if reading not in ASKED_ANEW:
                answers[result.op, reading][option].append(result)
    for (op, reading), options in answers.items():
        if len(options) < 2:
            continue
        (usual, majority), *rest = sorted(options.items(), key=lambda item: -len(item[1]))
        clauses = [c.id for c in clauses_of(op) if c.reading == reading]
        for option, members in rest:
            first = _smallest(members, probes)
            usually = [probes[r.case].traits for r in majority]
            condition = condition_of([probes[r.case].traits for r in members], usually)
            yield _entry(
                f"follows two readings of {clauses[0] if clauses else reading}: {option}"
                f"{f' with {condition}' if condition else ''}, {usual} elsewhere",
                "mixed",
                clauses,
                members,
                first,
                conditions=condition,
                message=f"{option} in {len(members)} cases, {usual} in {len(majority)}, such as "
                f"{_smallest(majority, probes).case}",
            )


def _bias_finding(kind: str, bias: Mapping[str, Any], results: Sequence[Result]) -> dict[str, Any]:
    cases = [r for r in results if r.error_sums and r.type == kind]
    return _entry(
        f"biased in {kind}: errors do not average out",
        "biased",
        (),
        cases,
        cases[0],
        verdict="pass",
        message=f"mean signed error {bias['shift']:+.3g}u, towards larger magnitude {bias['scale']:+.3g}u, "
        f"standard error {bias['error']:.2g}u over {bias['elements']} elements",
    )
