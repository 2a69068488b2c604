"""What is tried: the space of configurations, profiles, models and their inputs."""

from .case import Case, Feed, Trial, build_case
from .features import clauses_exercised, features_of, group_of
from .profiles import PROFILES, digest_of, digests_for, operator_versions, pinned_digests, profile
from .spec import CaseSpec
from .violations import Violation

__all__ = [
    "PROFILES",
    "Case",
    "CaseSpec",
    "Feed",
    "Trial",
    "Violation",
    "build_case",
    "clauses_exercised",
    "digest_of",
    "digests_for",
    "features_of",
    "group_of",
    "operator_versions",
    "pinned_digests",
    "profile",
]
