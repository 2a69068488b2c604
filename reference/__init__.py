"""The documents: operators with their schemas, clauses, interpretations, numbers with error bounds and
faults."""

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
from .faults.fault import FAULTS, Fault, fault, fault_of_run, faults_of
from .faults.scope import fault_named
from .numbers.accuracy import ACCURACY_CLASSES, FORMATS, WIDER_PRESETS, AccuracyClass, Format, budget, format_of
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
from .recurrent.agreement import LOSES_NAN, OVERFLOWS, SPECIAL, Agreement, SpecialValueMismatch, compare
from .recurrent.configuration import Configuration, configure
from .recurrent.expectation import Expectation
from .recurrent.node import IllegalNode, Node, cell_named
from .recurrent.rnn import CELLS

__all__ = [
    "ACCURACY_CLASSES",
    "ACTIVATIONS",
    "CELLS",
    "FAULTS",
    "FORMATS",
    "LOSES_NAN",
    "OPERATORS",
    "OVERFLOWS",
    "SPECIAL",
    "WIDER_PRESETS",
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
