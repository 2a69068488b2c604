"""Faults of GRU kernels: gate order, the update gate, where the reset gate is applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...faults.alterations import clipped, configured, reordered, settled, with_tensors, with_walk
from ...faults.fault import ALL_BUT_BFLOAT16, Alteration, Compute, Outputs, family, fault
from ...recurrent.cell import Gates, Number, Parameters, Recurrent, States
from ...recurrent.recurrence import Computation
from .cell import candidate

__all__: list[str] = []

Array = NDArray[Any]
GRU = ("GRU",)

# The hidden gate ht from parameters, both sums, zt and rt.
Hidden = Callable[[Parameters, Gates, Recurrent, Number, Number], Number]


def _with_hidden(c: Computation, hidden: Hidden) -> Computation:
    """The computation with another hidden gate."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        z, r = p.f(X.z + H.z), p.f(X.r + H.r)
        return (p.arithmetic.interpolation(z, hidden(p, X, H, z, r), H.state),)

    return with_walk(c, walk)


def _gates_read_as(c: Computation, order: str) -> Computation:
    return with_tensors(c, "WRB", lambda tensor: reordered(c, tensor, order, c.configuration.cell.gates))


@family("gru.hidden.in-place-by-{}", 32, 16, 8, 4, proved=False, clause="equations", operators=GRU)
def hidden_in_place(block: int) -> Alteration:
    """Without linear_before_reset writes Ht over Ht-1 in blocks of {0} units, after which later ones compute ht."""

    def changed(c: Computation) -> Computation:
        units = c.configuration.H
        if units <= block or c.configuration.linear_before_reset:
            return c

        def hidden(p: Parameters, X: Gates, H: Recurrent, z: Number, r: Number) -> Number:
            h = candidate(p, X, H, r)
            for first in range(block, units, block):
                later = np.arange(units) >= first
                mixed = p.arithmetic.where(later, H.state, p.arithmetic.interpolation(z, h, H.state))
                h = p.arithmetic.where(later, candidate(p, X, replace(H, state=mixed), r), h)
            return h

        return _with_hidden(c, hidden)

    return changed


@fault("gru.gates.rzh", clause="gates.order", operators=GRU)
def gates_rzh(compute: Compute, c: Computation) -> Outputs:
    """Reads the gate blocks of W, R and B in the order r, z, h, as PyTorch and cuDNN hold them."""
    return compute(_gates_read_as(c, "rzh"))


@fault("gru.gates.zhr", clause="gates.order", operators=GRU)
def gates_zhr(compute: Compute, c: Computation) -> Outputs:
    """Reads the gate blocks of W, R and B in the order z, h, r."""
    return compute(_gates_read_as(c, "zhr"))


@fault("gru.gates.hrz", clause="gates.order", operators=GRU)
def gates_hrz(compute: Compute, c: Computation) -> Outputs:
    """Reads the gate blocks of W, R and B in the order h, r, z."""
    return compute(_gates_read_as(c, "hrz"))


@fault("gru.update-gate.inverted", clause="equations.hidden", operators=GRU)
def update_gate_inverted(compute: Compute, c: Computation) -> Outputs:
    """Weighs what is new by the update gate and the state before by what it lacks to one."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        z, r = p.f(X.z + H.z), p.f(X.r + H.r)
        return (p.arithmetic.interpolation(z, H.state, candidate(p, X, H, r)),)

    return compute(with_walk(c, walk))


@fault("gru.update-gate.keeps-reset-state", clause="equations.hidden", operators=GRU)
def update_keeps_reset_state(compute: Compute, c: Computation) -> Outputs:
    """Keeps a share of the reset state, rt (.) Ht-1, instead of Ht-1."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        z, r = p.f(X.z + H.z), p.f(X.r + H.r)
        return (p.arithmetic.interpolation(z, candidate(p, X, H, r), r * H.state),)

    return compute(with_walk(c, walk))


