"""Findings: groups of failing results with one cause.

Results form one finding if the same fault explains them (see :mod:`.diagnose`). Unexplained results form one if they
have the same verdict, reason, broken clause and reason to expect the failure. A condition of these is a feature that
their cases have and passing cases lack (see :mod:`.conditions`). Refusals are grouped by the refused feature.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from ...reference import (
    LOSES_NAN,
    UnknownOperator,
    clause_named,
    clauses_of,
    document_of,
    fault_named,
    operator_version,
    topic_of,
    versions_of,
)
from ...reference.documents.interpretations import asked_anew
from ..judging.judgement import DECLINED, EXCEPTION, FAILING, Verdict, would_allow
from ..judging.vocabulary import NO_FAILURE, short_title
from ..probes.probe import Probe
from ..results.grades import biases, digits_text
from ..results.records import Bias, Finding
from ..results.result import Result
from ..results.support import refused_words
from ..text import listed
from .conditions import condition_of, message_kind
from .refusals import refusals

_TOLD = 2
"""Maximum number of forbidden models in a title."""

_NO_ANSWER = frozenset((Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.NOT_REJECTED))
_RAN = frozenset((*FAILING - DECLINED - _NO_ANSWER, Verdict.PASS, Verdict.INCONCLUSIVE))
"""Verdicts on cases that were not declined: even a wrong result shows that the target accepts the features."""

_SHOWN = 4
"""Maximum ratio of results that a class allows without showing it to results that show it."""

_LATER_RUN = re.compile(r"\(run (?!1 )\d+ of \d+\b")
"""Pattern for messages whose first wrong element is in a later run, so that the earlier runs are right."""


def findings_of(results: Sequence[Result], probes: Mapping[str, Probe]) -> list[Finding]:
    """Return the findings of one target, as in run.json. `probes` has the probes of the results by id."""
    explained: dict[str, list[Result]] = defaultdict(list)
    groups: dict[tuple[Any, ...], list[Result]] = defaultdict(list)
    declined: dict[Verdict, list[Result]] = {verdict: [] for verdict in (Verdict.FALLBACK, Verdict.UNSUPPORTED)}
    passing = passing_of(results, probes)
    classes = _classes(results)
    for result in results:
        if result.failing and result.diagnosis:
            for fault in result.diagnosis:
                explained[fault].append(result)
        elif result.failing or ("unconventional" in result.flags and result.verdict is Verdict.PASS):
            # Operators share code: failures of the same topic for the same reason form one finding.
            kind = "failing" if result.failing else "convention"
            topic = topic_of(result.clause or "")
            reason = "" if result.verdict is Verdict.NOT_REJECTED else result.reason
            if result.verdict is Verdict.INACCURATE:
                reason = classes.get(result.case)
            elif result.reason == EXCEPTION:
                reason = _exception(result)
            groups[kind, result.verdict, reason, topic, result.why].append(result)
        elif result.verdict in DECLINED:
            declined[result.verdict].append(result)
    reasons: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if result.diagnosis:
            reasons[result.why].append(result)
    shown = _examples(explained, probes)
    findings = [_fault(id, members, shown[id], reasons) for id, members in explained.items()]
    findings += [_finding(kind, members, passing, probes) for (kind, *_), members in groups.items()]
    findings += _special_values(results, probes)
    findings += _mixed_interpretations(passing, probes)
    findings += [_bias_finding(kind, bias, results) for kind, bias in biases(results).items() if bias["biased"]]
    # Failures come first, then other findings, then refusals.
    findings.sort(key=lambda finding: (finding["kind"] in NO_FAILURE, -len(finding["cases"])))
    ran = [result for result in results if result.verdict in _RAN and "illegal" not in probes[result.case].features]
    for results_alike in declined.values():
        groups_alike = refusals(results_alike, ran, lambda result: _lawful(probes[result.case].traits))
        findings += [_refusal(condition, members, probes, ran) for condition, members in groups_alike]
    return findings


def joined(findings: Iterable[Finding], results: Iterable[Result]) -> list[Finding]:
    """Return findings without duplicates: those with the same title, fault, clauses and expectation become one, with
    the cases of all."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        key = finding["kind"], finding["title"], finding["fault"], tuple(finding["clauses"]), finding["why"]
        groups.setdefault((*key, finding["expected"]), []).append(finding)
    duplicates = any(len(some) > 1 for some in groups.values())
    by_case = {result.case: result for result in results} if duplicates else {}

    def one(some: Sequence[Finding]) -> Finding:
        cases = dict.fromkeys(case for finding in some for case in finding["cases"])
        counts: dict[str, Any] = {} if len(some) == 1 else counted([by_case[case] for case in cases])
        return cast(Finding, {**some[0], **counts})

    return [one(some) for some in groups.values()]


