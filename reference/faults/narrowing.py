"""Restrictions of faults: a fault made everywhere becomes the same fault in one place only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numbers.activations import Activation
from ..recurrent.cell import Gates, Number, Parameters, States
from ..recurrent.computation import Computation
from .alterations import configured, merged, revalued, with_equations, with_functions, with_inputs
from .fault import Compute, Outputs, Wrong

__all__ = ["Narrowing", "of_bias_half", "of_direction", "of_input", "of_output", "of_unit_blocks"]

Array = NDArray[Any]
Narrowing = Callable[[Wrong], Wrong]


@dataclass
class _Between(Compute):
    """Computation between a fault and the one below it, which passes on only a part of the alteration."""

    below: Compute = field(default_factory=Compute)
    handed: Callable[[Any], Any] = lambda altered: altered

    def __call__(self, computation: Any) -> Outputs:
        return self.below(self.handed(computation))


def _between(compute: Compute, handed: Callable[[Any], Any]) -> Compute:
    return _Between(
        compute.observed, compute.fed, compute.memory, attributes=compute.attributes, below=compute, handed=handed
    )


def of_input(name: str) -> Narrowing:
    """Restrict a fault to its effect on one input."""

    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Any) -> Outputs:
            return wrong(_between(compute, lambda altered: c.with_input(name, altered)), c)

        return only

    return narrow


def of_direction(direction: str) -> Narrowing:
    """Restrict a fault to the outputs of one direction."""

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
    """Restrict a fault to one output."""

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
    """Restrict a fault to its effect on one half of B: 0 for Wb, 1 for Rb."""

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


# The axis of units in each tensor; tensors with gate blocks repeat the units on it.
_UNITS = {"W": 1, "R": 1, "B": 1, "P": 1, "initial_h": 2, "initial_c": 2}


def of_unit_blocks(block: int) -> Narrowing:
    """Restrict a fault to the units after the last whole block; all units where there is no whole block.

    A vectorized loop leaves these units to another loop. The restriction applies to tensors, functions and outputs.
    """

    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Computation) -> Outputs:
            H = c.configuration.H
            chosen = np.arange(H) >= H - H % block
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
