"""Faults of RNN kernels: what the one activation is applied to, and what is carried on."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...faults.alterations import settled, with_equations
from ...faults.fault import Compute, Outputs, fault
from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ..equations import equations

RNN = ("RNN",)

wrong_equations = partial(equations, operators=RNN)


@wrong_equations("rnn.activation.input-only", clause="equations", layer="operands")
def activation_on_input_only(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Applies the activation to what comes from Xt and adds what comes from Ht-1 afterwards."""
    return (settled(p.f(XW.i) + HR.i),)


@wrong_equations("rnn.activation.each-alone", clause="equations")
def activation_on_each(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Applies the activation to what comes from Xt and to what comes from Ht-1, and then adds them."""
    return (p.f(XW.i) + p.f(HR.i),)


@wrong_equations("rnn.activation.twice", clause="equations")
def activation_twice(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Applies the activation twice."""
    return (p.f(p.f(XW.i + HR.i)),)


@wrong_equations("rnn.activation.missing", clause="equations", layer="operands")
def activation_missing(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Applies no activation."""
    return (settled(XW.i + HR.i),)


@wrong_equations("rnn.state.added", clause="equations")
def state_added(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Adds Ht-1 to the result, as a residual connection does."""
    return (p.f(XW.i + HR.i) + H,)


@fault("rnn.state.averaged", clause="equations", operators=RNN)
def state_averaged(compute: Compute, c: Computation) -> Outputs:
    """Moves the state only half the way to what is new."""

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        half = p.arithmetic.exact(np.full(c.configuration.H, 0.5))
        return (p.arithmetic.interpolation(half, p.f(XW.i + HR.i), H),)

    return compute(with_equations(c, equations))


@wrong_equations("rnn.state.unweighted", clause="equations")
def state_unweighted(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Adds Ht-1 to the argument as it is, without its product with R."""
    return (p.f(XW.i + H),)
