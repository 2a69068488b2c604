"""The command line: a module for each command."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    application="COMMANDS app main",
    command="targets_of",
    display="RunDisplay could_not_start summarize",
    explanation="explanation_of print_explanation",
    prove="interaction_complaints",
    terminal="LINE say",
)
