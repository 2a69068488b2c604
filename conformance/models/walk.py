"""Traversal of all nodes of a model: in the main graph, in the graphs inside its nodes, and in its functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from onnx import NodeProto

from .scope import FunctionKey, Scope, all_nodes, domain_of, key_of


@dataclass(frozen=True)
class Located:
    """A node, by its number in its scope."""

    scope: Scope
    number: int

    @property
    def node(self) -> NodeProto:
        return self.scope.nodes[self.number]

    @property
    def path(self) -> str:
        """Its path: ``/If_1:else_branch/decoder/LSTM_3``."""
        return self.scope.path_of(self.number)


def nodes_of(scope: Scope, wanted: Callable[[str, str], bool]) -> Iterator[Located]:
    """Yield the nodes of operators for which `wanted(domain, op_type)` holds, in the order of the model.

    Every call of a function is searched.

    Raise ModelError if functions call themselves, or there are too many calls.
    """
    holding = _functions_holding(scope, wanted)
    yield from _walked(scope, wanted, holding)


def _walked(scope: Scope, wanted: Callable[[str, str], bool], holding: frozenset[FunctionKey]) -> Iterator[Located]:
    for number, node in enumerate(scope.nodes):
        function = scope.model.function_of(node)
        if function is not None:
            if key_of(function) in holding:
                call = scope.call(number)
                assert call is not None
                yield from _walked(call, wanted, holding)
        elif wanted(domain_of(node.domain), node.op_type):
            yield Located(scope, number)
        for _, inner in scope.inner(number):
            yield from _walked(inner, wanted, holding)


def _functions_holding(scope: Scope, wanted: Callable[[str, str], bool]) -> frozenset[FunctionKey]:
    """Return the local functions with such a node, directly or through calls; the others need no search."""
    calls: dict[FunctionKey, set[FunctionKey]] = {}
    holding: set[FunctionKey] = set()
    for function in scope.model.functions.values():
        for node in all_nodes(function.node):
            called = scope.model.function_of(node)
            if called is not None:
                calls.setdefault(key_of(called), set()).add(key_of(function))
            elif wanted(domain_of(node.domain), node.op_type):
                holding.add(key_of(function))
    pending = list(holding)
    while pending:
        for caller in calls.get(pending.pop(), ()):
            if caller not in holding:
                holding.add(caller)
                pending.append(caller)
    return frozenset(holding)
