"""Faults of RNN kernels: what the one activation is applied to, and what is carried on."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...faults.alterations import settled, with_walk
from ...faults.fault import Compute, Outputs, fault
from ...recurrent.cell import Gates, Number, Parameters, Recurrent, States
from ...recurrent.recurrence import Computation
from ..equations import equations

RNN = ("RNN",)

walk = partial(equations, operators=RNN)


@walk("rnn.activation.input-only", clause="equations", layer="operands")
def activation_on_input_only(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
    """Applies the activation to what comes from Xt and adds what comes from Ht-1 afterwards."""
    return (settled(p.f(X.i) + H.i),)


@walk("rnn.activation.each-alone", clause="equations")
def activation_on_each(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
    """Applies the activation to what comes from Xt and to what comes from Ht-1, and then adds them."""
    return (p.f(X.i) + p.f(H.i),)


@walk("rnn.activation.twice", clause="equations")
def activation_twice(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
    """Applies the activation twice."""
    return (p.f(p.f(X.i + H.i)),)


@walk("rnn.activation.missing", clause="equations", layer="operands")
def activation_missing(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
    """Applies no activation."""
    return (settled(X.i + H.i),)


@walk("rnn.state.added", clause="equations")
def state_added(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
    """Adds Ht-1 to the result, as a residual connection does."""
    return (p.f(X.i + H.i) + H.state,)


@fault("rnn.state.averaged", clause="equations", operators=RNN)
def state_averaged(compute: Compute, c: Computation) -> Outputs:
    """Moves the state only half the way to what is new."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        half = p.arithmetic.given(np.full(c.configuration.H, 0.5))
        return (p.arithmetic.interpolation(half, p.f(X.i + H.i), H.state),)

    return compute(with_walk(c, walk))


@walk("rnn.state.unweighted", clause="equations")
def state_unweighted(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
    """Adds Ht-1 to the argument as it is, without its product with R."""
    return (p.f(X.i + H.state),)
