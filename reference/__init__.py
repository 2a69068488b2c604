"""The documents: operators with their schemas, clauses, interpretations, numbers with error bounds and
faults."""

from importlib import import_module
from typing import TYPE_CHECKING

from .documents.clauses import Clause, ClauseError, clause_named, clauses_of, document_saying, topic_of
from .documents.interpretations import Interpretations
from .documents.operators import (
    OperatorVersion,
    UnknownOperator,
    document_meant,
    document_of,
    operator_names,
    operator_version,
    versions_of,
)
from .numbers.accuracy import ACCURACY_CLASSES, FORMATS, AccuracyClass, Format, budget, format_of
from .numbers.activations import ACTIVATIONS
from .operators.asking import (
    evaluate,
    evaluate_in_order,
    expect,
    open_questions_of,
    operator_for,
    resolve,
    run_fault,
)
from .operators.operator import OPERATORS, Operator, forget_operator, operator_of, register
from .recurrent.configuration import Configuration, configure
from .recurrent.node import IllegalNode, Node, cell_named
from .recurrent.rnn import CELLS

if TYPE_CHECKING:
    from .faults.fault import FAULTS, Fault, fault, fault_of_run, faults_of
    from .faults.scope import fault_named
    from .recurrent.agreement import LOSES_NAN, Agreement, SpecialValueMismatch, compare
    from .recurrent.expectation import Expectation

__all__ = [
    "ACCURACY_CLASSES",
    "ACTIVATIONS",
    "CELLS",
    "FAULTS",
    "FORMATS",
    "LOSES_NAN",
    "OPERATORS",
    "AccuracyClass",
    "Agreement",
    "Clause",
    "ClauseError",
    "Configuration",
    "Expectation",
    "Fault",
    "Format",
    "IllegalNode",
    "Interpretations",
    "Node",
    "Operator",
    "OperatorVersion",
    "SpecialValueMismatch",
    "UnknownOperator",
    "budget",
    "cell_named",
    "clause_named",
    "clauses_of",
    "compare",
    "configure",
    "document_meant",
    "document_of",
    "document_saying",
    "evaluate",
    "evaluate_in_order",
    "expect",
    "fault",
    "fault_named",
    "fault_of_run",
    "faults_of",
    "forget_operator",
    "format_of",
    "open_questions_of",
    "operator_for",
    "operator_names",
    "operator_of",
    "operator_version",
    "register",
    "resolve",
    "run_fault",
    "topic_of",
    "versions_of",
]

_OF_JUDGING = {
    **dict.fromkeys(("FAULTS", "Fault", "fault", "fault_of_run", "faults_of"), "faults.fault"),
    "fault_named": "faults.scope",
    **dict.fromkeys(("LOSES_NAN", "Agreement", "SpecialValueMismatch", "compare"), "recurrent.agreement"),
    "Expectation": "recurrent.expectation",
}
"""Modules of names that cases do without."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return a name for judging; its module is loaded with the first of them."""
        if name not in _OF_JUDGING:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_OF_JUDGING[name]}", __name__), name)