@fault("gru.update-gate.not-complemented", clause="equations.hidden", operators=GRU)
def update_not_complemented(compute: Compute, c: Computation) -> Outputs:
    """Adds zt (.) Ht-1 to all that is new instead of its share 1 - zt."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        z, r = p.f(X.z + H.z), p.f(X.r + H.r)
        return (candidate(p, X, H, r) + z * H.state,)

    return compute(with_walk(c, walk))


@fault("gru.update-gate.by-g", clause="activations.order", operators=GRU)
def update_gate_by_g(compute: Compute, c: Computation) -> Outputs:
    """Applies g instead of f to the update gate."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        z, r = p.g(X.z + H.z), p.f(X.r + H.r)
        return (p.arithmetic.interpolation(z, candidate(p, X, H, r), H.state),)

    return compute(with_walk(c, walk))


@fault("gru.linear-before-reset.ignored", clause="linear-before-reset", operators=GRU)
def linear_before_reset_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores linear_before_reset: the reset gate always multiplies Ht-1."""
    return compute(configured(c, linear_before_reset=False))


@fault("gru.linear-before-reset.always", clause="linear-before-reset.default", operators=GRU)
def linear_before_reset_always(compute: Compute, c: Computation) -> Outputs:
    """Applies the reset gate after the product even where linear_before_reset is 0 or absent, as cuDNN does."""
    return compute(configured(c, linear_before_reset=True))


@fault(
    "gru.linear-before-reset.in-version-1",
    clause="linear-before-reset.absent",
    operators=GRU,
    types=ALL_BUT_BFLOAT16,
)
def linear_before_reset_in_version_1(compute: Compute, c: Computation) -> Outputs:
    """Takes version 1's second formula, the one that is not marked default."""
    return compute(configured(c, linear_before_reset=True))


@fault("gru.linear-before-reset.one-only", clause="linear-before-reset.any-value", operators=GRU)
def linear_before_reset_one_only(compute: Compute, c: Computation) -> Outputs:
    """Takes linear_before_reset for 0 where it is neither 0 nor 1."""
    return compute(configured(c, linear_before_reset=compute.attributes.get("linear_before_reset") == 1))


def _moved(c: Computation, source: int, target: int) -> Computation:
    """The computation with one of the hidden gate's biases added to the other: 0 for Wbh, 1 for Rbh."""
    H = c.configuration.H

    def change(B: Array) -> Array:
        B = B.reshape(len(B), 2, 3, H).copy()
        B[:, target, 2] += B[:, source, 2]
        B[:, source, 2] = 0
        return B.reshape(len(B), -1)

    return with_tensors(c, "B", change)


@fault("gru.linear-before-reset.bias-outside", clause="linear-before-reset.bias", operators=GRU, types=ALL_BUT_BFLOAT16)
def recurrent_bias_outside(compute: Compute, c: Computation) -> Outputs:
    """With linear_before_reset adds Rbh after the product with the reset gate."""
    return compute(_moved(c, 1, 0) if c.configuration.linear_before_reset else c)


@fault("gru.linear-before-reset.always-bias-outside", clause="linear-before-reset.default", operators=GRU)
def always_with_bias_outside(compute: Compute, c: Computation) -> Outputs:
    """Applies the reset gate after the product even where linear_before_reset is 0 or absent, and adds Rbh after it."""
    if c.configuration.linear_before_reset:
        return compute(c)
    return compute(configured(_moved(c, 1, 0), linear_before_reset=True))


@fault("gru.linear-before-reset.input-bias-inside", clause="linear-before-reset.bias", operators=GRU)
def input_bias_inside(compute: Compute, c: Computation) -> Outputs:
    """With linear_before_reset multiplies Wbh by the reset gate too."""
    return compute(_moved(c, 0, 1) if c.configuration.linear_before_reset else c)


@fault("gru.clip.on-recurrent-part", clause="clip", operators=GRU, types=ALL_BUT_BFLOAT16, layer="operands")
def clip_on_recurrent_part(compute: Compute, c: Computation) -> Outputs:
    """With linear_before_reset bounds what the reset gate is multiplied by, as well as the sum."""
    threshold = next((clip for clip in c.configuration.clips if clip is not None), None)
    if threshold is None or not c.configuration.linear_before_reset:
        return compute(c)

    def hidden(p: Parameters, X: Gates, H: Recurrent, z: Number, r: Number) -> Number:
        return p.g(X.h + r * clipped(p, H.h, threshold))

    return compute(_with_hidden(c, hidden))