def _lawful(traits: frozenset[str]) -> frozenset[str]:
    """Return the traits without those of forbidden models: if such a case is refused, so is the same model without
    them."""
    return frozenset(trait for trait in traits if not trait.startswith("illegal"))


def of_clauses(message: str, clauses: Collection[str]) -> str:
    """Return the message of a case in a finding, with the operator's clause that the finding names: the message has
    that of the failed check."""
    checked = _CLAUSE.search(message)
    if checked is None or checked[0][1:-1] in clauses:
        return message
    broken = next((id for id in clauses if id.partition(".")[0] == checked[1]), "")
    return _CLAUSE.sub(f"({broken})", message, count=1) if broken else message


_CLAUSE = re.compile(r"\((\w+)\.[a-z][\w.-]*\)")


def _gist(message: str, length: int = 240) -> str:
    """Return a message shortened in its middle, because it begins with the failed part and ends with the reason."""
    if len(message) <= length:
        return message
    return f"{message[:60]} ... {message[60 - length :]}"


def titled(finding: Finding, conditions: str, tried: bool, passing: int = 0) -> str:
    """Return the title of a finding. It says whether a condition was only observed, and whether passing cases meet it.
    An unconfirmed fault, or one that passing cases contradict, is only 'consistent with' the outputs, whether or not
    the failures are known."""
    what = finding["what"]
    hypothesis = finding["fault"] and finding["kind"] != Verdict.NOT_REJECTED.value
    if hypothesis and (passing or not finding["foretold"]):
        what = f"C{consistent(what)[1:]}"
    if not conditions:
        return what
    relation = "seen with" if passing else "with" if tried else "seen only with"
    return f"{what} ({relation} {conditions})"


_BESIDE = "Beside other faults: "


def beside_others(summary: str) -> str:
    """Return the title for a confirmed fault that explains none of a finding's cases alone."""
    return f"{_BESIDE}{summary[:1].lower()}{summary[1:]}"


def consistent(summary: str) -> str:
    """Return the title for an unconfirmed fault."""
    return f"consistent with: {summary[:1].lower()}{summary[1:]}"


def _entry(
    what: str,
    kind: str,
    clauses: Iterable[str],
    members: Sequence[Result],
    first: Result,
    conditions: str = "",
    **more: Any,
) -> Finding:
    """Return a finding as in run.json. `more` replaces defaults."""
    ids = list(dict.fromkeys(clauses))
    finding: dict[str, Any] = {
        "title": "",
        "what": what,
        "kind": kind,
        "clauses": ids,
        "statuses": sorted({clause_named(id).status for id in ids}),
        "verdict": first.verdict.value,
        "fault": "",
        "foretold": 0,
        "conditions": conditions,
        "tried": False,
        "tries": 0,
        "searched": False,
        "passing": 0,
        "place": "",
        "needs": [],
        "smallest": first.case,
        "expected": False,
        **counted(members),
        "why": "",
        "message": _gist(of_clauses(first.message, ids)),
        "repeat": first.repeat,
    }
    entry = cast(Finding, {**finding, **more})
    return entry if entry["title"] else {**entry, "title": titled(entry, conditions, tried=False)}


def counted(members: Sequence[Result]) -> dict[str, Any]:
    """Return the keys of a finding that depend on its cases."""
    return {
        "types": sorted({r.type for r in members}),
        "versions": sorted({r.version for r in members}),
        "operators": sorted({r.op for r in members}),
        "cases": [r.case for r in members],
        "new": sum(r.failing and not r.expected for r in members),
    }


def alone(members: list[Result], results: Iterable[Result], probes: Mapping[str, Probe]) -> Finding:
    """Return the finding for unexplained results with the same failure."""
    return _finding("failing", members, passing_of(results, probes), probes)


def passing_of(results: Iterable[Result], probes: Mapping[str, Probe]) -> list[Result]:
    """Return the results with right outputs. Rightly refused models are excluded, because they have none."""
    right = (r for r in results if r.verdict is Verdict.PASS and "illegal" not in probes[r.case].features)
    return [r for r in right if "unconventional" not in r.flags]


def _smallest(members: Iterable[Result], probes: Mapping[str, Probe]) -> Result:
    return min(members, key=lambda r: (probes[r.case].size, r.case))


