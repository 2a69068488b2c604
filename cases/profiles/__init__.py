"""Pinned lists of cases."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    dense="LEVELS dense_specs levels_of sibling supports",
    fresh="fresh_specs fresh_stream",
    pool="Pooled pool_of",
    profiles="case_named written_cases",
)
