"""Results of a check, for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from .problem import Checked, Level, Problem

_INDENT = "    "
_FEW = 3


def lines_of(checked: Checked) -> Iterator[tuple[str, str]]:
    """Lines with the level that each belongs to: ``error``, ``warning``, ``note``, or empty."""
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
            yield from _problem(problem)
        for rule in dict.fromkeys(unchecked.rule for unchecked in missing):
            what = [unchecked.missing for unchecked in missing if unchecked.rule == rule]
            more = f"; and {len(what) - _FEW} more" if len(what) > _FEW else ""
            yield f"{_INDENT}not checked  {rule or 'every rule'}: {'; '.join(what[:_FEW])}{more}", ""
    for path, operator in checked.inconclusive:
        yield f"  {path}  {operator}: recurrent, but there is no document of it here; not judged", ""


def _problem(problem: Problem) -> Iterator[tuple[str, str]]:
    yield f"{_INDENT}{problem.level.value}  {problem.rule}: {problem.message}", problem.level.value
    if problem.clause and problem.clause not in problem.message:
        yield f"{_INDENT}  summary: {problem.clause}", ""
    if problem.advice:
        yield f"{_INDENT}  what to do: {problem.advice}", ""


def counted_in_words(checked: Checked) -> str:
    """``3 recurrent nodes: 1 error, 2 not checked``"""
    if not checked.nodes and not checked.inconclusive:
        return "no recurrent node"
    count = len(checked.nodes)
    text = f"{count} recurrent node{'' if count == 1 else 's'}"
    levels = Counter(problem.level for problem in checked.counted)
    parts = [f"{levels[level]} {level.value}{'' if levels[level] == 1 else 's'}" for level in Level if levels[level]]
    suppressed = len(checked.problems) - len(checked.counted)
    parts += [f"{suppressed} suppressed"] if suppressed else []
    partly = len({unchecked.node for unchecked in checked.unchecked})
    parts += [f"{partly} node{'' if partly == 1 else 's'} not wholly checked"] if partly else []
    parts += [f"{len(checked.inconclusive)} more of operators without a document"] if checked.inconclusive else []
    return f"{text}: {', '.join(parts) or 'nothing wrong'}"


def summary(everything: Sequence[Checked]) -> str:
    """All models in one line."""
    nodes = sum(len(checked.nodes) for checked in everything)
    errors = sum(p.level is Level.ERROR for checked in everything for p in checked.counted)
    unreadable = sum(bool(checked.unreadable) for checked in everything)
    text = f"{len(everything)} models, {nodes} recurrent nodes, {errors} errors"
    return f"{text}, {unreadable} that cannot be read" if unreadable else text
