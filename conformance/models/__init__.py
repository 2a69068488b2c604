"""Models of other people: read within bounds, their graphs walked, their constants folded, their shapes inferred."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    content="ModelError Unreadable read_content",
    folding="NotConstant constant",
    inference="main_scope",
)
