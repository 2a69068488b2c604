"""The writing down of attributes that have their default value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..context import Context, values_of
from ..violation import Violation, set_to


class _Explicit(Axis):
    """Defaults, in words or not. The attributes of other axes replace them."""

    name = "explicit"
    fields = (Field("explicit", bool, False),)
    part = "model"
    # Two ways to write a node at a time make a refusal hard to read.
    rules = (Rule("explicit", False, ("hidden_size",), lambda row: not row["hidden_size"], (True,), kind="open"),)
    forbidden = (
        Violation(
            "attributes.unknown",
            "check",
            "there is an attribute batch_first, which ONNX does not define",
            set_to("batch_first", 1),
        ),
    )
    lacked = (3, (False,))

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"explicit": Domain((False, True), often=(False, False, True))}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield from values_of("explicit", (False, True))


EXPLICIT = _Explicit()
