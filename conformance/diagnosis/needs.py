"""Needs: features that cannot be removed from a smallest case, and the conditions derived from them.

A need refers to one case, and a finding to many. So a need becomes conditions: words with a predicate on cases, the
simplest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from ...cases import features_of
from ...cases.axes.axis import Axis, Condition, of_values
from ...cases.specs.family import SIZES
from ..judging.judgement import Verdict
from ..probes.probe import Probe, SpecProbe
from ..text import listed

UNSAID = frozenset({"seed", "weights_seed"})
"""Fields that are not reported: that a failure depends on the random numbers does not say when it occurs."""


@dataclass(frozen=True)
class Need:
    """Feature that remains in the smallest case, with the results of the same case without it.

    field
        Name of the field of the spec.
    value, instead
        Its value, and all values that were tried instead.
    verdict
        Verdict on the last of these: another failure or none.
    passed, failed
        For a size: other sizes that pass, and that fail in the same way.
    features
        Features that the case uses through this field and did not use without it, the broadest first, each with its
        words.
    axis
        The axis of the field; None if the case is described without axes.
    """

    field: str
    value: Any
    instead: tuple[Any, ...]
    verdict: Verdict
    passed: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    features: tuple[tuple[str, str], ...] = ()
    axis: Axis | None = None

    @property
    def called(self) -> str:
        """Name of the field, for a reader."""
        return (self.axis is not None and self.axis.called) or self.field

    @property
    def of_size(self) -> bool:
        return self.field in SIZES or bool(self.passed)


@dataclass(frozen=True)
class Stated:
    """Conditions of a finding.

    conditions
        Conditions that all of its cases meet.
    passing
        Number of passing cases that meet all conditions.
    """

    conditions: tuple[Condition, ...]
    passing: int


_ABSENT = (None, False, 0, "", ())

_FEW = 3
"""Maximum number of cases, the smallest one included, that do not suffice for a narrower condition."""


def sizes_of(spec: Any) -> tuple[str, ...]:
    """Return the fields of a spec that are sizes."""
    names = {field.name for field in fields(spec)}
    return tuple(name for name in getattr(spec, "sizes", SIZES) if name in names)


def axis_of(spec: Any, name: str) -> Axis | None:
    """Return the axis of a field; None if the operator's cases are described without axes."""
    axes = getattr(spec, "axes", ())
    return next((axis for axis in axes if axis.name == name), None)


def conditions_of(need: Need, passed: Iterable[int] = (), failed: Iterable[int] = ()) -> tuple[Condition, ...]:
    """Return the conditions for a need, the simplest first.

    passed, failed
        Further sizes of cases that meet all other conditions.
    """
    name, value = need.field, need.value
    conditions: tuple[Condition, ...] = () if need.axis is None else need.axis.conditions_for(value, need.instead)
    if conditions:
        return conditions
    if need.of_size:
        return tuple(_of_size(need, {*need.passed, *passed}, {value, *need.failed, *failed}))
    if need.features:
        return tuple(_featured(feature, words) for feature, words in reversed(need.features))
    if words := _phrase(name, value):
        return (of_values(words, name, value),)
    if all(other in _ABSENT for other in need.instead) and value not in _ABSENT:
        # Only removal was tried, so other values may fail too.
        return (Condition(need.called, lambda spec: getattr(spec, name, None) not in _ABSENT),)
    return (of_values(f"{need.called} {value}", name, value),)


