"""``python -m tests.toy.raising``: the toy operator with code that raises at several points.

The steps T of a case select the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnxspec.cases import Case
from onnxspec.reference import FAULTS, Expectation, IllegalNode, budget

from .leaky import Leak, Leaky, LeakyFamily, LeakySpec
from .several import answer

BUILT, JUDGED, DIAGNOSED = 1, 2, 4
"""Steps T of the cases in which the operator's own code raises."""

_build, _expect, _profile = LeakyFamily.build, Leaky.expect, LeakyFamily.profile
_fault = FAULTS["leaky.start.one"]
_wrong = _fault.wrong


def build(self: LeakyFamily, spec: LeakySpec) -> Case:
    """Raise while a case is built."""
    if spec.seq_length == BUILT and not spec.illegal:
        raise RuntimeError("no such\nmodel")
    return _build(self, spec)


def profile(self: LeakyFamily, name: str, op: str, version: int) -> Sequence[LeakySpec]:
    """Raise while the cases of the widest profile are listed."""
    if name == "full":
        raise LookupError("no such\ncases")
    return _profile(self, name, op, version)


def challenge(*_: Any) -> Any:
    """Raise while random cases are drawn, in a function of onnxspec that gets a wrong argument."""
    return budget("no-such-draw", "float32")


def expect(self: Leaky, node: Any, inputs: Any, *others: Any, **named: Any) -> list[Expectation]:
    """Raise while a case is judged or checked."""
    if inputs["X"].shape[0] == JUDGED:
        return [1 / 0]
    return _expect(self, node, inputs, *others, **named)


def wrong(compute: Any, leak: Leak) -> Any:
    """Raise while a case is diagnosed."""
    if leak.X.shape[0] == DIAGNOSED:
        raise KeyError("start")
    return _wrong(compute, leak)


def diagnostics(*_: Any) -> Any:
    """Raise while a model is checked."""
    raise IllegalNode("leaky.nothing", "no such clause")


# At import, so that the worker processes of prove have it too.
LeakyFamily.build, LeakyFamily.profile = build, profile  # type: ignore[method-assign]
LeakyFamily.challenge = challenge  # type: ignore[method-assign]
Leaky.expect = expect  # type: ignore[method-assign]
object.__setattr__(_fault, "wrong", wrong)
Leaky.diagnostics = diagnostics  # type: ignore[method-assign]

if __name__ == "__main__":
    answer()
