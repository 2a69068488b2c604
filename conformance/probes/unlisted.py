"""An operator version whose cases cannot be listed, as a probe that cannot be made ready."""

from __future__ import annotations

from msgspec import Struct

from ...cases.profiles.profiles import NotListed
from ...cases.specs.family import family_of
from ...reference import operator_version
from ...reference.documents.operators import document_of
from .drawn import challenge_probes, split_nonce
from .probe import Prepared


class UnlistedProbe(Struct, frozen=True):
    """See :class:`.probe.Probe`. Its verdict is ``not-judged``, with what the operator's own code raises."""

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
        """The exception that is raised, and its place."""
        try:
            self.prepare()
        except Exception as error:  # whatever it is, it is the operator's
            return str(NotListed(self.op, self.version, error))
        return ""

    def prepare(self) -> Prepared:
        """Raise what the operator's own code raises."""
        name, nonce = split_nonce(self.profile)
        if nonce:
            challenge_probes(nonce, self.op, self.version)
        else:
            tuple(family_of(self.op).profile(name, self.op, self.version))
        raise RuntimeError("its cases could not be listed before")

    def repeat(self, target: str) -> list[str]:
        """``onnxspec list``, or a run."""
        name, nonce = split_nonce(self.profile)
        chosen = ["--op", self.op, "--profile", name]
        return ["onnxspec", "run", *chosen, "--nonce", nonce] if nonce else ["onnxspec", "list", *chosen]
