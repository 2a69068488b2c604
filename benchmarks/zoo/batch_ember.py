"""A batch of faulty kernels for LSTM, GRU and RNN: one plain kernel with 25 faults to switch on.

The kernel follows the operators' documents (versions 7, 14 and 22).  Readings the documents leave
open: the alphas and betas are consumed only by functions that have one; a row of length zero
keeps its initial state; the defaults of Affine and ScaledTanh are 1 (alpha) and 0, 1 (beta).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WRITTEN = "2026-11-23"

FAULTS: dict[str, str] = {
    "gate_block_stride": (
        "The input projection is packed with the gates interleaved in blocks of 8 units, and the "
        "last partial block is read with a full block's stride: its later gates are wrong when "
        "hidden_size > 8 is no multiple of 8 (LSTM and GRU)."
    ),
    "overlapped_tail_twice": (
        "Rows are done in tiles of 4 and the last tile is moved back to be full; states are "
        "updated in place, so the overlapped rows advance twice a step when batch > 4 is no "
        "multiple of 4."
    ),
    "unsort_by_permutation": (
        "Rows are sorted by falling length, and the last states are put back by the permutation "
        "instead of its inverse: wrong only when the sort is not its own inverse."
    ),
    "packed_assumes_sorted": (
        "The rows at work in a step are taken to be the first ones, as many as still run: wrong "
        "when sequence_lens is not in falling order."
    ),
    "ends_checked_in_pairs": (
        "The forward loop over time is unrolled by two and looks for ended rows once a pair: a "
        "row of odd length below seq_length runs one step into its padding."
    ),
    "equal_lengths_reverse": (
        "If all lengths are equal a uniform path is taken, whose reverse walk reads X from the "
        "last step of the tensor: wrong in reverse when the common length is below seq_length."
    ),
    "length_byte": (
        "Lengths are kept in one byte: a row longer than 255 steps is run for its length modulo "
        "256 only (when sequence_lens is given)."
    ),
    "no_y_ring": (
        "When Y is not asked for only the current state is kept and nothing freezes it: forward "
        "rows with a length below seq_length go on over their padding, and Y_h, Y_c are wrong."
    ),
    "pack_cache_checksum": (
        "A fed R is packed once and kept while its shape, first and last element stay the same: "
        "a later run whose R differs in between uses the old one."
    ),
    "folded_bias_override": (
        "The bias of the backward direction is folded from the initializer when the session is "
        "made: if B is a graph input too and a feed overrides it, only the forward direction "
        "takes the fed one."
    ),
    "reverse_map_stale": (
        "The map that turns each row round is kept for a (seq_length, batch) pair: a later run "
        "of the same shape with other sequence_lens walks its reverse direction by the old ones."
    ),
    "cell_state_survives": (
        "The state buffers are cleared only when initial_h is absent: an LSTM with initial_h but "
        "no initial_c starts its cell from the last run's, if the shape is the same."
    ),
    "tanh_clamp_one_sided": (
        "Tanh (in ScaledTanh too) is a rational approximation good in [-9, 9] whose argument is "
        "clamped from above only: wrong for arguments far below -9."
    ),
    "softplus_half_exp": (
        "In float16 models Softplus takes its exponential in half precision, saturated at 65504: "
        "it stays at 11.09 for arguments above."
    ),
    "leaky_as_max": "LeakyRelu is computed as max(x, alpha * x): wrong for alpha above 1.",
    "alpha_restart_backward": (
        "Each direction reads activation_alpha from its start: in a bidirectional node with "
        "different alphas the backward functions get those of the forward ones."
    ),
    "coupled_by_symmetry": (
        "With input_forget the forget gate is computed as f(-a) instead of 1 - f(a): the same "
        "for Sigmoid, wrong for a gate function without that symmetry."
    ),
    "clip_inside_reset": (
        "In a GRU with linear_before_reset and clip, the recurrent part Ht-1*Rh + Rbh of the "
        "hidden gate is bounded before it is multiplied by r, as well as the sum afterwards."
    ),
    "reset_in_place": (
        "A GRU without linear_before_reset and with hidden_size above 32 writes r * Ht-1 over "
        "Ht-1, so that the last blend is with the reset state."
    ),
    "tied_directions": (
        "The packed weights of a direction are found by the contents of W alone: a bidirectional "
        "node whose two W are equal uses the forward R for both directions."
    ),
    "half_weights_flushed": (
        "Subnormal float16 numbers (below 2**-14 in size) of W and R are flushed to zero when they are widened."
    ),
    "double_cell_single": (
        "In a float64 LSTM the cell state lives in a single precision buffer between steps: "
        "lost are additions too small beside a large cell."
    ),
    "batch_first_reshape": (
        "With layout 1 the initial states are reshaped to direction-first instead of transposed: "
        "wrong when there are two directions and more than one row."
    ),
    "lengths_inferred": (
        "Without sequence_lens the end of a row is guessed from its input: trailing steps whose "
        "X is all zero are taken for padding."
    ),
    "state_saturates": (
        "The recurrent product, with hidden_size a multiple of 4, takes the state from a buffer "
        "that saturates at -1 and 1, as fits Tanh: wrong when a state is larger (the state "
        "carried on beside the product is right)."
    ),
}

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_INPUTS = {
    "LSTM": ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"),
    "GRU": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
    "RNN": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
}
_OUTPUTS = {"LSTM": ("Y", "Y_h", "Y_c"), "GRU": ("Y", "Y_h"), "RNN": ("Y", "Y_h")}
_DEFAULT_ACTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
_ALPHA = {
    "affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0,
    "hardsigmoid": 0.2, "elu": 1.0,
}  # fmt: skip
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}
_PLAIN = {"relu", "tanh", "sigmoid", "softsign", "softplus"}
_FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16}
_NUM = (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11,
        5.12229709037114e-08, 1.48572235717979e-05, 6.37261928875436e-04,
        4.89352455891786e-03)  # fmt: skip
_DEN = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)

Act = Callable[[np.ndarray], np.ndarray]


def _tanh_rational(x: np.ndarray) -> np.ndarray:
    """The rational approximation of tanh, with the clamp on its lower side forgotten."""
    y = np.minimum(x, 9.0).astype(np.float64)
    square = y * y
    return (y * np.polyval(_NUM, square) / np.polyval(_DEN, square)).astype(x.dtype)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _activation(name: str, alpha: float, beta: float, fault: str | None, half: bool) -> Act:
    """One activation function as a callable that keeps its argument's type."""

    def softplus(x: np.ndarray) -> np.ndarray:
        if half and fault == "softplus_half_exp":
            return np.log1p(np.minimum(np.exp(np.minimum(x, 80)), 65504))
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))

    def leaky(x: np.ndarray) -> np.ndarray:
        if fault == "leaky_as_max":
            return np.maximum(x, alpha * x)
        return np.where(x >= 0, x, alpha * x)

    tanh: Act = _tanh_rational if fault == "tanh_clamp_one_sided" else np.tanh
    table: dict[str, Act] = {
        "relu": lambda x: np.maximum(x, 0),
        "tanh": tanh,
        "sigmoid": _sigmoid,
        "affine": lambda x: alpha * x + beta,
        "leakyrelu": leaky,
        "thresholdedrelu": lambda x: np.where(x >= alpha, x, 0),
        "scaledtanh": lambda x: alpha * tanh(beta * x),
        "hardsigmoid": lambda x: np.minimum(np.maximum(alpha * x + beta, 0), 1),
        "elu": lambda x: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0))),
        "softsign": lambda x: x / (1 + np.abs(x)),
        "softplus": softplus,
    }
    return lambda x: table[name](x).astype(x.dtype)


