"""``python -m tests.toy.raising``: the toy with code that raises in places of the operator, by the steps T of a case.

Standard input has a list of commands, each a list of words; standard output gets a list of what became of each: its
exit code and what it printed.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import Any

from onnxspec.cases import Case
from onnxspec.conformance.cli import app
from onnxspec.reference import FAULTS, Expectation, IllegalNode

from .cases_leaky import LeakyFamily, LeakySpec
from .reference_leaky import Leak, Leaky

BUILT, JUDGED, DIAGNOSED = 1, 2, 4
"""Steps T of the cases in which the operator's own code raises."""

_build, _expect = LeakyFamily.build, Leaky.expect
_fault = FAULTS["leaky.start.one"]
_wrong = _fault.wrong


def build(self: LeakyFamily, spec: LeakySpec) -> Case:
    """Raises where a case is built."""
    if spec.T == BUILT and not spec.illegal:
        raise RuntimeError("no such\nmodel")
    return _build(self, spec)


def expect(self: Leaky, node: Any, inputs: Any, *others: Any, **named: Any) -> list[Expectation]:
    """Raises where a case is judged, or checked."""
    if inputs["X"].shape[0] == JUDGED:
        return [1 / 0]
    return _expect(self, node, inputs, *others, **named)


def wrong(leak: Leak) -> Leak:
    """Raises where a case is diagnosed."""
    if leak.X.shape[0] == DIAGNOSED:
        raise KeyError("start")
    return _wrong(leak)


def complaints(*_: Any) -> Any:
    """Raises where a model is checked."""
    raise IllegalNode("leaky.nothing", "no such clause")


def main() -> None:
    LeakyFamily.build, Leaky.expect = build, expect  # type: ignore[method-assign]
    object.__setattr__(_fault, "wrong", wrong)
    Leaky.complaints = complaints  # type: ignore[method-assign]
    became = []
    for words in json.load(sys.stdin):
        printed, code = io.StringIO(), 0
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                app(words, prog_name="onnxspec")
            except SystemExit as ended:
                code = int(ended.code or 0)
        became.append({"code": code, "printed": printed.getvalue()})
    print(json.dumps(became))


if __name__ == "__main__":
    main()
