"""Certificate of a package: one HTML page for the buyers of a runtime, made only from the statements of the package."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..cases.specs.family import family_of
from ..cases.specs.features import WORDS
from ..cases.specs.quantizing import QUANTIZED
from ..conformance.certifying.records import RowRecord, StatementRecord
from ..conformance.judging.judgement import Verdict
from ..conformance.results.records import TargetRecord
from ..conformance.targets.target import ACCURACY
from ..conformance.text import listed
from ..conformance.workers.worker_process import MEASURED
from .findings import findings_of
from .page import report_on
from .run import Run, read_runs
from .subject import operator_of, subjects_of
from .templates import html_of
from .text import flattened

_MOST_WORDS = 4  # features that a line names one by one


class Line(NamedTuple):
    """Rows of a statement with the same text, as one line: their operators, versions and types."""

    level: str
    rows: tuple[str, ...]
    beyond: str


class Requirement(NamedTuple):
    """A clause that the document states or implies, with its results: passing, wrong, and not judged."""

    id: str
    text: str
    passed: int
    wrong: int
    unjudged: int

    @property
    def result(self) -> str:
        """``wrong`` if one case is, else ``pass`` if one passes, else ``not judged``."""
        return "wrong" if self.wrong else "pass" if self.passed else "not judged"


def write_certificate(out: Path, run: Path, statement: StatementRecord) -> None:
    """Write ``out``/certificate.html, the page of a package, and the report of its run beside it. Raise OSError."""
    readable, problems = read_runs([run])
    report_on(readable, problems, out / "report")
    (target,) = readable[0].info["targets"]
    text = certificate_html(statement, target, requirements_of(readable[0]))
    (out / "certificate.html").write_bytes(text.encode())


def requirements_of(run: Run) -> dict[str, list[Requirement]]:
    """Return the requirements by operator, wrong ones first.

    A wrong result, or an invalid model that ran, counts as wrong in the clauses of its finding, or else in the clause
    that it names. On its other clauses it says nothing, like a crash or a refusal.
    """
    subjects = subjects_of([run])
    violated: defaultdict[str, set[str]] = defaultdict(set)
    for finding in findings_of(subjects):
        for case in (case for member in finding.members for case in member.record["cases"]):
            violated[case].update(clause.id for clause in finding.clauses)
    clauses = {id: row["text"] for id, row in run.info["clauses"].items() if row["status"] in ("stated", "implied")}
    counts: dict[tuple[str, str], list[int]] = {}
    for result in subjects[0].results:
        named = violated[result.case] & {*result.clauses} or {result.clause or ""}
        for clause in clauses.keys() & {*result.clauses}:
            place = 0 if result.verdict is Verdict.PASS else 1 if result.failing and clause in named else 2
            counts.setdefault((operator_of(result), clause), [0, 0, 0])[place] += 1
    requirements: dict[str, list[Requirement]] = {}
    for (operator, clause), numbers in sorted(counts.items()):
        requirements.setdefault(operator, []).append(Requirement(clause, clauses[clause], *numbers))
    order = ("wrong", "not judged", "pass")
    return {op: sorted(rows, key=lambda row: order.index(row.result)) for op, rows in requirements.items()}


def lines_of(statement: StatementRecord) -> Iterator[str]:
    """Yield the statement as lines for a terminal: the answer, then certified, denied and refused rows."""
    yield _lead(statement)
    for number, waiver in enumerate(statement.waivers, 1):
        yield f"exception {number}: {waiver.op or 'any operator'} {waiver.clause or waiver.verdict}: {waiver.reason}"
    parts = _parts(statement)
    for heading in ("certified", "with exceptions", "not certified"):
        for line in parts[heading]:
            yield f"{heading}{f' ({line.level})' if line.level else ''}: {'; '.join(line.rows)}"
            yield from [f"  {line.beyond}"] if line.beyond else []
    if nowhere := [*_named(filter(_declined, statement.rows))]:
        yield f"not supported: {'; '.join(nowhere)}"


def _parts(statement: StatementRecord) -> dict[str, list[Line]]:
    """Return the rows that ran, by whether they are certified."""
    kinds = {"certified": "certified", "exceptions": "with exceptions", "none": "not certified"}
    parts: dict[str, list[Line]] = {}
    for status, heading in kinds.items():
        rows = [row for row in statement.rows if row.status == status and not (status == "none" and _declined(row))]
        parts[heading] = _lines(rows, _why if status == "none" else _unshown)
    return parts


def certificate_html(
    statement: StatementRecord, target: TargetRecord, requirements: Mapping[str, Sequence[Requirement]] = {}
) -> str:
    """Return the HTML of a statement's page. ``target`` is the entry of the target in run.json."""
    rows, suite = statement.rows, statement.suite
    covered: Counter[int] = Counter()
    for row in rows:
        covered.update({exception.waiver: exception.cases for exception in row.exceptions})
    table, commands = _repeating(statement, target)
    parts = _parts(statement)
    return html_of(
        "certificate.html",
        "certificate.css",
        claim=statement,
        heading="Certificate of conformance" if statement.kind == "certificate" else "Trial",
        lead=_lead(statement) + _wrapped(target["wrap"]),
        certified=parts["certified"],
        excepted=parts["with exceptions"],
        others=parts["not certified"],
        nowhere=list(_named([row for row in rows if row.status == "none" and _declined(row)])),
        requirements=requirements,
        waivers=[(n, waiver, covered[n]) for n, waiver in enumerate(statement.waivers, 1)],
        remarks=list(_remarks(statement)),
        table=table,
        commands=commands,
        environment=list(_environment(target["description"])),
        suite=[
            ("Suite", f"onnxspec {suite.onnxspec}"),
            ("Sources of the suite", suite.sources),
            ("Profile", statement.profile),
            ("Cases", _digest(suite.cases)),
        ],
        levels=_levels_of(row for row in rows if row.status != "none"),
    )