def _activations(op: str, attrs: dict[str, Any], directions: int, fault: str | None, half: bool) -> list[list[Act]]:
    """The functions of each direction, their alphas and betas consumed in order."""
    count = len(_DEFAULT_ACTS[op])
    names = [n.decode() if isinstance(n, bytes) else n for n in attrs.get("activations", ())]
    names = [n.lower() for n in (names or list(_DEFAULT_ACTS[op]) * directions)]
    if len(names) != count * directions:
        raise ValueError(f"{op} takes {count * directions} activations, not {len(names)}")
    alphas = list(attrs.get("activation_alpha", ()))
    betas = list(attrs.get("activation_beta", ()))
    sets: list[list[Act]] = []
    for d in range(directions):
        if d and fault == "alpha_restart_backward":
            alphas = list(attrs.get("activation_alpha", ()))
        one: list[Act] = []
        for name in names[d * count : (d + 1) * count]:
            if name not in _PLAIN and name not in _ALPHA:
                raise ValueError(f"unknown activation {name!r}")
            alpha = beta = 0.0
            if name in _ALPHA:
                alpha = alphas.pop(0) if alphas else _ALPHA[name]
            if name in _BETA:
                beta = betas.pop(0) if betas else _BETA[name]
            one.append(_activation(name, alpha, beta, fault, half))
        sets.append(one)
    return sets


