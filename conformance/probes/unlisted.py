"""Probe for an operator version whose cases cannot be listed."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...reference import operator_of, operator_version
from .drawn import split_nonce
from .probe import Prepared


@dataclass(frozen=True)
class UnlistedProbe:
    """Probe whose verdict is ``not-judged``, with the exception of the operator's own code."""

    profile: str
    op: str
    version: int
    error: Exception = field(compare=False)
    clauses: tuple[str, ...] = ()
    features: frozenset[str] = frozenset()
    groups: tuple[str, ...] = ()
    traits: frozenset[str] = frozenset()
    size: tuple[float, int] = (0.0, 0)
    graded: bool = False

    @property
    def id(self) -> str:
        return f"{operator_of(self.op).document.prefix}-{self.version}.cases-of-{self.profile}"

    text = id

    @property
    def domain(self) -> str:
        return operator_of(self.op).document.domain

    @property
    def type(self) -> str:
        return operator_version(self.op, self.version).types[0]

    def prepare(self) -> Prepared:
        """Raise the exception of the operator's own code."""
        raise self.error

    def repeat(self, target: str) -> list[str]:
        """Return the arguments of ``onnxspec list``, or of a run with the nonce."""
        name, nonce = split_nonce(self.profile)
        chosen = ["--op", self.op, "--profile", name]
        return ["onnxspec", "run", *chosen, "--nonce", nonce] if nonce else ["onnxspec", "list", *chosen]
