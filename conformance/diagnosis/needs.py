"""Needs: what a smallest case cannot do without, and the conditions that other cases are held against.

A need is about one case. What a finding says is about all of its cases, so a need becomes conditions: words that are
true or false of any case, the plainest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...cases import features_of
from ...cases.specs.simpler import SIZES
from ..judging.judgement import Verdict
from ..probes.probe import Probe, SpecProbe

__all__ = ["ABSENCES", "UNSAID", "Condition", "Need", "Stated", "conditions_of", "needs_in_words", "stated"]

UNSAID = frozenset({"seed", "weights_seed"})
"""Fields that are no feature: other numbers do not show it, which says nothing of when it comes."""


@dataclass(frozen=True)
class Need:
    """A thing that remains in the smallest case, with what became of the same case without it.

    field
        Of the spec.
    value, instead
        What it is, and all that was tried in its place.
    verdict
        On the last of that; it is another failure or none.
    passed, failed
        Of a size: which others pass, and which fail in the same way.
    features
        What the case uses by that field and did not without, the broadest first, each with words for it.
    """

    field: str
    value: Any
    instead: tuple[Any, ...]
    verdict: Verdict
    passed: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    features: tuple[tuple[str, str], ...] = ()

    def met(self, spec: Any) -> bool:
        """Tell whether another case has that thing."""
        return hasattr(spec, self.field) and conditions_of(self)[0].holds(spec)


@dataclass(frozen=True)
class Condition:
    """Words that are true or false of any case."""

    words: str
    holds: Callable[[Any], bool] = field(compare=False)


@dataclass(frozen=True)
class Stated:
    """The conditions of a finding.

    conditions
        All of its cases meet each of them.
    passing
        How many cases meet all of them and pass.
    """

    conditions: tuple[Condition, ...]
    passing: int


def _has(feature: str) -> Callable[[Any], bool]:
    return lambda spec: feature in features_of(spec)


def _is(name: str, *values: Any) -> Callable[[Any], bool]:
    return lambda spec: getattr(spec, name, None) in values


_OTHER_SIZES = ("sizes", "growing")

_CONDITIONS: Mapping[tuple[str, Any], tuple[Condition, ...]] = {
    ("direction", "reverse"): (
        Condition("the reverse direction", _has("reverse")),
        Condition("the reverse direction alone", _is("direction", "reverse")),
    ),
    ("direction", "bidirectional"): (Condition("both directions", _is("direction", "bidirectional")),),
    ("lengths", "full"): (Condition("sequence_lens", _has("lengths")),),
    ("lengths", "short"): (
        Condition("a row shorter than the sequence", _has("short-row")),
        Condition("sequence_lens", _has("lengths")),
    ),
    ("lengths", "ragged"): (
        Condition("rows of several lengths", _is("lengths", "ragged", "empty")),
        Condition("a row shorter than the sequence", _has("short-row")),
        Condition("sequence_lens", _has("lengths")),
    ),
    ("lengths", "empty"): (
        Condition("a row of length 0", _has("empty-row")),
        Condition("a row shorter than the sequence", _has("short-row")),
        Condition("sequence_lens", _has("lengths")),
    ),
    ("initial", "all"): (
        Condition("all initial states", _is("initial", "all")),
        Condition("initial states", _has("initial-state")),
    ),
    ("initial", "h"): (
        Condition("initial_h", _is("initial", "h", "all")),
        Condition("initial_h alone", _is("initial", "h")),
        Condition("initial states", _has("initial-state")),
    ),
    ("initial", "c"): (
        Condition("initial_c", _is("initial", "c", "all")),
        Condition("initial_c alone", _is("initial", "c")),
        Condition("initial states", _has("initial-state")),
    ),
    ("reruns", "data"): (Condition("a re-used session", lambda spec: spec.reruns != "none"),),
    **{
        ("reruns", value): (
            Condition(words, _is("reruns", value)),
            Condition("an earlier run of another size", _is("reruns", *_OTHER_SIZES)),
            Condition("a re-used session", lambda spec: spec.reruns != "none"),
        )
        for value, words in (("sizes", "an earlier run that is larger"), ("growing", "an earlier run that is smaller"))
    },
}
"""The conditions that a field's value allows, the plainest first."""

