"""Details of quantization: fields that say something of quantized cases alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from .quantization import BLOCK, can_be_quantized, depends


class Detail(Axis):
    """A field of its own, given as data.

    name
        Of the axis and of its only field.
    order
        Its values, the usual one first, which every case has that is not quantized.
    tensors
        The values of ``quantized_tensors`` beside which its own say something; all but the usual one, or ``bound``.
    marked
        What stands before a value in the id of a case.
    features
        By feature its words, and the values that have it.
    rules
        What else its values do not go with.
    """

    part = "model"
    block = BLOCK

    def __init__(
        self,
        name: str,
        order: tuple[str, ...],
        *,
        tensors: Collection[str],
        marked: str,
        features: Mapping[str, tuple[str, Collection[str]]],
        bound: tuple[str, ...] = (),
        rules: tuple[Rule, ...] = (),
    ) -> None:
        usual, *others = order
        bound = bound or tuple(others)
        self.name, self.order, self.marked = name, order, f"{marked}-{{}}"
        self.fields = (Field(name, str, usual),)
        self.rules = (
            depends(name, usual, tuple(others)),
            *rules,
            Rule(name, usual, ("quantized_tensors",), lambda row: row["quantized_tensors"] not in tensors, bound),
        )
        self.words = {feature: words for feature, (words, _) in features.items()}
        self._values = {feature: values for feature, (_, values) in features.items()}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if not can_be_quantized(operator):
            return {}
        usual, *others = self.order
        return {self.name: Domain((usual,), rare=tuple(others), often=(usual, *self.order), share=0.5)}

    def used(self, spec: Any) -> Mapping[str, bool]:
        value = getattr(spec, self.name)
        return {feature: value in values for feature, values in self._values.items()}