# No float64 case of core shows it.
@fault(
    "gru.linear-before-reset.bias-late",
    clause="linear-before-reset.bias",
    operators=GRU,
    types=("float16", "float32"),
    layer="operands",
)
def recurrent_bias_late(compute: Compute, c: Computation) -> Outputs:
    """With linear_before_reset and without initial_h leaves Rbh out of the first step, together with the product."""
    if not c.configuration.linear_before_reset or "initial_h" in c.inputs:
        return compute(c)

    def hidden(p: Parameters, X: Gates, H: Recurrent, z: Number, r: Number) -> Number:
        recurrent = settled(H.h)
        first = (H.step + np.arange(len(recurrent.value if hasattr(recurrent, "value") else recurrent))) == 0
        nothing = p.arithmetic.given(np.zeros((1, 1, 1)))
        return p.g(X.h + r * p.arithmetic.where(first[:, np.newaxis, np.newaxis], nothing, recurrent))

    return compute(_with_hidden(c, hidden))


@fault(
    "gru.reset-gate.on-bias", clause="linear-before-reset.default-bias", operators=GRU, bounded=False, layer="operands"
)
def reset_on_bias(compute: Compute, c: Computation) -> Outputs:
    """Without linear_before_reset multiplies Rbh by the reset gate."""
    if c.configuration.linear_before_reset or "B" not in c.inputs:
        return compute(c)

    def hidden(p: Parameters, X: Gates, H: Recurrent, z: Number, r: Number) -> Number:
        bias = H.through(0.0 * H.state, "h")
        return p.g(X.h + H.through(r * H.state, "h") - bias + r * bias)

    return compute(_with_hidden(c, hidden))


@fault("gru.reset-gate.ignored", clause="equations.reset", operators=GRU)
def reset_ignored(compute: Compute, c: Computation) -> Outputs:
    """Leaves the reset gate out."""
    return compute(_with_hidden(c, lambda p, X, H, z, r: p.g(X.h + H.h)))


@fault("gru.reset-gate.on-argument", clause="equations.reset", operators=GRU)
def reset_on_argument(compute: Compute, c: Computation) -> Outputs:
    """Multiplies the whole argument of g by the reset gate, what comes from Xt too."""
    return compute(_with_hidden(c, lambda p, X, H, z, r: p.g(r * (X.h + H.h))))


@fault("gru.reset-gate.on-input", clause="equations.reset", operators=GRU)
def reset_on_input(compute: Compute, c: Computation) -> Outputs:
    """Multiplies what comes from Xt by the reset gate instead of what comes from Ht-1."""
    return compute(_with_hidden(c, lambda p, X, H, z, r: p.g(r * X.h + H.h)))


@fault("gru.reset-gate.on-result", clause="equations.reset", operators=GRU)
def reset_on_result(compute: Compute, c: Computation) -> Outputs:
    """Multiplies the hidden gate by the reset gate instead of its argument."""
    return compute(_with_hidden(c, lambda p, X, H, z, r: r * p.g(X.h + H.h)))


@fault("gru.reset-gate.is-update-gate", clause="equations.reset", operators=GRU)
def reset_by_update_gate(compute: Compute, c: Computation) -> Outputs:
    """Resets by the update gate."""
    return compute(_with_hidden(c, lambda p, X, H, z, r: candidate(p, X, H, z)))


@fault("gru.reset-gate.on-update-gate", clause="equations.reset", operators=GRU)
def reset_on_update_gate(compute: Compute, c: Computation) -> Outputs:
    """Computes the update gate from the reset state too."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        r = p.f(X.r + H.r)
        z = p.f(X.z + H.through(r * H.state, "z"))
        return (p.arithmetic.interpolation(z, candidate(p, X, H, r), H.state),)

    return compute(with_walk(c, walk))


@fault("gru.hidden.carried-ungated", clause="equations.hidden", operators=GRU)
def hidden_ungated(compute: Compute, c: Computation) -> Outputs:
    """Leaves the update gate out: Ht is what is new."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        return (candidate(p, X, H, p.f(X.r + H.r)),)

    return compute(with_walk(c, walk))


@fault("gru.outputs.required-missing", clause="outputs.required", operators=GRU, types=ALL_BUT_BFLOAT16, layer="form")
def required_missing(compute: Compute, c: Computation) -> Outputs:
    """Gives no Y_h, which version 1 demands."""
    outputs = dict(compute(c))
    del outputs["Y_h"]
    return outputs
