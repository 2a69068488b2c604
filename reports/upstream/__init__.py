"""Findings for others: an issue for a runtime's maintainers, a node test for onnx's working group."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    {
        "chosen": (
            "Chosen",
            "NoFinding",
            "chosen_finding",
        ),
        "issue": ("issue_markdown",),
        "node_test": ("node_test",),
    },
)
