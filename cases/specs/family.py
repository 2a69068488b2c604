"""Families: the cases of an operator, or of several that are alike, behind one protocol.

A family says which cases there are and how each is built; :func:`register` makes it known. All else asks the family of
a case's operator, and never which one it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from numpy.typing import NDArray

from ...reference import Clause, Node, clauses_of, operator_names, operator_of, versions_of
from .bounds import Bounds
from .case import Case, Spec
from .contexts import ContextSpace
from .features import groups_with
from .level import Level
from .violations import Violation

__all__ = [
    "Family",
    "build_case",
    "clauses_exercised",
    "context_space",
    "counted_operators",
    "family_of",
    "features_of",
    "group_of",
    "is_spec",
    "operator_versions",
    "register",
]


class Family(ABC):
    """The cases of some operators.

    operators
        Their names.
    spec
        The class of their specs, a dataclass whose fields msgspec can convert to.
    """

    operators: tuple[str, ...]
    spec: type[Any]

    @abstractmethod
    def profile(self, name: str, op: str, version: int) -> Sequence[Spec]:
        """The cases of a profile (``smoke``, ``core`` or ``full``), in a fixed order, all of them distinct."""

    @abstractmethod
    def build(self, spec: Any) -> Case:
        """The models and inputs of a case; the same bytes every time."""

    @abstractmethod
    def features(self, spec: Any) -> frozenset[str]:
        """What a case contains, as clause tables and files of expected failures name it."""

    @abstractmethod
    def all_features(self, op: str, version: int) -> frozenset[str]:
        """Every feature that a case of an operator version can have."""

    @abstractmethod
    def content(self, spec: Any) -> Iterator[bytes]:
        """Every byte of a case: what "the same case" means."""

    @abstractmethod
    def node_features(self, node: Node, inputs: Mapping[str, NDArray[Any]]) -> frozenset[str]:
        """What a node contains with its inputs, also one of a model that was made elsewhere. Raises IllegalNode."""

    def formula(self, spec: Any, name: str, array: NDArray[Any]) -> str | None:
        """An expression for an input in a script, with ``drawn`` (:func:`.data.uniform`) and ``np`` at hand, that gives
        it bit for bit; None where there is none."""
        return None

    def violations(self, op: str, version: int) -> Sequence[Violation]:
        """The ways in which a model can be forbidden."""
        return ()

    def groups(self, spec: Any) -> list[str]:
        """The report columns to which a case belongs."""
        return groups_with(self.features(spec))

    def context_space(self, op: str) -> ContextSpace | None:
        """What may be there in the cases of an operator when a part of it goes wrong; None where nobody counts that."""
        return None

    def pooled(self, op: str, level: str, index: int, sibling: int) -> Any | None:
        """The case at a place of the operator's pool (:mod:`..profiles.pool`); None where nothing is drawn there."""
        return None

    def cases(self, op: str, version: int, bounds: Bounds) -> Any:
        """A Hypothesis strategy of legal cases; see :func:`..strategies.cases`. Raises ValueError where there is none,
        and for bounds that leave nothing."""
        raise ValueError(f"there is no strategy for cases of {op}")

    def levels(self, op: str, version: int) -> Sequence[Level]:
        """What certificates may certify of an operator version, narrowest first, each within the next."""
        return (Level("complete", "everything that the suite tries", lambda spec: True),)

    def challenge(self, op: str, version: int, type: str, nonce: str) -> Sequence[Any]:
        """Legal cases that no profile holds, of every level, the same ones for everyone from the nonce: what a
        certificate's auditor asks for beside the profile. None where the family cannot draw any."""
        return ()


_FAMILIES: dict[str, Family] = {}


def register(family: Family) -> Family:
    """Make the cases of operators known. Raises UnknownOperator for an operator that there is not."""
    for op in family.operators:
        versions_of(op)
        _FAMILIES[op] = family
    return family


def family_of(op: str) -> Family:
    """The family of an operator. Raises KeyError for an operator without cases."""
    return _FAMILIES[op]


def context_space(op: str) -> ContextSpace | None:
    """What may be there in the cases of an operator; None for one of which nobody counts what cases show together."""
    return _FAMILIES[op].context_space(op) if op in _FAMILIES else None


def counted_operators() -> tuple[str, ...]:
    """The operators of which it is counted what cases show when things are there together."""
    return tuple(op for op in _FAMILIES if context_space(op) is not None and operator_of(op).parts())


def operator_versions(domain: str | None = "") -> Iterator[tuple[str, int]]:
    """Every (operator, since_version) of a domain that there are cases of; of all domains where it is None."""
    for op in operator_names(domain):
        if op in _FAMILIES:
            for version in versions_of(op):
                yield op, version


def is_spec(value: object) -> TypeGuard[Spec]:
    """Whether a value is a case, of whatever operator."""
    return callable(getattr(value, "to_json", None))


def build_case(spec: Spec) -> Case:
    """The models and inputs of a case; the same bytes every time."""
    return family_of(spec.op).build(spec)


def features_of(spec: Spec) -> frozenset[str]:
    """The features of a case, as clause tables name them under ``needs``. A forbidden model has no others than what is
    forbidden about it: nothing else is tried."""
    return family_of(spec.op).features(spec)


def clauses_exercised(spec: Spec) -> list[Clause]:
    """The clauses that a case exercises."""
    return clauses_of(spec.op, spec.version, features_of(spec))


def group_of(spec: Spec) -> list[str]:
    """The report columns to which a case belongs."""
    return family_of(spec.op).groups(spec)
