"""Probe for an operator version whose cases cannot be listed."""

from __future__ import annotations

from msgspec import Struct

from ...cases.profiles.profiles import NotListed
from ...cases.specs.family import family_of
from ...reference import operator_version
from ...reference.documents.operators import document_of
from .drawn import challenge_probes, split_nonce
from .probe import Prepared


class UnlistedProbe(Struct, frozen=True):
    """Probe whose verdict is ``not-judged``, with the exception of the operator's own code."""

    profile: str
    op: str
    version: int
    clauses: tuple[str, ...] = ()
    features: frozenset[str] = frozenset()
    groups: tuple[str, ...] = ()
    traits: frozenset[str] = frozenset()
    size: tuple[float, int] = (0.0, 0)
    graded: bool = False

    @property
    def id(self) -> str:
        return f"{document_of(self.op).prefix}-{self.version}.cases-of-{self.profile}"

    @property
    def text(self) -> str:
        return self.id

    @property
    def domain(self) -> str:
        return document_of(self.op).domain

    @property
    def type(self) -> str:
        return operator_version(self.op, self.version).types[0]

    @property
    def complaint(self) -> str:
        """The exception and its place."""
        try:
            self.prepare()
        except Exception as error:  # an error of the operator's code
            return str(NotListed(self.op, self.version, error))
        return ""

    def prepare(self) -> Prepared:
        """Raise the exception of the operator's own code."""
        name, nonce = split_nonce(self.profile)
        if nonce:
            challenge_probes(nonce, self.op, self.version)
        else:
            tuple(family_of(self.op).profile(name, self.op, self.version))
        raise RuntimeError("its cases could not be listed before")

    def repeat(self, target: str) -> list[str]:
        """Return the arguments of ``onnxspec list``, or of a run with the nonce."""
        name, nonce = split_nonce(self.profile)
        chosen = ["--op", self.op, "--profile", name]
        return ["onnxspec", "run", *chosen, "--nonce", nonce] if nonce else ["onnxspec", "list", *chosen]
