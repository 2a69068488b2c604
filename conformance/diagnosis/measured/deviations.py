"""Measuring: which of a target's functions is wrong, at which arguments, and what it is instead.

A failure that nothing explains is asked about where it began: nodes of one step with the attributes of the smallest
case, in which one gate gets the argument, by a weight of one, and nothing else happens. Each row has another argument,
in two orders, so that what belongs to a row is not taken for what belongs to an argument; and there are several units.
What the function is instead is found among few things that kernels do: another function, other coefficients, a bound of
its own, clip in another place. It is told as measured, and is a name where it foretells fresh cases of the failure.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....cases.specs.spec import RecurrentSpec
from ....reference import FORMATS, Fault, cell_named, evaluate, fault_named, operator_for
from ....reference.faults.own import LETTERS, own_function
from ....reference.faults.stretches import left_over
from ....reference.numbers.activations import ACTIVATIONS
from ....reference.recurrent.computation import computation_of
from ..failing_case import FailingCase
from .step import Array, Inputs, Mask, Runs, asked, node_spec, numbers_wrong, shows_numbers

__all__ = ["Deviation", "deviations_of"]


_ARGUMENTS = np.concatenate([np.arange(-12.0, 12.125, 0.125), np.array([14, 16, 20, 24, 32, 48, 64, 96]) * 1.0])
_ARGUMENTS = np.unique(np.concatenate([_ARGUMENTS, -_ARGUMENTS[-8:]]))
"""They are numbers of every type."""

_UNITS = 13
"""Units that there are at least: of 13 some are left over of blocks of 2 to 8."""

_OPEN, _STATE = 3.0, 0.5
"""The arguments of other gates, of which few kernels bound functions at less, and the initial states."""

_MOST = 2.0**-6
"""The error up to which a function is rather approximated than another one."""

_WRONG, _NEARLY = "wrong", 0.9


@dataclass(frozen=True)
class Deviation:
    """A function that is wrong.

    position
        Among those of a direction.
    gates
        Letters of those gates in which it is, of those that show.
    direction, narrow
        Empty for all that there are: in words, where others have that function too, and for faults.
    units
        ``units-past-8s``, or empty for all.
    how, where
        In words, ``wrong`` or by how much it is off, and at which arguments.
    ids
        Of faults that make it what was returned, the plainest first.
    """

    position: int
    name: str
    gates: str
    direction: str
    narrow: str
    units: str
    how: str
    where: str
    ids: tuple[str, ...]

    @property
    def words(self) -> str:
        """A sentence for a reader, on what comes out of one step: another thing than the function may be why."""
        several = "s" if len(self.gates) > 1 else ""
        of = f"{self.name} of gate{several} {', '.join(self.gates)}" if self.gates else self.name
        words = f"one step through {of} is {self.how}"
        if self.direction:
            words += f" in the {self.direction} direction"
        if self.units:
            words += f" in units left over of hidden_size after whole blocks of {_block(self.units)}"
        return f"{words} {self.where}"

    @property
    def slight(self) -> bool:
        """Tell whether it is rather approximated than another one."""
        return self.how != _WRONG

    def faults(self) -> Iterator[Fault]:
        """Faults that make there what it may be."""
        for id in self.ids:
            for scoped in dict.fromkeys((f"{id}{self._scope}", f"{id}{self._units}")):
                fault = fault_named(scoped)
                if isinstance(fault, Fault):
                    yield fault

    @property
    def _units(self) -> str:
        return f"@{self.units}" if self.units else ""

    @property
    def _scope(self) -> str:
        return f"{self._units}{f'@{self.narrow}' if self.narrow else ''}"


def _block(units: str) -> str:
    return units.removeprefix("units-past-").removesuffix("s")


def deviations_of(spec: Any, run: Runs, accuracies: Sequence[str]) -> list[Deviation]:
    """The functions of a case's node that are wrong by themselves; none where nothing can be told."""
    if not shows_numbers(spec):
        return []
    sheet = _Sheet(node_spec(spec, N=len(_ARGUMENTS), H=max(spec.H, _UNITS)))
    designs = list(sheet.designs())
    answers = [sheet.asked(design, run) for design in designs]
    tables = []
    for design, answer in zip(designs, answers, strict=True):
        cases = tuple(case for case in answer if case is not None)
        wrong = _wrong(cases, design.orders, accuracies) if len(cases) == len(answer) else None
        if wrong is not None:
            # Where is told by the narrowest class, unless by that it is everywhere.
            narrow = _wrong(cases, design.orders, accuracies[:1]) if wrong.any() else wrong
            narrow = wrong if narrow is None or narrow.any(axis=(0, 2)).mean() > _NEARLY else narrow
            tables.append(_Tabulated(sheet, replace(design, cases=cases), narrow))
    return list(_told(sheet, [table for table in tables if table.wrong.any()]))


