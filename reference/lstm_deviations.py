"""What engineers who write an LSTM kernel get wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .activations import ACTIVATIONS, Activation, Coefficient
from .cell import Gates, Number, Parameters, States
from .deviations import Compute, Outputs, deviation
from .lstm import gates, output
from .recurrence import Computation

__all__: list[str] = []

Array = NDArray[Any]
LSTM = ("LSTM",)


def _with_inputs(c: Computation, **changed: Array | None) -> Computation:
    """The computation with some inputs replaced; None takes one away."""
    inputs = {**c.inputs, **changed}
    return replace(c, inputs={n: a for n, a in inputs.items() if a is not None})


def _configured(c: Computation, **changed: Any) -> Computation:
    return replace(c, configuration=replace(c.configuration, **changed))


def _with_walk(c: Computation, walk: Callable[[Parameters, Gates, Gates, tuple[Number, ...]], States]) -> Computation:
    return _configured(c, cell=replace(c.configuration.cell, walk=walk))


def _blocks(c: Computation, tensor: Array, order: str, letters: str) -> Array:
    """A tensor whose axis 1 holds blocks of `letters`, read as if they stood in `order`."""
    H = c.configuration.H
    groups = tensor.shape[1] // (len(letters) * H)
    shape = (tensor.shape[0], groups, len(letters), H, *tensor.shape[2:])
    return tensor.reshape(shape)[:, :, [order.index(x) for x in letters]].reshape(tensor.shape)


def _gates_read_as(c: Computation, order: str) -> Computation:
    letters = c.configuration.cell.gates
    return _with_inputs(c, **{n: _blocks(c, c.inputs[n], order, letters) for n in "WRB" if n in c.inputs})


@deviation("lstm.gates.ifoc", clause="lstm.gates.order", operators=LSTM)
def gates_ifoc(compute: Compute, c: Computation) -> Outputs:
    """Gate blocks of W, R and B are read in the order i, f, o, c."""
    return compute(_gates_read_as(c, "ifoc"))


@deviation("lstm.gates.ifco", clause="lstm.gates.order", operators=LSTM)
def gates_ifco(compute: Compute, c: Computation) -> Outputs:
    """Gate blocks of W, R and B are read in the order i, f, c, o, as PyTorch and cuDNN hold them."""
    return compute(_gates_read_as(c, "ifco"))


@deviation("lstm.weights.recurrent-transposed", clause="lstm.equations", operators=LSTM)
def recurrent_transposed(compute: Compute, c: Computation) -> Outputs:
    """Each gate's block of R is used transposed."""
    R, H = c.inputs["R"], c.configuration.H
    blocks = R.reshape(R.shape[0], -1, H, H).swapaxes(2, 3)
    return compute(_with_inputs(c, R=blocks.reshape(R.shape)))


@deviation("lstm.weights.shared-directions", clause="lstm.directions.weights", operators=LSTM)
def weights_shared(compute: Compute, c: Computation) -> Outputs:
    """The backward direction runs with the forward direction's W and R."""
    shared = {n: np.repeat(c.inputs[n][:1], len(c.inputs[n]), axis=0) for n in "WR"}
    return compute(_with_inputs(c, **shared))


def _without_bias(c: Computation, half: slice) -> Computation:
    if "B" not in c.inputs:
        return c
    B = c.inputs["B"].copy()
    B[:, half] = 0
    return _with_inputs(c, B=B)


@deviation("lstm.bias.ignored", clause="lstm.bias", operators=LSTM)
def bias_ignored(compute: Compute, c: Computation) -> Outputs:
    """B is ignored."""
    return compute(_with_inputs(c, B=None))


@deviation("lstm.bias.input-half-ignored", clause="lstm.bias", operators=LSTM)
def input_bias_ignored(compute: Compute, c: Computation) -> Outputs:
    """The first half of B, Wb, is ignored."""
    return compute(_without_bias(c, slice(None, 4 * c.configuration.H)))


@deviation("lstm.bias.recurrent-half-ignored", clause="lstm.bias", operators=LSTM)
def recurrent_bias_ignored(compute: Compute, c: Computation) -> Outputs:
    """The second half of B, Rb, is ignored."""
    return compute(_without_bias(c, slice(4 * c.configuration.H, None)))