PHRASES = {
    ("session", "chain"): "runs of one position after the first run, each from the state before",
    ("session", "cut"): "a sequence that two runs share",
    ("session", "other-lengths"): "later runs of other lengths",
    ("session", "other-weights"): "a later run with other weights",
    ("weights", "initializer"): "constant weights",
    ("dimensions", "symbolic"): "symbolic dimensions",
    ("dimensions", "all-symbolic"): "symbolic dimensions only",
    ("reach", "one"): "no row longer than one step",
    ("reach", "below"): "no row as long as the sequence",
    ("row_order", "falling"): "rows of falling lengths",
    ("row_order", "rising"): "rows of rising lengths",
    ("row_order", "first"): "a first row that is longest",
    ("row_order", "last"): "a last row that is longest",
    ("row_order", "ends"): "a first and a last row that are longest",
    ("zeros", "elements"): "zeros among X, W and R",
    ("zeros", "row"): "a row of zeros in X",
    ("zeros", "step"): "a step of zeros in X",
    ("zeros", "mask"): "a step of zeros in one row of X",
    ("zeros", "ends"): "zeros in the last steps of X",
    ("zeros", "weights"): "rows of zeros in W and R",
    ("zeros", "input-bias"): "an input bias of zeros",
    ("zeros", "recurrent-bias"): "a recurrent bias of zeros",
    ("zeros", "state"): "a row of zeros in the initial states",
    ("zeros", "tensor"): "a tensor of zeros",
    ("extremes", "subnormal"): "subnormal numbers in X",
    ("extremes", "subnormal-weights"): "subnormal numbers in W",
    ("extremes", "cancel"): "products that cancel to 0",
    ("extremes", "top"): "the largest number of the type in X",
    ("extremes", "steep"): "an X for which e^x overflows",
    ("extremes", "weights"): "very large W and R",
    ("extremes", "bias"): "a very large B",
    ("extremes", "peepholes"): "a very large P",
    ("extremes", "states"): "very large initial states",
    ("alike", "W"): "the same W in both directions",
    ("alike", "R"): "the same R in both directions",
    ("alike", "directions"): "the same weights in both directions",
    ("alike", "steps"): "the same X in all steps",
    ("alike", "rows"): "the same numbers in all rows",
    ("alike", "states"): "the same numbers in all initial states",
    ("alike", "bias"): "a bias whose halves cancel",
}
"""Words for values of fields without conditions of their own."""

_SIZE_WORDS = {"k": "kernel width"}
"""Words for sizes whose field is a letter."""


def _phrase(name: str, value: Any) -> str:
    """Return the words for a value of a field; empty if there are none."""
    if name == "absent" and value:
        return f"no {listed(value)}"
    return PHRASES.get((name, value), "") if isinstance(value, str) else ""


def _featured(feature: str, words: str) -> Condition:
    return Condition(words, lambda spec: feature in features_of(spec))


def _counted(need: Need, size: int, most: int = 0) -> str:
    """Return the words for a size, or for sizes up to another one."""
    sizes = f"{size} to {most}" if most else str(size)
    unit, *more = need.called.split()
    if need.axis is None:
        return f"{_SIZE_WORDS.get(need.field, need.field)} {sizes}"
    return " ".join((f"{sizes} {unit}" if sizes == "1" else f"{sizes} {unit}s", *more))


def _of_size(need: Need, passed: set[int], failed: set[int]) -> Iterator[Condition]:
    """Yield the conditions for a size, from sizes that pass and that fail. A threshold lies between the largest that
    passes and the smallest that fails."""

    def size_of(spec: Any) -> int:
        return int(getattr(spec, need.field))

    counted = partial(_counted, need)
    least, most = min(failed), max(failed)
    below = max((size for size in passed if size < least), default=None)
    above = min((size for size in passed if size > most), default=None)
    between = any(least < size < most for size in passed)
    # Sizes between the last that passes and the first that fails are unknown.
    unknown = "" if below in (None, least - 1) else f" (passes with {below})"
    if not between and above is None:
        yield Condition(f"{counted(least)} or more{unknown}", lambda spec: size_of(spec) >= least)
        return
    if least > 1 and len(failed) > 1 and all(n % least for n in passed) and not any(n % least for n in failed):
        multiple = f"a multiple of {counted(least)}"
        yield Condition(multiple, lambda spec: size_of(spec) > 0 and size_of(spec) % least == 0)
    if not between and least == most:
        yield Condition(f"exactly {counted(least)}{unknown}", lambda spec: size_of(spec) == least)
    elif failed >= {*range(least, most + 1)}:
        yield Condition(f"{_counted(need, least, most)}{unknown}", lambda spec: least <= size_of(spec) <= most)
    yield Condition(f"{counted(least)} or more{unknown}" if least else "", lambda spec: size_of(spec) >= least)


