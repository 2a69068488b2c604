"""What the documents say: schemas, clauses, readings, numbers with error bounds, deviations."""

from .accuracy import ACCURACY_CLASSES, WIDER_PRESETS, AccuracyClass, budget
from .evaluation import evaluate
from .formats import FORMATS, Format, format_of
from .node import IllegalNode, Node, configure
from .operators import OPERATORS, OperatorVersion, UnknownOperator, operator_version, versions_of
from .readings import Readings

__all__ = [
    "ACCURACY_CLASSES",
    "FORMATS",
    "OPERATORS",
    "WIDER_PRESETS",
    "AccuracyClass",
    "Format",
    "IllegalNode",
    "Node",
    "OperatorVersion",
    "Readings",
    "UnknownOperator",
    "budget",
    "configure",
    "evaluate",
    "format_of",
    "operator_version",
    "versions_of",
]
