"""Clip: by how much arguments of activations are bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..attributes import finite_float32
from ..axis import Axis, Domain, Field
from ..observed import Observed
from ..violation import Violation, set_to


class _Clip(Axis):
    """The attribute ``clip``."""

    name = "clip"
    fields = (Field("clip", float | None, None),)
    part = "model"
    forbidden = (Violation("clip.negative", "load", "clip is below zero", set_to("clip", -0.5), open=True),)
    levels = {"basic": (None,), "sequence": (None,)}
    required = {"complete": ("clip",)}
    words = {"clip": "clip", "zero-clip": "clip 0", "clip-absent": "no clip"}
    columns = ("clip",)
    richer_alone = True
    marked = "clip"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        often = (None, None, None, None, 0.125, 0.25, 0.5, 1.0, 2.0, 8.0)
        return {"clip": Domain((None, 0.5, 8.0), rare=(0.0, 2.0**-10, 1e30), between=(2.0**-6, 64.0), often=often)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.clip is None:
            return None
        if not finite_float32(spec.clip):
            return "clip", "None or a finite number"
        object.__setattr__(spec, "clip", float(spec.clip))
        return None

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {} if spec.clip is None else {"clip": spec.clip}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        clip = observed.attributes.get("clip")
        return {"clip": clip is not None, "zero-clip": clip == 0, "clip-absent": clip is None}

    def richer(self, spec: Any) -> Mapping[str, Any]:
        return {"clip": 0.25}


CLIP = _Clip()
