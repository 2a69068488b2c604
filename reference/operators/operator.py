"""Operators: all that is judged, behind one protocol. They differ in what they say, not in how they are handled.

An operator is one folder here: its document (versions and clause table), its numbers, its faults. :func:`register`
makes it known; all else in the package asks an operator for what it needs and never which one it is. Its cases are a
folder of ``onnxspec.cases.operators``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..documents.operators import Document, declare, document_of, forget
from ..faults.computing import Answering, Computable, answered, expected, left_alone, output_type
from ..faults.fault import FAULTS, Fault
from ..faults.hypothesis import Run
from ..numbers.accuracy import ACCURACY_CLASSES, AccuracyClass, budget
from ..numbers.affine import Affine
from ..numbers.bounded import Bounded
from ..numbers.formats import Format
from ..recurrent.agreement import Expected
from ..recurrent.expectation import Expectation, too_wide
from ..recurrent.gates import Steps
from ..recurrent.node import Node
from ..recurrent.special import Departure
from .observation import Observation, Predicted
from .written import Diagnostic, Said, Written

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Outputs = dict[str, Array]


class Resolved(Protocol):
    """A node with its inputs, everything resolved.

    format
        Of the tensors.
    directions
        ``forward`` and ``reverse``, in the order of Y's axis.
    T, N, I, H
        seq_length, batch_size, input_size, hidden_size.
    layout
        1 where the batch comes before the sequence.
    lengths
        (N,), every row's number of steps; ``ragged`` where some have fewer than T.
    states
        The outputs beside Y, in the order in which they are computed.
    """

    @property
    def format(self) -> Format: ...
    @property
    def directions(self) -> tuple[str, ...]: ...
    @property
    def T(self) -> int: ...
    @property
    def N(self) -> int: ...
    @property
    def I(self) -> int: ...  # noqa: E743 - the document's letter
    @property
    def H(self) -> int: ...
    @property
    def layout(self) -> int: ...
    @property
    def lengths(self) -> NDArray[np.int64]: ...
    @property
    def ragged(self) -> bool: ...
    @property
    def states(self) -> tuple[str, ...]: ...

    def shape_of(self, output: str) -> tuple[int, ...]:
        """The shape of an output, in the node's layout."""


class Returned(Protocol):
    """A run of a node: all its inputs by formal name, and what a target returned."""

    @property
    def inputs(self) -> Arrays: ...
    @property
    def outputs(self) -> Arrays: ...


def dtype_of(resolved: Resolved, output: str) -> np.dtype[Any]:
    """The type of an output's array: that of all tensors, but for outputs that are quantized."""
    codec = getattr(resolved, "codecs", {}).get(output)
    return output_type(resolved, output) if codec is None else codec.dtype


class Classes(Struct, frozen=True):
    """Names of the arithmetics by which a target is judged.

    right
        A target may compute in any of them; the first is tried first.
    wider
        What lies within one of these alone is inaccurate, not wrong.
    telling
        Whether that takes bounds of the wider one that say something of every element.
    widest
        The name of a class that holds all that one of the wider ones does, and so tells of many what does not. Empty
        where there is none.
    """

    right: tuple[str, ...]
    wider: tuple[str, ...] = ()
    telling: bool = False
    widest: str = ""


class Conforming(Struct, frozen=True):
    """A right implementation, with roundings that real ones have: none may ever be accused.

    run
        From a node and its inputs to its outputs.
    accuracy
        Name of the accuracy class in which it is right.
    """

    run: Callable[[Node, Arrays], Arrays]
    accuracy: str = "standard"


class Evidence(Struct, frozen=True):
    """Bits that must speak for a fault before it is believed (:class:`..faults.hypothesis.Fit`).

    new
        For one of all that there are: of many, some explain a small case by chance.
    known
        For one that another case has shown.
    placed
        More than for a new one, for one that is made in one place only: there are several times as many.
    """

    new: float = 16.0
    known: float = 4.0
    placed: float = 0.0


