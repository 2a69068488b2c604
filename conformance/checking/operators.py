"""The operators whose nodes are checked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from onnx import NodeProto, defs

from ...reference import OPERATORS, Operator, OperatorVersion, operator_version, versions_of
from ..models.scope import Scope, domain_of


@cache
def judged_operators() -> Mapping[tuple[str, str], Operator]:
    """Return the operators that are judged, by domain and name, former names included."""
    documents = [(operator, operator.document) for operator in OPERATORS.values()]
    return {key: operator for operator, document in documents for key in (document.key, *document.former)}


def operator_judged(node: NodeProto) -> Operator | None:
    """Return the operator of a node; None for one that is not judged."""
    return judged_operators().get((domain_of(node.domain), node.op_type))


def newest_opset(operator: Operator) -> int:
    """Return the newest known opset of an operator's domain."""
    document = operator.document
    return versions_of(document.name)[-1] if document.domain else defs.onnx_opset_version()


def version_in(operator: Operator, opset: int) -> OperatorVersion | None:
    """Return the version of an operator in an opset; None if that opset has none."""
    document = operator.document
    meant = [version for version in versions_of(document.name) if version <= opset]
    return operator_version(document.name, meant[-1], document.domain) if meant else None


def version_of(scope: Scope, node: NodeProto) -> OperatorVersion | None:
    """Return the operator version of a node; None for one that is not judged."""
    operator = operator_judged(node)
    return None if operator is None else version_in(operator, scope.opsets.get(domain_of(node.domain), 1))