ABSENCES: Mapping[tuple[str, Any], Condition] = {
    ("bias", False): Condition("no bias B", _is("bias", False)),
    ("lengths", "absent"): Condition("no sequence_lens", _is("lengths", "absent")),
    ("initial", "none"): Condition("no initial states", _is("initial", "none")),
    ("layout", 0): Condition("layout 0", _is("layout", 0)),
    ("direction", "forward"): Condition("one direction", _is("direction", "forward", "reverse")),
    ("direction", "reverse"): Condition("one direction", _is("direction", "forward", "reverse")),
}
"""By field and value: what is said of a case where something else must be absent."""

_WORDS: Mapping[str, Mapping[Any, str]] = {
    "layout": {1: "layout 1"},
    "bias": {True: "bias B"},
    "peepholes": {True: "peepholes P"},
    "hidden_size": {False: "no hidden_size"},
    "explicit": {True: "defaults written down"},
    "weights": {"initializer": "constant weights"},
    "dimensions": {"symbolic": "symbolic dimensions"},
    "opset": {"last": "a later opset"},
    "data": {
        "small": "small numbers",
        "large": "large numbers",
        "huge": "huge numbers",
        "heavy": "large weights",
        "exact": "exactly representable data",
        "one-sign": "numbers of one sign",
        "numerics": "one-step accuracy",
        "nan-row": "NaN in one row",
        "inf-row": "infinity in one row",
        "nan-padding": "NaN in the padding",
        "nan": "NaN",
        "inf": "infinity",
        "far": "numbers far beyond all levels",
        "ties": "numbers between two levels",
    },
    "old": {True: "the old name"},
}
"""Words of values that a case either has or has not."""

_ATTRIBUTES = {"alpha": "activation_alpha", "beta": "activation_beta"}
_ABSENT = (None, False, 0, "", ())


def needs_in_words(needs: Sequence[Need]) -> list[str]:
    """Needs that cannot be left out, for a reader."""
    return [conditions_of(need)[0].words for need in needs if need.field not in UNSAID]


def conditions_of(need: Need, passed: Iterable[int] = (), failed: Iterable[int] = ()) -> tuple[Condition, ...]:
    """The words for a need, the plainest first.

    passed, failed
        Further sizes of cases that meet all other conditions.
    """
    name, value = need.field, need.value
    if (name, value) in _CONDITIONS:
        return _CONDITIONS[name, value]
    if value in _WORDS.get(name, {}):
        return (Condition(_WORDS[name][value], _is(name, value)),)
    if name in SIZES:
        return tuple(_of_size(name, value, {*need.passed, *passed}, {value, *need.failed, *failed}))
    if need.features:
        return tuple(Condition(words, _has(feature)) for feature, words in reversed(need.features))
    return tuple(_of_value(need))


def _of_value(need: Need) -> Iterator[Condition]:
    name, value = need.field, need.value
    if name == "activations":
        functions = set(value)
        words = f"activations {'/'.join(dict.fromkeys(value))}"
        narrow = Condition(words, lambda spec: functions <= set(spec.activations or ()))
        wide = Condition("a list of activations", lambda spec: spec.activations is not None)
        # That it takes just these three or more functions is less likely than that it takes a list.
        yield from (narrow, wide) if len(functions) < _LISTED else (wide, narrow)
    elif name == "outputs":
        names = tuple(filter(None, value))
        listed = ", ".join(names)
        yield Condition(f"outputs {listed}", lambda spec: set(names) <= set(spec.outputs))
        yield Condition(f"no outputs but {listed}", lambda spec: set(names) == set(filter(None, spec.outputs)))
    elif name == "fill":
        if any(share > 1 for _, share in value):
            yield Condition(
                "numbers beyond what levels stand for", lambda spec: any(share > 1 for _, share in spec.fill)
            )
        else:
            yield Condition(
                "numbers that use little of their range",
                lambda spec: bool(spec.fill) and all(share <= 1 for _, share in spec.fill),
            )
    elif _scale(value):
        if set(need.instead) != {None}:
            scale, zero_point = value
            yield Condition(f"{name}_scale {scale:.6g} at zero point {zero_point}", _is(name, value))
        yield Condition(f"{name}_scale", lambda spec: getattr(spec, name, None) is not None)
    elif name == "type":
        yield Condition(str(value), _is(name, value))
    elif all(other in _ABSENT for other in need.instead) and value not in _ABSENT:
        # Nothing but leaving it out was tried, so nothing is known of which value it takes.
        yield Condition(_ATTRIBUTES.get(name, name), lambda spec: getattr(spec, name, None) not in _ABSENT)
    else:
        yield Condition(f"{_ATTRIBUTES.get(name, name)} {value}", _is(name, value))


