"""Cases: the space of configurations, profiles, models and their inputs."""

from typing import TYPE_CHECKING

from .axes.violation import Violation
from .operators import load_operators
from .profiles import PROFILES, digest_of, digests_for, pinned_digests, profile
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

if TYPE_CHECKING:
    from .simple import SimpleFamily, SimpleSpec

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


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return a base class of operators' cases; it is loaded with the first operator that has it."""
        if name not in ("SimpleFamily", "SimpleSpec"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import simple

        return getattr(simple, name)


load_operators()
