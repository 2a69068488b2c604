"""Search beyond the profiles: any legal configuration, until something fails that nobody knows yet."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    database="Database DatabaseError FORMAT read_database write_database",
    drawing="altered drawn drawn_illegal",
    hunt="Hunt Limits",
    writing="REGRESSIONS write_failures",
)
