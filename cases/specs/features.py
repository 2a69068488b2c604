"""Features: properties of a case, by which clauses select their cases and reports group them.

One of them is a violation: invalid models are valid ones with one violation, which a runtime must refuse.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, cached_property, lru_cache
from math import isfinite
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...reference import Configuration, IllegalNode, Node, configure, operator_of, operator_version, resolve
from ...reference.documents.clauses import ILLEGAL
from ..axes.axis import Axis, features_in
from ..axes.violation import Draft, Violation
from .model import inputs_of
from .spec import RECURRENT_AXES, CaseSpec, RecurrentSpec

# Clauses that a model can violate: <op>.<topic> is violated by a model with the feature illegal:<topic>.
# No case has too many entries of activation_beta, because it is read like activation_alpha.
ILLEGAL_TOPICS: tuple[str, ...] = tuple(
    sorted({"activation-beta", *(violation.topic for axis in RECURRENT_AXES for violation in axis.forbidden)})
)


class Magnitudes(Struct, frozen=True):
    """Magnitudes of a node's numbers, without lengths.

    finite, infinite
        Whether all are finite, and whether one is infinite.
    largest
        The largest finite magnitude of each tensor.
    least
        The least magnitude of each non-empty tensor; NaN if it contains NaN.
    """

    finite: bool
    infinite: bool
    largest: Mapping[str, float]
    least: Mapping[str, float]


class Observed(Struct, frozen=True, dict=True):
    """Legal node with its inputs by formal name, and its configuration."""

    node: Node
    inputs: Mapping[str, NDArray[Any]]
    configuration: Configuration

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes of the node."""
        return self.node.attributes

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of the functions that it uses."""
        return frozenset(function.name for own in self.configuration.activations for function in own)

    @cached_property
    def magnitudes(self) -> Magnitudes:
        """The magnitudes of its numbers."""
        finite, infinite, largest, least = True, False, {}, {}
        for name, array in self.inputs.items():
            if name == "sequence_lens":
                continue
            numbers = np.abs(array.astype(np.float64))
            largest[name] = float(numbers.max(initial=0.0))
            if numbers.size:
                least[name] = float(numbers.min())
            if not isfinite(largest[name]):
                finite, infinite = False, infinite or bool(np.isinf(numbers).any())
                largest[name] = float(numbers.max(initial=0.0, where=np.isfinite(numbers)))
        return Magnitudes(finite, infinite, largest, least)


@lru_cache(maxsize=4096)
def recurrent_features(spec: CaseSpec) -> frozenset[str]:
    """Return the features of a case, as clause tables name them under ``needs``.

    An invalid model has only the feature of its violation, because nothing else is tested.
    """
    if spec.illegal:
        return frozenset({"illegal", f"{ILLEGAL}{spec.illegal.partition('.')[0]}"})
    return node_features(spec.node, inputs_of(spec), spec.axes) | case_features(spec)


def case_features(spec: Any) -> frozenset[str]:
    """Return the features of a case that follow from its fields."""
    return frozenset(f.name for f in features_in(spec.axes) if f.case is not None and f.case(spec))


def model_features(initializers: bool, symbolic: bool, rerun: bool) -> frozenset[str]:
    """Return the features of a model and its use: weights as constants, dimensions with names, more than one run."""
    present = {"initializers": initializers, "symbolic": symbolic, "rerun": rerun}
    return frozenset(name for name, is_present in present.items() if is_present)


def node_features(
    node: Node, inputs: Mapping[str, NDArray[Any]], axes: Sequence[Axis] = RECURRENT_AXES
) -> frozenset[str]:
    """Return the features of a node with its inputs (by formal name), by its operator's axes. Raise IllegalNode."""
    resolved: Any = operator_of(node.op_type, node.domain).resolve(node, inputs)
    observed = Observed(node, inputs, resolved)
    return frozenset(name for name, is_present in tested(observed, axes).items() if is_present)


@cache
def all_features(op: str, version: int, kind: Any = CaseSpec) -> frozenset[str]:
    """Return every feature that a case of this operator version can have, and those of its invalid models.

    kind
        The class of its cases.
    """
    spec = kind(op, version, outputs=tuple(operator_version(op, version).outputs))
    possible = tested(Observed(spec.node, inputs_of(spec), configure(spec.node, inputs_of(spec))), kind.axes)
    used = (feature.name for feature in features_in(kind.axes) if feature.case is not None)
    return frozenset({*possible, *used, "illegal", *(f"{ILLEGAL}{topic}" for topic in ILLEGAL_TOPICS)})


def tested(observed: Observed, axes: Sequence[Axis]) -> dict[str, bool]:
    """Return every feature of nodes of an operator version, and whether this node has it."""
    tests = ((f.name, f.node(observed)) for f in features_in(tuple(axes)) if f.node is not None)
    return {name: is_present for name, is_present in tests if is_present is not None}


