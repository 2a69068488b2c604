"""The spec-checker: which recurrent nodes of a model break their document, found without running anything."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    annotations="github_command",
    check="check_model",
    problem="Checked Level",
    rule="rules",
    suppression="SuppressionError read_suppressions",
)
