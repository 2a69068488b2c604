"""Named, executable faults, and what they explain or show."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    alterations="with_functions",
    fault="Compute FAULTS FaultError made_together",
    computing="Computed answered",
    hypothesis="RecurrentObservation Run layered",
    scope="scoped_named scoped_of",
)
