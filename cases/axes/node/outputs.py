"""The outputs that are asked for."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Set
from functools import cache
from typing import Any

from ....reference import OperatorVersion, operator_version
from ..axis import Axis, Domain, Field
from ..condition import Condition
from ..observed import Observed, skips
from ..violation import Draft, Violation


@cache
def output_subsets(operator: OperatorVersion) -> tuple[tuple[str, ...], ...]:
    """Return every legal subset of outputs, by position in a case; all have those that the version requires. First
    comes the subset that needs no attribute: Y, or Y_h if output_sequence must announce Y."""
    plain = "Y_h" if "output_sequence" in operator.attributes else "Y"
    optional = sorted(set(operator.outputs) - operator.required_outputs, key=lambda n: (n != plain, n))
    counts = range(0 if operator.required_outputs else 1, len(optional) + 1)
    chosen = [set(some) for count in counts for some in itertools.combinations(optional, count)]
    return tuple(_by_position(operator, some) for some in chosen)


def _by_position(operator: OperatorVersion, wanted: Set[str]) -> tuple[str, ...]:
    """Outputs that are wanted or that the version demands, each in its place; an empty string keeps the place of one
    that is not asked for."""
    named = [name if name in wanted | operator.required_outputs else "" for name in operator.outputs]
    while not named[-1]:
        named.pop()
    return tuple(named)


def _asked(operator: OperatorVersion, choice: str) -> tuple[str, ...]:
    """Output names by position for a named subset, with those that the version demands."""
    outputs = operator.outputs
    wanted = {
        "all": set(outputs),
        "Y": {"Y"},
        "Y_h": {"Y_h"},
        "last": {outputs[-1]},
        "no-Y_h": set(outputs) - {"Y_h"} if len(outputs) > 2 else {"Y"},
        "states": set(outputs) - {"Y"},
    }[choice]
    return _by_position(operator, wanted)


def _one_more(draft: Draft) -> None:
    draft.outputs.append("extra" if "Y_c" in draft.operator.outputs else "Y_c")


def _two_more(draft: Draft) -> None:
    _one_more(draft)
    draft.outputs.append("more")


def _without_last(draft: Draft) -> None:
    draft.outputs.pop()


_FORBIDDEN = (
    Violation(
        "outputs.too-many", "check", "there is an output behind the last one that the operator defines", _one_more
    ),
    Violation(
        "outputs.far-too-many",
        "check",
        "there are two outputs behind the last one that the operator defines",
        _two_more,
    ),
    Violation(
        "outputs.Y_h-missing",
        "check",
        "Y_h, which the version demands, is missing",
        _without_last,
        applies=lambda operator: "Y_h" in operator.required_outputs,
    ),
)


class _Outputs(Axis):
    """The node's outputs by position. A row of a design names a subset."""

    name = "outputs"
    fields = (Field("outputs", tuple[str, ...], ("Y",)),)
    part = "model"
    forbidden = _FORBIDDEN
    required = {"basic": ("Y", "Y_h", "Y_c")}
    words = {
        "Y": "output Y",
        "Y_h": "output Y_h",
        "Y_c": "output Y_c",
        "Y-absent": "no Y",
        "output-skipped": "an output skipped",
    }
    columns = ("Y-absent",)

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"outputs": Domain(("all", "Y", "no-Y_h", "states"))}

    def choices(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        return {}

    def told(self, name: str, value: Any, instead: Collection[Any]) -> tuple[Condition, ...]:
        asked = set(filter(None, value))
        listed = ", ".join(filter(None, value))
        return (
            Condition(f"outputs {listed}", lambda spec: asked <= set(spec.outputs)),
            Condition(f"no outputs but {listed}", lambda spec: asked == set(filter(None, spec.outputs))),
        )

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        known = operator_version(spec.op, spec.version).outputs
        given = spec.outputs if isinstance(spec.outputs, tuple) else ()
        out_of_place = any(name not in ("", there) for name, there in zip(given, known, strict=False))
        if not any(given) or len(given) > len(known) or out_of_place:
            return "outputs", f"{known}, with '' in the place of each that is not asked for"
        return None

    def written(self, row: dict[str, Any], operator: OperatorVersion) -> dict[str, Any]:
        return row | {"outputs": _asked(operator, row.get("outputs", "all"))}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        formal, given = observed.node.operator.outputs, observed.node.outputs
        return {
            "output-skipped": skips(formal, given),
            **{name: name in given for name in formal},
            "Y-absent": "Y" not in given,
        }

    def mark(self, spec: Any) -> str:
        return "" if "Y" in spec.outputs else "no-Y"

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Fewer of them, and Y alone."""
        for outputs in sorted(output_subsets(operator_version(spec.op, spec.version)), key=lambda o: sum(map(bool, o))):
            if sum(map(bool, outputs)) < sum(map(bool, spec.outputs)) or outputs == self.fields[0].default:
                yield "outputs", {"outputs": outputs}


OUTPUTS = _Outputs()
