"""Narrowings: from a fault as it is made everywhere to the same fault, made in one place only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numbers.activations import Activation
from ..recurrent.cell import Gates, Number, Parameters, States
from ..recurrent.computation import Computation
from .alterations import configured, merged, revalued, with_equations, with_functions, with_inputs, with_lengths
from .fault import Compute, Outputs, Wrong
from .stretches import left_over

__all__ = [
    "Narrowing",
    "besides",
    "of_bias_half",
    "of_direction",
    "of_function",
    "of_gate",
    "of_input",
    "of_output",
    "of_row_blocks",
    "of_rows",
    "of_states",
    "of_unit_blocks",
]

Array = NDArray[Any]
Narrowing = Callable[[Wrong], Wrong]


@dataclass
class _Between(Compute):
    """A computation that stands between a fault and the one below, and hands on only some of what was altered."""

    below: Compute = field(default_factory=Compute)
    handed: Callable[[Any], Any] = lambda altered: altered

    def __call__(self, computation: Any) -> Outputs:
        return self.below(self.handed(computation))


def _between(compute: Compute, handed: Callable[[Any], Any]) -> Compute:
    return _Between(
        compute.observed, compute.fed, compute.memory, attributes=compute.attributes, below=compute, handed=handed
    )


def of_input(name: str) -> Narrowing:
    """Narrow what is altered to that input."""

    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Any) -> Outputs:
            return wrong(_between(compute, lambda altered: c.with_input(name, altered)), c)

        return only

    return narrow


def besides(wrong: Wrong) -> Wrong:
    """Cases where what the fault does in place of clip's bounds is done as well as them."""

    def both(compute: Compute, c: Computation) -> Outputs:
        return wrong(_between(compute, lambda altered: configured(altered, clips=c.configuration.clips)), c)

    return both


def of_direction(direction: str) -> Narrowing:
    """Only what one direction returns is wrong."""

    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Any) -> Outputs:
            directions = c.directions
            chosen = [d for d, name in enumerate(directions) if name == direction]
            if len(chosen) == len(directions):
                return wrong(compute, c)
            right = compute(c)
            return merged(c, right, wrong(compute, c), chosen) if chosen else right

        return only

    return narrow


def of_output(output: str) -> Narrowing:
    """Only that output is wrong."""

    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Any) -> Outputs:
            outputs = dict(compute(c))
            faulty = wrong(compute, c)
            if output in faulty:
                outputs[output] = faulty[output]
            return outputs

        return only

    return narrow


def of_bias_half(half: int) -> Narrowing:
    """Narrow what is altered to one half of B is: 0 for Wb, 1 for Rb."""

    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Computation) -> Outputs:
            def handed(altered: Computation) -> Computation:
                own = c.inputs.get("B")
                if own is None:
                    return c
                changed = altered.inputs.get("B", np.zeros_like(own))
                if changed is own or changed.shape != own.shape:
                    return c
                middle = own.shape[1] // 2
                parts = (changed[:, :middle], own[:, middle:]) if half == 0 else (own[:, :middle], changed[:, middle:])
                return with_inputs(c, B=np.concatenate(parts, axis=1))

            return wrong(_between(compute, handed), c)

        return only

    return narrow


# Where a tensor has its units, several times over in those that hold blocks of gates.
_UNITS = {"W": 1, "R": 1, "B": 1, "P": 1, "initial_h": 2, "initial_c": 2}


