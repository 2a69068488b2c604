"""The spec-checker: which recurrent nodes of a model break their document, found without running anything."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    check="check_model",
    forms="github_command",
    problem="Checked Level",
    rule="rules",
    suppression="SuppressionError read_suppressions",
)
