"""Restrictions of faults: outputs of an implementation whose fault is in one place only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numbers.activations import Activation
from ..recurrent.cell import Gates, Number, Parameters, States
from ..recurrent.computation import Computation
from .alterations import configured, merged, revalued, with_equations, with_functions, with_inputs
from .fault import Compute, Outputs, Wrong

__all__ = ["in_bias_half", "in_direction", "in_input", "in_output", "in_unit_blocks"]

Array = NDArray[Any]


def _between(compute: Compute, passed: Callable[[Any], Any]) -> Compute:
    """Return a computation between a fault and `compute`, which passes on only a part of the alteration."""
    return replace(compute, below=lambda altered: compute(passed(altered)))


def in_input(name: str, wrong: Wrong, compute: Compute, c: Any) -> Outputs:
    """Return the outputs with a fault's effect on one input only."""
    return wrong(_between(compute, lambda altered: c.with_input(name, altered)), c)


def in_direction(direction: str, wrong: Wrong, compute: Compute, c: Any) -> Outputs:
    """Return the outputs with a fault in one direction only."""
    chosen = [d for d, name in enumerate(c.directions) if name == direction]
    if len(chosen) == len(c.directions):
        return wrong(compute, c)
    right = compute(c)
    return merged(c, right, wrong(compute, c), chosen) if chosen else right


def in_output(output: str, wrong: Wrong, compute: Compute, c: Any) -> Outputs:
    """Return the outputs with a fault in one of them only."""
    outputs, faulty = compute(c), wrong(compute, c)
    return {**outputs, output: faulty[output]} if output in faulty else dict(outputs)


def in_bias_half(half: int, wrong: Wrong, compute: Compute, c: Computation) -> Outputs:
    """Return the outputs with a fault's effect on one half of B only: 0 for Wb, 1 for Rb."""
    own = c.inputs.get("B")

    def passed(altered: Computation) -> Computation:
        changed = None if own is None else altered.inputs.get("B", np.zeros_like(own))
        if own is None or changed is None or changed is own or changed.shape != own.shape:
            return c
        halves = np.split(own, 2, axis=1)
        halves[half] = np.split(changed, 2, axis=1)[half]
        return with_inputs(c, B=np.concatenate(halves, axis=1))

    return wrong(_between(compute, passed), c)


# The axis of units in each tensor; tensors with gate blocks repeat the units on it.
_UNITS = {"W": 1, "R": 1, "B": 1, "P": 1, "initial_h": 2, "initial_c": 2}


def in_unit_blocks(block: int, wrong: Wrong, compute: Compute, c: Computation) -> Outputs:
    """Return the outputs with a fault in the units after the last whole block; in all units where there is no whole
    block.

    A vectorized loop leaves these units to another loop. The restriction applies to tensors, functions and outputs.
    """
    H = c.configuration.H
    chosen = np.arange(H) >= H - H % block
    if not chosen.any():
        return compute(c)
    read = False

    def passed(altered: Computation) -> Computation:
        nonlocal read
        changed = {n: mixed for n, axis in _UNITS.items() if (mixed := _mixed(c, altered, n, axis, chosen)) is not None}
        result = with_inputs(c, **changed)
        if functions := _other_functions(c, altered):
            result = _in_functions(result, altered, lambda own, other: np.where(chosen, other, own))
        if equations := _other_equations(c, altered):
            result = _in_equations(result, altered, chosen)
        read = read or bool(changed) or functions or equations
        return result

    faulty = wrong(_between(compute, passed), c)
    if read:
        return faulty  # each unit is computed from all of them
    right = compute(c)
    merges = (n for n, array in faulty.items() if n in right and array.shape == right[n].shape)
    return {**faulty, **{name: np.where(chosen, faulty[name], right[name]) for name in merges}}


def _mixed(c: Computation, altered: Computation, name: str, axis: int, chosen: Array) -> Array | None:
    """Return a tensor altered in the chosen units; None where it is not altered."""
    own, other = c.inputs.get(name), altered.inputs.get(name)
    if own is other or own is None:
        return None
    other = np.zeros_like(own) if other is None else other
    if own.shape != other.shape:
        return None
    shape = [1] * own.ndim
    shape[axis] = -1
    return np.asarray(np.where(np.tile(chosen, own.shape[axis] // len(chosen)).reshape(shape), other, own))


def _other_functions(c: Computation, altered: Computation) -> bool:
    one, other = c.configuration, altered.configuration
    return one.activations != other.activations or one.clips != other.clips


def _other_equations(c: Computation, altered: Computation) -> bool:
    one, other = c.configuration, altered.configuration
    chosen = one.cell.equations, one.coupled, one.linear_before_reset
    return chosen != (other.cell.equations, other.coupled, other.linear_before_reset)


def _in_equations(c: Computation, altered: Computation, chosen: Array) -> Computation:
    """Return the computation in which some units use altered equations; no equation mixes two units."""
    own, other = c.configuration.cell, altered.configuration

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        theirs = replace(p, coupled=other.coupled, linear_before_reset=other.linear_before_reset)
        both = [cell.equations(symbols, XW, HR, H, *inner) for cell, symbols in ((other.cell, theirs), (own, p))]
        return tuple(p.arithmetic.where(chosen, new, old) for new, old in zip(*both, strict=True))

    return with_equations(c, equations)


def _bounded(function: Activation, clip: float | None) -> Callable[[Array, float, float], Array]:
    """Return the function value(x, alpha, beta), clip included."""

    def value(x: Array, alpha: float, beta: float) -> Array:
        return function.kind.value(x if clip is None else np.clip(x, -clip, clip), alpha, beta)

    return value


def _in_functions(c: Computation, altered: Computation, mix: Callable[[Array, Array], Array]) -> Computation:
    """Return the computation whose functions return `mix` of their own values and the altered ones.

    If clip bounds an argument, it becomes part of the function.
    """
    own, others = c.configuration, altered.configuration

    def change(function: Activation, position: int, d: int) -> Activation:
        mine = _bounded(function, own.clips[position])
        other = others.activations[d][position]
        theirs = _bounded(other, others.clips[position])

        def value(x: Array, alpha: float, beta: float) -> Array:
            return mix(mine(x, alpha, beta), theirs(x, float(other.alpha.value), float(other.beta.value)))

        return revalued(function, value)

    return configured(with_functions(c, change), clips=(None,) * len(own.clips))
