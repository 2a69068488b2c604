"""Families: the cases of an operator, or of several that are alike, behind one protocol.

A family says which cases there are and how each is built; :func:`register` makes it known. All else asks the family of
a case's operator, and never which one it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import islice
from random import Random
from types import MappingProxyType
from typing import Any, TypeGuard

from msgspec import Struct
from numpy.typing import NDArray

from ...reference import Clause, Node, clauses_of, operator_names, operator_of, versions_of
from ..axes.violation import Violation
from .bounds import Bounds
from .case import Case, Spec
from .changes import simpler_by_field
from .contexts import ContextSpace
from .features import groups_with, tell_words
from .level import Level


class PoolDesign(Struct, frozen=True):
    """The way in which a pool of dense cases is drawn, and the share of it in the profiles.

    drawn
        By level how many models are drawn, narrowest level first.
    siblings
        By level how many further cases are drawn for a model which leaves something open.
    models, cases
        Of the dense block of ``core``: models of each of its levels, companions among them, and cases in all.
    quick
        Dense cases of ``smoke``.
    many, measured
        Levels that are drawn so often as is said, and how many of those cases are measured: the ones that are likely
        to show what no case does so far. What is chosen of them stands with the widest level.
    turns
        Siblings that are chosen once all models are: how many are in ``core``, out of how many that a dense case may
        have.
    """

    drawn: Mapping[str, int]
    siblings: Mapping[str, int]
    models: Mapping[str, int]
    cases: int
    quick: int
    many: Mapping[str, int] = {}
    measured: int = 0
    turns: tuple[int, int] | None = None


class Family(ABC):
    """The cases of some operators.

    operators
        Their names.
    spec
        The class of their specs, a dataclass whose fields msgspec can convert to.
    larger
        Sizes at which a name that was thought of at a smaller case is tried, as far as a spec has them.
    """

    operators: tuple[str, ...]
    spec: type[Any]
    larger: Mapping[str, int] = MappingProxyType({"T": 3, "N": 2, "I": 3, "H": 5})

    @abstractmethod
    def profile(self, name: str, op: str, version: int) -> Iterable[Spec]:
        """The cases of a profile (``smoke``, ``core``, ``full``; the block of axes that have one), in a fixed order,
        all of them distinct; one by one, if to make them takes long."""

    @abstractmethod
    def build(self, spec: Any) -> Case:
        """The models and inputs of a case; the same bytes every time."""

    @abstractmethod
    def features(self, spec: Any) -> frozenset[str]:
        """Features that a case contains, as clause tables and files of expected failures name it."""

    @abstractmethod
    def all_features(self, op: str, version: int) -> frozenset[str]:
        """Every feature that a case of an operator version can have."""

    @abstractmethod
    def content(self, spec: Any) -> Iterator[bytes]:
        """Every byte of a case: what "the same case" means."""

    @abstractmethod
    def node_features(self, node: Node, inputs: Mapping[str, NDArray[Any]]) -> frozenset[str]:
        """Features that a node contains with its inputs, also one of a model that was made elsewhere. Raises
        IllegalNode."""

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
        """The contexts that may be there in the cases of an operator when a part of it goes wrong; None where nobody
        counts that."""
        return None

    def pooled(self, op: str, level: str, index: int, sibling: int) -> Any | None:
        """The case at a place of the operator's pool (:mod:`..profiles.pool`); None where nothing is drawn there."""
        return None

    def pool_design(self, op: str) -> PoolDesign | None:
        """The way in which the operator's pool is drawn and chosen from; None where it has none."""
        return None

    def fresh(
        self,
        op: str,
        seed: int | str,
        versions: Collection[int] = (),
        types: Collection[str] = (),
        lacks: Collection[str] = (),
    ) -> Iterator[Any] | None:
        """Fresh dense cases of an operator without end; see :func:`..profiles.fresh.fresh_stream`. None where none are
        drawn. Raises ValueError where nothing is left to draw from."""
        return None

    def richer(self, spec: Any) -> Sequence[Mapping[str, Any]]:
        """Fields to change so that a legal case has more in it, one thing at a time: faults that explain a small case
        alike are told apart there. Whether the document allows each shows when it is built."""
        return ()

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """(field, changes) that take one thing from a case; see :mod:`.simpler`."""
        return simpler_by_field(spec, self.plainer(spec))

    def goes_together(self, spec: Any) -> bool:
        """Tell whether the values of a case go together; what does not says in other words what a simpler case says."""
        return True

    def plainer(self, spec: Any) -> Sequence[tuple[str, Any]]:
        """Fields with simpler values than a case has that are not the defaults of the class (those are tried anyhow),
        for each field the simplest first. Each step leads to a case with fewer of them."""
        return ()

    def anything(self, op: str, version: int, types: Collection[str], random: Random) -> Any | None:
        """Some case of an operator version in one of these types, from all that there may be; None where what was drawn
        cannot be together. Without more being known of the operator: cases of its profile, crossed."""
        known = [spec for spec in self.profile("full", op, version) if not spec.illegal and spec.type in types]
        first: Any = random.choice(known)
        names = [field.name for field in fields(first)]
        crossed = self.crossed(first, random.choice(known), random.sample(names, random.randint(0, len(names))))
        return replace(crossed, seed=random.randrange(1 << 16)) if "seed" in names and crossed is not None else crossed

    def crossed(self, spec: Any, other: Any, names: Collection[str]) -> Any | None:
        """A case with some fields of another one of the same operator version; None where that cannot be."""
        try:
            return replace(spec, **{name: getattr(other, name) for name in names})
        except (ValueError, TypeError):
            return None

    def cases(self, op: str, version: int, bounds: Bounds) -> Any:
        """A Hypothesis strategy of legal cases; see :func:`..strategies.cases`. Raises ValueError where there is none,
        and for bounds that leave nothing."""
        raise ValueError(f"there is no strategy for cases of {op}")

    def levels(self, op: str, version: int) -> Sequence[Level]:
        """The levels that certificates may certify of an operator version, narrowest first, each within the next."""
        return (Level("complete", "everything that the suite tries", lambda spec: True),)

    def challenge(self, op: str, version: int, type: str, nonce: str) -> Sequence[Any]:
        """Legal cases that no profile holds, of every level, the same ones for everyone from the nonce: what a
        certificate's auditor asks for beside the profile. Without more being known of the operator: some of
        :meth:`anything`."""
        random = Random(f"{op}/{version}/{type}/{nonce}")
        drawn = (self.anything(op, version, (type,), random) for _ in range(_DRAWS))
        return tuple(islice(dict.fromkeys(spec for spec in drawn if spec is not None and not spec.illegal), _ASKED))


