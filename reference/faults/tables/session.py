"""Faults of sessions: runs that depend on earlier runs, on other sessions, or on refused inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping
from typing import Any

import numpy as np

from ...recurrent.computation import Computation
from ..alterations import with_fitting, with_inputs, with_lengths, with_outputs, with_steps
from ..fault import Array, Compute, Outputs, fault_of_run

# Rows: id, clause, words, then what is wrong, and fields of Fault.
# fmt: off

_RING = 8  # number of buffers that are used in turn

_HELD = ("W", "R", "B", "P", "initial_h", "initial_c")
"""Inputs of which a session may hold copies."""


def _run(compute: Compute) -> int:
    """Return the number of this run of the session, from 1."""
    run: int = compute.memory.get("runs", 0) + 1
    compute.memory["runs"] = run
    return run


def _with_lengths_that_fit(c: Computation, lengths: Array) -> Computation:
    fits = len(lengths) == c.configuration.N and lengths.max(initial=0) <= c.configuration.T
    return with_lengths(c, lengths) if fits else c


def _copies(c: Computation, names: Collection[str] = _HELD) -> dict[str, Array]:
    return {n: c.inputs[n].copy() for n in names if n in c.inputs}


def _before(compute: Compute, name: str, value: Any, first: Any) -> Any:
    """Return the value that the session kept by that name in its previous run, and keep `value`; `first` in the first
    run."""
    before = compute.memory.get(name, first)
    compute.memory[name] = value
    return before


def _kept(memory: MutableMapping[str, Any], c: Computation, names: Collection[str]) -> Mapping[str, Array]:
    """Return the inputs of the first run, if all of them have the same shapes now; otherwise an empty mapping."""
    there = _copies(c, names)
    first: Mapping[str, Array] = memory.setdefault("packed", there)
    fits = {n: a.shape for n, a in there.items()} == {n: a.shape for n, a in first.items()}
    return first if fits else {}


@fault_of_run("session.state-kept", "session.stateless",
    "Without initial states starts from those in which the run before ended.")
def state_kept(compute: Compute, c: Computation) -> Outputs:
    known = {n: a for n, a in compute.memory.items() if n not in c.inputs}
    k = c.configuration
    outputs = compute(with_inputs(c, **{n: a for n, a in known.items() if a.shape == k.shape_of("Y_h")}))
    compute.memory.update({f"initial_{name}": outputs[f"Y_{name}"] for name in ("h", *k.cell.inner)})
    return outputs


fault_of_run("session.lengths-kept", "session.stateless",
    "Computes every run with the lengths of the first, where the batch has as many rows.",
    lambda compute, c: compute(
        _with_lengths_that_fit(c, compute.memory.setdefault("lengths", c.configuration.lengths))
    ))


fault_of_run("session.initial-h-kept", "session.stateless",
    "Starts every run from the initial_h of the first, where it has that shape.",
    lambda compute, c: compute(with_fitting(c, compute.memory.setdefault("first", _copies(c, ("initial_h",))))))
fault_of_run("session.bias-once", "session.repeatable", "Adds B in the first run only.",
    lambda compute, c: compute(c if _run(compute) == 1 else with_inputs(c, B=None)))
fault_of_run("session.varies", "session.repeatable",
    "Returns other numbers every second time, as a race between threads does.",
    lambda compute, c: compute(c) if _run(compute) % 2 else {name: 1.25 * array for name, array in compute(c).items()})


@fault_of_run("session.sizes-kept", "dimensions", "Gives outputs of the sizes of the first run in all later ones.",
    layer="form")
def sizes_kept(compute: Compute, c: Computation) -> Outputs:
    outputs = compute(c)
    shapes = compute.memory.setdefault("shapes", {name: array.shape for name, array in outputs.items()})
    return {name: np.resize(array, shapes[name]) for name, array in outputs.items()}


fault_of_run("session.inputs-kept", "session.stateless",
    "Computes every run with the weights, biases and initial states of the first.",
    lambda compute, c: compute(with_fitting(c, compute.memory.setdefault("first", _copies(c)))))
fault_of_run("session.inputs-of-run-before", "session.stateless",
    "Computes every run with the weights, biases and initial states of the run before.",
    lambda compute, c: compute(with_fitting(c, _before(compute, "before", _copies(c), {}))))
fault_of_run("session.lengths-of-run-before", "session.stateless",
    "Computes every run with the lengths of the run before, where the batch has as many rows.",
    lambda compute, c: compute(
        _with_lengths_that_fit(c, _before(compute, "lengths", c.configuration.lengths, c.configuration.lengths))
    ))
fault_of_run("session.weights-kept", "session.stateless",
    "Packs W and R in the first run, and computes later ones with these, whatever is fed.",
    lambda compute, c: compute(with_inputs(c, **_kept(compute.memory, c, "WR"))))
fault_of_run("session.bias-kept", "session.stateless",
    "Sums B up in the first run, and computes later ones with that, whatever is fed.",
    lambda compute, c: compute(with_inputs(c, **_kept(compute.memory, c, "B"))))
fault_of_run("session.weights-shared", "session.stateless",
    "Packs W and R once for all sessions whose shapes are the same.",
    lambda compute, c: compute(with_inputs(c, **_kept(compute.memory.process, c, "WR"))))


@fault_of_run("session.scratch-shared", "session.stateless",
    "Starts from the state that another session has left in memory that both share.")
def scratch_shared(compute: Compute, c: Computation) -> Outputs:
    before = compute.memory.process.get("state")
    own = compute.memory.setdefault("own", {})
    k = c.configuration
    foreign = before is not None and before is not own.get("state") and before.shape == k.shape_of("Y_h")
    outputs = compute(with_inputs(c, initial_h=before) if foreign else c)
    own["state"] = compute.memory.process["state"] = outputs["Y_h"].copy()
    return outputs


@fault_of_run("session.refusal-leaves-state", "session.stateless",
    "Once it has refused inputs, starts from the state in which the run before ended.")
def refusal_leaves_state(compute: Compute, c: Computation) -> Outputs:
    before = compute.memory.get("state")
    fits = compute.memory.refused and before is not None and before.shape == c.configuration.shape_of("Y_h")
    outputs = compute(with_inputs(c, initial_h=before) if fits else c)
    compute.memory["state"] = outputs["Y_h"].copy()
    return outputs


@fault_of_run("session.larger-run-shows", "session.stateless",
    "After a run of more steps takes the last step of X from that one, which still stands in memory.")
def larger_run_shows(compute: Compute, c: Computation) -> Outputs:
    kept: list[Array] = compute.memory.setdefault("X", [])

    def stale(X: Array) -> Array:
        T, N, _ = X.shape
        if kept and T and kept[0].shape[0] > T and kept[0].shape[1] >= N:
            return np.concatenate((X[:-1], kept[0][T - 1 : T, :N]))
        if not kept or kept[0].shape[0] < T:
            kept[:] = [X.copy()]
        return X

    return compute(with_steps(c, stale))


@fault_of_run("session.buffers-come-round", "session.repeatable",
    "Returns in every eighth run the outputs of the run before, where these have the same shapes.")
def buffers_come_round(compute: Compute, c: Computation) -> Outputs:
    run, outputs = _run(compute), compute(c)
    before: Outputs = _before(compute, "outputs", {name: array.copy() for name, array in outputs.items()}, {})
    shapes = {name: array.shape for name, array in outputs.items()}
    stale = run % _RING == 0 and {n: a.shape for n, a in before.items()} == shapes
    return before if stale else outputs


@fault_of_run("session.padding-kept", "session.stateless",
    "Leaves in Y past a row's length what an earlier run of the same sizes has written there.", proved=False)
def padding_kept(compute: Compute, c: Computation) -> Outputs:
    k, outputs = c.configuration, compute(c)
    past = (np.arange(k.T)[:, np.newaxis] >= k.lengths)[:, np.newaxis, :, np.newaxis]

    def filled(Y: Array) -> Array:
        before = compute.memory.get("Y")
        kept = np.where(past, before, Y) if before is not None and before.shape == Y.shape else Y
        compute.memory["Y"] = kept
        return kept

    return with_outputs(c, outputs, Y=filled)


@fault_of_run("session.outputs-reused", "session.stateless",
    "Writes the outputs of every run of the same sizes into the same memory, which the caller still holds.",
    layer="form")
def outputs_reused(compute: Compute, c: Computation) -> Outputs:
    dtype = c.configuration.format.dtype
    outputs = compute(c)
    shapes = tuple(array.shape for array in outputs.values())
    buffers = compute.memory.setdefault(f"buffers {shapes}", {n: np.empty(a.shape, dtype) for n, a in outputs.items()})
    for name, array in outputs.items():
        buffers[name][...] = array.astype(dtype)
    return dict(buffers)