def of_unit_blocks(block: int, *, tail: bool) -> Narrowing:
    """Only units behind the last whole block of so many are wrong, all of them where there is no whole one: what a loop
    over vectors leaves to another one, in the tensors that it reads, in its functions and in what it returns. Or only
    those before."""

    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Computation) -> Outputs:
            H = c.configuration.H
            chosen = left_over(block)(np.arange(H), H) == tail
            if not chosen.any():
                return compute(c)
            read: set[str] = set()

            def handed(altered: Computation) -> Computation:
                changed: dict[str, Array | None] = {}
                for name, axis in _UNITS.items():
                    own, other = c.inputs.get(name), altered.inputs.get(name)
                    if own is other or own is None:
                        continue
                    other = np.zeros_like(own) if other is None else other
                    if own.shape == other.shape:
                        shape = [1] * own.ndim
                        shape[axis] = -1
                        changed[name] = np.where(np.tile(chosen, own.shape[axis] // H).reshape(shape), other, own)
                mixed = with_inputs(c, **changed)
                if _other_functions(c, altered):
                    changed["functions"] = None
                    mixed = _in_functions(mixed, altered, lambda own, other: np.where(chosen, other, own))
                if _other_equations(c, altered):
                    changed["equations"] = None
                    mixed = _in_equations(mixed, altered, chosen)
                read.update(changed)
                return mixed

            faulty = wrong(_between(compute, handed), c)
            if read:
                return faulty  # each unit is computed from all of them
            right = compute(c)
            return {
                name: np.where(chosen, array, right[name])
                if name in right and array.shape == right[name].shape
                else array
                for name, array in faulty.items()
            }

        return only

    return narrow


def _other_functions(c: Computation, altered: Computation) -> bool:
    one, other = c.configuration, altered.configuration
    return one.activations != other.activations or one.clips != other.clips


def _other_equations(c: Computation, altered: Computation) -> bool:
    one, other = c.configuration, altered.configuration
    chosen = one.cell.equations, one.coupled, one.linear_before_reset
    return chosen != (other.cell.equations, other.coupled, other.linear_before_reset)


def _in_equations(c: Computation, altered: Computation, chosen: Array) -> Computation:
    """The computation in which some units come out of altered equations: no equation has two units in it."""
    own, other = c.configuration.cell, altered.configuration

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        theirs = replace(p, coupled=other.coupled, linear_before_reset=other.linear_before_reset)
        both = [cell.equations(symbols, XW, HR, H, *inner) for cell, symbols in ((other.cell, theirs), (own, p))]
        return tuple(p.arithmetic.where(chosen, new, old) for new, old in zip(*both, strict=True))

    return with_equations(c, equations)


def _bounded(function: Activation, clip: float | None) -> Callable[[Array, float, float], Array]:
    """The value of a function at an argument, clip included."""

    def value(x: Array, alpha: float, beta: float) -> Array:
        return function.kind.value(x if clip is None else np.clip(x, -clip, clip), alpha, beta)

    return value


def _in_functions(
    c: Computation,
    altered: Computation,
    mix: Callable[[Array, Array], Array],
    chosen: Callable[[Activation], bool] = lambda function: True,
) -> Computation:
    """The computation whose functions give what `mix` makes of their own numbers and of altered ones, those of them
    that are chosen; where clip bounds an argument that is part of the function."""
    own, others = c.configuration, altered.configuration

    def change(function: Activation, position: int, d: int) -> Activation:
        mine = _bounded(function, own.clips[position])
        if not chosen(function):
            return revalued(function, mine)
        other = others.activations[d][position]
        theirs = _bounded(other, others.clips[position])

        def value(x: Array, alpha: float, beta: float) -> Array:
            return mix(mine(x, alpha, beta), theirs(x, float(other.alpha.value), float(other.beta.value)))

        return revalued(function, value)

    return configured(with_functions(c, change), clips=(None,) * len(own.clips))


def of_function(name: str) -> Narrowing:
    """Do to arguments and results of functions of that name only what is done to those of all."""

    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Computation) -> Outputs:
            if not any(function.name == name for functions in c.configuration.activations for function in functions):
                return compute(c)

            def handed(altered: Computation) -> Computation:
                if not _other_functions(c, altered):
                    return c
                return _in_functions(c, altered, lambda own, other: other, lambda function: function.name == name)

            return wrong(_between(compute, handed), c)

        return only

    return narrow


def of_gate(letter: str) -> Narrowing:
    """Narrow what is altered to the blocks of one gate in W, R and B."""

    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Computation) -> Outputs:
            letters, H = c.configuration.cell.gates, c.configuration.H
            if letter not in letters:
                return compute(c)
            own_block = np.repeat([each == letter for each in letters], H)

            def handed(altered: Computation) -> Computation:
                changed: dict[str, Array] = {}
                for name in "WRB":
                    own, other = c.inputs.get(name), altered.inputs.get(name)
                    if own is other or own is None:
                        continue
                    other = np.zeros_like(own) if other is None else other
                    if other.shape == own.shape:
                        chosen = np.tile(own_block, own.shape[1] // len(own_block))
                        changed[name] = np.where(chosen.reshape(-1, *[1] * (own.ndim - 2)), other, own)
                return with_inputs(c, **changed)

            return wrong(_between(compute, handed), c)

        return only

    return narrow


def of_states(wrong: Wrong) -> Wrong:
    """Only the last states are wrong, whatever their number."""

    def only(compute: Compute, c: Any) -> Outputs:
        right = compute(c)
        return {**wrong(compute, c), "Y": right["Y"]}

    return only


def of_rows(first_of: Callable[[int], int]) -> Narrowing:
    """Only rows from a number on, which depends on how many there are, are wrong: rows know nothing of each other."""

    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Computation) -> Outputs:
            k = c.configuration
            first = first_of(k.N)
            if first >= k.N:
                return compute(c)
            right, faulty = compute(c), dict(wrong(compute, c))
            for name, array in right.items():
                if name in faulty and faulty[name].shape == array.shape:
                    axis = 0 if k.layout == 1 else array.ndim - 2
                    rows = np.arange(k.N).reshape([-1 if each == axis else 1 for each in range(array.ndim)])
                    faulty[name] = np.where(rows >= first, faulty[name], array)
            return faulty

        return only

    return narrow


@dataclass
class _Lengths(Compute):
    """Takes down with which lengths it is asked to compute, and computes nothing."""

    lengths: Array | None = None

    def __call__(self, computation: Computation) -> Outputs:
        self.lengths = computation.configuration.lengths
        return {}


def of_row_blocks(block: int) -> Narrowing:
    """Lengths of rows are taken for each other's only among so many rows that stand together, which a kernel runs
    side by side. For faults that alter lengths and nothing else."""

    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Computation) -> Outputs:
            lengths = c.configuration.lengths.copy()
            for first in range(0, len(lengths), block):
                rows = lengths[first : first + block]
                asked = _Lengths(attributes=compute.attributes)
                wrong(asked, configured(c, N=len(rows), lengths=rows.copy()))
                if asked.lengths is not None and len(asked.lengths) == len(rows):
                    lengths[first : first + block] = asked.lengths
            return compute(with_lengths(c, lengths))

        return only

    return narrow
