"""Expected failures."""

from ...._face import face

__getattr__, __dir__ = face(
    __name__,
    entries=(
        "Entry ExpectedFailureError Failure applying decidable_entries expectations_of matching parse_expected "
        "read_expected shipped_for stale"
    ),
    version_range="in_range is_range",
)
