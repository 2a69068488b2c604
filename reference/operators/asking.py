"""Functions of a node that call the methods of its operator, and how far a fault moves its outputs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import USUAL, Interpretations
from ..recurrent.node import Node
from .operator import Operator, Resolved, dtype_of, operator_of

if TYPE_CHECKING:
    from ..faults.fault import Fault
    from ..recurrent.expectation import Expectation

Array = NDArray[Any]
Arrays = Mapping[str, Array]


def operator_for(node: Node) -> Operator:
    """Return the operator of a node, including the DequantizeLinear and QuantizeLinear nodes around it, if any."""
    operator = operator_of(node.op_type, node.domain)
    if not node.codecs:
        return operator
    from .quantized import quantized

    return quantized(operator)


def resolve(node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Resolved:
    """Resolve a node with its inputs by formal name (absent ones missing or None).

    Raise IllegalNode, with the clause, if the operator's document forbids them.
    """
    return operator_for(node).resolve(node, inputs, interpretations)


def open_questions_of(node: Node, inputs: Arrays) -> frozenset[str]:
    """Return the names of the open questions on which a node's results depend. Raise IllegalNode."""
    return operator_for(node).open_questions(node, inputs)


def readings(
    asked: Iterable[tuple[Node, Arrays]], open_questions: Iterable[str], usual: Interpretations = USUAL
) -> Iterator[Interpretations]:
    """Yield `usual` and then each other combination of options of the named questions, without combinations that are
    equivalent for all these nodes and inputs."""
    asked = [*asked]
    known: set[tuple[Hashable, ...]] = set()
    for interpretations in usual.alternatives(open_questions):
        meaning = tuple(operator_for(node).meaning(node, inputs, interpretations) for node, inputs in asked)
        if meaning not in known:
            known.add(meaning)
            yield interpretations


def expect(
    node: Node,
    inputs: Arrays,
    observed: Arrays,
    accuracy: str = "standard",
    interpretations: Interpretations | None = None,
) -> list[Expectation]:
    """Return the values that the outputs of `node` must have for these inputs.

    observed
        The target's outputs by name. If Y is among them with the right shape, each step starts from its states.
    accuracy
        Name of an accuracy class.

    Raise IllegalNode if the document forbids the node, ValueError for an unknown class.
    """
    return operator_for(node).expect(node, inputs, observed, accuracy, interpretations)


def evaluate(node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> dict[str, Array]:
    """Return the outputs of the node by name, as float64 arrays in the node's layout. Raise IllegalNode.

    inputs
        Arrays by formal input name; None for an absent one.
    interpretations
        Options for open questions of the document; default: the reference's own.
    """
    return operator_for(node).evaluate(node, inputs, interpretations)


def evaluate_in_order(node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> dict[str, Array]:
    """Return outputs like :func:`evaluate`'s that are bit-equal on every machine, for files. This is slower."""
    return operator_for(node).evaluate_in_order(node, inputs, interpretations)


def returned_in_order(node: Node, inputs: Arrays) -> dict[str, Array]:
    """Return the outputs of :func:`evaluate_in_order`, each rounded once to the type of its output."""
    resolved = resolve(node, inputs)
    numbers = evaluate_in_order(node, inputs)
    return {
        name: resolved.format.nearest(number)
        if dtype_of(node, resolved, name) == resolved.format.dtype
        else number.astype(dtype_of(node, resolved, name))
        for name, number in numbers.items()
    }


def run_fault(
    chosen: Fault,
    node: Node,
    inputs: Arrays,
    interpretations: Interpretations | None = None,
    *,
    fed: Arrays | None = None,
    memory: dict[str, Any] | None = None,
) -> dict[str, Array]:
    """Return the outputs of the node, in its type, as an implementation with this fault computes them. An output that
    the fault leaves out is missing.

    fed
        The caller's arrays, which the fault may change; default: all inputs.
    memory
        State that the implementation keeps between the runs of a session; pass the same dictionary to each run.

    Raise IllegalNode.
    """
    faults = () if chosen.accepts else (chosen,)  # an implementation that accepts illegal models computes legal ones
    return operator_for(node).answer(node, inputs, faults, interpretations, fed=fed, memory=memory)


def kill_margin(chosen: Fault, node: Node, runs: Sequence[tuple[Arrays, Arrays]], enough: float = np.inf) -> float:
    """Return max |fault - reference| / (2 radius) over the elements of all runs of a session; 0 where the fault changes
    nothing.

    The interpretation is the one that explains the outputs best. The margin is infinite if an input is changed, if the
    number of outputs, a shape or a type is wrong, or if no radius allows a value. Conventions are ignored.

    A margin above 1 detects the fault whatever the rounding errors: two conforming numbers are at most two radii apart.
    The search among interpretations ends with the first one that does not reach `enough`.

    runs
        The inputs of each run, and those of them that are fed.
    """
    if chosen.accepts:
        return 0.0  # it computes legal models correctly
    memory: dict[str, Any] = {}
    outputs: list[Arrays] = []
    changed = False
    for inputs, fed in runs:
        answer = operator_for(node).answering(node, inputs)
        copies = {name: array.copy() for name, array in fed.items() if array is not None}
        right, got = answer(fed=fed), answer((chosen,), fed=copies, memory=memory)
        if any(_bits(copies[name]) != _bits(fed[name]) for name in copies):
            return np.inf
        outputs.append(got)
        changed = changed or right.keys() != got.keys() or any(_bits(right[n]) != _bits(got[n]) for n in right)
    feeds = [inputs for inputs, _ in runs]
    open_questions = frozenset().union(*(open_questions_of(node, inputs) for inputs in feeds))
    best = np.inf if changed else 0.0
    for interpretations in readings(((node, inputs) for inputs in feeds), open_questions):
        if best <= 0.5 or best < enough:
            break
        worst = 0.0
        for inputs, returned in zip(feeds, outputs, strict=True):
            worst = max(worst, _error_ratio(node, inputs, returned, interpretations) / 2)
            if worst >= best:
                break
        best = min(best, worst)
    return float(best)


def _bits(array: NDArray[Any]) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.tobytes()


def _error_ratio(node: Node, inputs: Arrays, got: Arrays, interpretations: Interpretations) -> float:
    from ..recurrent.agreement import compare

    c = resolve(node, inputs, interpretations)
    for name in node.outputs:
        array = got.get(name)
        if array is None or array.dtype != dtype_of(node, c, name) or array.shape != c.shape_of(name):
            return np.inf
    worst = 0.0
    for expectation in expect(node, inputs, got, interpretations=interpretations):
        if not expectation.conventional:
            worst = max(worst, compare(expectation, got[expectation.output]).worst)
    return worst
