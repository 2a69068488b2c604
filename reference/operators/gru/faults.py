"""Faults of GRU kernels: gate order, the update gate, where the reset gate is applied."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...faults.alterations import clipped, configured, settled, with_equations, with_tensors
from ...faults.fault import ALL_BUT_BFLOAT16, Alteration, Compute, Outputs, family, fault
from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ...recurrent.rnn import hidden_gate
from ..equations import equations, gate_orders

Array = NDArray[Any]
GRU = ("GRU",)

# The hidden gate ht from parameters, both sums, Ht-1, zt and rt.
Hidden = Callable[[Parameters, Gates, Gates, Number, Number, Number], Number]


def _with_hidden(c: Computation, hidden: Hidden) -> Computation:
    """The computation with another hidden gate."""

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        z, r = p.f(XW.z + HR.z), p.f(XW.r + HR.r)
        return (p.arithmetic.interpolation(z, hidden(p, XW, HR, H, z, r), H),)

    return with_equations(c, equations)


wrong_equations = partial(equations, operators=GRU)
hidden = partial(equations, put=_with_hidden, operators=GRU)


@family("gru.hidden.in-place-by-{}", 32, 16, 8, 4, proved=False, clause="equations", operators=GRU)
def hidden_in_place(block: int) -> Alteration:
    """Without linear_before_reset writes Ht over Ht-1 in blocks of {0} units, after which later ones compute ht."""

    def changed(c: Computation) -> Computation:
        units = c.configuration.H
        if units <= block or c.configuration.linear_before_reset:
            return c

        def hidden(p: Parameters, XW: Gates, HR: Gates, H: Number, z: Number, r: Number) -> Number:
            h = hidden_gate(p, XW, HR, H, r)
            for first in range(block, units, block):
                later = np.arange(units) >= first
                mixed = p.arithmetic.where(later, H, p.arithmetic.interpolation(z, h, H))
                h = p.arithmetic.where(later, hidden_gate(p, XW, HR, mixed, r), h)
            return h

        return _with_hidden(c, hidden)

    return changed


gate_orders(
    "GRU",
    {
        "rzh": "Reads the gate blocks of W, R and B in the order r, z, h, as PyTorch and cuDNN hold them.",
        "zhr": "Reads the gate blocks of W, R and B in the order z, h, r.",
        "hrz": "Reads the gate blocks of W, R and B in the order h, r, z.",
    },
)


@wrong_equations("gru.update-gate.inverted", clause="equations.hidden")
def update_gate_inverted(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Weighs what is new by the update gate and the state before by what it lacks to one."""
    z, r = p.f(XW.z + HR.z), p.f(XW.r + HR.r)
    return (p.arithmetic.interpolation(z, H, hidden_gate(p, XW, HR, H, r)),)


