"""Families: the cases of one or several similar operators, behind one protocol.

A family lists its cases and builds them; :func:`register` registers it. All other code uses the family of a case's
operator, and does not depend on the operator itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, islice
from random import Random
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from msgspec import Struct
from numpy.typing import NDArray

from ...reference import Clause, Node, clauses_of, operator_names, versions_of
from ..axes.axis import NOTHING
from ..axes.violation import Violation
from .case import Case, Spec
from .features import groups_with, tell_words

if TYPE_CHECKING:
    from .drawing import Bounds

F = TypeVar("F", bound="Family")

Supported = Mapping[str, Collection[Any]]
"""Values that a case may have on axes of the space, by field of CaseSpec; an axis without an entry may have any value.

``activations`` are names of functions that a node may list; if empty, it may list none. Values of ``outputs`` are
tuples.
"""

SIZES = ("T", "N", "I", "H")


_LARGER = {"T": 3, "N": 2, "I": 3, "H": 5}
_MORE = {"T": (0, 1, 4, 2, 0), "N": (0, 1, 3, 6, 2), "I": (0, 2, 0, 1, 5), "H": (0, 4, 1, 12, 3)}
"""Sizes at which a fault is tried at least, and the steps by which they grow."""


class Level(Struct, frozen=True):
    """A nested part of an operator version's features, for certificates.

    name
        One word.
    about
        Description for people who buy the runtime.
    holds
        Whether a valid case belongs to it. All of those must pass.
    requires
        Features of cases, as clause tables name them, each of which some passing case must have.
    """

    name: str
    about: str
    holds: Callable[[Any], bool]
    requires: tuple[str, ...] = ()


class Family(ABC):
    """Cases of some operators.

    operators
        Their names.
    spec
        The class of their specs, a dataclass whose fields msgspec can convert to.
    """

    operators: tuple[str, ...]
    spec: type[Any]

    @abstractmethod
    def profile(self, name: str, op: str, version: int) -> Iterable[Spec]:
        """Return the distinct cases of a profile, in a fixed order; as an iterator if creating them is slow.

        Profiles are ``smoke``, ``core``, ``full`` and ``quantized``, which may be empty.
        """

    @abstractmethod
    def build(self, spec: Any) -> Case:
        """Return the models and inputs of a case; the same bytes every time."""

    @abstractmethod
    def features(self, spec: Any) -> frozenset[str]:
        """Return features that a case contains, as named in clause tables and files of expected failures."""

    @abstractmethod
    def all_features(self, op: str, version: int) -> frozenset[str]:
        """Return every feature that a case of an operator version can have."""

    @abstractmethod
    def content(self, spec: Any) -> Iterator[bytes]:
        """Yield every byte of a case: this defines "the same case"."""

    @abstractmethod
    def node_features(self, node: Node, inputs: Mapping[str, NDArray[Any]]) -> frozenset[str]:
        """Return features that a node contains with its inputs; the model may be a third-party one. Raise
        IllegalNode."""

    def violations(self, op: str, version: int) -> Sequence[Violation]:
        """Return the ways in which a model can be invalid."""
        return ()

    def random_case(
        self, op: str, key: str, version: int | None = None, type: str | None = None, supported: Supported = NOTHING
    ) -> Any | None:
        """Return the legal case that a key draws, the same one everywhere; None if the draw is not a case.

        version, type
            Version and type of the case; by default they are drawn.
        supported
            Values that fields may have, as returned by :meth:`without`.

        The default implementation combines fields of cases of the profile.
        """
        random = Random(f"{op}/{version}/{type}/{key}")
        versions = [version] if version is not None else list(versions_of(op))
        candidates = [
            spec
            for spec in self.profile("core", op, random.choice(versions))
            if not spec.illegal and type in (None, spec.type)
        ]
        if not candidates:
            return None
        first: Any = random.choice(candidates)
        names = [field.name for field in fields(first)]
        crossed = self.crossed(first, random.choice(candidates), random.sample(names, random.randint(0, len(names))))
        return replace(crossed, seed=random.randrange(1 << 16)) if "seed" in names and crossed is not None else crossed

    def without(self, op: str, lacks: Collection[str]) -> Supported:
        """Return the values that fields may have if a target lacks some traits, as far as :meth:`random_case` uses
        them.

        Raise ValueError where nothing is left.
        """
        return NOTHING

    def other_sizes(self, spec: Any, number: int) -> dict[str, int]:
        """Return the sizes of a case at which a fault that explains another case is tried; another number gives other
        sizes. A size of 0 is the subject of a case, so it stays."""
        sizes = {name: getattr(spec, name, 0) for name in SIZES}
        return {n: max(size, _LARGER[n]) + _MORE[n][number % 5] for n, size in sizes.items() if size > 0}

    def richer(self, spec: Any) -> Sequence[Mapping[str, Any]]:
        """Return changes of fields that add one thing at a time to a valid case.

        They distinguish faults that explain a small case equally well. Building the case shows whether the document
        allows it.
        """
        return ()

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Return (field, changes) pairs that simplify a case, for :func:`simpler_cases`; by default each field's
        default."""
        values = ((field, getattr(spec, field.name)) for field in fields(spec) if field.name != "illegal")
        return ((field.name, {field.name: field.default}) for field, value in values if value != field.default)

    def goes_together(self, spec: Any) -> bool:
        """Return False if a simpler spec describes the same case."""
        return True

    def crossed(self, spec: Any, other: Any, names: Collection[str]) -> Any | None:
        """Return a case with some fields of another one of the same operator version; None if that is impossible."""
        try:
            return replace(spec, **{name: getattr(other, name) for name in names})
        except (ValueError, TypeError):
            return None

    def cases(self, op: str, version: int, bounds: Bounds) -> Any:
        """Return a Hypothesis strategy of valid cases; see :func:`..strategies.cases`.

        Raise ValueError if there is none, and for bounds that leave nothing.
        """
        raise ValueError(f"there is no strategy for cases of {op}")

    def levels(self, op: str, version: int) -> Sequence[Level]:
        """Return the conformance levels of an operator version for certificates, narrowest first, each within the
        next."""
        return (Level("complete", "everything that the suite tries", lambda spec: True),)

    def challenge(self, op: str, version: int, type: str, nonce: str) -> Sequence[Any]:
        """Return fresh cases of every level, as many of each as a certificate requires; the same nonce gives the same
        cases."""
        drawn = (self.random_case(op, f"challenge/{nonce}/{index}", version, type) for index in range(_DRAWS))
        fresh = dict.fromkeys(spec for spec in drawn if spec is not None)
        chosen = (islice(filter(level.holds, fresh), FRESH_CASES) for level in self.levels(op, version))
        return tuple(dict.fromkeys(chain.from_iterable(chosen)))