def _spec_of(probe: Probe) -> Any | None:
    """Return the spec of a valid case, or None."""
    return probe.spec if isinstance(probe, SpecProbe) and not probe.spec.illegal else None


def _true_of(condition: Condition, field: str, probe: Probe) -> bool:
    spec = _spec_of(probe)
    return spec is not None and hasattr(spec, field) and condition.holds(spec)


def meeting(needs: Sequence[Need], probes: Iterable[Probe]) -> list[Probe]:
    """Return the probes that meet all needs of a smallest case."""
    conditions = [(need.field, conditions_of(need)[0]) for need in needs if need.field not in UNSAID]
    return [probe for probe in probes if all(_true_of(condition, name, probe) for name, condition in conditions)]


def stated(
    needs: Sequence[Need],
    members: Sequence[Probe],
    passing: Sequence[Probe],
    shows: Callable[[Probe], bool] = lambda probe: True,
    absent: Sequence[Need] = (),
) -> Stated:
    """Return the conditions that all cases of a finding meet. If passing cases meet them too, narrower ones are tried.

    shows
        Returns whether a passing case should have failed, if that is known.
    absent
        Features that must be absent. They are stated if passing cases have them.
    """
    choices: list[tuple[str, list[Condition]]] = []
    for need in needs:
        if need.field in UNSAID:
            continue
        possible = conditions_of(need, *_sizes(need, needs, members, passing, shows))
        true = [c for c in possible if all(_true_of(c, need.field, probe) for probe in members)]
        if true:
            choices.append((need.field, true))
    chosen = {name: true[0] for name, true in choices}

    def left(picked: Mapping[str, Condition]) -> list[Probe]:
        return [p for p in passing if all(_true_of(c, name, p) for name, c in picked.items()) and shows(p)]

    met = left(chosen)
    sizes = {need.field for need in needs if need.of_size}
    for name, true in choices:
        # Few cases may share the value by chance; sizes rest on tries of other sizes.
        supported = len(members) > _FEW or name in sizes
        for narrower in true[1:] if met and supported else ():
            fewer = left({**chosen, name: narrower})
            if len(fewer) < len(met):
                chosen, met = {**chosen, name: narrower}, fewer
    for need in absent:
        assert need.axis is not None
        name, condition = f"no {need.field}", need.axis.absences[need.value]
        if met and all(_true_of(condition, need.field, probe) for probe in members):
            fewer = [probe for probe in met if _true_of(condition, need.field, probe)]
            if len(fewer) < len(met):
                chosen, met = {**chosen, name: condition}, fewer
    return Stated(tuple(chosen.values()), len(met))


def _sizes(
    need: Need,
    needs: Sequence[Need],
    members: Sequence[Probe],
    passing: Sequence[Probe],
    shows: Callable[[Probe], bool],
) -> tuple[set[int], set[int]]:
    """Return the passing and the failing sizes of cases that meet all other needs."""
    if not need.of_size:
        return set(), set()
    size = partial(_size, need.field)
    others = [other for other in needs if other is not need]
    met: dict[int, list[Probe]] = {}
    for probe in meeting(others, passing):
        met.setdefault(size(probe), []).append(probe)
    # One case for each size suffices: the check costs more than running a case.
    passed = {n for n, some in met.items() if any(map(shows, sorted(some, key=lambda probe: probe.size)))}
    # Smaller sizes may fail through another cause, so they are ignored.
    failed = {size(probe) for probe in meeting(others, members) if size(probe) >= need.value}
    return passed, failed


def _size(name: str, probe: Probe) -> int:
    return int(getattr(_spec_of(probe), name, 0))
