"""Faults of CausalConvWithState that cannot be derived from its form."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...faults.alterations import first_of
from ...faults.fault import ALL_BUT_BFLOAT16, Compute, Outputs, fault, fault_of_run
from ..described import Described, with_attributes, with_equations, with_inputs
from .recurrence import Array, activated, channels_first, convolved, lag_of, padded, present_state, sums

# Rows: id, clause, words, then the change.
# fmt: off

_of = partial(fault, operators=("CausalConvWithState",))
_of_run = partial(fault_of_run, operators=("CausalConvWithState",))


def _computed(output: str, change: Callable[[Described, Array], Array]) -> Callable[[Described], Described]:
    """Return the fault that computes an output from the padded numbers by `change`."""
    return lambda c: with_equations(c, lambda k: {**convolved(k), output: channels_first(k, change(k, padded(k)))})


_output = partial(_computed, "output")
_state = partial(_computed, "present_state")


def _weights(change: Callable[[Array], Array]) -> Callable[[Described], Described]:
    return lambda c: with_inputs(c, weight=np.ascontiguousarray(change(c.inputs["weight"])))


def _past(change: Callable[[Array], Array]) -> Callable[[Described], Described]:
    def changed(c: Described) -> Described:
        past = c.inputs.get("past_state")
        if past is None:
            return c
        changed = channels_first(c, change(channels_first(c, past)))
        return with_inputs(c, past_state=np.ascontiguousarray(changed))

    return changed


def _shifted(numbers: Array, by: int) -> Array:
    """Return numbers read `by` positions later, with zeros after the end."""
    return np.concatenate([numbers[:, :, by:], np.zeros((*numbers.shape[:2], by))], axis=2)


def _whole_blocks(size: int) -> NDArray[np.bool_]:
    """Return a mask of the elements in whole blocks of 4; all elements where there is no whole block."""
    return np.arange(size) < (size // 4 * 4 or size)


def _in_blocks(output: Array, axis: int) -> Array:
    """Return output with zeros after the last whole block of 4 along an axis; unchanged where there is no whole
    block."""
    output = output.copy()
    output[(slice(None),) * axis + (~_whole_blocks(output.shape[axis]),)] = 0.0
    return output


def _bias_behind(c: Described, numbers: Array) -> Array:
    bias = c.wide("bias")
    output = activated(c, sums(with_inputs(c, bias=None), numbers))
    return output if bias is None else output + bias.reshape(1, -1, 1)


def _other(c: Described, total: Array, function: Callable[[Array], Array]) -> Array:
    return total if c.attributes["activation"] == "none" else function(total)


def _of_input(c: Described) -> Array:
    x = padded(c)[:, :, lag_of(c) :]
    kept = x[:, :, max(x.shape[2] - lag_of(c), 0) :]
    return np.concatenate([np.zeros((*x.shape[:2], lag_of(c) - kept.shape[2])), kept], axis=2)


def _of_output(c: Described, numbers: Array) -> Array:
    output = activated(c, sums(c, numbers))
    return np.concatenate([numbers[:, :, : lag_of(c)], output], axis=2)[:, :, output.shape[2] :]


_of("causalconvwithstate.kernel.flipped", "equations", "Convolves with the weights in reverse order.",
    _weights(lambda w: w[:, :, ::-1]))
_of("causalconvwithstate.kernel.first-channel", "equations", "Uses the first channel's weights for all channels.",
    _weights(first_of))
_of("causalconvwithstate.kernel.tail-of-4", "equations",
    "Leaves out the weights that are left over after whole blocks of 4, where there is such a block.",
    _weights(lambda w: np.where(_whole_blocks(w.shape[2]), w, w.dtype.type(0))))
_of("causalconvwithstate.causal.ahead", "equations", "Looks one position ahead.",
    _output(lambda c, numbers: activated(c, sums(c, _shifted(numbers, 1)))))
_of("causalconvwithstate.causal.centred", "equations", "Centres the kernel on each position.",
    _output(lambda c, numbers: activated(c, sums(c, _shifted(numbers, (lag_of(c) + 1) // 2)))))
_of("causalconvwithstate.channels.tail-of-4", "equations",
    "Returns zeros for the channels left over after whole blocks of 4.",
    _output(lambda c, numbers: _in_blocks(activated(c, sums(c, numbers)), axis=1)))
_of("causalconvwithstate.length.tail-of-4", "equations",
    "Returns zeros for the positions left over after whole blocks of 4.",
    _output(lambda c, numbers: _in_blocks(activated(c, sums(c, numbers)), axis=2)))
_of("causalconvwithstate.bias.first-channel", "bias", "Adds the first channel's bias to all channels.",
    lambda c: with_inputs(c, bias=first_of(c.inputs["bias"])) if "bias" in c.inputs else c)
_of("causalconvwithstate.bias.behind-the-activation", "bias", "Adds bias behind the activation.",
    _output(_bias_behind))
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
    _state(lambda c, numbers: numbers[:, :, : lag_of(c)]))
_of("causalconvwithstate.present-state.of-input", "present-state",
    "Takes positions of input alone, and zeros where it is shorter than k - 1.",
    _state(lambda c, numbers: _of_input(c)))
_of("causalconvwithstate.present-state.zero-of-short", "present-state",
    "Returns zeros for present_state where input is shorter than k - 1.",
    _state(lambda c, numbers: present_state(c, numbers) * float(numbers.shape[2] - lag_of(c) >= lag_of(c))))
_of("causalconvwithstate.present-state.rows", "present-state", "Returns the first row's present_state for all rows.",
    _state(lambda c, numbers: first_of(present_state(c, numbers))))
_of("causalconvwithstate.output.rows", "equations", "Returns the first row's output for all rows.",
    _output(lambda c, numbers: first_of(activated(c, sums(c, numbers)))))
_of("causalconvwithstate.present-state.unchanged", "present-state", "Returns past_state as it came.",
    _state(lambda c, numbers: numbers[:, :, : lag_of(c)] if "past_state" in c.inputs else present_state(c, numbers)))
_of("causalconvwithstate.present-state.of-output", "present-state", "Takes the last positions of output.",
    _state(_of_output))
_of("causalconvwithstate.present-state.early", "present-state", "Leaves out the last position.",
    _state(lambda c, numbers: present_state(c, np.concatenate([numbers[:, :, -1:], numbers[:, :, :-1]], axis=2))))


@_of_run("causalconvwithstate.session.state-kept", "session.stateless",
    "Without past_state starts from the state in which the run before ended.")
def state_kept(compute: Compute, c: Described) -> Outputs:
    before, x = compute.memory.get("state"), c.inputs["input"]
    start = c
    if before is not None and "past_state" not in c.inputs:
        shape = channels_first(c, x).shape
        if channels_first(c, before).shape == (*shape[:2], lag_of(c)):
            start = with_inputs(c, past_state=before.astype(x.dtype))
    outputs = compute(start)
    compute.memory["state"] = outputs["present_state"]
    return outputs


def _undilated(c: Described, numbers: Array) -> Array:
    k = c.inputs["weight"].shape[2]
    return activated(c, sums(with_attributes(c, dilation=1), numbers[:, :, lag_of(c) - (k - 1) :]))


def _from_the_oldest(c: Described, numbers: Array) -> Array:
    k = c.inputs["weight"].shape[2]
    return activated(c, sums(with_attributes(c, dilation=1), numbers[:, :, : numbers.shape[2] - lag_of(c) + k - 1]))


def _axes_taken_for_each_other(c: Described) -> Described:
    x = c.inputs["input"]
    if c.layout != 1 or x.shape[1] != x.shape[2]:
        return c
    return with_inputs(c, input=np.ascontiguousarray(x.swapaxes(1, 2)))


_of_dilated = partial(fault, operators=("com.microsoft::CausalConvWithState",))

_of_dilated("com.microsoft.causalconvwithstate.dilation.ignored", "dilation", "Ignores dilation in the convolution.",
    _output(_undilated))
_of_dilated("com.microsoft.causalconvwithstate.dilation.from-the-oldest", "dilation",
    "Counts dilated positions from the oldest one of the state on.",
    _output(_from_the_oldest))
_of_dilated("com.microsoft.causalconvwithstate.channels-last.ignored", "channels-last",
    "Takes channels for positions where channels_last is 1 and both are as many.",
    _axes_taken_for_each_other)