@deviation("lstm.initial-h.ignored", clause="lstm.initial-states", operators=LSTM)
def initial_h_ignored(compute: Compute, c: Computation) -> Outputs:
    """initial_h is ignored."""
    return compute(_with_inputs(c, initial_h=None))


@deviation("lstm.initial-c.ignored", clause="lstm.initial-states", operators=LSTM)
def initial_c_ignored(compute: Compute, c: Computation) -> Outputs:
    """initial_c is ignored."""
    return compute(_with_inputs(c, initial_c=None))


@deviation("lstm.initial-states.swapped", clause="lstm.initial-states", operators=LSTM)
def initial_states_swapped(compute: Compute, c: Computation) -> Outputs:
    """initial_h and initial_c change places."""
    return compute(_with_inputs(c, initial_h=c.inputs.get("initial_c"), initial_c=c.inputs.get("initial_h")))


@deviation("lstm.initial-states.shared-directions", clause="lstm.initial-states", operators=LSTM)
def initial_states_shared(compute: Compute, c: Computation) -> Outputs:
    """The backward direction starts from the forward direction's initial states."""
    axis = c.configuration.layout
    shared = {
        n: np.repeat(c.inputs[n].take([0], axis), c.inputs[n].shape[axis], axis)
        for n in ("initial_h", "initial_c")
        if n in c.inputs
    }
    return compute(_with_inputs(c, **shared))


@deviation("lstm.peepholes.ignored", clause="lstm.peepholes", operators=LSTM)
def peepholes_ignored(compute: Compute, c: Computation) -> Outputs:
    """P is ignored."""
    return compute(_with_inputs(c, P=None))


@deviation("lstm.peepholes.ifo", clause="lstm.peepholes.order", operators=LSTM)
def peepholes_ifo(compute: Compute, c: Computation) -> Outputs:
    """The blocks of P are read in the order i, f, o."""
    return compute(_with_inputs(c, P=_blocks(c, c.inputs["P"], "ifo", "iof")) if "P" in c.inputs else c)


@deviation("lstm.peepholes.output-from-previous-cell", clause="lstm.peepholes.output", operators=LSTM)
def peephole_from_previous_cell(compute: Compute, c: Computation) -> Outputs:
    """The output gate's peephole looks at Ct-1 instead of Ct."""

    def walk(p: Parameters, X: Gates, H: Gates, inner: tuple[Number, ...]) -> States:
        (C,) = inner
        hidden, cells = [], []
        for t in range(len(X.number)):
            i, f, candidate = gates(p, X[t], H[t], C)
            o = p.f(X[t].o + H[t].o + p.P["o"] * C)
            C = f * C + i * candidate
            hidden.append(o * p.h(C))
            cells.append(C)
        return np.stack(hidden), np.stack(cells)

    return compute(_with_walk(c, walk))


@deviation("lstm.lengths.ignored", clause="lstm.lengths", operators=LSTM)
def lengths_ignored(compute: Compute, c: Computation) -> Outputs:
    """sequence_lens is ignored."""
    return compute(_configured(c, lengths=np.full_like(c.configuration.lengths, c.configuration.T)))


@deviation("lstm.lengths.first-row", clause="lstm.lengths", operators=LSTM)
def lengths_of_first_row(compute: Compute, c: Computation) -> Outputs:
    """Every row takes the length of the first."""
    lengths = c.configuration.lengths
    return compute(_configured(c, lengths=np.full_like(lengths, lengths[0] if len(lengths) else 0)))


@deviation("lstm.lengths.reverse-reads-padding", clause="lstm.lengths", operators=LSTM)
def reverse_reads_padding(compute: Compute, c: Computation) -> Outputs:
    """The reverse direction starts at the end of the tensor and takes padding for data."""
    whole = compute(_configured(c, lengths=np.full_like(c.configuration.lengths, c.configuration.T)))
    right = compute(c)
    axis = 2 if c.configuration.layout == 1 else 1
    states = c.configuration.layout
    for d, direction in enumerate(c.configuration.directions):
        if direction == "forward":
            continue
        for name, array in whole.items():
            place = (slice(None),) * (axis if name == "Y" else states) + (d,)
            right[name] = right[name].copy()
            right[name][place] = array[place]
    return right