@dataclass(frozen=True)
class _Design:
    """Inputs in which one gate gets the arguments.

    gate
        Its letter.
    positions
        Those of its function, by direction; None where it does not show.
    orders
        Places of the arguments in rows, one order for each of the `inputs`.
    """

    gate: str
    positions: tuple[int | None, ...]
    inputs: tuple[Inputs, ...]
    orders: tuple[NDArray[np.int64], ...]
    cases: tuple[FailingCase, ...] = ()


class _Sheet:
    """A node of one step on which functions are measured."""

    def __init__(self, spec: RecurrentSpec) -> None:
        self.spec, self.node, self.cell = spec, spec.node, cell_named(spec.op)
        self.dtype = FORMATS[spec.type].dtype
        self._orders = (np.arange(len(_ARGUMENTS)), np.random.default_rng(1).permutation(len(_ARGUMENTS)))

    @cached_property
    def computation(self) -> Any:
        """A computation, with which the attributes come to something."""
        gate, others = self.cell.gates[0], len(self.cell.gates) - 1
        return computation_of(self.node, self._inputs(gate, np.zeros((self.spec.directions, others)), self._orders[0]))

    @cached_property
    def configuration(self) -> Any:
        """The attributes with what they come to."""
        return self.computation.configuration

    def designs(self) -> Iterator[_Design]:
        """One for each gate whose function shows."""
        for gate in self.cell.gates:
            # What a gate does to Ht-1 shows only in what comes of that.
            either = (self._design(gate, recurrent) for recurrent in (False, True))
            design = next((one for one in either if any(p is not None for p in one.positions)), None)
            if design is not None:
                yield design

    def _design(self, gate: str, recurrent: bool) -> _Design:
        others, D = len(self.cell.gates) - 1, self.spec.directions
        best, most = np.zeros((D, others)), np.zeros(D)
        for signs in itertools.product((-_OPEN, _OPEN), repeat=others):
            inputs = self._inputs(gate, np.broadcast_to(signs, (D, others)), self._orders[0], recurrent)
            shown = self._shown(evaluate(self.node, inputs)["Y"])
            best, most = np.where((shown > most)[:, np.newaxis], signs, best), np.maximum(shown, most)
        several = tuple(self._inputs(gate, best, order, recurrent) for order in self._orders)
        return _Design(gate, self._positions(several[0], most), several, self._orders)

    def _shown(self, Y: Array) -> Array:
        """(D,): how far numbers are apart that come of different arguments."""
        rows = Y.astype(np.float64) if self.spec.layout == 0 else Y.transpose(1, 2, 0, 3).astype(np.float64)
        apart: Array = np.ptp(np.nan_to_num(rows), axis=2)[0].min(axis=-1)
        return apart

    def _inputs(self, gate: str, signs: Array, order: NDArray[np.int64], recurrent: bool = False) -> Inputs:
        """`signs` are the biases of the other gates, by direction; `recurrent` is whether these get Ht-1 as well."""
        letters, spec = self.cell.gates, self.spec
        D, G, H, N = spec.directions, len(letters), spec.H, spec.N
        chosen = np.array([letter == gate for letter in letters], float)
        bias = np.zeros((D, G))
        bias[:, chosen == 0] = signs
        X = _ARGUMENTS[order].reshape(1, N, 1)
        R = np.zeros((D, G, H, H))
        if recurrent:
            R[:, chosen == 0] = np.eye(H)
        tensors = {
            "X": X if spec.layout == 0 else X.swapaxes(0, 1),
            "W": np.broadcast_to(np.repeat(chosen, H)[:, np.newaxis], (D, G * H, 1)),
            "R": R.reshape(D, G * H, H),
            "B": np.concatenate([np.repeat(bias, H, axis=1), np.zeros((D, G * H))], axis=1),
        }
        state = (D, N, H) if spec.layout == 0 else (N, D, H)
        tensors |= {f"initial_{name}": np.full(state, _STATE) for name in ("h", *self.cell.inner)}
        return {name: np.ascontiguousarray(array.astype(self.dtype)) for name, array in tensors.items()}

    def _positions(self, inputs: Inputs, shown: Array) -> tuple[int | None, ...]:
        """The position of its function: without what that makes of the argument, nothing is left to be seen."""
        positions: list[int | None] = [None] * len(shown)
        for position in reversed(range(len(self.cell.activations))):
            flat = fault_named(own_function(position, "as-Affine", 0.0, 0.25))
            assert isinstance(flat, Fault)
            left = self._shown(operator_for(self.node).answer(self.node, inputs, (flat,))["Y"])
            positions = [position if a and not b else p for a, b, p in zip(shown, left, positions, strict=True)]
        return tuple(positions)

    def asked(self, design: _Design, run: Runs) -> list[FailingCase | None]:
        """The answers of the target, one for each order."""
        keys = [f"{self.spec.id}~measured-{design.gate}{number}" for number in range(len(design.inputs))]
        return asked(self.spec, keys, design.inputs, run)