@dataclass
class _Weights:
    """One direction's weights in the kernel's own shape: gates first."""

    w: np.ndarray
    r: np.ndarray
    wb: np.ndarray
    rb: np.ndarray
    p: np.ndarray
    acts: list[Act]


@dataclass
class _Cache:
    """What a session keeps between runs."""

    packed_r: np.ndarray | None = None
    reverse_maps: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)
    last_c: np.ndarray | None = None


class Session:
    """A model made ready to be run, with what it keeps between its runs."""

    def __init__(self, model: onnx.ModelProto, fault: str | None) -> None:
        """Read the model's one node; raises NotImplementedError for what is not supported."""
        graph = model.graph
        versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
        if len(graph.node) != 1 or graph.sparse_initializer or not versions:
            raise NotImplementedError("the model must hold one node and plain initializers")
        node = graph.node[0]
        if node.op_type not in _GATES or node.domain not in ("", "ai.onnx"):
            raise NotImplementedError(f"operator {node.domain}:{node.op_type}")
        if versions[0] < 7:
            raise NotImplementedError(f"opset {versions[0]}")
        self.fault, self.node, self.op = fault, node, node.op_type
        self.attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if versions[0] < 14 and "layout" in self.attrs:
            raise ValueError("layout came with version 14")
        self.names = dict(zip(_INPUTS[self.op], node.input, strict=False))
        lens = self.names.get("sequence_lens", "")
        kinds = {i.name: i.type.tensor_type.elem_type for i in graph.input}
        kinds |= {t.name: t.data_type for t in graph.initializer}
        for name, kind in kinds.items():
            if name in node.input and name != lens and kind not in _FLOATS:
                raise NotImplementedError(f"{name} has type {TensorProto.DataType.Name(kind)}")
        self.constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.inputs = [i.name for i in graph.input]
        self.outputs = [o.name for o in graph.output]
        self.cache = _Cache()

    def run(self, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Run the node on the feeds; returns the graph's outputs in their order."""
        for name in feeds:
            if name not in self.inputs:
                raise ValueError(f"no input is called {name!r}")
        env = dict(self.constants)
        env.update({name: np.asarray(value) for name, value in feeds.items()})
        for name in (n for n in self.names.values() if n):
            if name not in env:
                raise ValueError(f"input {name!r} is missing")
        tensors = {role: env[name] for role, name in self.names.items() if name}
        results = self._compute(tensors)
        named = zip(self.node.output, (results[r] for r in _OUTPUTS[self.op]), strict=False)
        env.update({name: value for name, value in named if name})
        return [env[name] for name in self.outputs]

    def _compute(self, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """All outputs of the node, in the layout asked for."""
        kind = tensors["X"].dtype
        work = np.dtype(np.float64 if kind == np.float64 else np.float32)
        batch_first = bool(self.attrs.get("layout", 0))
        x = tensors["X"].astype(work)
        if batch_first:
            x = x.swapaxes(0, 1)
        steps, batch = x.shape[:2]
        hidden = tensors["R"].shape[-1]
        if self.attrs.get("hidden_size", hidden) != hidden:
            raise ValueError("hidden_size is not R's")
        sides = {b"forward": [False], b"reverse": [True], b"bidirectional": [False, True]}
        direction = self.attrs.get("direction", b"forward")
        if direction not in sides:
            raise ValueError(f"direction {direction!r}")
        reverses = sides[direction]
        lens = self._lengths(tensors, x)
        shape = (len(reverses), batch, hidden)
        h0 = self._initial(tensors.get("initial_h"), shape, work, batch_first)
        c0 = self._initial(tensors.get("initial_c"), shape, work, batch_first)
        if self.fault == "cell_state_survives" and "initial_h" in tensors:
            last = self.cache.last_c
            if "initial_c" not in tensors and last is not None and last.shape == shape:
                c0 = last
        weights = self._weights(tensors, len(reverses), hidden, work, kind == np.float16)
        y = np.zeros((steps, *shape), work)
        y_h, y_c = np.zeros(shape, work), np.zeros(shape, work)
        for d, reverse in enumerate(reverses):
            y[:, d], y_h[d], y_c[d] = self._direction(x, lens, reverse, weights[d], h0[d], c0[d])
        self.cache.last_c = y_c
        if self.fault == "unsort_by_permutation":
            order = np.argsort(-lens, kind="stable")
            y_h, y_c = y_h[:, order[order]], y_c[:, order[order]]
        if batch_first:
            y = y.transpose(2, 0, 1, 3)
            y_h, y_c = y_h.swapaxes(0, 1), y_c.swapaxes(0, 1)
        with np.errstate(over="ignore"):
            y, y_h, y_c = (np.ascontiguousarray(a.astype(kind)) for a in (y, y_h, y_c))
        return {"Y": y, "Y_h": y_h, "Y_c": y_c}

    def _lengths(self, tensors: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
        """The rows' lengths, as this kernel understands them."""
        steps, batch = x.shape[:2]
        if "sequence_lens" not in tensors:
            lens = np.full(batch, steps, np.int64)
            if self.fault == "lengths_inferred" and steps:
                live = np.any(x != 0, axis=2)
                last = steps - np.argmax(live[::-1], axis=0)
                lens = np.where(live.any(axis=0), last, 1)
            return lens
        lens = tensors["sequence_lens"].astype(np.int64)
        if lens.shape != (batch,) or np.any(lens < 0) or np.any(lens > steps):
            raise ValueError("sequence_lens must be a length of 0 to seq_length for each row")
        if self.fault == "length_byte":
            lens = lens & 255
        if self.fault == "packed_assumes_sorted":
            lens = np.sort(lens)[::-1]
        return lens

    def _initial(
        self, given: np.ndarray | None, shape: tuple[int, ...], work: np.dtype, batch_first: bool
    ) -> np.ndarray:
        """An initial state, direction first."""
        if given is None:
            return np.zeros(shape, work)
        if batch_first:
            wrong = self.fault == "batch_first_reshape"
            given = given.reshape(shape) if wrong else given.swapaxes(0, 1)
        if given.shape != shape:
            raise ValueError(f"an initial state has shape {given.shape}, not {shape}")
        return given.astype(work)

    def _weights(
        self, tensors: dict[str, np.ndarray], directions: int, hidden: int, work: np.dtype,
        half: bool,
    ) -> list[_Weights]:  # fmt: skip
        """The weights of each direction, packed for the loop over time."""
        gates = _GATES[self.op]
        w, r = tensors["W"].astype(work), tensors["R"].astype(work)
        if w.shape[:2] != (directions, gates * hidden) or r.shape[:2] != w.shape[:2]:
            raise ValueError("W and R do not fit the direction and the hidden size")
        if half and self.fault == "half_weights_flushed":
            w, r = (np.where(np.abs(a) < 2.0**-14, 0, a).astype(work) for a in (w, r))
        if self.fault == "pack_cache_checksum" and self.names["R"] not in self.constants:
            old = self.cache.packed_r
            if old is not None and old.shape == r.shape and old.flat[0] == r.flat[0]:
                if old.flat[-1] == r.flat[-1]:
                    r = old
            self.cache.packed_r = r
        if self.fault == "tied_directions" and directions == 2 and np.array_equal(w[0], w[1]):
            r = np.stack([r[0], r[0]])
        b = np.zeros((directions, 2 * gates * hidden), work)
        if "B" in tensors:
            b = tensors["B"].astype(work)
            default = self.constants.get(self.names["B"])
            if self.fault == "folded_bias_override" and directions == 2 and default is not None:
                b = np.stack([b[0], default[1].astype(work)])
        p = tensors.get("P", np.zeros((directions, 3 * hidden))).astype(work)
        acts = _activations(self.op, self.attrs, directions, self.fault, half)
        packed = []
        for d in range(directions):
            wb, rb = b[d].reshape(2, gates, hidden)
            packed.append(
                _Weights(
                    w[d].reshape(gates, hidden, -1), r[d].reshape(gates, hidden, hidden),
                    wb, rb, p[d].reshape(3, hidden), acts[d],
                )
            )  # fmt: skip
        return packed

    def _direction(
        self, x: np.ndarray, lens: np.ndarray, reverse: bool, weights: _Weights, h: np.ndarray,
        c: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
        """Run one direction over time: each row from its own first step to its own last."""
        steps, batch = x.shape[:2]
        rows = np.arange(batch)
        turn = lens
        if self.fault == "ends_checked_in_pairs" and not reverse:
            lens = np.minimum(steps, lens + lens % 2)
        if self.fault == "no_y_ring" and not reverse and not self.node.output[0]:
            lens = np.full_like(lens, steps)
        if self.fault == "reverse_map_stale" and reverse:
            turn = self.cache.reverse_maps.setdefault((steps, batch), lens)
        read_from = turn
        if self.fault == "equal_lengths_reverse" and batch and np.all(lens == lens[0]):
            read_from = np.full_like(lens, steps)
        y = np.zeros((steps, *h.shape), h.dtype)
        h, c = h.copy(), c.copy()
        for step in range(int(lens.max(initial=0))):
            active = rows[step < lens]
            if reverse:
                source = np.maximum(read_from[active] - 1 - step, 0)
                place = np.maximum(turn[active] - 1 - step, 0)
            else:
                source = place = np.full(len(active), step)
            new_h, new_c = self._step(x[source, active], h[active], c[active], weights)
            if self.fault == "overlapped_tail_twice" and batch > 4 and batch % 4:
                again = (active >= batch - 4) & (active < batch // 4 * 4)
                new_h[again], new_c[again] = self._step(x[source, active][again], new_h[again], new_c[again], weights)
            if self.fault == "double_cell_single":
                new_c = new_c.astype(np.float32).astype(new_c.dtype)
            h[active], c[active] = new_h, new_c
            y[place, active] = new_h
        return y, h, c

    def _clip(self, a: np.ndarray) -> np.ndarray:
        """Bound an activation's argument, if the node has a clip."""
        if "clip" not in self.attrs:
            return a
        return np.clip(a, -self.attrs["clip"], self.attrs["clip"])

    def _project(self, x: np.ndarray, weights: _Weights) -> np.ndarray:
        """The input's part of the gates, with its bias: gate, row, unit."""
        part = np.einsum("bi,ghi->gbh", x, weights.w) + weights.wb[:, None]
        gates, batch, hidden = part.shape
        rest = hidden % 8
        if self.fault == "gate_block_stride" and hidden > 8 and rest:
            flat = np.zeros((batch, gates * 8), part.dtype)
            flat[:, : gates * rest] = part[:, :, -rest:].transpose(1, 0, 2).reshape(batch, -1)
            part[:, :, -rest:] = flat.reshape(batch, gates, 8)[:, :, :rest].transpose(1, 0, 2)
        return part

    def _step(self, x: np.ndarray, h: np.ndarray, c: np.ndarray, weights: _Weights) -> tuple[np.ndarray, np.ndarray]:
        """One step of some rows: their new hidden and cell state."""
        part, acts, clip = self._project(x, weights), weights.acts, self._clip
        state = h
        if self.fault == "state_saturates" and h.shape[1] % 4 == 0:
            state = np.clip(h, -1, 1)

        def recur(gate: int, value: np.ndarray) -> np.ndarray:
            return value @ weights.r[gate].T + weights.rb[gate]

        if self.op == "RNN":
            return acts[0](clip(part[0] + recur(0, state))), c.copy()
        if self.op == "GRU":
            z = acts[0](clip(part[0] + recur(0, state)))
            r = acts[0](clip(part[1] + recur(1, state)))
            if self.attrs.get("linear_before_reset", 0):
                inner = recur(2, state)
                if self.fault == "clip_inside_reset":
                    inner = clip(inner)
                n = acts[1](clip(part[2] + r * inner))
            else:
                n = acts[1](clip(part[2] + recur(2, r * state)))
                if self.fault == "reset_in_place" and h.shape[1] > 32:
                    h = r * h
            return (1 - z) * n + z * h, c.copy()
        p_i, p_o, p_f = weights.p
        a_i = clip(part[0] + recur(0, state) + p_i * c)
        i = acts[0](a_i)
        if self.attrs.get("input_forget", 0):
            f = acts[0](-a_i) if self.fault == "coupled_by_symmetry" else 1 - i
        else:
            f = acts[0](clip(part[2] + recur(2, state) + p_f * c))
        c = f * c + i * acts[1](clip(part[3] + recur(3, state)))
        o = acts[0](clip(part[1] + recur(1, state) + p_o * c))
        return o * acts[2](clip(c)), c


def prepare(model: bytes, fault: str | None) -> Session:
    """Make a session of a serialized model, with one fault or (None) the right kernel."""
    if fault not in {None, *FAULTS}:
        raise KeyError(fault)
    return Session(onnx.load_model_from_string(model), fault)


def _model(
    op: str, tensors: dict[str, np.ndarray], fed: set[str], both: set[str], outputs: set[str],
    attrs: dict[str, Any], opset: int,
) -> bytes:  # fmt: skip
    """A model of one node: what is neither fed nor both is an initializer only."""
    last = max(k for k, name in enumerate(_INPUTS[op]) if name in tensors)
    ins = [n if n in tensors else "" for n in _INPUTS[op][: last + 1]]
    last = max(k for k, name in enumerate(_OUTPUTS[op]) if name in outputs)
    outs = [n if n in outputs else "" for n in _OUTPUTS[op][: last + 1]]
    kind = helper.np_dtype_to_tensor_dtype(tensors["X"].dtype)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in tensors.items()
        if n in fed | both
    ]
    rank = {"Y": 4, "Y_h": 3, "Y_c": 3}
    graph = helper.make_graph(
        [helper.make_node(op, ins, outs, **attrs)],
        "ember",
        inputs,
        [helper.make_tensor_value_info(n, kind, [None] * rank[n]) for n in outs if n],
        [numpy_helper.from_array(a, n) for n, a in tensors.items() if n not in fed],
    )
    versions = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=8)
    return bytes(model.SerializeToString())


def _case(
    op: str, dims: tuple[int, int, int, int], optional: str = "B", *, seed: int = 1,
    attrs: dict[str, Any] | None = None, kind: type = np.float32, opset: int = 14,
    fed: str = "", both: str = "", outputs: str = "", values: dict[str, Any] | None = None,
    runs: list[dict[str, Any]] | None = None,
) -> tuple[bytes, list[dict[str, np.ndarray]]]:  # fmt: skip
    """A model with random tensors of the dims (steps, batch, input, hidden), and its runs' feeds.

    The values take the place of random tensors in the model, the runs' own those of its feeds.
    """
    rng = np.random.default_rng(seed)
    attrs = attrs or {}
    (steps, batch, width, hidden), gates = dims, _GATES[op]
    sides = 2 if attrs.get("direction") == "bidirectional" else 1
    state = (batch, sides, hidden) if attrs.get("layout") else (sides, batch, hidden)
    shapes: dict[str, tuple[int, ...]] = {
        "X": (batch, steps, width) if attrs.get("layout") else (steps, batch, width),
        "W": (sides, gates * hidden, width), "R": (sides, gates * hidden, hidden),
        "B": (sides, 2 * gates * hidden), "sequence_lens": (batch,), "initial_h": state,
        "initial_c": state, "P": (sides, 3 * hidden),
    }  # fmt: skip

    def cast(name: str, value: Any) -> np.ndarray:
        full = np.broadcast_to(np.asarray(value), shapes[name])
        return np.array(full, np.int32 if name == "sequence_lens" else kind)

    def draw(name: str) -> np.ndarray:
        drawn = rng.uniform(-0.7, 0.7, shapes[name])
        return cast(name, (values or {}).get(name, drawn))

    tensors = {n: draw(n) for n in _INPUTS[op] if n in {"X", "W", "R", *optional.split()}}
    model = _model(
        op, tensors, {"X", *fed.split()}, set(both.split()),
        set((outputs or " ".join(_OUTPUTS[op])).split()), {"hidden_size": hidden, **attrs}, opset,
    )  # fmt: skip
    base = {n: tensors[n] for n in ("X", *fed.split())}
    feeds = [base | {n: cast(n, v) for n, v in run.items()} for run in runs or [{}]]
    return model, feeds


def _cases() -> dict[str, Callable[[], tuple[bytes, list[dict[str, np.ndarray]]]]]:
    """The makers of the witnesses."""
    lens = "B sequence_lens"
    two = {"direction": "bidirectional"}
    ends = np.where(np.arange(5)[:, None, None] < np.array([5, 3])[:, None], 0.5, 0.0)
    first = np.random.default_rng(1).uniform(-0.7, 0.7, (1, 12, 4))
    middle = first + np.pad(np.full((1, 8, 4), 0.5), ((0, 0), (2, 2), (0, 0)))
    return {
        "gate_block_stride": lambda: _case("LSTM", (3, 2, 3, 11)),
        "overlapped_tail_twice": lambda: _case("GRU", (3, 6, 3, 4), opset=7),
        "unsort_by_permutation": lambda: _case(
            "LSTM", (5, 3, 3, 4), lens, values={"sequence_lens": [3, 1, 5]}, fed="sequence_lens"
        ),
        "packed_assumes_sorted": lambda: _case(
            "RNN", (5, 3, 3, 4), lens, values={"sequence_lens": [2, 5, 4]}, opset=22
        ),
        "ends_checked_in_pairs": lambda: _case(
            "GRU", (6, 2, 3, 4), lens, values={"sequence_lens": [3, 6]}
        ),
        "equal_lengths_reverse": lambda: _case(
            "LSTM", (6, 2, 3, 4), lens, values={"sequence_lens": 4}, attrs=two
        ),
        "length_byte": lambda: _case(
            "RNN", (260, 2, 2, 3), lens, values={"sequence_lens": [258, 259]}
        ),
        "no_y_ring": lambda: _case(
            "LSTM", (5, 2, 3, 4), lens, values={"sequence_lens": [2, 5]}, outputs="Y_h Y_c"
        ),
        "pack_cache_checksum": lambda: _case(
            "GRU", (4, 2, 3, 4), fed="R", runs=[{"R": first}, {"R": middle}]
        ),
        "folded_bias_override": lambda: _case(
            "GRU", (4, 2, 3, 4), both="B", attrs=two, runs=[{"B": 0.3}]
        ),
        "reverse_map_stale": lambda: _case(
            "LSTM", (5, 2, 3, 4), lens, fed="sequence_lens", attrs={"direction": "reverse"},
            runs=[{"sequence_lens": [5, 3]}, {"sequence_lens": [2, 5]}],
            values={"sequence_lens": 5},
        ),
        "cell_state_survives": lambda: _case("LSTM", (3, 2, 3, 4), "B initial_h", runs=[{}, {}]),
        "tanh_clamp_one_sided": lambda: _case(
            "RNN", (2, 2, 3, 4), values={"X": 8.0, "W": -1.0}, kind=np.float64
        ),
        "softplus_half_exp": lambda: _case(
            "RNN", (2, 2, 3, 4), kind=np.float16, attrs={"activations": ["Softplus"]},
            values={"X": 4.0, "W": 1.5, "R": 0.0},
        ),
        "leaky_as_max": lambda: _case(
            "RNN", (3, 2, 3, 4), attrs={"activations": ["LeakyRelu"], "activation_alpha": [1.25]}
        ),
        "alpha_restart_backward": lambda: _case(
            "RNN", (3, 2, 3, 4),
            attrs=two | {"activations": ["Elu", "LeakyRelu"], "activation_alpha": [1.0, 0.25]},
        ),
        "coupled_by_symmetry": lambda: _case(
            "LSTM", (3, 2, 3, 4), "B initial_c P",
            attrs={"activations": ["Softsign", "Tanh", "Tanh"], "input_forget": 1},
        ),
        "clip_inside_reset": lambda: _case(
            "GRU", (3, 2, 3, 4), attrs={"clip": 0.4, "linear_before_reset": 1}, values={"R": 0.8}
        ),
        "reset_in_place": lambda: _case("GRU", (3, 2, 3, 33)),
        "tied_directions": lambda: _case("RNN", (4, 2, 3, 4), attrs=two, values={"W": 0.3}),
        "half_weights_flushed": lambda: _case(
            "LSTM", (3, 2, 3, 4), kind=np.float16, values={"W": 4e-5, "X": 8000.0}
        ),
        "double_cell_single": lambda: _case(
            "LSTM", (3, 2, 1, 4), "", kind=np.float64,
            values={"X": np.reshape([2.0**27, 0.3, -(2.0**27)], (3, 1, 1)), "W": 1.0, "R": 0.0},
            attrs={"activations": ["Affine", "Affine", "Tanh"], "activation_alpha": [0.0, 1.0],
                   "activation_beta": [1.0, 0.0]},
        ),
        "batch_first_reshape": lambda: _case(
            "GRU", (3, 3, 2, 4), "B initial_h", attrs=two | {"layout": 1}
        ),
        "lengths_inferred": lambda: _case("GRU", (5, 2, 1, 4), values={"X": ends}),
        "state_saturates": lambda: _case(
            "RNN", (4, 2, 3, 4), "B initial_h", attrs={"activations": ["Softsign"]},
            values={"initial_h": 3.0},
        ),
    }  # fmt: skip


def witness(fault: str) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    """A legal model and the feeds of a session's runs; the fault shows in the last of them."""
    return _cases()[fault]()
