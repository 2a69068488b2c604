"""Faults of GRU kernels: gate order, the update gate, where the reset gate is applied."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...faults.alterations import (
    by_equations,
    clipped,
    configured,
    for_units,
    gate_orders,
    settled,
    with_clip,
    with_equations,
    with_tensors,
)
from ...faults.fault import ALL_BUT_BFLOAT16, Array, fault, fault_of_run
from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ...recurrent.rnn import hidden_gate

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

GRU = ("GRU",)

# The hidden gate ht, or Ht, from parameters, both sums, Ht-1, zt and rt.
Hidden = Callable[[Parameters, Gates, Gates, Number, Number, Number], Number]


def _with_result(c: Computation, result: Hidden) -> Computation:
    """Return the computation with another equation of Ht."""

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        return (result(p, XW, HR, H, p.f(XW.z + HR.z), p.f(XW.r + HR.r)),)

    return with_equations(c, equations)


def _with_hidden(c: Computation, hidden: Hidden) -> Computation:
    """Return the computation with another equation of the hidden gate."""
    return _with_result(
        c, lambda p, XW, HR, H, z, r: p.arithmetic.interpolation(z, hidden(p, XW, HR, H, z, r), H)
    )


gru = partial(fault, operators=GRU)
gru_run = partial(fault_of_run, operators=GRU)
wrong_equations = partial(fault, made=by_equations(), operators=GRU)
hidden = partial(fault, made=by_equations(_with_hidden), operators=GRU)
result = partial(fault, made=by_equations(_with_result), operators=GRU)


@fault("gru.hidden.in-place-by-{}", "equations",
    "Without linear_before_reset writes Ht over Ht-1 in blocks of {0} units, after which later ones compute ht.",
    proved=False, operators=GRU, numbers=(32, 16, 8, 4))
def hidden_in_place(c: Computation, block: int) -> Computation:
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


gate_orders(
    "GRU",
    {
        "rzh": "Reads the gate blocks of W, R and B in the order r, z, h, as PyTorch and cuDNN hold them.",
        "zhr": "Reads the gate blocks of W, R and B in the order z, h, r.",
        "hrz": "Reads the gate blocks of W, R and B in the order h, r, z.",
    },
)


result("gru.update-gate.inverted", "equations.hidden",
    "Weighs the new state by z and the state before by 1 - z: the update gate is inverted.",
    lambda p, XW, HR, H, z, r: p.arithmetic.interpolation(z, H, hidden_gate(p, XW, HR, H, r)))
result("gru.update-gate.keeps-reset-state", "equations.hidden",
    "Keeps a share of the reset state, rt (.) Ht-1, instead of Ht-1.",
    lambda p, XW, HR, H, z, r: p.arithmetic.interpolation(z, hidden_gate(p, XW, HR, H, r), r * H))
result("gru.update-gate.not-complemented", "equations.hidden",
    "Adds zt (.) Ht-1 to all that is new instead of its share 1 - zt.",
    lambda p, XW, HR, H, z, r: hidden_gate(p, XW, HR, H, r) + z * H)
result("gru.update-gate.by-g", "activations.order", "Applies g instead of f to the update gate.",
    lambda p, XW, HR, H, z, r: p.arithmetic.interpolation(p.g(XW.z + HR.z), hidden_gate(p, XW, HR, H, r), H))
gru("gru.linear-before-reset.ignored", "linear-before-reset",
    "Ignores linear_before_reset: the reset gate always multiplies Ht-1.",
    lambda c: configured(c, linear_before_reset=False))
gru("gru.linear-before-reset.always", "linear-before-reset.default",
    "Applies the reset gate after the product even where linear_before_reset is 0 or absent, as cuDNN does.",
    lambda c: configured(c, linear_before_reset=True))
gru("gru.linear-before-reset.in-version-1", "linear-before-reset.absent",
    "Takes version 1's second formula, the one that is not marked default.",
    lambda c: configured(c, linear_before_reset=True), types=ALL_BUT_BFLOAT16)
gru_run("gru.linear-before-reset.one-only", "linear-before-reset.any-value",
    "Takes linear_before_reset for 0 where it is neither 0 nor 1.",
    lambda compute, c: compute(configured(c, linear_before_reset=compute.attributes.get("linear_before_reset") == 1)))


def _moved(c: Computation, source: int, target: int) -> Computation:
    """Return the computation with one of the hidden gate's biases added to the other; 0 is Wbh, 1 is Rbh."""
    H = c.configuration.H

    def change(B: Array) -> Array:
        B = B.reshape(len(B), 2, 3, H).copy()
        B[:, target, 2] += B[:, source, 2]
        B[:, source, 2] = 0
        return B.reshape(len(B), -1)

    return with_tensors(c, "B", change)


