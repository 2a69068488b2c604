"""The protocol of operators, and their registry.

An operator is one folder here: its document (versions and clause table), its equations, its faults. :func:`register`
makes it known. The rest of the package uses this protocol and never asks for the name of an operator. The cases of an
operator are a folder of ``onnxspec.cases.operators``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..documents.operators import Document, declare, document_of, forget
from ..numbers.accuracy import ACCURACY_CLASSES, AccuracyClass, budget
from ..recurrent.node import Diagnostic, Node, StatedSize, Steps, Written, output_type

if TYPE_CHECKING:
    from ..faults.computing import Computable, Computed, Known
    from ..faults.fault import Fault
    from ..numbers.affine import Affine
    from ..numbers.bounded import Bounded
    from ..recurrent.agreement import Expected, SpecialValueMismatch
    from ..recurrent.configuration import Configuration
    from ..recurrent.expectation import Expectation

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Outputs = dict[str, Array]


Resolved: TypeAlias = "Configuration | Computed"
"""A node with its inputs, sizes and attributes resolved."""


def dtype_of(node: Node, resolved: Resolved, output: str) -> np.dtype[Any]:
    """Return the dtype of an output: the type of all tensors, or the codec's if the output is quantized."""
    codec = node.codecs.get(output)
    return output_type(resolved, output) if codec is None else codec.dtype


class Classes(Struct, frozen=True):
    """Names of the accuracy classes by which a target is judged.

    right
        A target may compute in any of these; they are tried in order.
    wider
        A result within one of these only is inaccurate, not wrong.
    telling
        Whether a wider class counts only if its bounds are below 1 % of every element.
    """

    right: tuple[str, ...]
    wider: tuple[str, ...] = ()
    telling: bool = False


class Conforming(Struct, frozen=True):
    """A conforming implementation with the roundings of real ones. The suite must never accuse it.

    run
        Function from a node and its inputs to the outputs.
    accuracy
        Name of the accuracy class that it declares.
    """

    run: Callable[[Node, Arrays], Arrays]
    accuracy: str = "standard"


class Evidence(Struct, frozen=True):
    """Minimum evidence, in bits, to name a fault (:class:`..faults.observation.Fit`).

    new
        For any fault: many are tried, and some match a small case by chance.
    known
        For a fault that another case has shown.
    placed
        Extra for a fault in one scope: there are several times as many.
    """

    new: float = 16.0
    known: float = 4.0
    placed: float = 0.0