def _digest(digests: Mapping[str, str]) -> str:
    """Return one digest over several named digests."""
    return hashlib.sha256("\n".join(f"{name} {digests[name]}" for name in sorted(digests)).encode()).hexdigest()


def _lead(statement: StatementRecord) -> str:
    if statement.kind != "certificate":
        return f"This package certifies nothing: {'; '.join(statement.trial_because)}."
    rows = statement.rows
    certified = sum(row.status == "certified" for row in rows)
    excepted = sum(row.status == "exceptions" for row in rows)
    total = f"Of {len(rows)} combinations of operator version and number type"
    if not certified:
        more = f"; {excepted} {'reaches' if excepted == 1 else 'reach'} one with exceptions" if excepted else ""
        return f"{total} none reaches a level{more}. {_totals(rows)}"
    also = f", {excepted} more with exceptions" if excepted else ""
    return f"{total}, {certified} {'is' if certified == 1 else 'are'} certified{also}. {_totals(rows)}"


def _totals(rows: Iterable[RowRecord]) -> str:
    """Return the number of cases by verdict, over all rows: ``Of 5,310 test cases, 5,204 pass, 106 unsupported.``"""
    counts = sum((Counter(row.verdicts) for row in rows), Counter[str]())
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.most_common())
    return f"Of {counts.total():,} test cases: {verdicts}."


def _wrapped(wrap: str) -> str:
    """Return a sentence on the graph around every node; empty for single nodes."""
    if wrap in QUANTIZED:
        return f" Every node was quantized: between DequantizeLinear and QuantizeLinear ({wrap})."
    return f" Every node was embedded in a larger graph ({wrap})." if wrap else ""


def _levels_of(rows: Iterable[RowRecord]) -> dict[str, str]:
    """Return the levels that are reached, each with its description, narrowest first."""
    descriptions: dict[str, str] = {}
    for row in rows:
        # Include the narrower levels: the description of a level refers to them.
        descriptions |= {
            level.name: level.about for level in family_of(row.op).levels(row.op, row.version)[: _height(row) + 1]
        }
    return descriptions


def _declined(row: RowRecord) -> bool:
    """Return whether the target ran no case of a row."""
    return not set(row.verdicts) - {"unsupported", "fallback"}


def _lines(rows: Iterable[RowRecord], text_of: Callable[[RowRecord], str]) -> list[Line]:
    """Return rows with the same text as one line each, the highest level first."""
    grouped: dict[tuple[str, str], list[RowRecord]] = {}
    for row in rows:
        grouped.setdefault((row.level, text_of(row)), []).append(row)
    ordered = sorted(grouped.items(), key=lambda item: -_height(item[1][0]))
    return [Line(level, tuple(_named(members)), text) for (level, text), members in ordered]


def _height(row: RowRecord) -> int:
    """Return the index of a row's level among the levels of its operator; -1 without a level."""
    names = [level.name for level in family_of(row.op).levels(row.op, row.version)]
    return names.index(row.level) if row.level in names else -1


