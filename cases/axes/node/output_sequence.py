"""The announcement of Y: output_sequence of the first versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..observed import Observed
from ..violation import unknown_attribute


def _asks_for_y(row: Mapping[str, Any]) -> bool:
    outputs = row["outputs"]
    return "Y" in outputs if isinstance(outputs, tuple) else outputs in ("all", "Y", "no-Y_h")


class _OutputSequence(Axis):
    """The attribute ``output_sequence``."""

    name = "output_sequence"
    fields = (Field("output_sequence", int | None, None),)
    part = "model"
    # Whether Y is given against output_sequence is an open question that other cases are for.
    rules = (
        Rule(
            "output_sequence",
            1,
            ("outputs",),
            lambda row: not row["output_sequence"] and _asks_for_y(row),
            kind="open",
        ),
    )
    forbidden = (unknown_attribute("output_sequence", "the version does not define any more"),)
    words = {"output-sequence": "a version with output_sequence", "Y-unannounced": "Y without output_sequence"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if "output_sequence" not in operator.attributes:
            return {}
        return {"output_sequence": Domain((None, 1, 0), often=(1, 1, 0, None))}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {} if spec.output_sequence is None else {"output_sequence": spec.output_sequence}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {
            "output-sequence": "output_sequence" in observed.node.operator.attributes,
            "Y-unannounced": "sequence_output" in observed.configuration.touched,
        }


OUTPUT_SEQUENCE = _OutputSequence()