@deviation("lstm.padding.state-repeated", clause="lstm.padding.zero", operators=LSTM)
def padding_repeats_state(compute: Compute, c: Computation) -> Outputs:
    """Past a row's length Y repeats a number instead of being zero."""
    outputs = dict(compute(c))
    time = 1 if c.configuration.layout == 1 else 0
    T = c.configuration.T
    beyond = np.arange(T)[:, np.newaxis] >= c.configuration.lengths
    beyond = beyond.T[:, :, np.newaxis, np.newaxis] if time else beyond[:, np.newaxis, :, np.newaxis]
    outputs["Y"] = np.where(beyond, 0.5, outputs["Y"])
    return outputs


@deviation("lstm.direction.reverse-runs-forward", clause="lstm.directions", operators=LSTM)
def reverse_runs_forward(compute: Compute, c: Computation) -> Outputs:
    """The reverse direction runs forward."""
    return compute(_configured(c, directions=("forward",) * len(c.configuration.directions)))


@deviation("lstm.direction.reverse-not-turned-back", clause="lstm.outputs.order", operators=LSTM)
def reverse_not_turned_back(compute: Compute, c: Computation) -> Outputs:
    """Y of the reverse direction stands in the order in which it was computed."""
    outputs = dict(compute(c))
    Y = outputs["Y"].copy()
    time, axis = (1, 2) if c.configuration.layout == 1 else (0, 1)
    for d, direction in enumerate(c.configuration.directions):
        if direction == "reverse":
            place = (slice(None),) * axis + (d,)
            Y[place] = np.flip(Y[place], time)
    outputs["Y"] = Y
    return outputs


@deviation("lstm.activations.ignored", clause="lstm.activations", operators=LSTM)
def activations_ignored(compute: Compute, c: Computation) -> Outputs:
    """The attribute activations is ignored: Sigmoid, Tanh, Tanh throughout."""
    functions = tuple(Activation(ACTIVATIONS[n]) for n in c.configuration.cell.activations)
    return compute(_configured(c, activations=(functions,) * len(c.configuration.directions)))


@deviation("lstm.activations.backward-as-forward", clause="lstm.activations.order", operators=LSTM)
def backward_as_forward(compute: Compute, c: Computation) -> Outputs:
    """The backward direction runs with the forward direction's activations."""
    functions = c.configuration.activations
    return compute(_configured(c, activations=(functions[0],) * len(functions)))


@deviation("lstm.activations.g-and-h-swapped", clause="lstm.activations.order", operators=LSTM)
def g_and_h_swapped(compute: Compute, c: Computation) -> Outputs:
    """The activations of the cell input and of the cell output change places."""
    return compute(_configured(c, activations=tuple((f, h, g) for f, g, h in c.configuration.activations)))


def _with_coefficients(c: Computation, change: Callable[[Activation, Activation], Activation]) -> Computation:
    first = c.configuration.activations[0][0]
    functions = tuple(tuple(change(f, first) for f in fs) for fs in c.configuration.activations)
    return _configured(c, activations=functions)


@deviation("lstm.alpha.ignored", clause="lstm.activation-alpha", operators=LSTM)
def alpha_ignored(compute: Compute, c: Computation) -> Outputs:
    """activation_alpha is ignored: every function takes its default."""

    def default(function: Activation, first: Activation) -> Activation:
        usual = function.kind.default_alpha
        return replace(function, alpha=Coefficient.of(usual)) if usual is not None else function

    return compute(_with_coefficients(c, default))


@deviation("lstm.alpha.not-consumed", clause="lstm.activation-alpha", operators=LSTM)
def alpha_not_consumed(compute: Compute, c: Computation) -> Outputs:
    """Every activation that uses an alpha takes the first entry of activation_alpha."""
    used = [f for fs in c.configuration.activations for f in fs if f.kind.uses_alpha]

    def same(function: Activation, first: Activation) -> Activation:
        return replace(function, alpha=used[0].alpha) if function.kind.uses_alpha else function

    return compute(_with_coefficients(c, same))


@deviation("lstm.beta.ignored", clause="lstm.activation-beta", operators=LSTM)
def beta_ignored(compute: Compute, c: Computation) -> Outputs:
    """activation_beta is ignored: every function takes its default."""

    def default(function: Activation, first: Activation) -> Activation:
        usual = function.kind.default_beta
        return replace(function, beta=Coefficient.of(usual)) if usual is not None else function

    return compute(_with_coefficients(c, default))


