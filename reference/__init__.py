"""What the documents say: schemas, clauses, readings, numbers with error bounds, deviations."""

from . import deviation_tables as _deviation_tables  # noqa: F401 - registers the deviations
from . import extended_deviations as _extended_deviations  # noqa: F401 - registers those of ExtendedLSTM
from . import extended_output_deviations as _extended_output_deviations  # noqa: F401
from .accuracy import ACCURACY_CLASSES, WIDER_PRESETS, AccuracyClass, budget
from .activations import ACTIVATIONS
from .clauses import Clause, ClauseError, clause_named, clauses_of
from .deviations import DEVIATIONS, Deviation, deviations_of, run_deviation
from .evaluation import evaluate
from .expectation import Agreement, Expectation, compare, expect
from .extended_mistakes import EXTENDED_DEVIATIONS, ExtendedDeviation, mistake_named
from .formats import FORMATS, Format, format_of
from .node import CELLS, Configuration, IllegalNode, Node, configure, readings_touched
from .operators import EXTENDED, OPERATORS, OperatorVersion, UnknownOperator, operator_version, versions_of
from .readings import Readings

__all__ = [
    "ACCURACY_CLASSES",
    "ACTIVATIONS",
    "CELLS",
    "DEVIATIONS",
    "EXTENDED",
    "EXTENDED_DEVIATIONS",
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
    "ExtendedDeviation",
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
    "deviations_of",
    "evaluate",
    "expect",
    "format_of",
    "mistake_named",
    "operator_version",
    "readings_touched",
    "run_deviation",
    "versions_of",
]
