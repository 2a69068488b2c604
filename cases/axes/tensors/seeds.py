"""The numbers that are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..axis import Axis, Field
from .size import HIGHEST_SEED


class _Seeds(Axis):
    """``seed`` of the inputs that change from run to run, ``weights_seed`` of the others, so that cases can share a
    model."""

    name = "seeds"
    fields = (Field("seed", int, 0), Field("weights_seed", int, 0))

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        for own in self.fields:
            value = getattr(spec, own.name)
            if type(value) is not int or not 0 <= value <= HIGHEST_SEED:
                return own.name, f"a whole number from 0 to {HIGHEST_SEED}"
        return None

    def choices(self, operator: Any) -> Mapping[str, tuple[Any, ...]]:
        return {}

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Both together: numbers of one go with those of the other."""
        if spec.seed:
            yield "seed", {own.name: 0 for own in self.fields}


SEEDS = _Seeds()
