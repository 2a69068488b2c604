"""Measurements of a target on nodes with little in them: how far its functions and sums are off, which are wrong."""

from ...._face import face

__getattr__, __dir__ = face(
    __name__,
    deviations="Deviation deviations_of",
    own_functions="function_classes",
    own_sums="summing_faults",
    sources="Source faults_of_sources sources_of",
)
