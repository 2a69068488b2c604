"""What the documents say: schemas, clauses, readings, numbers with error bounds, deviations."""

from . import lstm_deviations as _lstm_deviations  # noqa: F401 - registers its deviations
from .accuracy import ACCURACY_CLASSES, WIDER_PRESETS, AccuracyClass, budget
from .activations import ACTIVATIONS
from .clauses import Clause, ClauseError, clause_named, clauses_of
from .deviations import DEVIATIONS, Deviation, run_deviation
from .evaluation import evaluate
from .expectation import Agreement, Expectation, compare, expect
from .formats import FORMATS, Format, format_of
from .node import CELLS, Configuration, IllegalNode, Node, configure, readings_touched
from .operators import OPERATORS, OperatorVersion, UnknownOperator, operator_version, versions_of
from .readings import Readings

__all__ = [
    "ACCURACY_CLASSES",
    "ACTIVATIONS",
    "CELLS",
    "DEVIATIONS",
    "FORMATS",
    "OPERATORS",
    "WIDER_PRESETS",
    "AccuracyClass",
    "Agreement",
    "Clause",
    "ClauseError",
    "Configuration",
    "Deviation",
    "Expectation",
    "Format",
    "IllegalNode",
    "Node",
    "OperatorVersion",
    "Readings",
    "UnknownOperator",
    "budget",
    "clause_named",
    "clauses_of",
    "compare",
    "configure",
    "evaluate",
    "expect",
    "format_of",
    "operator_version",
    "readings_touched",
    "run_deviation",
    "versions_of",
]