@wrong_equations("gru.update-gate.keeps-reset-state", clause="equations.hidden")
def update_keeps_reset_state(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Keeps a share of the reset state, rt (.) Ht-1, instead of Ht-1."""
    z, r = p.f(XW.z + HR.z), p.f(XW.r + HR.r)
    return (p.arithmetic.interpolation(z, hidden_gate(p, XW, HR, H, r), r * H),)


@wrong_equations("gru.update-gate.not-complemented", clause="equations.hidden")
def update_not_complemented(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Adds zt (.) Ht-1 to all that is new instead of its share 1 - zt."""
    z, r = p.f(XW.z + HR.z), p.f(XW.r + HR.r)
    return (hidden_gate(p, XW, HR, H, r) + z * H,)


@wrong_equations("gru.update-gate.by-g", clause="activations.order")
def update_gate_by_g(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Applies g instead of f to the update gate."""
    z, r = p.g(XW.z + HR.z), p.f(XW.r + HR.r)
    return (p.arithmetic.interpolation(z, hidden_gate(p, XW, HR, H, r), H),)


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

    def hidden(p: Parameters, XW: Gates, HR: Gates, H: Number, z: Number, r: Number) -> Number:
        return p.g(XW.h + r * clipped(p, HR.h, threshold))

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

    def hidden(p: Parameters, XW: Gates, HR: Gates, H: Number, z: Number, r: Number) -> Number:
        recurrent = settled(HR.h)
        first = (p.t + np.arange(len(recurrent.value if hasattr(recurrent, "value") else recurrent))) == 0
        nothing = p.arithmetic.exact(np.zeros((1, 1, 1)))
        return p.g(XW.h + r * p.arithmetic.where(first[:, np.newaxis, np.newaxis], nothing, recurrent))

    return compute(_with_hidden(c, hidden))


@fault(
    "gru.reset-gate.on-bias", clause="linear-before-reset.default-bias", operators=GRU, bounded=False, layer="operands"
)
def reset_on_bias(compute: Compute, c: Computation) -> Outputs:
    """Without linear_before_reset multiplies Rbh by the reset gate."""
    if c.configuration.linear_before_reset or "B" not in c.inputs:
        return compute(c)

    def hidden(p: Parameters, XW: Gates, HR: Gates, H: Number, z: Number, r: Number) -> Number:
        bias = p.recurrent(0.0 * H, "h")
        return p.g(XW.h + p.recurrent(r * H, "h") - bias + r * bias)

    return compute(_with_hidden(c, hidden))


@hidden("gru.reset-gate.ignored", clause="equations.reset")
def reset_ignored(p: Parameters, XW: Gates, HR: Gates, H: Number, z: Number, r: Number) -> Number:
    """Leaves the reset gate out."""
    return p.g(XW.h + HR.h)


@hidden("gru.reset-gate.on-argument", clause="equations.reset")
def reset_on_argument(p: Parameters, XW: Gates, HR: Gates, H: Number, z: Number, r: Number) -> Number:
    """Multiplies the whole argument of g by the reset gate, what comes from Xt too."""
    return p.g(r * (XW.h + HR.h))


@hidden("gru.reset-gate.on-input", clause="equations.reset")
def reset_on_input(p: Parameters, XW: Gates, HR: Gates, H: Number, z: Number, r: Number) -> Number:
    """Multiplies what comes from Xt by the reset gate instead of what comes from Ht-1."""
    return p.g(r * XW.h + HR.h)


@hidden("gru.reset-gate.on-result", clause="equations.reset")
def reset_on_result(p: Parameters, XW: Gates, HR: Gates, H: Number, z: Number, r: Number) -> Number:
    """Multiplies the hidden gate by the reset gate instead of its argument."""
    return r * p.g(XW.h + HR.h)


@hidden("gru.reset-gate.is-update-gate", clause="equations.reset")
def reset_by_update_gate(p: Parameters, XW: Gates, HR: Gates, H: Number, z: Number, r: Number) -> Number:
    """Resets by the update gate."""
    return hidden_gate(p, XW, HR, H, z)


@wrong_equations("gru.reset-gate.on-update-gate", clause="equations.reset")
def reset_on_update_gate(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Computes the update gate from the reset state too."""
    r = p.f(XW.r + HR.r)
    z = p.f(XW.z + p.recurrent(r * H, "z"))
    return (p.arithmetic.interpolation(z, hidden_gate(p, XW, HR, H, r), H),)


@wrong_equations("gru.hidden.carried-ungated", clause="equations.hidden")
def hidden_ungated(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Leaves the update gate out: Ht is what is new."""
    return (hidden_gate(p, XW, HR, H, p.f(XW.r + HR.r)),)


@fault("gru.outputs.required-missing", clause="outputs.required", operators=GRU, types=ALL_BUT_BFLOAT16, layer="form")
def required_missing(compute: Compute, c: Computation) -> Outputs:
    """Gives no Y_h, which version 1 demands."""
    outputs = dict(compute(c))
    del outputs["Y_h"]
    return outputs