gru("gru.linear-before-reset.bias-outside", "linear-before-reset.bias",
    "With linear_before_reset adds Rbh after the product with the reset gate.",
    lambda c: _moved(c, 1, 0) if c.configuration.linear_before_reset else c, types=ALL_BUT_BFLOAT16)
gru("gru.linear-before-reset.always-bias-outside", "linear-before-reset.default",
    "Applies the reset gate after the product even where linear_before_reset is 0 or absent, and adds Rbh after it.",
    lambda c: c if c.configuration.linear_before_reset else configured(_moved(c, 1, 0), linear_before_reset=True))
gru("gru.linear-before-reset.input-bias-inside", "linear-before-reset.bias",
    "With linear_before_reset multiplies Wbh by the reset gate too.",
    lambda c: _moved(c, 0, 1) if c.configuration.linear_before_reset else c)


gru("gru.clip.on-recurrent-part", "clip",
    "With linear_before_reset bounds what the reset gate is multiplied by, as well as the sum.",
    with_clip(lambda c, clip: c if not c.configuration.linear_before_reset else _with_hidden(
        c, lambda p, XW, HR, H, z, r: p.g(XW.h + r * clipped(p, HR.h, clip))
    )), types=ALL_BUT_BFLOAT16, layer="operands")


# No float64 case of core detects this fault.
@gru("gru.linear-before-reset.bias-late", "linear-before-reset.bias",
    "With linear_before_reset and without initial_h leaves Rbh out of the first step, together with the product.",
    types=("float16", "float32"), layer="operands")
def recurrent_bias_late(c: Computation) -> Computation:
    if not c.configuration.linear_before_reset or "initial_h" in c.inputs:
        return c

    def hidden(p: Parameters, XW: Gates, HR: Gates, H: Number, z: Number, r: Number) -> Number:
        recurrent = settled(HR.h)
        first = (p.t + np.arange(len(recurrent.value if hasattr(recurrent, "value") else recurrent))) == 0
        nothing = p.arithmetic.exact(np.zeros((1, 1, 1)))
        return p.g(XW.h + r * p.arithmetic.where(first[:, np.newaxis, np.newaxis], nothing, recurrent))

    return _with_hidden(c, hidden)


@gru("gru.reset-gate.on-bias", "linear-before-reset.default-bias",
    "Without linear_before_reset multiplies Rbh by the reset gate.", layer="operands")
def reset_on_bias(c: Computation) -> Computation:
    if c.configuration.linear_before_reset or "B" not in c.inputs:
        return c

    def hidden(p: Parameters, XW: Gates, HR: Gates, H: Number, z: Number, r: Number) -> Number:
        bias = settled(p.recurrent(H * for_units(c, p, 0.0), "h"))
        return p.g(XW.h + p.recurrent(r * H, "h") + for_units(c, p, -1.0) * bias + r * bias)

    return _with_hidden(c, hidden)


hidden("gru.reset-gate.ignored", "equations.reset", "Leaves the reset gate out.",
    lambda p, XW, HR, H, z, r: p.g(XW.h + HR.h))
hidden("gru.reset-gate.on-argument", "equations.reset",
    "Multiplies the whole argument of g by the reset gate, what comes from Xt too.",
    lambda p, XW, HR, H, z, r: p.g(r * (XW.h + HR.h)))
hidden("gru.reset-gate.on-input", "equations.reset",
    "Multiplies what comes from Xt by the reset gate instead of what comes from Ht-1.",
    lambda p, XW, HR, H, z, r: p.g(r * XW.h + HR.h))
hidden("gru.reset-gate.on-result", "equations.reset",
    "Multiplies the hidden gate by the reset gate instead of its argument.",
    lambda p, XW, HR, H, z, r: r * p.g(XW.h + HR.h))
hidden("gru.reset-gate.is-update-gate", "equations.reset", "Resets by the update gate.",
    lambda p, XW, HR, H, z, r: hidden_gate(p, XW, HR, H, z))


@wrong_equations("gru.reset-gate.on-update-gate", "equations.reset",
    "Computes the update gate from the reset state too.")
def reset_on_update_gate(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    r = p.f(XW.r + HR.r)
    z = p.f(XW.z + p.recurrent(r * H, "z"))
    return (p.arithmetic.interpolation(z, hidden_gate(p, XW, HR, H, r), H),)


wrong_equations("gru.hidden.carried-ungated", "equations.hidden", "Leaves the update gate out: Ht is what is new.",
    lambda p, XW, HR, H, *inner: (hidden_gate(p, XW, HR, H, p.f(XW.r + HR.r)),))


gru_run("gru.outputs.required-missing", "outputs.required", "Gives no Y_h, which version 1 demands.",
    lambda compute, c: {name: array for name, array in compute(c).items() if name != "Y_h"},
    types=ALL_BUT_BFLOAT16, layer="form")
