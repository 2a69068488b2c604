"""Layout: steps first, or rows first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field
from ..condition import of_values
from ..observed import Observed
from ..violation import Violation, has, set_to, unknown_attribute


class _Layout(Axis):
    """The attribute ``layout``, of versions from 14 on."""

    name = "layout"
    fields = (Field("layout", int, 0),)
    part = "model"
    forbidden = (
        *(
            Violation(
                f"layout.{name}",
                "load",
                f"layout is {value}, for which no shapes are defined",
                set_to("layout", value),
                applies=has("layout"),
            )
            for name, value in (("two", 2), ("minus-one", -1))
        ),
        unknown_attribute("layout", "the version does not define"),
    )
    levels = {"basic": (0,), "sequence": (0,)}
    required = {"complete": ("layout1",)}
    words = {"layout1": "layout 1"}
    columns = ("layout1",)
    richer_alone = True
    marked = "layout1"
    conditions = {1: (of_values(words["layout1"], "layout", 1),)}
    absences = {0: of_values("layout 0", "layout", 0)}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"layout": Domain((0, 1), often=(0, 0, 1))} if "layout" in operator.attributes else {}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {"layout": spec.layout} if spec.layout else {}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {"layout1": observed.configuration.layout == 1}

    def richer(self, spec: Any) -> Mapping[str, Any]:
        return {"layout": 1}


LAYOUT = _Layout()
