"""The cases: the space of configurations, profiles, models and their inputs."""

from .axes.violation import Violation
from .operators.dynamic_quantize_lstm import DYNAMIC_QUANTIZE_FAMILY
from .operators.extended_lstm.family import EXTENDED_FAMILY
from .own import OwnFamily, OwnSpec
from .profiles.profiles import PROFILES, digest_of, digests_for, pinned_digests, profile
from .profiles.recurrent import RECURRENT
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
    "OwnFamily",
    "OwnSpec",
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

for _family in (RECURRENT, EXTENDED_FAMILY, DYNAMIC_QUANTIZE_FAMILY):
    register(_family)
load_operators()