def _wrong(cases: Sequence[FailingCase], orders: Sequence[Array], accuracies: Sequence[str]) -> Mask | None:
    """(D, arguments, H): the numbers that are wrong in every order; None where it is not known of all."""
    masks = [numbers_wrong(case, accuracies) for case in cases]
    sorted_ = [mask[:, np.argsort(order)] for mask, order in zip(masks, orders, strict=True) if mask is not None]
    return np.logical_and.reduce(sorted_) if len(sorted_) == len(masks) else None


class _Tabulated:
    """A gate's function, with where it is wrong.

    wrong
        (D, arguments, H).
    """

    def __init__(self, sheet: _Sheet, design: _Design, wrong: Mask) -> None:
        self.sheet, self.design, self.wrong = sheet, design, wrong

    @cached_property
    def _returned(self) -> list[Array]:
        """(T, D, N, H) for each order of arguments."""
        return [self._turned(case.runs[0].outputs["Y"].astype(np.float64)) for case in self.design.cases]

    def _turned(self, Y: Array) -> Array:
        return Y.transpose(1, 2, 0, 3) if self.sheet.spec.layout == 1 else Y

    def matches(self, faults: Sequence[Fault], d: int, units: Mask) -> bool:
        """Tell whether in one direction, and in some units, the numbers are those that faults make."""
        for case, got in zip(self.design.cases, self._returned, strict=True):
            observation: Any = case.observation("standard")
            ((_, value, radius), *_) = observation.expected(faults)
            value, radius = self._turned(value), self._turned(radius)
            near = np.abs(got - value) <= radius + 2 * FORMATS[self.sheet.spec.type].unit * np.abs(value)
            if not near[0, d][:, units].all():
                return False
        return True

    def where(self, d: int, units: Mask) -> str:
        """The arguments at which it is wrong, in words."""
        return _arguments_in_words(self.wrong[d][:, units].any(axis=1))

    def example(self, d: int, units: Mask) -> tuple[float, str]:
        """The error of the number that is furthest off, and that number in words."""
        case, order = self.design.cases[0], self.design.orders[0]
        observation: Any = case.observation("standard")
        value, got = self._turned(observation.expected(())[0][1])[0, d], self._returned[0][0, d]
        off = np.where(self.wrong[d][order] & units, np.abs(got - value), 0.0)
        row, unit = np.unravel_index(int(np.argmax(off)), off.shape)
        x = _ARGUMENTS[order][row]
        digits = 8 if FORMATS[self.sheet.spec.type].unit < 2.0**-20 else 4
        words = f"at {x:g} (Y {got[row, unit]:.{digits}g} where {value[row, unit]:.{digits}g} is right)"
        return float(off[row, unit]), words


