"""The command line: a module for each command."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    {
        "application": (
            "COMMANDS",
            "app",
        ),
        "command": ("targets_of",),
        "display": (
            "RunDisplay",
            "could_not_start",
            "summarize",
        ),
        "prove": ("interaction_complaints",),
        "terminal": (
            "LINE",
            "say",
        ),
    },
)
