"""Faults of CausalConvWithState that do not follow from its form."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...faults.fault import ALL_BUT_BFLOAT16, Compute, Outputs, fault, fault_of_run
from ..described import Described, with_equations, with_inputs
from .recurrence import Array, activated, convolved, padded, present_state, sums

# Rows: id, clause, words, then the change.
# fmt: off

_of = partial(fault, operators=("CausalConvWithState",))
_of_run = partial(fault_of_run, operators=("CausalConvWithState",))


def _output(change: Callable[[Described, Array], Array]) -> Callable[[Described], Described]:
    """Compute output from the padded numbers in another way."""
    return lambda c: with_equations(c, lambda k: {**convolved(k), "output": change(k, padded(k))})


def _state(change: Callable[[Described, Array], Array]) -> Callable[[Described], Described]:
    """Compute present_state from the padded numbers in another way."""
    return lambda c: with_equations(c, lambda k: {**convolved(k), "present_state": change(k, padded(k))})


def _weights(change: Callable[[Array], Array]) -> Callable[[Described], Described]:
    return lambda c: with_inputs(c, weight=np.ascontiguousarray(change(c.inputs["weight"])))


def _past(change: Callable[[Array], Array]) -> Callable[[Described], Described]:
    def changed(c: Described) -> Described:
        past = c.inputs.get("past_state")
        return c if past is None else with_inputs(c, past_state=np.ascontiguousarray(change(past)))

    return changed


def _lag(c: Described) -> int:
    return int(c.inputs["weight"].shape[2]) - 1


def _shifted(numbers: Array, by: int) -> Array:
    """Return numbers read `by` positions later, with zeros behind the end."""
    return np.concatenate([numbers[:, :, by:], np.zeros((*numbers.shape[:2], by))], axis=2)


_of("causalconvwithstate.kernel.flipped", "equations", "Convolves with the weights in reverse order.",
    _weights(lambda w: w[:, :, ::-1]))
_of("causalconvwithstate.kernel.first-channel", "equations", "Uses the first channel's weights for all channels.",
    _weights(lambda w: np.repeat(w[:1], len(w), axis=0)))
_of("causalconvwithstate.kernel.tail-of-4", "equations",
    "Leaves out the weights that are left over after whole blocks of 4, where there is such a block.",
    _weights(lambda w: np.where(_whole_blocks(w.shape[2]), w, w.dtype.type(0))))
_of("causalconvwithstate.causal.ahead", "equations", "Looks one position ahead.",
    _output(lambda c, numbers: activated(c, sums(c, _shifted(numbers, 1)))))
_of("causalconvwithstate.causal.centred", "equations", "Centres the kernel on each position.",
    _output(lambda c, numbers: activated(c, sums(c, _shifted(numbers, (_lag(c) + 1) // 2)))))
_of("causalconvwithstate.channels.tail-of-4", "equations",
    "Returns zeros for the channels left over after whole blocks of 4.",
    lambda c: with_equations(c, lambda k: _in_blocks(convolved(k), axis=1)))
_of("causalconvwithstate.length.tail-of-4", "equations",
    "Returns zeros for the positions left over after whole blocks of 4.",
    lambda c: with_equations(c, lambda k: _in_blocks(convolved(k), axis=2)))
_of("causalconvwithstate.bias.first-channel", "bias", "Adds the first channel's bias to all channels.",
    lambda c: with_inputs(c, bias=_first_repeated(c.inputs.get("bias"))))
_of("causalconvwithstate.bias.behind-the-activation", "bias", "Adds bias behind the activation.",
    lambda c: with_equations(c, lambda k: _bias_behind(k)))
_of("causalconvwithstate.activation.sigmoid", "activation", "Computes sigmoid for silu.",
    _output(lambda c, numbers: _other(c, sums(c, numbers), lambda x: 1 / (1 + np.exp(-x)))))
_of("causalconvwithstate.activation.hard", "activation", "Computes x * clip(x / 6 + 1/2, 0, 1) for silu.",
    _output(lambda c, numbers: _other(c, sums(c, numbers), lambda x: x * np.clip(x / 6 + 0.5, 0, 1))),
    types=ALL_BUT_BFLOAT16)
_of("causalconvwithstate.past-state.reversed", "past-state", "Reads past_state from its last position on.",
    _past(lambda past: past[:, :, ::-1]))
_of("causalconvwithstate.past-state.late", "past-state",
    "Shifts past_state by one position, as if it had k of them.", _past(lambda past: np.roll(past, -1, axis=2)))
_of("causalconvwithstate.present-state.first", "present-state", "Returns the first k - 1 positions.",
    _state(lambda c, numbers: numbers[:, :, : _lag(c)]))
_of("causalconvwithstate.present-state.of-input", "present-state",
    "Takes positions of input alone, and zeros where it is shorter than k - 1.",
    _state(lambda c, numbers: _of_input(c)))
_of("causalconvwithstate.present-state.unchanged", "present-state", "Returns past_state as it came.",
    _state(lambda c, numbers: numbers[:, :, : _lag(c)] if "past_state" in c.inputs else present_state(c, numbers)))
_of("causalconvwithstate.present-state.of-output", "present-state", "Takes the last positions of output.",
    _state(lambda c, numbers: _of_output(c, numbers)))
_of("causalconvwithstate.present-state.early", "present-state", "Leaves out the last position.",
    _state(lambda c, numbers: present_state(c, np.concatenate([numbers[:, :, -1:], numbers[:, :, :-1]], axis=2))))


def _whole_blocks(size: int) -> NDArray[np.bool_]:
    """Tell which of so many are in whole blocks of 4; all of them where there is none."""
    return np.arange(size) < (size // 4 * 4 or size)


def _first_repeated(bias: NDArray[Any] | None) -> NDArray[Any] | None:
    return None if bias is None else np.repeat(bias[:1], len(bias))


def _in_blocks(outputs: Outputs, axis: int) -> Outputs:
    """Return output with zeros in what is left over of an axis after whole blocks of 4, where there is such a block."""
    output = outputs["output"].copy()
    output[(slice(None),) * axis + (~_whole_blocks(output.shape[axis]),)] = 0.0
    return {**outputs, "output": output}


def _bias_behind(c: Described) -> Outputs:
    bias = c.wide("bias")
    outputs = convolved(with_inputs(c, bias=None))
    return outputs if bias is None else {**outputs, "output": outputs["output"] + bias.reshape(1, -1, 1)}


def _other(c: Described, total: Array, function: Callable[[Array], Array]) -> Array:
    return total if c.attributes["activation"] == "none" else function(total)


def _of_input(c: Described) -> Array:
    x = c.wide("input")
    assert x is not None
    kept = x[:, :, max(x.shape[2] - _lag(c), 0) :]
    return np.concatenate([np.zeros((*x.shape[:2], _lag(c) - kept.shape[2])), kept], axis=2)


def _of_output(c: Described, numbers: Array) -> Array:
    output = activated(c, sums(c, numbers))
    return np.concatenate([numbers[:, :, : _lag(c)], output], axis=2)[:, :, output.shape[2] :]


@_of_run("causalconvwithstate.session.state-kept", "session.stateless",
    "Without past_state starts from the state in which the run before ended.")
def state_kept(compute: Compute, c: Described) -> Outputs:
    before = compute.memory.get("state")
    start = c
    if before is not None and "past_state" not in c.inputs:
        x = c.inputs["input"]
        if before.shape == (*x.shape[:2], _lag(c)):
            start = with_inputs(c, past_state=before.astype(x.dtype))
    outputs = compute(start)
    compute.memory["state"] = outputs["present_state"]
    return outputs
