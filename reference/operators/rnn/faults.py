"""Faults of RNN kernels: the argument of the activation, and the state that is carried on."""

from __future__ import annotations

from functools import partial

from ...faults.alterations import by_equations, for_units, settled, with_equations
from ...faults.fault import fault

# Rows: id, clause, words, then the equations, and fields of Fault.
# fmt: off

RNN = ("RNN",)

wrong_equations = partial(fault, made=by_equations(), operators=RNN)

wrong_equations("rnn.activation.input-only", "equations",
    "Applies the activation to what comes from Xt and adds what comes from Ht-1 afterwards.",
    lambda p, XW, HR, H, *inner: (settled(p.f(XW.i) + HR.i),), layer="operands")
wrong_equations("rnn.activation.each-alone", "equations",
    "Applies the activation to what comes from Xt and to what comes from Ht-1, and then adds them.",
    lambda p, XW, HR, H, *inner: (p.f(XW.i) + p.f(HR.i),))
wrong_equations("rnn.activation.twice", "equations", "Applies the activation twice.",
    lambda p, XW, HR, H, *inner: (p.f(p.f(XW.i + HR.i)),))
wrong_equations("rnn.activation.missing", "equations", "Applies no activation.",
    lambda p, XW, HR, H, *inner: (settled(XW.i + HR.i),), layer="operands")
wrong_equations("rnn.state.added", "equations", "Adds Ht-1 to the result, as a residual connection does.",
    lambda p, XW, HR, H, *inner: (p.f(XW.i + HR.i) + H,))
fault("rnn.state.averaged", "equations", "Moves the state only half the way to what is new.",
    lambda c: with_equations(c, lambda p, XW, HR, H, *inner: (
        p.arithmetic.interpolation(for_units(c, p, 0.5), p.f(XW.i + HR.i), H),
    )), operators=RNN)
wrong_equations("rnn.state.unweighted", "equations", "Adds Ht-1 to the argument as it is, without its product with R.",
    lambda p, XW, HR, H, *inner: (p.f(XW.i + H),))
