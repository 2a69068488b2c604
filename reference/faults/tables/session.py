"""Faults of sessions: runs that depend on earlier ones, on other sessions, on what was refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrent.computation import Computation
from ..alterations import with_inputs, with_lengths, with_outputs, with_steps
from ..fault import VARIANTS, Compute, Outputs, fault

__all__: list[str] = []

Array = NDArray[Any]

_RING = 8  # runs after which buffers that take turns come round


@fault("session.state-kept", clause="session.stateless")
def state_kept(compute: Compute, c: Computation) -> Outputs:
    """Without initial states starts from those in which the run before ended."""
    known = {n: a for n, a in compute.memory.items() if n not in c.inputs}
    k = c.configuration
    outputs = compute(with_inputs(c, **{n: a for n, a in known.items() if a.shape == k.shape_of("Y_h")}))
    compute.memory.update({f"initial_{name}": outputs[f"Y_{name}"] for name in ("h", *k.cell.inner)})
    return outputs


@fault("session.lengths-kept", clause="session.stateless")
def lengths_kept(compute: Compute, c: Computation) -> Outputs:
    """Computes every run with the lengths of the first, where the batch has as many rows."""
    lengths = compute.memory.setdefault("lengths", c.configuration.lengths)
    fits = len(lengths) == c.configuration.N and lengths.max(initial=0) <= c.configuration.T
    return compute(with_lengths(c, lengths) if fits else c)


@fault("session.initial-h-kept", clause="session.stateless")
def initial_h_kept(compute: Compute, c: Computation) -> Outputs:
    """Starts every run from the initial_h of the first, where it has that shape."""
    given = c.inputs.get("initial_h")
    kept = compute.memory.setdefault("initial_h", given)
    fits = given is not None and kept is not None and kept.shape == given.shape
    return compute(with_inputs(c, initial_h=kept) if fits else c)


@fault("session.bias-once", clause="session.repeatable")
def bias_once(compute: Compute, c: Computation) -> Outputs:
    """Adds B in the first run only."""
    run = compute.memory["runs"] = compute.memory.get("runs", 0) + 1
    return compute(c if run == 1 else with_inputs(c, B=None))


@fault("session.varies", clause="session.repeatable")
def results_vary(compute: Compute, c: Computation) -> Outputs:
    """Returns other numbers every second time, as a race between threads does."""
    run = compute.memory["runs"] = compute.memory.get("runs", 0) + 1
    outputs = compute(c)
    return outputs if run % 2 else {name: 1.25 * array for name, array in outputs.items()}


@fault("session.sizes-kept", clause="dimensions", layer="form")
def sizes_kept(compute: Compute, c: Computation) -> Outputs:
    """Gives outputs of the sizes of the first run in all later ones."""
    outputs = compute(c)
    shapes = compute.memory.setdefault("shapes", {name: array.shape for name, array in outputs.items()})
    return {name: np.resize(array, shapes[name]) for name, array in outputs.items()}


_HELD = ("W", "R", "B", "P", "initial_h", "initial_c")
"""Inputs of which a session may hold copies."""


@fault("session.inputs-kept", clause="session.stateless")
def inputs_kept(compute: Compute, c: Computation) -> Outputs:
    """Computes every run with the weights, biases and initial states of the first."""
    first = compute.memory.setdefault("first", {n: c.inputs[n].copy() for n in _HELD if n in c.inputs})
    return compute(_with_fitting(c, first))


@fault("session.inputs-of-run-before", clause="session.stateless")
def inputs_of_run_before(compute: Compute, c: Computation) -> Outputs:
    """Computes every run with the weights, biases and initial states of the run before."""
    before = compute.memory.get("before", {})
    compute.memory["before"] = {n: c.inputs[n].copy() for n in _HELD if n in c.inputs}
    return compute(_with_fitting(c, before))


def _with_fitting(c: Computation, held: Mapping[str, Array]) -> Computation:
    """The computation with those inputs that are held and have the shapes of its own."""
    fitting = {n: a for n, a in held.items() if n in c.inputs and c.inputs[n].shape == a.shape}
    return with_inputs(c, **fitting)


@fault("session.lengths-of-run-before", clause="session.stateless")
def lengths_of_run_before(compute: Compute, c: Computation) -> Outputs:
    """Computes every run with the lengths of the run before, where the batch has as many rows."""
    own = c.configuration.lengths
    before, compute.memory["lengths"] = compute.memory.get("lengths", own), own
    fits = len(before) == len(own) and before.max(initial=0) <= c.configuration.T
    return compute(with_lengths(c, before) if fits else c)


def _kept(memory: MutableMapping[str, Any], c: Computation, names: Collection[str]) -> Mapping[str, Array]:
    """Inputs as they came first, where all of them have the same shapes now; nothing elsewhere."""
    there = {name: c.inputs[name] for name in names if name in c.inputs}
    first: Mapping[str, Array] = memory.setdefault("packed", {name: array.copy() for name, array in there.items()})
    fits = {n: a.shape for n, a in there.items()} == {n: a.shape for n, a in first.items()}
    return first if fits else {}


@fault("session.weights-kept", clause="session.stateless")
def weights_kept(compute: Compute, c: Computation) -> Outputs:
    """Packs W and R in the first run, and computes later ones with these, whatever is fed."""
    return compute(with_inputs(c, **_kept(compute.memory, c, "WR")))


@fault("session.bias-kept", clause="session.stateless")
def bias_kept(compute: Compute, c: Computation) -> Outputs:
    """Sums B up in the first run, and computes later ones with that, whatever is fed."""
    return compute(with_inputs(c, **_kept(compute.memory, c, "B")))


@fault("session.weights-shared", clause="session.stateless")
def weights_shared(compute: Compute, c: Computation) -> Outputs:
    """Packs W and R once for all sessions whose shapes are the same."""
    return compute(with_inputs(c, **_kept(compute.process, c, "WR")))


@fault("session.scratch-shared", clause="session.stateless")
def scratch_shared(compute: Compute, c: Computation) -> Outputs:
    """Starts from the state that another session has left in memory that both share."""
    before = compute.process.get("state")
    own = compute.memory.setdefault("own", {})
    k = c.configuration
    foreign = before is not None and before is not own.get("state") and before.shape == k.shape_of("Y_h")
    outputs = compute(with_inputs(c, initial_h=before) if foreign else c)
    own["state"] = compute.process["state"] = outputs["Y_h"].copy()
    return outputs


@fault("session.refusal-leaves-state", clause="session.stateless")
def refusal_leaves_state(compute: Compute, c: Computation) -> Outputs:
    """Once it has refused inputs, starts from the state in which the run before ended."""
    before = compute.memory.get("state")
    fits = compute.refused and before is not None and before.shape == c.configuration.shape_of("Y_h")
    outputs = compute(with_inputs(c, initial_h=before) if fits else c)
    compute.memory["state"] = outputs["Y_h"].copy()
    return outputs


@fault("session.larger-run-shows", clause="session.stateless")
def larger_run_shows(compute: Compute, c: Computation) -> Outputs:
    """After a run of more steps takes the last step of X from that one, which still stands in memory."""
    kept: list[Array] = compute.memory.setdefault("X", [])

    def stale(X: Array) -> Array:
        T, N, _ = X.shape
        if kept and T and kept[0].shape[0] > T and kept[0].shape[1] >= N:
            return np.concatenate((X[:-1], kept[0][T - 1 : T, :N]))
        if not kept or kept[0].shape[0] < T:
            kept[:] = [X.copy()]
        return X

    return compute(with_steps(c, stale))


@fault("session.buffers-come-round", clause="session.repeatable")
def buffers_come_round(compute: Compute, c: Computation) -> Outputs:
    """Returns in every eighth run the outputs of the run before, where these have the same shapes."""
    run = compute.memory["runs"] = compute.memory.get("runs", 0) + 1
    before = compute.memory.get("outputs")
    outputs = compute(c)
    compute.memory["outputs"] = {name: array.copy() for name, array in outputs.items()}
    shapes = {name: array.shape for name, array in outputs.items()}
    stale = run % _RING == 0 and before is not None and {n: a.shape for n, a in before.items()} == shapes
    return before if stale and before is not None else outputs


@fault("session.padding-kept", clause="session.stateless", table=VARIANTS)
def padding_kept(compute: Compute, c: Computation) -> Outputs:
    """Leaves in Y past a row's length what an earlier run of the same sizes has written there."""
    k, outputs = c.configuration, compute(c)
    past = (np.arange(k.T)[:, np.newaxis] >= k.lengths)[:, np.newaxis, :, np.newaxis]

    def filled(Y: Array) -> Array:
        before = compute.memory.get("Y")
        kept = np.where(past, before, Y) if before is not None and before.shape == Y.shape else Y
        compute.memory["Y"] = kept
        return kept

    return with_outputs(c, outputs, Y=filled)


@fault("session.outputs-reused", clause="session.stateless", layer="form")
def outputs_reused(compute: Compute, c: Computation) -> Outputs:
    """Writes the outputs of every run of the same sizes into the same memory, which the caller still holds."""
    dtype = c.configuration.format.dtype
    outputs = compute(c)
    shapes = tuple(array.shape for array in outputs.values())
    buffers = compute.memory.setdefault(f"buffers {shapes}", {n: np.empty(a.shape, dtype) for n, a in outputs.items()})
    for name, array in outputs.items():
        buffers[name][...] = array.astype(dtype)
    return dict(buffers)