def _named(rows: Iterable[RowRecord]) -> Iterator[str]:
    """Yield rows by operator: ``LSTM 7 and 14 in float16 and float32, 22 in float32``."""
    by_op: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        by_op.setdefault(row.op, {}).setdefault(row.type, []).append(str(row.version))
    for op, by_type in by_op.items():
        by_versions: dict[tuple[str, ...], list[str]] = {}
        for type_name, versions in by_type.items():
            by_versions.setdefault(tuple(versions), []).append(type_name)
        yield f"{op} {'; '.join(f'{listed(versions)} in {listed(types)}' for versions, types in by_versions.items())}"


def _why(row: RowRecord) -> str:
    """Return why a row has no level, from its statement, without the names of cases."""
    reached = [level.level for level in row.levels if level.status != "denied"]
    if reached:
        return f"only a trial, whose cases would reach {reached[-1]}"
    lowest = row.levels[0]
    return f"{lowest.level}: {'; '.join(reason.rpartition(': ')[0] or reason for reason in lowest.against)}"


def _unshown(row: RowRecord) -> str:
    """Return the features that higher levels require and no passing case of a row has; empty without any."""
    names = [WORDS.get(feature, feature) for feature in row.unshown]
    if len(names) > _MOST_WORDS:
        names = [*names[:3], f"{len(names) - 3} more"]
    return f"no passing case has {listed(names)}" if names else ""


def _repeating(statement: StatementRecord, target: TargetRecord) -> tuple[str, tuple[str, ...]]:
    """Return the TOML table of the target, empty where its name is enough, and commands that repeat the measurement.

    The reader runs them on a device of their own.
    """
    name, table, option = target["adapter"], "", ""
    own = name.endswith(".py")
    if own or target["options"] or statement.accuracy != ACCURACY:
        settings = {"adapter": name, "accuracy": statement.accuracy, "options": target["options"]}
        lines = [f"{key} = {_toml(value)}" for key, value in settings.items()]
        lines[0] += "  # the vendor's file, beside this one" if own else ""
        table = "\n".join(["[device]", *lines])
        name, option = "device", "--targets-file targets.toml "
    if target["wrap"]:
        name += f"+{target['wrap']}"
    ops = " ".join(f"--op {op}" for op in dict.fromkeys(row.op for row in statement.rows))
    profile = "" if statement.profile == "core" else f"--profile {statement.profile} "
    release = statement.suite.onnxspec
    return table, (
        f"python -m pip install .    # in a clone of onnxspec {release}: it is on no package index yet",
        f"onnxspec run {option}--target {shlex.quote(name)} {ops} {profile}--nonce NUMBER --out mine",
        f"onnxspec certify mine --product {shlex.quote(statement.product)} --vendor me --out mine.zip",
        "onnxspec verify mine.zip --nonce NUMBER",
    )


def _toml(value: Any) -> str:
    """Return a value of JSON as TOML: strings and numbers are the same in both."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return f"{{{', '.join(f'{json.dumps(key)} = {_toml(inner)}' for key, inner in value.items())}}}"


def _remarks(statement: StatementRecord) -> Iterator[str]:
    rows = statement.rows
    if accepted := sum(row.not_rejected for row in rows):
        yield f"{accepted} invalid models were accepted. That denies no level."
    if varying := sum(row.nondeterministic for row in rows):
        yield f"In {varying} cases repeated runs differ in some bits, within the error bounds."
    for type_name, digits in {row.type: row.leaning for row in rows if row.leaning}.items():
        yield f"In {type_name} errors are biased: they leave {digits}."
    choices = [
        f"{op}: {', '.join(f'{answer} ({question})' for question, answer in answers.items())}"
        for op, answers in statement.interpretations.items()
        if answers
    ]
    if choices:
        yield f"Interpretations used: {'; '.join(choices)}. onnxspec clauses explains these names."


def _environment(description: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a target's description of itself, and the measurements of its worker, as pairs of name and text."""
    own = flattened({key: value for key, value in description.items() if key != MEASURED})
    yield from ((name, text) for name, text in own if text)
    measured = description.get(MEASURED)
    if not isinstance(measured, dict):
        yield MEASURED, "nothing: this target's worker does not measure itself"
        return
    for key in ("system", "processor", "devices", "packages"):
        value = measured.get(key)
        for entry in value if isinstance(value, list) else [value]:
            yield key, ", ".join(f"{name} {text}".strip() for name, text in flattened(entry))
