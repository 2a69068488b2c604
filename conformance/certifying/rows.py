"""Rows of a certificate: the level of every operator version and type, and the reasons against higher levels.

docs/certification.md describes the levels; this module defines them.
"""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from ...cases import family_of
from ...cases.specs.family import FRESH_CASES, Level
from ...reference import budget
from ...reference.documents.interpretations import asked_anew
from ...reference.numbers.accuracy import accuracy_class
from ..judging.judgement import DECLINED, FAILING, UNTRIED, Verdict
from ..judging.vocabulary import DECLINES, STATES
from ..probes.probe import Probe, SpecProbe
from ..results.grades import biased_types
from ..results.result import Result
from .records import ExceptionRecord, LevelRecord, RowRecord, WaiverRecord
from .waivers import covering

_MOST_OPEN = ((2.0**-20, 0.25), (2.0**-10, 0.82), (1.0, 0.97))
"""Rounding of the coarsest format of a computation, and the share of a level's elements that may stay unjudged.

An element is unjudged if a sum may leave the range of the type, or an error bound is wider than 1 % of the signal; the
target is not to blame. Shares in `core`: 7 to 13 % of float32; 28 to 72 % of LSTM and GRU in float16, by version and
level (81 % in GRU-22, with few float16 cases); two thirds to three quarters where float32 is stored as float16; 70 to
89 % in bfloat16, where Sigmoid and Tanh alone may be off by 3 %. An unjudged element outside its bound is still wrong.
The limits are a little higher than these shares, so that a share cannot grow unnoticed.
"""

_DENYING = FAILING - {Verdict.NOT_REJECTED}
"""An accepted invalid model is reported and denies no level: no customer's model is invalid."""

_NAMED = 3  # maximum number of cases, and of findings, that a line names


