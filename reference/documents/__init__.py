"""The documents in tables: operator versions, errata, clauses, interpretations."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    clauses="STATUSES parse_clauses",
    errata="Default ERRATA Erratum corrected",
    interpretations="Interpretations QUESTIONS Question",
    operators="Document declare document_of",
    tensors="Extent HIDDEN_SIZE LENGTHS Levels Shape TensorForm",
)