def _scale(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and [*map(type, value)] == [float, int]


_LISTED = 3
"""Functions of a smallest case, of which it is first said that there is a list of them."""

_NOTHING = {"T": "seq_length 0", "N": "batch_size 0"}
_UNITS = {"T": "step", "N": "row", "I": "feature of X", "H": "unit"}


def _counted(name: str, size: int) -> str:
    unit = _UNITS[name]
    return f"{size} {unit}" if size == 1 else f"{size} {unit.replace(unit.split()[0], unit.split()[0] + 's', 1)}"


def _of_size(name: str, value: int, passed: set[int], failed: set[int]) -> Iterator[Condition]:
    """The words for a size by those that pass and those that fail: a threshold lies between the largest that
    passes and the smallest that fails."""

    def size_of(spec: Any) -> int:
        return int(getattr(spec, name))

    if value == 0:
        yield Condition(_NOTHING.get(name, f"{name} 0"), lambda spec: size_of(spec) == 0)
        return
    least, most = min(failed), max(failed)
    below = max((size for size in passed if size < least), default=None)
    above = min((size for size in passed if size > most), default=None)
    between = any(least < size < most for size in passed)
    # Of what is between the last that passes and the first that fails nobody knows.
    unknown = "" if below in (None, least - 1) else f" ({below} pass{'es' if below == 1 else ''})"
    if not between and above is None:
        yield Condition(f"{_counted(name, least)} or more{unknown}", lambda spec: size_of(spec) >= least)
        return
    apart = all(size % least for size in passed) and not any(size % least for size in failed)
    if least > 1 and len(failed) > 1 and apart:
        multiple = f"a multiple of {_counted(name, least)}"
        yield Condition(multiple, lambda spec: size_of(spec) > 0 and size_of(spec) % least == 0)
    if not between and least == most:
        yield Condition(f"exactly {_counted(name, least)}{unknown}", lambda spec: size_of(spec) == least)
    elif not between:
        yield Condition(f"{least} to {_counted(name, most)}{unknown}", lambda spec: least <= size_of(spec) <= most)
    yield Condition(f"{_counted(name, least)} or more{unknown}", lambda spec: size_of(spec) >= least)


def _spec_of(probe: Probe) -> Any | None:
    """The spec of a case, wrapped or not; None of what has none."""
    probe = getattr(probe, "probe", probe)
    return probe.spec if isinstance(probe, SpecProbe) and not probe.spec.illegal else None


def _true_of(condition: Condition, field: str, probe: Probe) -> bool:
    spec = _spec_of(probe)
    return spec is not None and hasattr(spec, field) and condition.holds(spec)


def meeting(needs: Sequence[Need], probes: Iterable[Probe]) -> list[Probe]:
    """The probes that have what a smallest case cannot do without."""
    conditions = [(need.field, conditions_of(need)[0]) for need in needs if need.field not in UNSAID]
    return [probe for probe in probes if all(_true_of(condition, name, probe) for name, condition in conditions)]


def stated(
    needs: Sequence[Need],
    members: Sequence[Probe],
    passing: Sequence[Probe],
    shows: Callable[[Probe], bool] = lambda probe: True,
    absent: Sequence[Need] = (),
) -> Stated:
    """The conditions that a finding may state: each is true of all its members. Where cases pass that meet all of them,
    narrower ones are sought.

    shows
        Whether a case that passes should have failed, where that is known.
    absent
        What must be absent; it is said where cases that have it pass.
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
    for name, true in choices:
        for narrower in true[1:] if met else ():
            fewer = left({**chosen, name: narrower})
            if len(fewer) < len(met):
                chosen, met = {**chosen, name: narrower}, fewer
    for need in absent:
        name, condition = f"no {need.field}", ABSENCES[need.field, need.value]
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
    """The sizes of those that pass, and of those that fail, with all else that a smallest case cannot do without."""
    if need.field not in SIZES:
        return set(), set()
    size = partial(_size, need.field)
    others = [other for other in needs if other is not need]
    met: dict[int, list[Probe]] = {}
    for probe in meeting(others, passing):
        met.setdefault(size(probe), []).append(probe)
    # Of each size one that should have failed tells as much as all: to work that out costs more than to run a case.
    passed = {n for n, some in met.items() if any(map(shows, sorted(some, key=lambda probe: probe.size)))}
    # Another cause may have smaller ones fail: then nothing is said of the size.
    failed = {size(probe) for probe in meeting(others, members) if size(probe) >= need.value}
    return passed, failed


def _size(name: str, probe: Probe) -> int:
    return int(getattr(_spec_of(probe), name, 0))
