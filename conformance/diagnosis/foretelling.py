"""Names that foretell: which fault explains a smallest case, and what the target returns in cases that it never saw.

A small case is explained by more than one fault. So whatever explains it has to say what the target will return in
fresh cases of the same kind, with other numbers and larger sizes: only what is right there, within the bounds of every
number, has a claim to be the cause.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cases import family_of
from ...reference import FAULTS, Fault, faults_of, operator_version
from ...reference.faults.fault import variants_of
from ...reference.faults.scope import base_id, scoped_of
from ..judging.judgement import FAILING, Verdict
from ..probes.probe import Probe, SpecProbe
from ..probes.stream import Tried

__all__ = ["ENOUGH", "FRESH", "Foretold", "Fresh", "foretold", "fresh_specs", "is_constant", "richer_specs"]

FRESH = 10
"""Fresh cases that a name must foretell."""

ENOUGH = 5
"""The share of them that must fail: of a case that passes a fault says little."""

_TIMES = 4
"""Number of times that so many are drawn until enough of them fail."""


@dataclass(frozen=True)
class Foretold:
    """The fault that foretold what the target returns.

    others
        How many others did so too, in cases with more in them as well: nothing tells them apart.
    cases
        Fresh cases that it foretold, in which it is not what is right.
    """

    fault: Fault
    others: int
    cases: int


Run = Callable[[Sequence[SpecProbe]], Iterator[Tried]]
"""The results of the target on some cases."""

LeftOpen = Callable[[Fault, Tried], Sequence[NDArray[Any]]]


@dataclass(frozen=True)
class Fresh:
    """The results of a target on fresh cases of the same kind as one, which are run when somebody asks.

    fixed
        Sizes in question: the failure was seen to depend on them, so that few cases change them.
    without
        The case without one thing, where it was seen to fail all the same: what explains that, too, is likelier.
    """

    probe: SpecProbe
    run: Run
    fixed: Collection[str] = field(default=())
    without: Sequence[Any] = field(default=())

    @cached_property
    def answers(self) -> list[Tried]:
        """All of them; more where few fail, as with a clip that seldom bites."""
        answers: list[Tried] = []
        for number in range(_TIMES):
            answers += self.tried(fresh_specs(self.probe.spec, self.fixed, number * FRESH))
            if sum(answer.judgement.verdict in FAILING for answer in answers) >= ENOUGH:
                break
        return answers

    def tried(self, specs: Sequence[Any]) -> list[Tried]:
        """Other cases in the same surroundings, those of them that fit there."""
        probes: list[SpecProbe] = []
        for spec in specs:
            with contextlib.suppress(ValueError):  # the surroundings do not fit
                probes.append(self.probe.like(spec))
        return list(self.run(probes))

    @property
    def failing(self) -> list[Tried]:
        return [answer for answer in self.answers if answer.judgement.verdict in FAILING]

    @property
    def kinds(self) -> list[list[Tried]]:
        """Fresh cases that fail by what is larger in them: nothing, some sizes, or one of those in question."""
        kinds: dict[tuple[bool, bool], list[Tried]] = {}
        for answer in self.failing:
            larger = {name for name in _MORE if _size(answer.probe, name) != _size(self.probe, name)}
            kinds.setdefault((bool(larger), bool(larger & {*self.fixed})), []).append(answer)
        return list(kinds.values())

    @property
    def passing(self) -> list[SpecProbe]:
        right = (answer.probe for answer in self.answers if answer.judgement.verdict is Verdict.PASS)
        return [probe for probe in right if isinstance(probe, SpecProbe)]


def _size(probe: Probe, name: str) -> int:
    return int(getattr(getattr(probe, "spec", None), name, 0))


def fresh_specs(spec: Any, fixed: Collection[str] = (), after: int = 0) -> list[Any]:
    """Cases of the same kind as one, with other numbers; every second of them is larger, each in sizes of its own, as
    what holds for two rows may hold for no three. None where a case has no seed.

    fixed
        Sizes that are larger in every fourth case only: what holds at 256 steps may hold at no 257, but it may also
        show at that size alone.
    after
        How many there have been.
    """
    names = {own.name for own in fields(spec)}
    if "seed" not in names:
        return []
    fresh = []
    larger = family_of(spec.op).larger
    for seed in range(after + 1, after + FRESH + 1):
        changed = {name: getattr(spec, name) + seed for name in _SEEDS if name in names}
        if seed % 2:
            # Nothing at all is what a case is about.
            free = {name: least for name, least in larger.items() if name not in fixed or seed % 4 == 3}
            sizes = {name: max(n, least) for name, least in free.items() if (n := getattr(spec, name, 0)) > 0}
            changed |= {name: size + _MORE[name][seed // 2 % 5] for name, size in sizes.items()}
        fresh.append(replace(spec, **changed))
    return fresh


_SEEDS: tuple[str, ...] = ("seed", "weights_seed")

_MORE = {"T": (0, 1, 4, 2, 0), "N": (0, 1, 3, 6, 2), "I": (0, 2, 0, 1, 5), "H": (0, 4, 1, 12, 3)}
"""Steps added to the sizes of larger fresh cases, one after the other."""


def richer_specs(spec: Any) -> list[Any]:
    """Cases with more in them than one has: what is made in one place, or by one of several, tells itself apart
    there."""
    richer = []
    for number, change in enumerate(family_of(spec.op).richer(spec)):
        try:
            larger = replace(spec, **change, seed=spec.seed + FRESH + number)
            SpecProbe(larger).prepare()
        except (ValueError, KeyError, IndexError):  # an IllegalNode too: that version, or that case, has no such thing
            continue
        richer.append(larger)
    return richer


def foretold(
    one: Tried,
    fresh: Fresh,
    explains: Callable[[Fault, Tried], bool],
    hurry: Callable[[], bool] = lambda: False,
    first: Fault | None = None,
    refutes: Callable[[Fault, Tried], bool] = lambda fault, one: False,
    left_open: LeftOpen = lambda fault, one: [],
    needed: Callable[[Fault, Tried], bool] | None = None,
    alters: Callable[[Fault, Tried], bool] = lambda fault, one: True,
    same: Callable[[Fault, Sequence[Fault]], Sequence[Fault]] = lambda fault, others: (),
) -> Foretold | None:
    """The fault that explains a case and foretells fresh ones; None where there is none, or not enough of them fail.

    fresh
        Cases of the same kind.
    explains
        Whether a fault explains what it returned.
    hurry
        Whether the budget is spent; faults that are made in one place only come last.
    first
        The fault that is thought of: of several that foretell all, it is taken.
    refutes
        Whether a fault says that a case which passed comes out otherwise.
    left_open
        What was returned where a fault says that anything may stand.
    needed
        Whether a fault explains what the others of the target do not explain without it; like `explains` where there
        are none.
    alters
        Whether a fault makes another case of it at all: where it does not, it does not in any place either.
    same
        Those of other faults that are another word for what one is.
    """
    needed = needed or explains
    assert isinstance(one.probe, SpecProbe)
    spec: Any = one.probe.spec
    if spec.illegal:
        return None
    table = [d for d in faults_of(spec.op, spec.version, spec.type) if not (d.accepts or d.kind == "bias" or d.varies)]
    misshapen = one.judgement.verdict is Verdict.MALFORMED
    if misshapen:
        table = [d for d in table if d.layer == "form"]
    known = ([first] if first is not None else []) + [d for d in table if d is not first]
    variants = list(variants_of(spec.op, spec.version, spec.type))
    # What changes nothing where it is made everywhere changes nothing in any place.
    altering = (d for d in (*known, *variants) if alters(d, one))
    others = (variants, (d for d in scoped_of(altering) if d.concerns(spec.op)))
    for candidates in (known, *(() if misshapen else others)):
        fitting = []
        for fault in candidates:
            if hurry():
                return None
            if explains(fault, one):
                fitting.append(fault)
        if not fitting:
            continue
        failing = fresh.failing
        if len(failing) < ENOUGH:
            return None
        # Each may be made in fewer places than it is thought to be.
        narrow = [d for d in scoped_of(iter(fitting), seen=True) if d.concerns(spec.op) and d not in fitting]
        right = [*fitting, *narrow]
        for answer in (one, *failing):
            right = [d for d in right if explains(d, answer)]
        right = [d for d in right if not is_constant(d, (one, *failing), left_open)]
        # Beside what the target does anyway much foretells it.
        own = {d.id: sum(needed(d, answer) for answer in failing) for d in right}
        right = [d for d in right if own[d.id] == max(own.values()) and 2 * own[d.id] >= len(failing)]
        richer = fresh.tried([*richer_specs(spec), *fresh.without]) if right and not hurry() else []
        for answer in richer:
            # What none of them explains shows something else.
            if answer.judgement.verdict in FAILING:
                right = [d for d in right if needed(d, answer)] or right
        for answer in richer:
            # Of several, those that say what is right to be wrong are not the cause.
            if answer.judgement.verdict is Verdict.PASS and len(right) > 1:
                right = [d for d in right if not refutes(d, answer)] or right
        # Where nothing but an output is asked for nobody sees that the others are right.
        shown = [answer for answer in (one, *failing, *richer) if len(_outputs(answer)) > 1]
        right = [d for d in right if not _of_output(d, spec) or any(explains(d, answer) for answer in shown)]
        if right:
            rivals = {base_id(d.id) for d in right} - {base_id(right[0].id)}
            words = [right[0], *same(right[0], [d for d in right if base_id(d.id) in rivals])]
            # Of words for one thing the table has the plainest first.
            chosen = min(words, key=_place_of) if len(words) > 1 else right[0]
            rivals -= {base_id(d.id) for d in words}
            return Foretold(chosen, len(rivals), len(failing))
    return None


def _place_of(fault: Fault) -> int:
    """The place of a fault in the table; variants come behind."""
    places = {id: number for number, id in enumerate(FAULTS)}
    return places.get(base_id(fault.id), len(places))


def _of_output(fault: Fault, spec: Any) -> bool:
    """Tell whether a fault is made in one output only."""
    return fault.id.partition("@")[2] in operator_version(spec.op, spec.version).outputs


def _outputs(answer: Tried) -> tuple[str, ...]:
    return answer.prepared.trials[0].node.outputs if answer.prepared.trials else ()


def is_constant(fault: Fault, answers: Iterable[Tried], left_open: LeftOpen) -> bool:
    """Tell whether one and the same number stands wherever a fault says that anything may, as memory happened to be:
    then it was written there. What the worker fills memory with is of equal bytes."""
    returned = [array for answer in answers for array in left_open(fault, answer)]
    numbers = {number for array in returned for number in array.astype(np.float64).tolist()}
    bytes_ = {byte for array in returned for byte in array.tobytes()}
    return sum(array.size for array in returned) >= ENOUGH and len(numbers) == 1 and (len(bytes_) > 1 or bytes_ == {0})
