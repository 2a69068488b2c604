"""Faults of RNN kernels: what the one activation is applied to, and what is carried on."""

from __future__ import annotations

import numpy as np

from ...faults.alterations import settled, with_walk
from ...faults.fault import Compute, Outputs, fault
from ...recurrent.cell import Gates, Number, Parameters, Recurrent, States
from ...recurrent.recurrence import Computation

__all__: list[str] = []

RNN = ("RNN",)


@fault("rnn.activation.input-only", clause="equations", operators=RNN, layer="operands")
def activation_on_input_only(compute: Compute, c: Computation) -> Outputs:
    """Applies the activation to what comes from Xt and adds what comes from Ht-1 afterwards."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        return (settled(p.f(X.i) + H.i),)

    return compute(with_walk(c, walk))


@fault("rnn.activation.each-alone", clause="equations", operators=RNN)
def activation_on_each(compute: Compute, c: Computation) -> Outputs:
    """Applies the activation to what comes from Xt and to what comes from Ht-1, and then adds them."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        return (p.f(X.i) + p.f(H.i),)

    return compute(with_walk(c, walk))


@fault("rnn.activation.twice", clause="equations", operators=RNN)
def activation_twice(compute: Compute, c: Computation) -> Outputs:
    """Applies the activation twice."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        return (p.f(p.f(X.i + H.i)),)

    return compute(with_walk(c, walk))


@fault("rnn.activation.missing", clause="equations", operators=RNN, layer="operands")
def activation_missing(compute: Compute, c: Computation) -> Outputs:
    """Applies no activation."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        return (settled(X.i + H.i),)

    return compute(with_walk(c, walk))


@fault("rnn.state.added", clause="equations", operators=RNN)
def state_added(compute: Compute, c: Computation) -> Outputs:
    """Adds Ht-1 to the result, as a residual connection does."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        return (p.f(X.i + H.i) + H.state,)

    return compute(with_walk(c, walk))


@fault("rnn.state.averaged", clause="equations", operators=RNN)
def state_averaged(compute: Compute, c: Computation) -> Outputs:
    """Moves the state only half the way to what is new."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        half = p.arithmetic.given(np.full(c.configuration.H, 0.5))
        return (p.arithmetic.interpolation(half, p.f(X.i + H.i), H.state),)

    return compute(with_walk(c, walk))


@fault("rnn.state.unweighted", clause="equations", operators=RNN)
def state_unweighted(compute: Compute, c: Computation) -> Outputs:
    """Adds Ht-1 to the argument as it is, without its product with R."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        return (p.f(X.i + H.state),)

    return compute(with_walk(c, walk))
