"""Formatters of check results.

The formats are text for a person, plain values for JSON, commands that GitHub Actions turns into annotations, and SARIF
2.1.0, the format of analyzers' findings on code hosts.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import to_builtins

from ..text import plural
from .problem import Checked, Level, Problem
from .rule import Rule, rules

SCHEMA = 1
"""Version of the format of the plain values."""

_INDENT = "    "
_FEW = 3
_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def lines_of(checked: Checked) -> Iterator[tuple[str, str]]:
    """Yield lines with the level of each: ``error``, ``warning``, ``note``, or empty."""
    if checked.unreadable:
        yield f"{checked.file or 'the model'}: {checked.unreadable}", "error"
        return
    yield f"{checked.file or 'the model'}: {counted_in_words(checked)}", ""
    for path, operator in checked.nodes:
        problems = [problem for problem in checked.counted if problem.node == path]
        missing = [unchecked for unchecked in checked.unchecked if unchecked.node == path]
        if not problems and not missing:
            continue
        yield f"  {path}  {operator}", ""
        for problem in problems:
            yield from _lines_of_problem(problem)
        for rule in dict.fromkeys(unchecked.rule for unchecked in missing):
            reasons = [unchecked.missing for unchecked in missing if unchecked.rule == rule]
            more = f"; and {len(reasons) - _FEW} more" if len(reasons) > _FEW else ""
            yield f"{_INDENT}not checked  {rule or 'every rule'}: {'; '.join(reasons[:_FEW])}{more}", ""
    for path, operator in checked.inconclusive:
        yield f"  {path}  {operator}: recurrent, but there is no document of it here; not judged", ""


def _lines_of_problem(problem: Problem) -> Iterator[tuple[str, str]]:
    yield f"{_INDENT}{problem.level.value}  {problem.rule}: {problem.message}", problem.level.value
    if problem.clause and problem.clause not in problem.message:
        yield f"{_INDENT}  summary: {problem.clause}", ""
    if problem.advice:
        yield f"{_INDENT}  what to do: {problem.advice}", ""


def counted_in_words(checked: Checked) -> str:
    """Return the counts of a model: ``3 recurrent nodes: 1 error, 2 not checked``."""
    if not checked.nodes and not checked.inconclusive:
        return "no recurrent node"
    text = plural(len(checked.nodes), "recurrent node")
    levels = Counter(problem.level for problem in checked.counted)
    parts = [plural(levels[level], level.value) for level in Level if levels[level]]
    suppressed = len(checked.problems) - len(checked.counted)
    parts += [f"{suppressed} suppressed"] if suppressed else []
    partly = len({unchecked.node for unchecked in checked.unchecked})
    parts += [f"{plural(partly, 'node')} not wholly checked"] if partly else []
    parts += [f"{len(checked.inconclusive)} more of operators without a document"] if checked.inconclusive else []
    return f"{text}: {', '.join(parts) or 'nothing wrong'}"


def summary(everything: Sequence[Checked]) -> str:
    """Return the counts of all models in one line."""
    nodes = sum(len(checked.nodes) for checked in everything)
    errors = sum(p.level is Level.ERROR for checked in everything for p in checked.counted)
    unreadable = sum(bool(checked.unreadable) for checked in everything)
    text = f"{len(everything)} models, {nodes} recurrent nodes, {errors} errors"
    return f"{text}, {unreadable} that cannot be read" if unreadable else text


def plain(everything: Sequence[Checked], version: str, unused: Sequence[str]) -> dict[str, Any]:
    """Return plain values for JSON, with the keys of docs/check.md."""
    return {"schema": SCHEMA, "onnxspec": version, "models": [*map(_plain_model, everything)], "unused": list(unused)}


def _plain_model(checked: Checked) -> dict[str, Any]:
    model: dict[str, Any] = to_builtins(checked)
    for name in ("nodes", "inconclusive"):
        model[name] = [{"node": node, "operator": operator} for node, operator in model[name]]
    for entry in model["problems"]:
        del entry["file"]
    for entry in model["unchecked"]:
        del entry["internal_error"]
    return model


def github_annotations(checked: Checked) -> Iterator[str]:
    """Yield a line for each problem, and for a model that cannot be read."""
    if checked.unreadable:
        yield github_command("error", checked.unreadable, file=checked.file, title="onnxspec")
    for problem in checked.counted:
        text = f"{problem.node} ({problem.operator}): {problem.message.rstrip('.')}. {problem.advice}"
        yield github_command(_COMMANDS[problem.level], text, file=problem.file, title=problem.rule)


def github_command(kind: str, message: str, **properties: str) -> str:
    """Return a workflow command: one line, whatever characters the message has."""
    named = ",".join(
        f"{name}={_one_line(text).replace(':', '%3A').replace(',', '%2C')}" for name, text in properties.items()
    )
    return f"::{kind} {named}::{_one_line(message)}"


def _one_line(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(everything: Sequence[Checked], version: str) -> dict[str, Any]:
    """Return a run of the tool as a SARIF log. Paths of files are relative to the current folder."""
    used = list(dict.fromkeys(problem.rule for checked in everything for problem in checked.problems))
    unreadable = [
        {
            "level": "error",
            "message": {"text": f"{checked.file or 'the model'} {checked.unreadable}"},
            "locations": [_file(checked.file)],
        }
        for checked in everything
        if checked.unreadable
    ]
    run = {
        "tool": {"driver": {"name": "onnxspec", "version": version, "rules": [_rule(rules()[id]) for id in used]}},
        "invocations": [{"executionSuccessful": not unreadable, "toolExecutionNotifications": unreadable}],
        "results": [_result(p, used.index(p.rule)) for checked in everything for p in checked.problems],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.text},
        "help": {"text": f"{rule.advice} {rule.runtimes}".strip()},
        "defaultConfiguration": {"level": rule.level.value},
    }


def _result(problem: Problem, index: int) -> dict[str, Any]:
    location = {
        **_file(problem.file),
        "logicalLocations": [{"fullyQualifiedName": problem.node, "kind": "element"}],
    }
    # A problem keeps its identity as long as the same node of the same file breaks the same rule in the same way.
    identity = "\0".join((problem.rule, _uri(problem.file), problem.node, problem.message))
    result: dict[str, Any] = {
        "ruleId": problem.rule,
        "ruleIndex": index,
        "level": problem.level.value,
        "message": {"text": f"{problem.node} ({problem.operator}): {problem.message}"},
        "locations": [location],
        "partialFingerprints": {"onnxspecProblem/v1": hashlib.sha256(identity.encode()).hexdigest()},
    }
    if problem.suppressed is not None:
        result["suppressions"] = [{"kind": "external", "justification": problem.suppressed}]
    return result


def _file(name: str) -> dict[str, Any]:
    # A model has no lines, but code hosts refuse a location without one.
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(name)}, "region": {"startLine": 1}}}


def _uri(name: str) -> str:
    if not name:
        return "model.onnx"
    path = Path(name).absolute()
    try:
        return quote(path.relative_to(Path.cwd()).as_posix())
    except ValueError:
        return path.as_uri()