def _examples(explained: Mapping[str, Sequence[Result]], probes: Mapping[str, Probe]) -> dict[str, Result]:
    """Return the smallest case of each fault: one that shows only this fault, or one that is no other fault's."""
    alone = {id: [r for r in members if r.diagnosis == (id,)] for id, members in explained.items()}
    examples = {id: _smallest(members, probes) for id, members in alone.items() if members}
    for id, members in explained.items():
        if id not in examples:
            taken = {result.case for result in examples.values()}
            examples[id] = _smallest([r for r in members if r.case not in taken] or members, probes)
    return examples


def _fault(id: str, members: list[Result], first: Result, reasons: Mapping[str, Sequence[Result]]) -> Finding:
    """Return the finding for a fault with its smallest case. `reasons` has the explained results by reason of the list
    of known failures."""
    fault = fault_named(id)
    verdicts = {r.verdict for r in members}
    kind = first.verdict.value if len(verdicts) == 1 else min(verdicts, key=list(Verdict).index).value
    summary = fault.summary.rstrip(".") if fault is not None else id
    return _entry(
        summary,
        kind,
        (fault.clause(r.op) for r in members) if fault is not None else (),
        members,
        first,
        fault=id,
        expected=all(r.expected for r in members),
        # A partly new finding has no reason: a reason would suggest that all its cases are excused.
        why=_why(id, members, reasons) if all(r.expected for r in members) else "",
    )


def _why(id: str, members: Iterable[Result], reasons: Mapping[str, Sequence[Result]]) -> str:
    """Return the reason for a fault in the list of known failures. It is the commonest reason of cases that show only
    this fault, if most cases with that reason show the fault. A list has one reason for a case with several faults."""
    counts = Counter(r.why for r in members if r.why and r.diagnosis == (id,))
    for why, _ in counts.most_common():
        if 2 * sum(id in r.diagnosis for r in reasons[why]) > len(reasons[why]):
            return why
    return ""


def _finding(kind: str, members: list[Result], passing: Iterable[Result], probes: Mapping[str, Probe]) -> Finding:
    """Return the finding for results with the same failure that have no explanation or need none."""
    first = _smallest(members, probes)
    if first.verdict is Verdict.NOT_REJECTED:
        return _taken(members, first)
    ops = {r.op for r in members}
    others = [probes[r.case].traits for r in passing if r.op in ops]
    condition = condition_of([probes[r.case].traits for r in members], others)
    if not others and all(_LATER_RUN.search(r.message) for r in members):
        condition = "later runs of a session"
    verdict = members[0].verdict.value
    broken = kind == "convention"
    title = short_title(Verdict.PASS.value if broken else verdict, first.reason or "")
    if first.reason == EXCEPTION:
        title = f"{title}, {_exception(first)}"
    if first.verdict is Verdict.INACCURATE and (named := [r.accuracy for r in members if r.accuracy]):
        title = f"inaccurate (no better than {named[0]})"
    return _entry(
        title,
        kind if broken else verdict,
        [r.clause for r in members if r.clause],
        members,
        first,
        conditions=condition,
        expected=all(r.expected for r in members),
        why=first.why,
    )


def _classes(results: Iterable[Result]) -> dict[str, str]:
    """Return the wider class that accepts each inaccurate result, by case: the class whose roundings its errors show.
    If they show none, it is a class that also accepts the result and that enough others of its operator and type show.
    A kernel has one arithmetic, but small errors do not show it."""
    inaccurate = [r for r in results if r.verdict is Verdict.INACCURATE]
    shown = Counter((r.op, r.type, r.accuracy) for r in inaccurate if r.accuracy)
    silent: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for result in inaccurate:
        for op, kind, name in shown:
            if not result.accuracy and (op, kind) == (result.op, result.type) and would_allow(name) in result.message:
                silent[op, kind, name].append(result.case)
    classes = {r.case: r.accuracy for r in inaccurate if r.accuracy}
    for key, cases in silent.items():
        if len(cases) < _SHOWN * shown[key]:
            classes |= dict.fromkeys(cases, key[-1])
    return classes


def _exception(result: Result) -> str:
    """Return the class of the exception that ended a program."""
    return result.message.partition(":")[0]