class Operator(ABC):
    """One operator. The methods that are not abstract have defaults that fit most operators.

    document
        Versions and clause table.
    conforming
        Conforming implementations by name.
    evidence
        Minimum evidence for one of its faults.
    scans
        Whether nodes are scans around a cell. Faults of other nodes are tried by :meth:`expect`.
    takes_levels
        Whether the operator itself quantizes its float inputs.
    topics
        For each output, the topic of the clause that defines it; the default is ``equations``.
    """

    document: Document
    conforming: Mapping[str, Conforming] = {}
    evidence: Evidence = Evidence()
    scans: bool = False
    takes_levels: bool = False
    topics: Mapping[str, str] = {}

    @abstractmethod
    def resolve(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Resolved:
        """Resolve a node with its inputs. Raise IllegalNode, with the clause, if the document forbids the node."""

    def computation(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Computable:
        """Return the computation of a node, which faults change (:class:`..faults.computing.Computed`).

        By default this is the resolved node. Raise IllegalNode.
        """
        computation: Any = self.resolve(node, inputs, interpretations)
        return computation  # type: ignore[no-any-return]

    def expect(
        self,
        node: Node,
        inputs: Arrays,
        observed: Arrays,
        accuracy: str = "standard",
        interpretations: Interpretations | None = None,
        faults: Sequence[Fault] = (),
    ) -> list[Expectation]:
        """Return the values that the outputs must have.

        Each step starts from the state that the target reported, or from the computed one if it reported none.

        observed
            The target's outputs by name.
        accuracy
            Name of an accuracy class, or of one of the operator's own arithmetics.
        faults
            Expect the outputs of an implementation with these faults.

        Raise IllegalNode; ValueError for an unknown class.
        """
        from ..faults.computing import Computed, predicted, require_forms
        from ..numbers.bounded import Bounded
        from ..recurrent.expectation import Expectation, too_wide

        computation = self.computation(node, inputs, interpretations)
        allowed = budget("standard", computation.format.name)
        with np.errstate(all="ignore"):
            if not faults:
                numbers = computation.bounded(accuracy, observed)
                if isinstance(computation, Computed):
                    require_forms(computation, numbers, node)
            else:
                values, radii = predicted(
                    computation, self.together(faults), lambda c: c.bounded(accuracy, observed), ({}, {}),
                    observed=observed, fed=inputs, attributes=node.attributes,
                )  # fmt: skip
                numbers = {n: Bounded(v, radii[n], allowed, doubt=~np.isfinite(radii[n])) for n, v in values.items()}
        # An output that a fault leaves out has no value.
        nothing = Bounded(np.full((), np.nan), np.zeros(()), allowed)
        clauses = {name: f"{self.document.prefix}.{self.topics.get(name, 'equations')}" for name in node.outputs}
        return [
            Expectation(name, numbers[name], clause, weak=too_wide(numbers[name]))
            if name in numbers
            else Expectation(name, nothing, clause)
            for name, clause in clauses.items()
        ]

    def expecting_each(self, node: Node, inputs: Arrays, several: Sequence[Arrays]) -> Sequence[Expected]:
        """Return, for each of several runs on the same inputs, a function like :meth:`expect` of accuracy classes and
        interpretations.

        several
            The outputs of each run by name. An operator may evaluate them in one batch.
        """
        from ..recurrent.agreement import Expected

        return [Expected(partial(self.expect, node, inputs, observed), observed) for observed in several]

    def together(self, faults: Sequence[Fault]) -> Sequence[Fault]:
        """Return the faults in the order in which they are applied, the innermost first."""
        return faults

    def answer(
        self,
        node: Node,
        inputs: Arrays,
        faults: Sequence[Fault] = (),
        interpretations: Interpretations | None = None,
        *,
        fed: Arrays | None = None,
        memory: dict[str, Any] | None = None,
    ) -> Outputs:
        """Return the outputs of the node, in its type, as an implementation with these faults computes them.

        fed
            The caller's arrays, which a fault may change.
        memory
            State that the implementation keeps between the runs of a session; pass the same dictionary to each run.
        """
        from ..faults.computing import answered

        computation = self.computation(node, inputs, interpretations)
        handed = inputs if fed is None else fed
        return answered(computation, self.together(faults), node, fed=handed, memory=memory)

    def answering(self, node: Node, inputs: Arrays) -> Callable[..., Outputs]:
        """Return a function like :meth:`answer` of faults, `fed` and `memory`, for these inputs.

        The function shares common computations between the implementations; call it without faults first.
        """
        from ..faults.computing import answered

        computation = self.computation(node, inputs)
        known: Known = []

        def answer(faults: Sequence[Fault] = (), *, fed: Arrays, memory: dict[str, Any] | None = None) -> Outputs:
            return answered(computation, self.together(faults), node, fed=fed, memory=memory, known=known)

        return answer

    def evaluate(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Outputs:
        """Return the outputs of the node, in float64 and the node's layout."""
        with np.errstate(all="ignore"):
            outputs = self.computation(node, inputs, interpretations).plain()
        return {name: outputs[name] for name in node.outputs}

    def evaluate_in_order(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Outputs:
        """Return outputs like :meth:`evaluate`'s that are bit-equal on every machine, for files. Override this if the
        values of :meth:`evaluate` depend on the machine."""
        return self.evaluate(node, inputs, interpretations)

    def steps(
        self, node: Node, inputs: Arrays, reported: Array | None = None, interpretations: Interpretations | None = None
    ) -> tuple[Steps, ...]:
        """Return the intermediate values of every step (gates, states, levels), by direction; an empty tuple for an
        operator without steps.

        reported
            The Y that a target reported; each step then starts from its states.
        """
        return ()

    def bounds(
        self,
        node: Node,
        inputs: Arrays,
        arithmetic: Any,
        interpretations: Interpretations | None = None,
        states: Bounded | None = None,
    ) -> dict[str, Bounded]:
        """Return all outputs with bounds, in the node's layout, to judge a node between DequantizeLinear and
        QuantizeLinear.

        states
            Y (T, D, N, H) with bounds, from which each step starts; default: the computed states.

        Raise NotImplementedError if the operator is not judged there.
        """
        raise NotImplementedError(f"{node.operator.name} is not judged between DequantizeLinear and QuantizeLinear")

    def open_questions(self, node: Node, inputs: Arrays) -> frozenset[str]:
        """Return the names of the open questions on which a node's results depend. Raise IllegalNode."""
        return frozenset()

    @property
    def joint_questions(self) -> frozenset[str]:
        """Names of open questions that must be answered jointly, because an answer to one can look like an answer to
        another."""
        return frozenset()

    def meaning(self, node: Node, inputs: Arrays, interpretations: Interpretations) -> Hashable:
        """Return a key that is equal for interpretations that are equivalent for this node. Raise IllegalNode."""
        return interpretations

    def classes(self, accuracy: str, type: str) -> Classes:
        """Return the accuracy classes by which a target that declares `accuracy` is judged."""
        return Classes((accuracy,))

    def roundings(self, arithmetic: str) -> AccuracyClass | None:
        """Return the accuracy class with the roundings of an arithmetic, or None."""
        return ACCURACY_CLASSES.get(arithmetic)

    def remarks(self, interpretations: Mapping[str, str]) -> tuple[str, ...]:
        """Return flags of a result by these interpretations; they do not affect the verdict."""
        return ()

    def requantizing(self, codec: Affine, style: str) -> Callable[[Node, Arrays], Arrays] | None:
        """Return a conforming implementation that carries its state as quantized levels, or None."""
        return None

    def special_mismatches(
        self, node: Node, inputs: Arrays, observed: Arrays, interpretations: Interpretations
    ) -> Sequence[SpecialValueMismatch]:
        """Return the elements that must be NaN and are numbers. They do not affect the verdict."""
        return ()

    def diagnostics(self, written: Written) -> Iterator[Diagnostic]:
        """Yield violations by the values of a node's attributes. Their names and kinds are checked elsewhere."""
        yield from ()

    def topic_of_kind(self, attribute: str, kind: str) -> str:
        """Return the topic of the clause that an attribute of the wrong kind violates."""
        return "attributes"

    def stated_sizes(self, written: Written) -> Mapping[str, StatedSize]:
        """Return sizes, by name, that attributes state."""
        return {}

    def registered(self) -> None:  # noqa: B027 - most operators have nothing to do then
        """Run a hook after registration."""

    def in_mutation_test(self, fault: Fault, node: Node, inputs: Arrays) -> bool:
        """Return whether `prove` tries a fault on a case; False saves expensive cases that show nothing new."""
        return True


OPERATORS: dict[tuple[str, str], Operator] = {}
"""Registered operators by (domain, op_type)."""


def register(operator: Operator) -> Operator:
    """Register an operator. Raise ValueError if its name is taken."""
    declare(operator.document)
    OPERATORS[operator.document.key] = operator
    operator.registered()
    return operator


def forget_operator(op_type: str) -> None:
    """Unregister an operator and its faults, before it was used. Raise UnknownOperator."""
    from ..faults.fault import FAULTS

    document = document_of(op_type)
    for fault in [fault for fault in FAULTS.values() if fault.operators == (op_type,)]:
        del FAULTS[fault.id]
    OPERATORS.pop(document.key, None)
    forget(op_type)


def operator_of(op_type: str, domain: str = "") -> Operator:
    """Return the operator of that name; the domain is optional if the name is unique. Raise UnknownOperator."""
    return OPERATORS[document_of(op_type, domain).key]
