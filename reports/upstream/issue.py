"""An issue for the maintainers of a runtime: what they need to see the fault themselves, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...conformance.judging.judgement import DECLINED, Verdict
from ...conformance.judging.vocabulary import STATUS_WORDS
from ...conformance.showing.records import FirstDivergence, StateElement
from ..finding_page import times_words
from ..findings import Clause
from ..text import code, flattened, plain, printable
from .chosen import Chosen

LONGEST_SCRIPT = 40_000
"""Characters of a script that still stand in the issue: most trackers take some 65,000 in all."""

_SCRIPT = "script.py"
_DESCRIBED = ("runtime", "version", "provider", "device", "python", "onnx", "numpy", "platform", "machine")


def issue_markdown(chosen: Chosen) -> str:
    """The issue, in Markdown. Raises OSError where the script cannot be read."""
    operator = chosen.exhibit.evidence.operator
    parts = [
        f"# {operator}: {plain(_small(chosen.finding.title))}",
        " ".join(_paragraph(chosen)),
        "## Environment",
        "\n".join(_environment(chosen)),
        "## Expected and got",
        "\n".join(_expected_and_got(chosen)),
        "## What the document says",
        "\n".join(_clauses(chosen.finding.statements)),
        "## To reproduce",
        _reproduction(chosen),
    ]
    return "\n\n".join(parts) + "\n"


def _small(title: str) -> str:
    first = title.partition(" ")[0]
    return title[:1].lower() + title[1:] if first.isalpha() and not first.isupper() else title


def _paragraph(chosen: Chosen) -> Iterator[str]:
    """A paragraph on what happens, when, and what would explain it."""
    finding, member, evidence = chosen.finding, chosen.member, chosen.exhibit.evidence
    runtime = plain(member.subject.label)
    if evidence.about:
        yield (
            f"The model has several nodes; this is about the one named {code(evidence.about)}, with inputs and outputs "
            "under the names that its document has for them."
        )
    parting = evidence.numbers.parting if evidence.numbers else None
    if parting is not None and parting.must is not None and parting.got is not None:
        yield f"{runtime} computes {evidence.operator} otherwise than its document: {_parted(parting)}."
    elif finding.verdict == Verdict.NOT_REJECTED.value:
        yield f"{runtime} runs a model that the document of {evidence.operator} forbids: {_sentence(member.message)}"
    elif finding.verdict in DECLINED:
        yield f"{runtime} does not run a legal {evidence.operator}: {_sentence(member.message)}"
    else:
        yield f"{runtime}, on a legal {evidence.operator}: {plain(finding.title)}. {_sentence(member.message)}"
    if finding.fault and finding.verdict != Verdict.NOT_REJECTED.value:
        guessed = "as if this were done" in finding.title or "consistent with" in finding.title.lower()
        sure = "is consistent with" if guessed else "is that of"
        texts = "; ".join(plain(text.rstrip(".")) for fault in evidence.diagnosis if (text := fault.text))
        title = finding.title.removesuffix(f" (with {finding.conditions})")  # the next sentence says when
        text = (texts or plain(title)).removeprefix("Consistent with: ")
        yield f"What it returns {sure} a right implementation with this change: {text[:1].upper()}{text[1:]}."
    if finding.conditions:
        yield f"{finding.when} {plain(finding.conditions)}."
    types = ", ".join(member.types)
    cases, show = ("case", "shows") if member.count == 1 else ("cases", "show")
    yield f"{member.count} {cases} of {', '.join(member.versions)} in {types} {show} it."
    own = next((given.type for given in evidence.inputs if given.type), "")
    if own and own not in member.types:
        yield f"What is shown here is a smaller case, in {own}."


def _parted(parting: FirstDivergence) -> str:
    if parting.bounds is not None:
        least, most = parting.bounds
        right = "no other level is right" if least == most else "no level beside these is right"
        return (
            f"{code(parting.place)} is level {_number(parting.got)} and must be {parting.right}. Whatever the order of "
            f"summation and the rounding, {right}; it is off by {parting.off:,}"
        )
    ratio = times_words(parting.ratio) if parting.ratio is not None else ""
    return (
        f"{code(parting.place)} is {_number(parting.got)} and must be {_number(parting.must)}. Whatever the order of "
        f"summation and the rounding, it may be off by {_number(parting.within, 3)} at most; it is off by "
        f"{ratio.replace('the error bound', 'that')}"
    )


def _sentence(message: str) -> str:
    """A message with one full stop at its end."""
    return f"{plain(message.rstrip('.'))}."


def _environment(chosen: Chosen) -> Iterator[str]:
    info = chosen.member.subject
    described = dict(flattened(info.info["description"]))
    for name in _DESCRIBED:
        if described.get(name):
            yield f"- {name}: {plain(described[name])}"
    options = [f"{name} = {value}" for name, value in flattened(info.info["options"])]
    if options:
        yield f"- options: {plain(', '.join(options))}"
    version = info.run.info["onnxspec"] if info.run.described else "of an unknown version"
    yield f"- checked with onnxspec {plain(version)}"


def _expected_and_got(chosen: Chosen) -> Iterator[str]:
    evidence = chosen.exhibit.evidence
    numbers = evidence.numbers
    rows = [numbers.parting, *(numbers.states or [])] if numbers else []
    shown = {row.place: row for row in rows if row is not None and row.got is not None}
    if not shown:
        yield plain(chosen.member.message or evidence.message)
        if evidence.process.signal:
            yield f"\nThe process was ended by {plain(evidence.process.signal)}."
        if captured := evidence.process.captured.strip():
            yield f"\n```text\n{_fenced(captured[-2000:])}\n```"
        return
    if numbers and numbers.title:
        yield f"{plain(numbers.title)}.\n"
    yield "| element | must be | error bound | got |"
    yield "| --- | --- | --- | --- |"
    yield from (_row(row) for row in shown.values())
    if numbers and numbers.from_reported:
        yield "\nEach step is computed from the state that the runtime itself returned one step before."


def _row(row: FirstDivergence | StateElement) -> str:
    if row.bounds is not None:
        return f"| {code(row.place)} | {row.right} | a level | {_number(row.got)} |"
    must = "unknown" if row.must is None else _number(row.must)
    return f"| {code(row.place)} | {must} | {_number(row.within, 3)} | {_number(row.got)} |"


def _number(value: float | None, digits: int = 9) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _clauses(statements: Sequence[tuple[tuple[Clause, ...], Clause]]) -> Iterator[str]:
    """The clause that is broken, with where it stands."""
    if not statements:
        yield "The node is legal by its document, and its outputs follow from the equations there."
    for alike, first in statements:
        status = STATUS_WORDS.get(first.status, first.status)
        where = "; ".join(filter(None, [status, plain(first.source)]))
        ids = ", ".join(code(clause.id) for clause in alike)
        yield f"- {plain(first.text) or 'No text is at hand'} ({'; '.join(filter(None, [where, ids]))})"


def _reproduction(chosen: Chosen) -> str:
    exhibit = chosen.exhibit
    if _SCRIPT not in exhibit.files:
        repeat = f"`{chosen.member.repeat}`, with onnxspec installed."
        attach = f" Attach {code(str(exhibit.folder))}, the case in the form of ONNX's own test cases."
        return repeat + attach if exhibit.files else repeat
    path = exhibit.folder / _SCRIPT
    script = path.read_text(encoding="utf-8")
    words = (
        "This script needs only onnx, NumPy and the runtime. It exits with 1 as long as this holds, with 0 once it is "
        "mended."
    )
    if len(script) > LONGEST_SCRIPT:
        return f"{words} It is too long to stand here: attach {code(str(path))}."
    return f"{words}\n\n```python\n{_fenced(script.rstrip())}\n```"


def _fenced(text: str) -> str:
    """A text that cannot end the fence that it stands in."""
    return printable(text).replace("```", "` ` `")