@dataclass(frozen=True)
class _Wrong:
    """A function that is wrong in one gate and one direction."""

    table: _Tabulated
    d: int
    position: int
    units: Mask
    scope: str

    @property
    def name(self) -> str:
        """The name of the function that it ought to be."""
        return str(self.table.sheet.configuration.activations[self.d][self.position].name)

    def is_by(self, *ids: str) -> bool:
        """Tell whether faults make it what was returned."""
        faults = [fault for fault in map(fault_named, ids) if isinstance(fault, Fault)]
        return self.table.matches(faults, self.d, self.units)


def _told(sheet: _Sheet, tables: Sequence[_Tabulated]) -> Iterator[Deviation]:
    directions = sheet.configuration.directions
    left = list(_places(sheet, tables))
    known: dict[tuple[int, str], str] = {}
    for one in left:
        id = next((id for id in _instead(sheet, one) if one.is_by(id)), "")
        if id:
            known.setdefault((one.d, f"{one.scope}{one.position}"), id)
    by: list[tuple[_Wrong, str]] = []
    for d in range(len(directions)):
        several = [one for one in left if one.d == d]
        ids = [id for (own, _), id in known.items() if own == d]
        if not ids and len({one.position for one in several}) > 1:
            # All functions of a direction may be wrong alike, so that nothing is seen of one alone.
            alike = (id for one in several[:1] for id in _instead(sheet, one, alone=False))
            ids = [id for id in alike if all(one.is_by(id) for one in several)][:1]
        for one in several:
            own = next((id for id in ids if one.is_by(id)), "")
            # What another wrong function brings about is none of its own.
            if not own or own.startswith(("functions.all", f"functions.{LETTERS[one.position]}")):
                by.append((one, own))
    groups: dict[tuple[Any, ...], list[_Wrong]] = {}
    for one, id in by:
        groups.setdefault((one.position, one.name, one.scope, id, one.table.where(one.d, one.units)), []).append(one)
    for (position, name, scope, id, where), places in groups.items():
        gates = "".join(dict.fromkeys(one.table.design.gate for one in places)) if len(sheet.cell.gates) > 1 else ""
        of = {one.d for one in places}
        others = {d for d in range(len(directions)) if d not in of and _has(sheet, d, name)}
        direction = directions[min(of)] if others else ""
        narrow = directions[min(of)] if len(of) < len(directions) else ""
        worst, example = places[0].table.example(places[0].d, places[0].units)
        how = _WRONG if worst > _MOST else f"off by as much as {worst:.2g}"
        where = f"{where}, as {example}" if where != _EVERYWHERE or worst > _MOST else where
        yield Deviation(position, name, gates, direction, narrow, scope, how, where, (id,) if id else ())


def _has(sheet: _Sheet, d: int, name: str) -> bool:
    return any(function.name == name for function in sheet.configuration.activations[d])


def _places(sheet: _Sheet, tables: Sequence[_Tabulated]) -> Iterator[_Wrong]:
    for table, d in itertools.product(tables, range(sheet.spec.directions)):
        position, wrong = table.design.positions[d], table.wrong[d]
        if position is not None and wrong.any():
            units = wrong.any(axis=0)
            scope = _scope_of(units)
            if scope is not None:
                yield _Wrong(table, d, position, units, scope)


def _scope_of(units: Mask) -> str | None:
    """The scope of wrong units; None where it is none that is known."""
    if units.all():
        return ""
    H = len(units)
    for block in (8, 4, 2, 16, 32):
        if block < H and (units == left_over(block)(np.arange(H), H)).all():
            return f"units-past-{block}s"
    return None


_EVERYWHERE = "at nearly all arguments"


def _arguments_in_words(wrong: Mask) -> str:
    """Words for where in the table numbers are wrong."""
    x = _ARGUMENTS
    if wrong.mean() > _NEARLY:
        return _EVERYWHERE
    right = x[~wrong]
    low, high = x[wrong].min(), x[wrong].max()
    inside = right[(right > low) & (right < high)]
    if not inside.size:
        if low > right.max():
            return f"for arguments above {right.max():g}"
        if high < right.min():
            return f"for arguments below {right.min():g}"
        return f"for arguments from {low:g} to {high:g}"
    above, below = x[wrong & (x > 0)], x[wrong & (x < 0)]
    middle = right[np.abs(right) < min(above.min(initial=np.inf), -below.max(initial=-np.inf))]
    beyond = np.abs(right).max()
    if above.size and below.size and middle.size == right.size:
        return f"for arguments beyond {beyond:g} on either side"
    if not below.size:
        return "for positive arguments"
    return "for negative arguments" if not above.size else "for some arguments"