_FAMILIES: dict[str, Family] = {}
_AWAITED: dict[str, Callable[[], object]] = {}

FRESH_CASES = 64
"""Fresh cases of a nonce that must pass in each row of a certificate for it to reach a level."""

_DRAWS = 20 * FRESH_CASES


def register(family: F) -> F:
    """Register the cases of operators. Raise UnknownOperator for an operator that does not exist."""
    for op in family.operators:
        versions_of(op)
        _FAMILIES[op] = family
        _AWAITED.pop(op, None)
    tell_words(getattr(family.spec, "axes", ()))
    return family


def await_family(op: str, load: Callable[[], object]) -> None:
    """Make it known that an operator has cases. `load` registers its family when that is first asked for."""
    _AWAITED[op] = load


def forget(op: str) -> None:
    """Unregister the cases of an operator."""
    _FAMILIES.pop(op, None)


def family_of(op: str) -> Family:
    """Return the family of an operator. Raise KeyError for an operator without cases."""
    if op in _AWAITED:
        _AWAITED[op]()
    return _FAMILIES[op]


def drawn_operators() -> tuple[str, ...]:
    """Return the operators whose families draw random cases themselves; `--random` and filling use these."""
    families = {op: family_of(op) for op in (*_FAMILIES, *_AWAITED)}
    return tuple(op for op, family in families.items() if type(family).random_case is not Family.random_case)


def operator_versions(domain: str | None = "") -> Iterator[tuple[str, int]]:
    """Return every (operator, since_version) of a domain that has cases; None: of all domains."""
    for op in operator_names(domain):
        if op in _FAMILIES or op in _AWAITED:
            for version in versions_of(op):
                yield op, version


@dataclass(frozen=True)
class Simpler:
    """A case with one simplification.

    field
        Name of the simplified field of the spec.
    """

    field: str
    spec: Any


def simpler_cases(spec: Any, only: str | None = None) -> list[Simpler]:
    """Return all cases that are simpler by one change; for each field, the greatest simplification comes first.

    Building a case shows whether the document allows it. Every field of a spec has the simplest value as its default.

    only
        The only field that may be changed.
    """
    family = family_of(spec.op)
    by_case: dict[Any, Simpler] = {}
    for name, changes in family.simpler(spec):
        if only not in (None, name):
            continue
        changed = _made(spec, changes)
        if changed is not None and changed != spec and changed not in by_case and family.goes_together(changed):
            by_case[changed] = Simpler(name, changed)
    return list(by_case.values())


def _made(spec: Any, changes: Mapping[str, Any]) -> Any | None:
    """Return the spec with other fields; None if its operator version has no such value."""
    try:
        return replace(spec, **changes)
    except ValueError:
        return None


def is_spec(value: object) -> TypeGuard[Spec]:
    """Return whether a value is a case of any operator."""
    return callable(getattr(value, "to_json", None))


def build_case(spec: Spec) -> Case:
    """Return the models and inputs of a case; the same bytes every time."""
    return family_of(spec.op).build(spec)


def features_of(spec: Spec) -> frozenset[str]:
    """Return the features of a case, as clause tables name them under ``needs``.

    An invalid model has only the feature of its violation, because nothing else is tested.
    """
    return family_of(spec.op).features(spec)


def clauses_exercised(spec: Spec) -> list[Clause]:
    """Return the clauses that a case exercises."""
    return clauses_of(spec.op, spec.version, features_of(spec))


def group_of(spec: Spec) -> list[str]:
    """Return the report columns to which a case belongs."""
    return groups_with(features_of(spec))