@deviation("lstm.clip.ignored", clause="lstm.clip", operators=LSTM)
def clip_ignored(compute: Compute, c: Computation) -> Outputs:
    """clip is ignored."""
    return compute(_configured(c, clips=(None,) * len(c.configuration.clips)))


@deviation("lstm.clip.on-cell-state", clause="lstm.clip", operators=LSTM)
def clip_on_cell_state(compute: Compute, c: Computation) -> Outputs:
    """clip bounds the cell state that is carried on, not the arguments of activations."""
    threshold = c.configuration.clips[0]
    if threshold is None:
        return compute(c)

    def walk(p: Parameters, X: Gates, H: Gates, inner: tuple[Number, ...]) -> States:
        (C,) = inner
        hidden, cells = [], []
        for t in range(len(X.number)):
            i, f, candidate = gates(p, X[t], H[t], C)
            C = np.clip(f * C + i * candidate, -threshold, threshold)
            hidden.append(output(p, X[t], H[t], C))
            cells.append(C)
        return np.stack(hidden), np.stack(cells)

    return compute(_configured(_with_walk(c, walk), clips=(None,) * len(c.configuration.clips)))


@deviation("lstm.input-forget.ignored", clause="lstm.input-forget", operators=LSTM)
def input_forget_ignored(compute: Compute, c: Computation) -> Outputs:
    """input_forget is ignored."""
    return compute(_configured(c, coupled=None))


@deviation("lstm.outputs.last-row-of-tensor", clause="lstm.outputs.last-hidden", operators=LSTM)
def last_of_tensor(compute: Compute, c: Computation) -> Outputs:
    """Y_h is Y at the tensor's last step, whatever the direction and the length."""
    outputs = dict(compute(c))
    if c.configuration.T:
        outputs["Y_h"] = outputs["Y"][:, -1] if c.configuration.layout == 1 else outputs["Y"][-1]
    return outputs


@deviation("lstm.outputs.cell-is-hidden", clause="lstm.outputs.last-cell", operators=LSTM)
def cell_is_hidden(compute: Compute, c: Computation) -> Outputs:
    """Y_c holds Y_h."""
    outputs = dict(compute(c))
    outputs["Y_c"] = outputs["Y_h"]
    return outputs


@deviation("lstm.outputs.depend-on-request", clause="lstm.outputs.independent", operators=LSTM)
def outputs_depend_on_request(compute: Compute, c: Computation) -> Outputs:
    """Where Y is not asked for, sequence_lens is ignored."""
    return compute(c) if "Y" in c.configuration.outputs else lengths_ignored(compute, c)


@deviation("lstm.layout.states-not-moved", clause="lstm.layout", operators=LSTM)
def states_not_moved(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 only X and Y have the batch first; the states stay as with layout 0."""
    outputs = dict(compute(c))
    if c.configuration.layout == 1:
        outputs.update({n: outputs[n].swapaxes(0, 1) for n in ("Y_h", "Y_c")})
    return outputs


@deviation("lstm.outputs.zero", clause="lstm.equations", operators=LSTM)
def all_zero(compute: Compute, c: Computation) -> Outputs:
    """All outputs are zero."""
    return {name: np.zeros_like(array) for name, array in compute(c).items()}


@deviation("lstm.drift.forget-gate", clause="lstm.equations", operators=LSTM, structural=False)
def forget_gate_drifts(compute: Compute, c: Computation) -> Outputs:
    """The forget gate is 12 units too small at every step, too little to show in any one of them."""

    def walk(p: Parameters, X: Gates, H: Gates, inner: tuple[Number, ...]) -> States:
        (C,) = inner
        steps = []
        for t in range(len(X.number)):
            i, f, candidate = gates(p, X[t], H[t], C)
            C = f * (1 - 12 * c.configuration.format.unit) * C + i * candidate
            steps.append(C)
        return output(p, X, H, np.stack(steps)), np.stack(steps)

    return compute(_with_walk(c, walk))


@deviation("lstm.drift.one-unit-low", clause="lstm.equations", operators=LSTM, structural=False)
def one_unit_low(compute: Compute, c: Computation) -> Outputs:
    """Every result is one unit in the last place too low."""
    form = c.configuration.format
    outputs = {}
    for name, array in compute(c).items():
        shown = array.astype(form.dtype).astype(np.float64)
        unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(shown), form.least_normal))) - form.precision + 1)
        outputs[name] = np.where(shown == 0, 0.0, shown - unit)
    return outputs