_FAMILIES: dict[str, Family] = {}
_ASKED, _DRAWS = 8, 64
"""Cases that a nonce asks for where nothing else is said, and draws in which they are looked for."""


def register(family: Family) -> Family:
    """Make the cases of operators known. Raises UnknownOperator for an operator that there is not, and what a family
    raises that is asked for its pool: all families are, whichever operator somebody means."""
    for op in family.operators:
        versions_of(op)
        family.pool_design(op)
        _FAMILIES[op] = family
    tell_words(getattr(family.spec, "axes", ()))
    return family


def forget(op: str) -> None:
    """Make the cases of an operator unknown again."""
    _FAMILIES.pop(op, None)


def family_of(op: str) -> Family:
    """The family of an operator. Raises KeyError for an operator without cases."""
    return _FAMILIES[op]


def context_space(op: str) -> ContextSpace | None:
    """The contexts that may be there in the cases of an operator; None for one of which nobody counts what cases show
    together."""
    return _FAMILIES[op].context_space(op) if op in _FAMILIES else None


def counted_operators() -> tuple[str, ...]:
    """The operators whose profiles are made by what cases show when things are there together: those with a pool."""
    return tuple(op for op in pooled_operators() if context_space(op) is not None and operator_of(op).parts())


def pooled_operators() -> tuple[str, ...]:
    """The operators that have a pool of dense cases, and fresh ones."""
    return tuple(op for op, family in _FAMILIES.items() if family.pool_design(op) is not None)


def operator_versions(domain: str | None = "") -> Iterator[tuple[str, int]]:
    """Every (operator, since_version) of a domain that there are cases of; of all domains where it is None."""
    for op in operator_names(domain):
        if op in _FAMILIES:
            for version in versions_of(op):
                yield op, version


def is_spec(value: object) -> TypeGuard[Spec]:
    """Tell whether a value is a case, of whatever operator."""
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