WORDS: dict[str, str] = {"illegal": "forbidden models"}
"""Noun phrase of each feature, for all readers."""


# The traditional order of columns in reports; others follow.
_FIRST = (
    *("forward", "reverse", "bidirectional", "lengths", "bias", "initial-state", "peepholes", "activations", "clip"),
    *("input-forget", "linear-before-reset", "layout1", "Y-absent", "rerun", "nonfinite", "numerics", "exact"),
)

GROUPS: dict[str, str] = {}
"""Columns of reports: a feature and its heading. A case belongs to each of its features' columns."""


def tell_words(axes: Iterable[Axis]) -> None:
    """Register the words and columns of the axes of an operator."""
    for feature in features_in(tuple(axes)):
        if feature.words:
            WORDS.setdefault(feature.name, feature.words)
        if feature.column:
            GROUPS.setdefault(feature.name, WORDS[feature.name])


tell_words(RECURRENT_AXES)
GROUPS = {feature: WORDS[feature] for feature in (*_FIRST, *(c for c in GROUPS if c not in _FIRST), "illegal")}


def groups_with(features: Set[str]) -> list[str]:
    """Return the report columns of these features."""
    return [title for feature, title in GROUPS.items() if feature in features]


Array = NDArray[Any]


@cache
def all_violations(kind: Any = CaseSpec) -> Mapping[str, Violation]:
    """Return violations by id: all violations of the axes of a class of cases, and of axes that its operators lack."""
    forbidden = (violation for axis in (*kind.axes, *kind.lacking) for violation in axis.forbidden)
    return MappingProxyType({violation.id: violation for violation in forbidden})


def violations_of(op: str, version: int, kind: Any = CaseSpec) -> list[Violation]:
    """Return the violations that an operator version can have."""
    operator = operator_version(op, version)
    return [violation for violation in all_violations(kind).values() if violation.applies(operator)]


def violation_of(spec: RecurrentSpec) -> Violation | None:
    """Return the violation of a case; None for a valid one. Raise KeyError for an unknown one."""
    kind: Any = type(spec)
    return all_violations(kind)[spec.illegal] if spec.illegal else None


@cache
def inherited_violations(op: str, version: int, kind: Any) -> tuple[Violation, ...]:
    """Return violations of the document of an operator with its own cases, by the clause of their topic."""
    return tuple(violation for violation in violations_of(op, version, kind) if _breaks(op, version, violation, kind))


def _breaks(op: str, version: int, violation: Violation, kind: type[CaseSpec]) -> bool:
    try:
        node, inputs = break_case(_case(op, version, violation, kind))
        resolve(Node(op, version, node.attributes, node.outputs, node.domain), inputs)
    except IllegalNode as error:
        return error.clause == violation.clause(op)
    except (ValueError, KeyError, IndexError, TypeError):
        pass
    return violation.open


def illegal_cases(op: str, version: int, kind: Any = CaseSpec) -> Iterator[CaseSpec]:
    """Yield an invalid model for each violation of an operator version; `kind` is the class of its cases."""
    there = violations_of(op, version) if kind is CaseSpec else inherited_violations(op, version, kind)
    return (_case(op, version, violation, kind) for violation in there)


def _case(op: str, version: int, violation: Violation, kind: type[CaseSpec]) -> CaseSpec:
    operator = operator_version(op, version)
    plain: dict[str, Any] = {"weights": "initializer", "outputs": operator.outputs, "T": 4, "N": 3, "I": 2, "H": 5}
    if "output_sequence" in operator.attributes:
        plain["output_sequence"] = 1
    return kind(op, version, illegal=violation.id, **{**plain, **violation.base})


def break_case(spec: CaseSpec) -> tuple[Node, Mapping[str, Array]]:
    """Return the node and inputs of a case with its violation.

    The node is unchecked. Inputs are by formal name, in the operator's order; inputs that the operator does not have
    come last. A legal case is returned unchanged.
    """
    violation, node, inputs = violation_of(spec), spec.node, inputs_of(spec)
    if violation is None:
        return node, inputs
    ordered = {name: inputs[name] for name in node.operator.inputs if name in inputs}
    return commit(violation, node, ordered, spec.H)


def commit(
    violation: Violation, node: Node, inputs: Mapping[str, Array], hidden_size: int = 0
) -> tuple[Node, Mapping[str, Array]]:
    """Return a node and its inputs with a violation. Raise KeyError or IndexError where it cannot be made."""
    draft = Draft(node.operator, hidden_size, dict(node.attributes), dict(inputs), list(node.outputs))
    violation.change(draft)
    for array in draft.inputs.values():
        array.setflags(write=False)
    broken = copy.copy(node)  # bypasses the checks of the constructor
    object.__setattr__(broken, "attributes", MappingProxyType(draft.attributes))
    object.__setattr__(broken, "outputs", tuple(draft.outputs))
    return broken, MappingProxyType(draft.inputs)
