"""Cases: the space of configurations, profiles, models and their inputs."""

from ..reference import operator_names
from .axes.violation import Violation
from .operators.causal_conv_with_state import CAUSAL_CONV_FAMILY, DILATED_CAUSAL_CONV_FAMILY
from .operators.dynamic_quantize_lstm import DYNAMIC_QUANTIZE_FAMILY
from .operators.extended_lstm.family import EXTENDED_FAMILY
from .operators.linear_attention.family import LINEAR_ATTENTION_FAMILY, ONNXRUNTIME_LINEAR_ATTENTION_FAMILY
from .profiles.profiles import PROFILES, digest_of, digests_for, pinned_digests, profile
from .profiles.recurrent import RECURRENT
from .simple import SimpleFamily, SimpleSpec
from .specs.case import ABILITIES, Case, Course, Feed, Spec, Step, Trial
from .specs.family import (
    Family,
    build_case,
    clauses_exercised,
    family_of,
    features_of,
    group_of,
    is_spec,
    operator_versions,
    register,
)
from .specs.spec import CaseSpec
from .third_party import load_operators

__all__ = [
    "ABILITIES",
    "PROFILES",
    "Case",
    "CaseSpec",
    "Course",
    "Family",
    "Feed",
    "SimpleFamily",
    "SimpleSpec",
    "Spec",
    "Step",
    "Trial",
    "Violation",
    "build_case",
    "clauses_exercised",
    "digest_of",
    "digests_for",
    "family_of",
    "features_of",
    "group_of",
    "is_spec",
    "operator_versions",
    "pinned_digests",
    "profile",
    "register",
]

for _family in (
    RECURRENT,
    EXTENDED_FAMILY,
    DYNAMIC_QUANTIZE_FAMILY,
    CAUSAL_CONV_FAMILY,
    DILATED_CAUSAL_CONV_FAMILY,
    LINEAR_ATTENTION_FAMILY,
    ONNXRUNTIME_LINEAR_ATTENTION_FAMILY,
):
    if {*_family.operators} <= {*operator_names()}:  # no cases for operators that the installed onnx lacks
        register(_family)
load_operators()
