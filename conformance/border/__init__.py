"""The border where text that others wrote comes in: it is checked once, here, and typed behind it."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    strict_json="MOST_DEPTH MOST_INTEGER MalformedJson decode encode parse typed",
    typed_toml="TomlDocument",
)