def _refusal(condition: str, members: list[Result], probes: Mapping[str, Probe], ran: Iterable[Result]) -> Finding:
    """Return the finding for refusals. Its example is the smallest case with the commonest message."""
    kind = message_kind(members[0].message)
    first = _smallest((r for r in members if message_kind(r.message) == kind), probes)
    left = first.verdict is not Verdict.UNSUPPORTED
    if condition:
        operators = {r.op for r in members}
        # Name the operators only if another one of the run may have the feature.
        about = condition.partition(" ")[0] in operators
        others = set() if about else {(r.op, r.domain) for r in ran if r.op not in operators}
        taken = any(_may_have(*other, condition, {(r.op, r.domain) for r in members}) for other in others)
        what = refused_words(condition) + (f" in {listed(sorted(operators))}" if taken else "")
        title = f"leaves {what} to another provider" if left else f"refuses {what}"
    else:
        title = f"{'leaves to another provider' if left else 'refuses'}, saying: {_gist(first.message, 100)}"
    # The refused feature is in the title, so it is no condition there.
    return _entry(title, first.verdict.value, (), members, first, condition, title=title)


def _may_have(op: str, domain: str, condition: str, operators: Iterable[tuple[str, str]]) -> bool:
    """Return whether a case of an operator can have a feature that others refuse: it has the version, or the attributes
    and inputs that the words name."""
    try:
        if condition.startswith("version "):
            return int(condition.split()[1]) in versions_of(op, domain)
        of_others = {name for other in operators for name in _names(*other)}
        return of_others & {*condition.split()} <= _names(op, domain)
    except UnknownOperator:  # a node of a directory without a document
        return False


def _names(op: str, domain: str) -> set[str]:
    """Return the attributes, inputs and outputs of all versions of an operator."""
    documents = [operator_version(op, version, domain) for version in versions_of(op, domain)]
    return {name for d in documents for name in (*d.attributes, *d.inputs, *d.outputs)}


def _taken(members: list[Result], first: Result) -> Finding:
    """Return the finding for forbidden models that ran, all against one clause."""
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


def _special_values(results: Sequence[Result], probes: Mapping[str, Probe]) -> Iterable[Finding]:
    """Yield a finding for NaN that is lost."""
    members = [r for r in results if LOSES_NAN in r.flags]
    if not members:
        return
    # Prefer cases that break only this clause: the message of others is about another clause.
    first = _smallest([r for r in members if (r.clause or "").endswith(_NAN_KEPT)] or members, probes)
    # Compare with cases that have NaN and keep it.
    ops = {r.op for r in members}
    clauses = [f"{document_of(op).prefix}{_NAN_KEPT}" for op in sorted(ops)]
    kept = [r for r in results if r.op in ops and LOSES_NAN not in r.flags and {*clauses} & {*r.clauses}]
    others = [probes[r.case].traits for r in kept if r.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)]
    condition = condition_of([probes[r.case].traits for r in members], others) if others else ""
    # The message of a case that breaks other clauses is about those.
    message = {} if (first.clause or "").endswith(_NAN_KEPT) or not first.failing else {"message": ""}
    title = "NaN is lost: ordinary numbers are returned"
    yield _entry(title, "special-values", clauses, members, first, condition, **message)


_NAN_KEPT = ".nan.kept"


def _mixed_interpretations(passing: Iterable[Result], probes: Mapping[str, Probe]) -> Iterable[Finding]:
    """Yield a finding for every open question on which a target follows several interpretations: each is right, but the
    target must be consistent."""
    answers: dict[tuple[str, str], dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for result in passing:
        for interpretation, option in result.interpretations.items():
            if not asked_anew(interpretation):
                answers[result.op, interpretation][option].append(result)
    for (op, interpretation), options in answers.items():
        if len(options) < 2:
            continue
        (usual, majority), *rest = sorted(options.items(), key=lambda item: -len(item[1]))
        clauses = [c.id for c in clauses_of(op) if c.interpretation == interpretation]
        for option, members in rest:
            first = _smallest(members, probes)
            usually = [probes[r.case].traits for r in majority]
            condition = condition_of([probes[r.case].traits for r in members], usually)
            subject = clauses[0] if clauses else interpretation
            yield _entry(
                f"follows two interpretations of {subject}: {option}, {usual} elsewhere",
                "mixed",
                clauses,
                members,
                first,
                conditions=condition,
                message=f"{option} in {len(members)} cases, {usual} in {len(majority)}, such as "
                f"{_smallest(majority, probes).case}",
            )


def _bias_finding(kind: str, bias: Bias, results: Sequence[Result]) -> Finding:
    cases = [r for r in results if r.error_sums and r.type == kind]
    left = f", {digits_text(bias, kind)} are left" if bias["digits"] is not None else ""
    return _entry(
        f"biased in {kind}: errors do not average out{left}",
        "biased",
        (),
        cases,
        cases[0],
        verdict="pass",
        message=f"mean signed error {bias['shift']:+.3g}u, towards larger magnitude {bias['scale']:+.3g}u, "
        f"standard error {bias['error']:.2g}u over {bias['elements']} elements",
    )