def _instead(sheet: _Sheet, one: _Wrong, alone: bool = True) -> Iterator[str]:
    """Ids of faults that may make a function what it was measured to be; or, not alone, that one and all others."""
    c, own = sheet.configuration, one.position
    position = own if alone else None
    function = c.activations[one.d][own]
    wrong = one.table.wrong[one.d][:, one.units].any(axis=1)
    right = _ARGUMENTS[~wrong]
    several: list[str] = []
    if c.clips[own] is not None:
        several += [own_function(position, change) for change in ("unclipped", "clipped-result")]
    narrower = [name for name in FORMATS if FORMATS[name].unit > FORMATS[sheet.spec.type].unit]
    several += [own_function(position, f"in-{name}") for name in narrower]
    if right.size:
        most, least = float(right.max()), float(right.min())
        several += [own_function(position, "argument-above", m) for m in _near(most)]
        several += [own_function(position, "argument-below", m) for m in _near(least)]
        several += [own_function(position, "argument-beyond", m) for m in _near(max(most, -least))]
    alphas = _coefficients(sheet.spec.alpha, [f.alpha.value for fs in c.activations for f in fs])
    betas = _coefficients(sheet.spec.beta, [f.beta.value for fs in c.activations for f in fs])
    kinds = [function.kind, *(kind for kind in ACTIVATIONS.values() if kind is not function.kind)]
    for kind in kinds if alone else ():
        usual = (kind.default_alpha, kind.default_beta)
        given = [[*(() if u is None else (u,)), *v] for u, v in zip(usual, (alphas, betas), strict=True)]
        lists = [values for values, used in zip(given, (kind.uses_alpha, kind.uses_beta), strict=True) if used]
        several += [own_function(position, f"as-{kind.name}", *numbers) for numbers in itertools.product(*lists)]
    own_values = _values(sheet.computation, one.d, own)
    for id in dict.fromkeys(several):
        fault = fault_named(id)
        assert isinstance(fault, Fault)
        changed: Any = fault.wrong
        off = np.abs(_values(changed.change(sheet.computation), one.d, own) - own_values)
        # A look at the function itself costs nothing, and leaves few.
        if (off[wrong] > 0).mean() > 0.9 and (off[~wrong] <= _ROUGHLY * (1 + np.abs(own_values[~wrong]))).all():
            yield id


_ROUGHLY = 0.02
"""The most that a function may be off, in a type of few digits, where nothing is seen to be wrong."""


def _values(c: Any, d: int, position: int) -> Array:
    """A function of the arguments, clip included."""
    clip, function = c.configuration.clips[position], c.configuration.activations[d][position]
    with np.errstate(all="ignore"):
        values: Array = function(_ARGUMENTS if clip is None else np.clip(_ARGUMENTS, -clip, clip))
    return np.nan_to_num(values)


def _near(last: float) -> list[float]:
    """Numbers that a bound may be, if this is the last argument that is right: those that people write down, the
    nearest first. Within a few roundings of what is right nobody sees a bound."""
    away = np.sign(last) or 1.0
    written = np.unique(np.round(np.concatenate([np.arange(0, 100, 0.1), np.arange(0, 100, 0.125), _WRITTEN]), 9))
    chosen = written[(written >= abs(last) - 2) & (written <= abs(last) + 4)]
    return [float(away * n) for n in sorted(chosen, key=lambda n: abs(n - abs(last)))]


_WRITTEN = [7.90531110763549805, 7.99881172180175781, 88.3762626647949]
"""Bounds of approximations that many copy."""


def _coefficients(given: Sequence[float] | None, used: Iterable[float]) -> list[float]:
    return list(dict.fromkeys([*(given or ()), *used, 0.0, 1.0, 0.5]))