class Operator(ABC):
    """One operator. Numbers are what its document says; whatever is not abstract here fits most.

    document
        Its versions and its clause table.
    conforming
        Right implementations by name.
    evidence
        How much must speak for one of its faults.
    takes_levels
        Whether it quantizes what it is given by itself: then it is all one how numbers became what they are.
    topics
        By output the topic of the clause that says what it is, where that is not ``equations``.
    """

    document: Document
    conforming: Mapping[str, Conforming] = {}
    evidence: Evidence = Evidence()
    takes_levels: bool = False
    topics: Mapping[str, str] = {}

    @abstractmethod
    def resolve(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Resolved:
        """A node with its inputs. Raises IllegalNode, naming the clause, where the document does not allow it."""

    def computation(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Computable:
        """The computation of a node, and what faults change: the resolved node itself, where that is such a thing
        (:class:`..faults.computing.Computed`). Raises IllegalNode."""
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
        """Values that the outputs must have, each step from the state that the target reported before; without it a
        free run.

        observed
            The target's outputs by name.
        accuracy
            Name of an accuracy class, or one of the operator's own arithmetics.
        faults
            Those of an implementation of which this is expected.

        Raises IllegalNode; ValueError for a class that there is not.
        """
        computation = self.computation(node, inputs, interpretations)
        with np.errstate(all="ignore"):
            numbers = expected(computation, self.together(faults), node, accuracy, observed, inputs)
        # No number is what faults leave out.
        nothing = Bounded(np.full((), np.nan), np.zeros(()), budget("standard", computation.format.name))
        clauses = {name: f"{self.document.prefix}.{self.topics.get(name, 'equations')}" for name in node.outputs}
        return [
            Expectation(name, numbers[name], clause, weak=too_wide(numbers[name]))
            if name in numbers
            else Expectation(name, nothing, clause)
            for name, clause in clauses.items()
        ]

    def expect_behind(
        self, node: Node, inputs: Arrays, handed: Mapping[str, Bounded], accuracy: str, interpretations: Interpretations
    ) -> list[Expectation]:
        """Values that the outputs must have where another node hands some inputs over, which are known within bounds
        alone; none where nothing is said of that."""
        return []

    def expecting_each(self, node: Node, inputs: Arrays, several: Sequence[Arrays]) -> Sequence[Expected]:
        """:meth:`expect` of several runs on the same inputs, each to be asked with classes and interpretations.

        several
            Each run's outputs by name, those that there are. An operator may work out together what they must be.
        """
        return [Expected(partial(self.expect, node, inputs, observed), observed) for observed in several]

    def together(self, faults: Sequence[Fault]) -> Sequence[Fault]:
        """Faults in the order in which they are made, the innermost first."""
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
        """The outputs that the node asks for, of the node's type, as an implementation with these faults returns them.

        fed
            The arrays that the caller hands over, which a fault may change.
        memory
            What the implementation keeps from one run of a session to the next: the same dictionary for each.
        """
        computation = self.computation(node, inputs, interpretations)
        handed = inputs if fed is None else fed
        return answered(computation, self.together(faults), node, fed=handed, memory=memory)

    def answering(self, node: Node, inputs: Arrays) -> Callable[..., Outputs]:
        """:meth:`answer` to the same inputs of one implementation after the other, the one without faults first: asked
        with faults, `fed` and `memory`. What several of them compute is worked out once, as far as that is known."""
        return Answering(self.computation(node, inputs), node, self.together)

    def leaves(self, node: Node, inputs: Arrays, faults: Sequence[Fault], memory: dict[str, Any]) -> bool:
        """Tell whether it is seen without its numbers that an implementation with these faults answers what is right:
        see :meth:`answer`. False where nobody knows."""
        computation = self.computation(node, inputs)
        return left_alone(computation, self.together(faults), node, fed=inputs, memory=memory)

    def evaluate(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Outputs:
        """The outputs that the node asks for, in float64 and the node's layout."""
        with np.errstate(all="ignore"):
            outputs = self.computation(node, inputs, interpretations).plain()
        return {name: outputs[name] for name in node.outputs}

    def evaluate_in_order(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Outputs:
        """The same, down to the last digit on every machine: what is written into files. An operator says what it does
        for that where its values are not so by themselves."""
        return self.evaluate(node, inputs, interpretations)

    def steps(
        self, node: Node, inputs: Arrays, reported: Array | None = None, interpretations: Interpretations | None = None
    ) -> tuple[Steps, ...]:
        """Values that a reader is shown of every step, direction by direction: gates, states, levels. None for an
        operator without steps.

        reported
            The Y that a target reported, from whose states each step starts.
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
        """All outputs in an arithmetic with bounds, in the node's layout: what a node between DequantizeLinear and
        QuantizeLinear is judged by.

        states
            What is known of every Y, (T, D, N, H); without it a free run.

        Raises NotImplementedError for an operator that nobody puts there.
        """
        raise NotImplementedError(f"{node.operator.name} is not judged between DequantizeLinear and QuantizeLinear")

    def touched(self, node: Node, inputs: Arrays) -> frozenset[str]:
        """Names of the interpretations on which a node's results depend. Raises IllegalNode."""
        return frozenset()

    @property
    def entangled(self) -> frozenset[str]:
        """Questions of which one answer may look like another one beside another answer to a second: they are answered
        together."""
        return frozenset()

    def meaning(self, node: Node, inputs: Arrays, interpretations: Interpretations) -> Hashable:
        """A value that interpretations have in common where they come to the same of this node. Raises IllegalNode."""
        return interpretations

    def classes(self, accuracy: str, type: str) -> Classes:
        """Arithmetics by which a target that declares an accuracy class is judged."""
        return Classes((accuracy,))

    def roundings(self, arithmetic: str) -> AccuracyClass | None:
        """The accuracy class whose roundings an arithmetic has; None for one of which no class says them."""
        return ACCURACY_CLASSES.get(arithmetic)

    def observation(self, node: Node, runs: tuple[Run, ...], accuracy: str) -> Observation:
        """The outputs of a target in one case, to try faults on. Raises IllegalNode."""

        def form(inputs: Arrays, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
            resolved = self.resolve(node, inputs)
            return resolved.shape_of(name), dtype_of(resolved, name)

        return Predicted(self.expect, self.answer, form, node, runs, accuracy)

    def remarks(self, node: Node, runs: Sequence[Returned], interpretations: Mapping[str, str]) -> tuple[str, ...]:
        """Flags of a result: what is worth knowing of what was returned, right or wrong."""
        return ()

    def requantizing(self, codec: Affine, style: str) -> Callable[[Node, Arrays], Arrays] | None:
        """A conforming implementation that hands its state on as levels; None for an operator of which there is
        none."""
        return None

    def departures(
        self, node: Node, inputs: Arrays, observed: Arrays, accuracy: str, interpretations: Interpretations
    ) -> Sequence[Departure]:
        """Departures where outputs are not what the equations give of NaN and beyond a formula's range, which fails
        nobody."""
        return ()

    def diagnostics(self, written: Written) -> Iterator[Diagnostic]:
        """The breaches of a node's attributes, as far as a look at the model tells. That each is one of the
        document's, and of its kind, is looked at anyhow."""
        yield from ()

    def topic_of_kind(self, attribute: str, kind: str) -> str:
        """The topic of the clause that an attribute of another kind than its own breaks."""
        return "attributes"

    def sizes_said(self, written: Written) -> Mapping[str, Said]:
        """The sizes, by name, that something else than a shape says."""
        return {}

    def registered(self) -> None:  # noqa: B027 - most operators have nothing to do then
        """Called once the operator is known."""

    def worthwhile(self, fault: Fault, node: Node, inputs: Arrays) -> bool:
        """Tell whether a proof tries a fault on a case: of what costs much and shows nothing that others do not, no."""
        return True


OPERATORS: dict[tuple[str, str], Operator] = {}
"""Every operator that is judged, by (domain, op_type)."""


def register(operator: Operator) -> Operator:
    """Make an operator known. Raises ValueError where another one has its name."""
    declare(operator.document)
    OPERATORS[operator.document.key] = operator
    operator.registered()
    return operator


def forget_operator(op_type: str) -> None:
    """Make an operator unknown again, with its faults: one with which nothing was done. Raises UnknownOperator."""
    document = document_of(op_type)
    for fault in [fault for fault in FAULTS.values() if fault.operators == (op_type,)]:
        del FAULTS[fault.id]
    OPERATORS.pop(document.key, None)
    forget(op_type)


def operator_of(op_type: str, domain: str = "") -> Operator:
    """The operator of that name, whether or not its domain is named. Raises UnknownOperator."""
    return OPERATORS[document_of(op_type, domain).key]
