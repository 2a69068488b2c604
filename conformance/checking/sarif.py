"""Check results as SARIF 2.1.0, the format of analyzers' findings on code hosts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .problem import Checked, Problem
from .rule import Rule

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(everything: Sequence[Checked], version: str, rules: Mapping[str, Rule], base: Path) -> dict[str, Any]:
    """Return a run of the tool as a SARIF log.

    base
        Base of the paths of files: the root of the sources on the code host.
    """
    used = list(dict.fromkeys(problem.rule for checked in everything for problem in checked.problems))
    driver = {"name": "onnxspec", "version": version, "rules": [_rule(rules[id]) for id in used]}
    if not version or not version[0].isdigit():
        del driver["version"]
    run = {
        "tool": {"driver": driver},
        "invocations": [
            {
                "executionSuccessful": not any(checked.unreadable for checked in everything),
                "toolExecutionNotifications": [n for checked in everything for n in _notifications(checked, base)],
            }
        ],
        "results": [_result(p, used.index(p.rule), base) for checked in everything for p in checked.problems],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.text},
        "help": {"text": f"{rule.advice} {rule.runtimes}".strip()},
        "defaultConfiguration": {"level": rule.level.value},
    }


def _result(problem: Problem, index: int, base: Path) -> dict[str, Any]:
    location = {
        **_file(problem.file, base),
        "logicalLocations": [{"fullyQualifiedName": problem.node, "kind": "element"}],
    }
    # A problem keeps its identity as long as the same node of the same file breaks the same rule in the same way.
    identity = "\0".join((problem.rule, _uri(problem.file, base), problem.node, problem.message))
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


def _notifications(checked: Checked, base: Path) -> list[dict[str, Any]]:
    """Return files that could not be read, as errors of the run, and undecided rules, as notes."""
    if checked.unreadable:
        text = f"{checked.file or 'the model'} {checked.unreadable}"
        return [{"level": "error", "message": {"text": text}, "locations": [_file(checked.file, base)]}]
    notes: list[dict[str, Any]] = []
    for unchecked in checked.unchecked:
        message = f"{unchecked.rule or 'every rule'} is not checked: {unchecked.missing}"
        logical = [{"fullyQualifiedName": unchecked.node, "kind": "element"}]
        location = {**_file(checked.file, base), "logicalLocations": logical}
        notes.append({"level": "note", "message": {"text": f"{unchecked.node}: {message}"}, "locations": [location]})
    return notes


def _file(name: str, base: Path) -> dict[str, Any]:
    # A model has no lines, but code hosts refuse a location without one.
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(name, base)}, "region": {"startLine": 1}}}


def _uri(name: str, base: Path) -> str:
    if not name:
        return "model.onnx"
    path = Path(name).absolute()
    try:
        return quote(path.relative_to(base.absolute()).as_posix())
    except ValueError:
        return path.as_uri()
