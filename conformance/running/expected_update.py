"""Update of lists of known failures by a run.

Entries that stay are not changed, nor are their reasons and the comments above them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...reference import FORMATS, operator_names
from ...reference.errors import UserError
from ..border.typed_toml import table_lines
from ..judging.judgement import Verdict
from ..probes.probe import Probe
from ..results.expected.entries import (
    UNWRITTEN,
    Entry,
    applying,
    matching,
    parse_expected,
)
from ..results.result import Result
from ..targets.target import Target
from ..text import plural
from .run import Run

MOST_CASES = 30  # with a fault, named one by one; beyond that an entry says what they have in common

_HEADER = "# Failures that are known. Each entry gives its reason; docs/targets.md has the keys.\n"


def require_lists(targets: Iterable[Target]) -> None:
    """Make sure that every target has a list to write to; make an empty one if needed.

    Raise UserError if a target has no list of its own or shares one, OSError if none can be made.
    """
    files: dict[str, str] = {}
    for target in targets:
        if not target.expected:
            problem = f"target {target.name!r} has no list of its own; name one with --expected FILE"
            raise UserError(f"--update-expected: {problem}")
        if (other := files.setdefault(target.expected, target.name)) != target.name:
            problem = f"targets {other!r} and {target.name!r} have one list; give each its own"
            raise UserError(f"--update-expected: {problem}")
        Path(target.expected).touch()


def update_lists(run: Run) -> Iterator[str]:
    """Update the lists of all targets of a run, and yield lines about changes.

    Raise UserError for a malformed file, OSError if it cannot be read or written.
    """
    for target_run in run.targets:
        path = Path(target_run.target.expected)
        if target_run.unavailable:
            yield f"{path}: left as it is, since {target_run.target.name} was not there"
            continue
        probes = {probe.id: probe for probe in run.plan.probes_of(target_run.target)}
        text = path.read_text(encoding="utf-8")
        described = target_run.description
        new, changes = updated_text(text, str(path), target_run.results, probes, target_run.stale, described)
        if new != text:
            beside = path.with_name(f"{path.name}.new")
            try:
                beside.write_text(new, encoding="utf-8")
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)
        yield from changes


def updated_text(
    text: str,
    place: str,
    results: Sequence[Result],
    probes: Mapping[str, Probe],
    stale: Collection[Entry],
    description: Mapping[str, Any],
) -> tuple[str, list[str]]:
    """Return the text of a list after a run, and lines about the changes.

    results, probes
        All results of one target, and their probes by id.
    stale
        Entries that the run showed to be unneeded.
    description
        The target's description of itself.
    """
    runtime = f"{description.get('runtime') or ''} {description.get('version') or ''}".strip()
    text = text or _HEADER
    entries = parse_expected(text, place)
    head, blocks = _blocks(text, len(entries))
    kept = [(entry, block) for entry, block in zip(entries, blocks, strict=True) if entry not in stale]
    left = applying((entry for entry, _ in kept), description)
    groups: dict[tuple[Any, ...], list[Result]] = defaultdict(list)
    for result in results:
        if not result.failing or matching(left, probes[result.case], result):
            continue
        # Where a fault explains a failure, it does not matter which clause it shows in, nor beside which other fault.
        for fault in result.diagnosis:
            groups[(result.op, fault)].append(result)
        if not result.diagnosis:
            groups[(result.op, "", result.verdict.value, result.reason, result.clause)].append(result)
    added = [_new_entry(members, key[1], runtime) for key, members in sorted(groups.items(), key=lambda g: not g[0][1])]
    parts = [head, *(block for _, block in kept), *(block for _, block in added)]
    joined = "\n\n".join(part for part in (part.strip("\n") for part in parts) if part)
    changes = [f"{place}: {len(kept)} kept, {len(entries) - len(kept)} removed, {len(added)} added"]
    changes += [f"  removed: {entry.reason}" for entry in entries if entry in stale]
    changes += [f"  added: {title}" for title, _ in added]
    if added:
        reasons = "its reason" if len(added) == 1 else "each reason"
        changes.append(f"  say in {reasons} why this is accepted: {place} has {UNWRITTEN!r} there")
    return joined + "\n", changes


def _blocks(text: str, count: int) -> tuple[str, list[str]]:
    """Return the text before the first entry, and each entry with the comments directly above it."""
    lines = text.split("\n")
    begins = [line - 1 for line in table_lines(text, "expected")]
    if len(begins) != count:
        raise UserError("--update-expected: each entry of the list must begin with a line [[expected]]")
    for number, line in enumerate(begins):
        while line > 0 and lines[line - 1].lstrip().startswith("#"):
            line -= 1
        begins[number] = line
    if not begins:
        return text, []
    ends = [*begins[1:], len(lines)]
    head = "\n".join(lines[: begins[0]])
    return head, ["\n".join(lines[begin:end]) for begin, end in zip(begins, ends, strict=True)]


def _new_entry(members: Sequence[Result], fault: str, runtime: str) -> tuple[str, str]:
    """Return title and text of an entry for similar failures, with a comment on their cause.

    fault
        The fault that explains all of them, alone or with others; empty if none does.
    """
    first = members[0]
    kind = f"{first.verdict.value}{f' ({first.reason})' if first.reason else ''}"
    count = plural(len(members))
    against = f" against {first.clause}" if first.clause else ""
    what = f"{kind}: {fault}" if fault else f"{kind}{against}"
    fields: dict[str, Any] = {
        "op": first.op,
        "versions": sorted({r.version for r in members}),
        "types": sorted({r.type for r in members} & set(FORMATS)),
    }
    if fault:
        fields["faults"] = [fault]
    else:
        # A whole run may find wrong what one case alone shows to be inaccurate.
        wrong = first.verdict is Verdict.WRONG
        fields["verdicts"] = ["inaccurate", "wrong"] if wrong else [first.verdict.value]
        fields["clauses"] = [first.clause] if first.clause else []
    # Other cases may fail for another reason. A graph that is no operator is known by its cases alone.
    if not fault or len(members) <= MOST_CASES or first.op not in operator_names():
        fields["cases"] = sorted(r.case for r in members)
    fields["reason"] = UNWRITTEN
    comment = f"# {what} in {count} with {runtime or 'this runtime'}{'' if fault else '; not explained yet'}"
    lines = [comment, "[[expected]]", *(f"{key} = {_toml(value)}" for key, value in fields.items() if value)]
    return f"{first.op}, {fault or what} ({count})", "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, list) and len(value) > 4:
        return "[\n" + "".join(f"    {_toml(item)},\n" for item in value) + "]"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    # A JSON text is a TOML text, but for the one control character that JSON leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") if isinstance(value, str) else str(value)