def interpretations_of(probes: Mapping[str, Probe], results: Sequence[Result]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the answers of passing results to open questions, by operator, the commonest first.

    More than one answer is an inconsistency: a target may choose any answer, but the same one everywhere.
    """
    votes: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for result in results:
        if result.verdict is Verdict.PASS and "illegal" not in probes[result.case].features:
            for question, answer in result.interpretations.items():
                if not asked_anew(question):
                    votes[result.op][question][answer] += 1
    answers: dict[str, dict[str, tuple[str, ...]]] = {op: {} for op in sorted(votes)}
    for op, by_question in answers.items():
        for question, counts in sorted(votes[op].items()):
            by_question[question] = tuple(answer for answer, _ in counts.most_common())
    return answers


def rows_of(
    probes: Mapping[str, Probe],
    results: Sequence[Result],
    accuracy: str,
    waivers: Sequence[WaiverRecord],
    day: datetime.date,
    asked: Collection[str] = (),
    causes: Mapping[str, str] = {},
) -> tuple[RowRecord, ...]:
    """Return the rows of a statement, one for every operator version and type that has cases.

    probes
        The planned cases, by id.
    results
        At most one for each of them. A missing one counts as not run.
    accuracy
        Name of the accuracy class by which the target was judged.
    day
        The day on which waivers must be valid.
    asked
        Ids of the nonce's cases.
    causes
        Title of the finding of each failing case.
    """
    by_case = {result.case: result for result in results}
    grouped: dict[tuple[str, int, str], list[Probe]] = defaultdict(list)
    for probe in probes.values():
        grouped[probe.op, probe.version, probe.type].append(probe)
    against: dict[str, list[str]] = defaultdict(list)
    for op, questions in interpretations_of(probes, results).items():
        if mixed := [name for name, answers in questions.items() if len(answers) > 1]:
            against[op].append(f"answers an open question in more than one way: {', '.join(mixed)}")
    leaning = biased_types(results)
    excluded = {} if accuracy_class(accuracy).biased else leaning
    rows = []
    for members in grouped.values():
        op = members[0].op
        reasons, left = list(against[op]), leaning.get(members[0].type, "")
        if members[0].type in excluded:
            reasons.append(f"errors lean to one side, which leaves {left}; class {accuracy} excludes that")
        row = _row(members, by_case, accuracy, waivers, day, reasons, asked, causes)
        rows.append(replace(row, fresh=_among(members, asked), leaning=left))
    return tuple(rows)


def _among(probes: Sequence[Probe], ids: Collection[str]) -> int:
    return sum(probe.id in ids for probe in probes)


def _row(
    probes: Sequence[Probe],
    results: Mapping[str, Result],
    accuracy: str,
    waivers: Sequence[WaiverRecord],
    day: datetime.date,
    against: Sequence[str],
    asked: Collection[str],
    causes: Mapping[str, str],
) -> RowRecord:
    first = probes[0]
    verdicts = {probe.id: _verdict(probe, results) for probe in probes}
    unjudged = [id for id, verdict in verdicts.items() if verdict is Verdict.NOT_JUDGED]
    message = f"{len(unjudged)} cases could not be judged, by the suite's fault or the operator's: {_listed(unjudged)}"
    against = [*against, message] if unjudged else against
    failing = [probe for probe in probes if verdicts[probe.id] in _DENYING]
    covered = {probe.id: covering(waivers, probe, results[probe.id], day) for probe in failing}
    levels = family_of(first.op).levels(first.op, first.version)
    records = [_level(level, probes, verdicts, results, covered, against, accuracy, asked, causes) for level in levels]
    reached = [record for record in records if record.status == "reached"]
    excepted = [record for record in records if record.status == "exceptions"]
    numbers = Counter(number for number in covered.values() if number is not None)
    required = dict.fromkeys(feature for level in levels for feature in level.requires)
    shown_features = frozenset[str]().union(*(p.features for p in probes if verdicts[p.id] is Verdict.PASS))
    status = "exceptions" if excepted else "none"
    return RowRecord(
        op=first.op,
        domain=first.domain,
        version=first.version,
        type=first.type,
        status="certified" if reached else status,
        level=(reached or excepted)[-1].level if reached or excepted else "",
        fresh=0,
        verdicts=dict(sorted(Counter(verdict.value for verdict in verdicts.values()).items())),
        not_rejected=sum(verdict is Verdict.NOT_REJECTED for verdict in verdicts.values()),
        nondeterministic=sum("nondeterministic" in results[p.id].flags for p in probes if p.id in results),
        unshown=tuple(feature for feature in required if feature not in shown_features),
        levels=tuple(records),
        exceptions=tuple(ExceptionRecord(waiver=n, cases=count) for n, count in sorted(numbers.items())),
    )


def _verdict(probe: Probe, results: Mapping[str, Result]) -> Verdict:
    return results[probe.id].verdict if probe.id in results else Verdict.NOT_RUN


def _level(
    level: Level,
    probes: Sequence[Probe],
    verdicts: Mapping[str, Verdict],
    results: Mapping[str, Result],
    covered: Mapping[str, int | None],
    of_operator: Sequence[str],
    accuracy: str,
    asked: Collection[str],
    causes: Mapping[str, str],
) -> LevelRecord:
    legal = [probe for probe in probes if isinstance(probe, SpecProbe) and not probe.spec.illegal]
    members = [p for p in legal if level.holds(p.spec) and verdicts[p.id] is not Verdict.NOT_TRIED]
    passed = [probe for probe in members if verdicts[probe.id] is Verdict.PASS]
    against: list[str] = []
    for kinds, one, several in (
        (UNTRIED - {Verdict.NOT_JUDGED}, "was not run", "were not run"),
        (DECLINED, f"is {STATES[DECLINES]}", f"are {STATES[DECLINES]}"),
        (_DENYING, "fails", "fail"),
    ):
        hit = [probe.id for probe in members if verdicts[probe.id] in kinds]
        if hit:
            waived = " (a waiver covers no case that the level requires)" if any(covered.get(id) for id in hit) else ""
            against.append(
                f"{len(hit)} of its {len(members)} cases {one if len(hit) == 1 else several}{waived}"
                f"{_caused(hit, causes)}: {_listed(hit)}"
            )
    shown_features = frozenset[str]().union(*(probe.features for probe in passed))
    if missing := [feature for feature in level.requires if feature not in shown_features]:
        against.append(f"no case that passes has {', '.join(missing)}")
    fresh = sum(probe.id in asked and verdicts[probe.id] in _NUMBERS for probe in members)
    if fresh < (due := min(FRESH_CASES, _among(probes, asked))):
        against.append(f"{fresh} fresh cases of the nonce are right, {due} must be")
    open_share = _open_share(members, results)
    if open_share > (most := most_open(accuracy, probes[0].type)):
        against.append(f"{open_share:.0%} of its elements could not be judged, {most:.0%} may be")
    against += of_operator
    of_level = {probe.id for probe in members}
    beyond = [id for id in covered if id not in of_level]
    if unanswered := [id for id in beyond if covered[id] is None]:
        message = "case beyond it fails" if len(unanswered) == 1 else "cases beyond it fail"
        against.append(f"{len(unanswered)} {message}{_caused(unanswered, causes)}: {_listed(unanswered)}")
    status = "exceptions" if beyond else "reached"
    return LevelRecord(
        level=level.name,
        status="denied" if against else status,
        cases=len(members),
        passed=len(passed),
        inconclusive=round(open_share, 4),
        against=tuple(against),
    )


def most_open(accuracy: str, type: str) -> float:
    """Return the share of a level's elements that may stay unjudged, by accuracy class and tensor type.

    Raise ValueError for an unknown class.
    """
    rounding = budget(accuracy, type)
    return next(share for unit, share in _MOST_OPEN if max(rounding.unit, rounding.operand_unit) <= unit)


def _open_share(members: Sequence[Probe], results: Mapping[str, Result]) -> float:
    """Return the share of unjudged elements, over the cases with numbers to judge."""
    judged_results = [results[p.id] for p in members if p.id in results and results[p.id].verdict in _NUMBERS]
    elements = sum(result.elements for result in judged_results)
    return 1 - sum(result.judged for result in judged_results) / elements if elements else 0.0


_NUMBERS = frozenset({Verdict.PASS, Verdict.INCONCLUSIVE})
"""Verdicts on numbers within their bounds."""


def _caused(ids: Sequence[str], causes: Mapping[str, str]) -> str:
    """Return the titles of the findings of cases, sorted, in parentheses; empty without any."""
    titles = sorted({causes[id][:1].upper() + causes[id][1:] for id in ids if id in causes})
    return f" ({'; '.join(titles[:_NAMED])}{'; ...' if len(titles) > _NAMED else ''})" if titles else ""


def _listed(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{', '.join(ids[:_NAMED])}{more}"
