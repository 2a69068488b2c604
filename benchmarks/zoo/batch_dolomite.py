"""A batch of faulty kernels for ONNX's LSTM, GRU and RNN (batch "dolomite").

``prepare(model, None)`` gives the right kernel, ``prepare(model, fault)`` the same kernel with
one fault of ``FAULTS`` built in, and ``witness(fault)`` a case in which that fault shows.
A clip bounds the argument of LSTM's h as well (onnxruntime's does not). A row of length 0 ends
with its initial state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WRITTEN = "2026-11-23"

FAULTS: dict[str, str] = {
    "input_tail_single_column_dropped":
    "The input product runs in blocks of eight columns and loses the last column when input_size "
    "is above 8 and leaves a remainder of exactly one.",
    "overlapped_tail_updates_cell_twice":
    "LSTM's elementwise update handles hidden sizes above 8 that are no multiple of 8 by a last "
    "vector that overlaps the one before, so the shared lanes of C, updated in place, are updated "
    "twice a step.",
    "sort_order_cached_by_total":
    "The order that sorts the batch by length is kept between runs and taken again when batch "
    "size and the sum of the lengths are the same, so that rows of a later run get each other's "
    "lengths.",
    "initial_c_sorted_by_inverse":
    "When the batch is sorted by falling length, initial_c is gathered by the inverse order, "
    "which shows only for orders that are not their own inverse.",
    "no_y_path_keeps_stepping":
    "When Y is no output of the graph, the forward direction does not freeze rows at their own "
    "length but steps all of them up to the longest length of the batch.",
    "uniform_lens_reverse_reads_padding":
    "When all sequence_lens are equal but shorter than seq_length, the reverse direction reads "
    "its inputs from the end of the padded array.",
    "vector_tanh_clamps_early":
    "The vector version of Tanh, used in float32 from hidden_size 8 on, clamps its argument to "
    "[-3.5, 3.5].",
    "softplus_half_exp_saturates":
    "In float16 models Softplus takes its exponential in half precision, saturated at 65504, so "
    "that results stop at about 11.09.",
    "rnn_blocks_read_updated_state":
    "RNN with hidden_size above 16 computes blocks of 16 units and writes them in place, so later "
    "blocks of a step read the new state of the earlier ones.",
    "lbr_first_step_drops_recurrent_bias":
    "GRU with linear_before_reset and no initial_h skips the recurrent product of the first step "
    "as zero, and loses Rbh with it.",
    "beta_cursor_follows_alpha":
    "activation_beta is read at the cursor of activation_alpha, which differs when an earlier "
    "function takes an alpha but no beta.",
    "square_initial_h_not_transposed":
    "With layout 1 initial_h is taken to be in layout 0 already when its shape fits, that is when "
    "the batch size equals the number of directions (two rows, bidirectional).",
    "relu_fusion_drops_upper_clip":
    "Clip and Relu are fused into one maximum with zero, so the upper bound of the clip is lost "
    "for Relu.",
    "coupled_forget_by_negated_argument":
    "With input_forget the forget gate is computed as f(-a) of the input gate's argument a, which "
    "is 1 - f(a) for Sigmoid but not for most other functions.",
    "half_state_chopped_every_fourth_step":
    "In float16 models the states are spilled in half precision after each fourth step, by "
    "cutting the mantissa off instead of rounding in the end only.",
    "reverse_partial_chunk_in_forward_order":
    "The reverse direction works in chunks of eight steps; the last, partial chunk of a row "
    "longer than 8 reads its inputs in forward order.",
    "batch_tail_of_three_repeats_row":
    "Batches are blocked by four and a tail of three rows is done as two and one; the single one "
    "takes the previous state of the row before it in its recurrent product.",
    "padding_keeps_earlier_run":
    "Y's buffer is kept between runs of one shape and not cleared, so outputs past a row's length "
    "show what a run with longer rows left there.",
    "fed_state_becomes_default":
    "When initial_h or initial_c is an initializer that is also an input, a fed value replaces "
    "the initializer for later runs that do not feed it.",
    "scaled_tanh_beta_folded_without_bias":
    "The beta of ScaledTanh is folded into constant W and R but not into constant B; not done "
    "when there is a clip or a weight that is not constant.",
    "lens_kept_in_a_byte":
    "sequence_lens are packed into unsigned bytes, so lengths above 255 wrap around.",
    "gru_saturated_row_skipped":
    "GRU leaves a row's state alone for a step when all of its update gates are at least 0.98, as "
    "if they were one.",
    "final_state_by_parity_of_seq_length":
    "The state is kept in two alternating buffers and Y_h is taken by the parity of seq_length, "
    "so a row whose length has the other parity gives its last state but one.",
    "zero_block_tested_by_first_lane":
    "The recurrent product skips blocks of four state values as zero when the first of the four "
    "is exactly zero.",
    "double_product_summed_in_float":
    "In float64 models the input product is summed up in float32 when input_size is at least 8, "
    "which shows when large terms cancel.",
}  # fmt: skip

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_INPUTS = {
    "LSTM": ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"),
    "GRU": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
    "RNN": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
}
_OUTPUTS = {"LSTM": ("Y", "Y_h", "Y_c"), "GRU": ("Y", "Y_h"), "RNN": ("Y", "Y_h")}
_DEFAULT_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"),
                        "RNN": ("Tanh",)}  # fmt: skip
_ALPHA = {"affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0,
          "hardsigmoid": 0.2, "elu": 1.0}  # fmt: skip
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}
_PLAIN = ("relu", "tanh", "sigmoid", "softsign", "softplus")
_ELEMENT_TYPES = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32}

_Act = tuple[str, float, float]


def _function(act: _Act, x: np.ndarray) -> np.ndarray:
    """Apply one of the eleven activation functions."""
    name, alpha, beta = act
    if name == "relu":
        return np.maximum(x, 0)
    if name == "tanh":
        return np.tanh(x)
    if name == "sigmoid":
        e = np.exp(-np.abs(x))
        return np.where(x >= 0, 1 / (1 + e), e / (1 + e))
    if name == "affine":
        return x * alpha + beta
    if name == "leakyrelu":
        return np.where(x >= 0, x, x * alpha)
    if name == "thresholdedrelu":
        return np.where(x >= x.dtype.type(alpha), x, x.dtype.type(0))
    if name == "scaledtanh":
        return alpha * np.tanh(x * beta)
    if name == "hardsigmoid":
        return np.clip(x * alpha + beta, 0, 1)
    if name == "elu":
        return np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0)))
    if name == "softsign":
        return x / (1 + np.abs(x))
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


class _Weights:
    """The weights of one direction, in the type of computation."""

    def __init__(self, w: np.ndarray, r: np.ndarray, b: np.ndarray | None, p: np.ndarray | None):
        rows, self.hidden = r.shape
        bias = np.zeros(2 * rows, r.dtype) if b is None else b
        self.w = w
        self.r = r
        self.wb = bias[:rows]
        self.rb = bias[rows:]
        self.p = np.zeros(3 * self.hidden, r.dtype) if p is None else p


class _Step(NamedTuple):
    """What one time step of one direction needs."""

    weights: _Weights
    acts: list[_Act]
    projected: np.ndarray
    h: np.ndarray
    c: np.ndarray
    first: bool


class Session:
    """One prepared model; `run` may be called many times."""

    def __init__(self, model: onnx.ModelProto, fault: str | None) -> None:
        self.fault = fault
        graph = model.graph
        if len(graph.node) != 1 or graph.sparse_initializer:
            raise NotImplementedError("only models of exactly one node and dense initializers")
        node = graph.node[0]
        if node.op_type not in _GATES or node.domain not in ("", "ai.onnx"):
            raise NotImplementedError(f"operator {node.domain}:{node.op_type}")
        version = max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        if version < 7:
            raise NotImplementedError(f"operator set {version}")
        self.op = node.op_type
        self.constants = {i.name: i for i in graph.initializer}
        types = [i.data_type for i in graph.initializer]
        types += [i.type.tensor_type.elem_type for i in graph.input]
        if any(t not in _ELEMENT_TYPES for t in types):
            raise NotImplementedError("an element type that is not supported")
        self.defaults = {n: numpy_helper.to_array(i) for n, i in self.constants.items()}
        self.graph_inputs = {i.name for i in graph.input}
        self.names = dict(zip(_INPUTS[self.op], node.input, strict=False))
        produced = dict(zip(node.output, _OUTPUTS[self.op], strict=False))
        self.wanted = [produced[o.name] for o in graph.output]
        self._read_attributes(node, version)
        self.lens_orders: dict[tuple[int, int], np.ndarray] = {}
        self.y_buffers: dict[tuple[int, ...], np.ndarray] = {}

    def _read_attributes(self, node: onnx.NodeProto, version: int) -> None:
        attrs: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        self.direction = attrs.get("direction", b"forward").decode().lower()
        if self.direction not in ("forward", "reverse", "bidirectional"):
            raise ValueError(f"direction {self.direction}")
        self.directions = 2 if self.direction == "bidirectional" else 1
        self.clip: float | None = attrs.get("clip")
        self.layout = int(attrs.get("layout", 0))
        if self.layout and version < 14:
            raise ValueError("layout came with version 14")
        self.coupled = bool(attrs.get("input_forget", 0))
        self.before_reset = bool(attrs.get("linear_before_reset", 0))
        self.hidden_size: int | None = attrs.get("hidden_size")
        count = len(_DEFAULT_ACTIVATIONS[self.op])
        names = [n.decode() for n in attrs.get("activations", [])]
        if not names:
            names = list(_DEFAULT_ACTIVATIONS[self.op]) * self.directions
        if len(names) < count * self.directions:
            raise ValueError("too few activations")
        alphas, betas = attrs.get("activation_alpha", []), attrs.get("activation_beta", [])
        acts: list[_Act] = []
        at_alpha = at_beta = 0
        for name in (n.lower() for n in names[: count * self.directions]):
            if name not in _ALPHA and name not in _PLAIN:
                raise ValueError(f"activation {name}")
            alpha, beta = _ALPHA.get(name, 0.0), _BETA.get(name, 0.0)
            given = at_alpha < len(alphas) and at_beta < len(betas)
            if name in ("affine", "scaledtanh") and not given:
                raise NotImplementedError(f"{name}: ONNX documents no default alpha and beta")
            place = at_alpha if self.fault == "beta_cursor_follows_alpha" else at_beta
            if name in _ALPHA:
                alpha, at_alpha = (*alphas[at_alpha:], alpha)[0], at_alpha + 1
            if name in _BETA:
                beta = betas[place] if place < len(betas) else beta
                at_beta += 1
            acts.append((name, float(alpha), float(beta)))
        self.acts = [acts[count * d : count * (d + 1)] for d in range(self.directions)]

    def _gather(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray | None]:
        values: dict[str, np.ndarray | None] = {}
        for role in _INPUTS[self.op]:
            name = self.names.get(role, "")
            if not name:
                values[role] = None
            elif name in feeds:
                if name not in self.graph_inputs:
                    raise ValueError(f"{name} is no input of the graph")
                values[role] = np.asarray(feeds[name])
                if (
                    self.fault == "fed_state_becomes_default"
                    and name in self.defaults
                    and role in ("initial_h", "initial_c")
                ):
                    self.defaults[name] = values[role].copy()
            elif name in self.defaults:
                values[role] = self.defaults[name]
            else:
                raise ValueError(f"input {name} is not fed")
        return values

    def _constant(self, role: str) -> bool:
        name = self.names.get(role, "")
        return name in self.constants and name not in self.graph_inputs

    def _lengths(self, given: np.ndarray | None, steps: int, batch: int) -> np.ndarray:
        if given is None:
            return np.full(batch, steps, np.int64)
        lens = given.astype(np.int64)
        if lens.shape != (batch,) or (lens < 0).any() or (lens > steps).any():
            raise ValueError("sequence_lens out of range")
        if self.fault == "lens_kept_in_a_byte":
            lens = lens & 255
        if self.fault == "sort_order_cached_by_total":
            order = np.argsort(-lens, kind="stable")
            kept = self.lens_orders.setdefault((batch, int(lens.sum())), order)
            mixed = np.empty_like(lens)
            mixed[kept] = lens[order]
            lens = mixed
        return lens

    def run(self, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Run the model once; give the graph's outputs in their order."""
        values = self._gather(feeds)
        out_type = values["X"].dtype
        kind = np.dtype(np.float64 if out_type == np.float64 else np.float32)
        self.half = out_type == np.float16
        self.lens_given = values["sequence_lens"] is not None
        data = {k: None if v is None or k == "sequence_lens" else v.astype(kind) for k, v in values.items()}
        x = data["X"]
        if self.layout:
            x = x.swapaxes(0, 1)
        steps, batch, _ = x.shape
        hidden = data["R"].shape[2]
        if self.hidden_size is not None and self.hidden_size != hidden:
            raise ValueError("hidden_size and R differ")
        lens = self._lengths(values["sequence_lens"], steps, batch)
        states = []
        for role in ("initial_h", "initial_c"):
            state = data.get(role)
            if state is None:
                state = np.zeros((self.directions, batch, hidden), kind)
            elif self.layout:
                square = batch == self.directions and role == "initial_h"
                if not (square and self.fault == "square_initial_h_not_transposed"):
                    state = state.swapaxes(0, 1)
            states.append(state)
        if self.fault == "initial_c_sorted_by_inverse" and data.get("initial_c") is not None:
            order = np.argsort(-lens, kind="stable")
            sorted_c = states[1][:, np.argsort(order)]
            states[1] = np.empty_like(sorted_c)
            states[1][:, order] = sorted_c
        self.fresh = data["initial_h"] is None
        y = np.zeros((steps, self.directions, batch, hidden), kind)
        if self.fault == "padding_keeps_earlier_run":
            y = self.y_buffers.setdefault(y.shape, y)
        y_h = np.empty((self.directions, batch, hidden), kind)
        y_c = np.empty_like(y_h)
        with np.errstate(over="ignore", invalid="ignore"):
            for d in range(self.directions):
                y_h[d], y_c[d] = self._direction(d, x, lens, data, states, y[:, d])
        if self.layout:
            y = y.transpose(2, 0, 1, 3)
            y_h, y_c = y_h.swapaxes(0, 1), y_c.swapaxes(0, 1)
        results = {"Y": y, "Y_h": y_h, "Y_c": y_c}
        return [np.array(results[w], dtype=out_type, order="C") for w in self.wanted]

    def _pack(self, d: int, data: dict[str, np.ndarray | None]) -> _Weights:
        b, p = data["B"], data.get("P")
        weights = _Weights(data["W"][d], data["R"][d], None if b is None else b[d],
                           None if p is None else p[d])  # fmt: skip
        inputs, hidden = weights.w.shape[1], weights.hidden
        if self.fault == "input_tail_single_column_dropped" and inputs > 8 and inputs % 8 == 1:
            weights.w = weights.w.copy()
            weights.w[:, -1] = 0
        if (
            self.fault == "scaled_tanh_beta_folded_without_bias"
            and self.clip is None
            and self._constant("W")
            and self._constant("R")
            and self._constant("B")
        ):
            weights.wb, weights.rb = weights.wb.copy(), weights.rb.copy()
            for gate in range(_GATES[self.op]):
                last = self.op != "RNN" and gate == _GATES[self.op] - 1
                name, _, beta = self.acts[d][1 if last else 0]
                if name == "scaledtanh" and beta:
                    part = slice(gate * hidden, (gate + 1) * hidden)
                    weights.wb[part] /= beta
                    weights.rb[part] /= beta
        return weights

    def _activate(self, act: _Act, x: np.ndarray) -> np.ndarray:
        """Clip, then apply the function."""
        if self.clip is not None:
            if act[0] == "relu" and self.fault == "relu_fusion_drops_upper_clip":
                return np.maximum(x, 0)
            x = np.clip(x, -x.dtype.type(self.clip), x.dtype.type(self.clip))
        if (
            self.fault == "vector_tanh_clamps_early"
            and act[0] == "tanh"
            and x.dtype == np.float32
            and not self.half
            and x.shape[1] >= 8
        ):
            x = np.clip(x, -3.5, 3.5)
        if self.fault == "softplus_half_exp_saturates" and act[0] == "softplus" and self.half:
            return np.log1p(np.minimum(np.exp(x), 65504)).astype(x.dtype)
        return _function(act, x).astype(x.dtype)

    def _read_order(self, lens: np.ndarray, steps: int, most: int, backward: bool) -> np.ndarray:
        """Give the time from which each row reads its input in each step."""
        step = np.arange(most)[:, None]
        if not backward:
            return np.broadcast_to(step, (most, len(lens)))
        order = np.maximum(lens[None, :] - 1 - step, 0)
        if (
            self.fault == "uniform_lens_reverse_reads_padding"
            and self.lens_given
            and len(set(lens.tolist())) == 1
            and lens[0] < steps
        ):
            order = np.broadcast_to(steps - 1 - step, order.shape)
        if self.fault == "reverse_partial_chunk_in_forward_order":
            start = lens // 8 * 8
            partial = (lens > 8)[None, :] & (step >= start[None, :]) & (step < lens[None, :])
            order = np.where(partial, step - start[None, :], order)
        return order

    def _direction(
        self, d: int, x: np.ndarray, lens: np.ndarray, data: dict[str, np.ndarray | None],
        states: list[np.ndarray], y: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Run one direction; fills `y` and gives the last states."""
        weights = self._pack(d, data)
        backward = self.direction == "reverse" or d == 1
        batch, rows = len(lens), np.arange(len(lens))
        h, c = states[0][d].copy(), states[1][d].copy()
        before = h.copy()
        most = int(lens.max(initial=0))
        order = self._read_order(lens, len(x), most, backward)
        free = self.fault == "no_y_path_keeps_stepping" and "Y" not in self.wanted and not backward
        step = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self.op]
        for s in range(most):
            active = s < lens
            if free:
                active = np.ones(batch, bool)
            projected = self._project(x[order[s], rows], weights)
            new_h, new_c = step(_Step(weights, self.acts[d], projected, h, c, s == 0))
            if self.fault == "half_state_chopped_every_fourth_step" and self.half and s % 4 == 3:
                new_h, new_c = _chop(new_h), _chop(new_c)
            before = np.where(active[:, None], h, before)
            h = np.where(active[:, None], new_h, h)
            c = np.where(active[:, None], new_c, c)
            live = np.flatnonzero(active)
            times = lens[live] - 1 - s if backward else np.full(len(live), s)
            y[times, live] = h[live]
        if self.fault == "final_state_by_parity_of_seq_length":
            h = np.where(((lens ^ len(x)) & 1 == 1)[:, None], before, h)
        return h, c

    def _project(self, x: np.ndarray, weights: _Weights) -> np.ndarray:
        if self.fault == "double_product_summed_in_float" and x.dtype == np.float64 and x.shape[1] >= 8:
            total = np.zeros((len(x), len(weights.w)), np.float32)
            for k in range(x.shape[1]):
                total += (x[:, k, None] * weights.w[None, :, k]).astype(np.float32)
            return total.astype(x.dtype)
        return x @ weights.w.T

    def _recur(self, h: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Multiply the states with rows of R."""
        if self.fault == "zero_block_tested_by_first_lane":
            h = h.copy()
            for k in range(0, h.shape[1], 4):
                h[h[:, k] == 0, k : k + 4] = 0
        if self.fault == "batch_tail_of_three_repeats_row" and len(h) % 4 == 3:
            h = h.copy()
            h[-1] = h[-2]
        return h @ r.T

    def _lstm(self, k: _Step) -> tuple[np.ndarray, np.ndarray]:
        weights, acts, projected, h, c, _first = k
        f_act, g_act, h_act = acts
        size = weights.hidden
        total = projected + self._recur(h, weights.r) + weights.wb + weights.rb
        in_i, in_o, in_f, in_c = (total[:, n * size : (n + 1) * size] for n in range(4))
        p_i, p_o, p_f = (weights.p[n * size : (n + 1) * size] for n in range(3))
        i = self._activate(f_act, in_i + p_i * c)
        if not self.coupled:
            f = self._activate(f_act, in_f + p_f * c)
        elif self.fault == "coupled_forget_by_negated_argument":
            f = self._activate(f_act, -(in_i + p_i * c))
        else:
            f = 1 - i
        g = self._activate(g_act, in_c)
        c = f * c + i * g
        if self.fault == "overlapped_tail_updates_cell_twice" and size > 8 and size % 8:
            lanes = slice(size - 8, size // 8 * 8)
            c[:, lanes] = f[:, lanes] * c[:, lanes] + i[:, lanes] * g[:, lanes]
        o = self._activate(f_act, in_o + p_o * c)
        return o * self._activate(h_act, c), c

    def _gru(self, k: _Step) -> tuple[np.ndarray, np.ndarray]:
        weights, acts, projected, h, c, first = k
        f_act, g_act = acts
        size = weights.hidden
        wb, rb, r = weights.wb, weights.rb, weights.r
        head = slice(0, 2 * size)
        gates = projected[:, head] + self._recur(h, r[head]) + wb[head] + rb[head]
        z = self._activate(f_act, gates[:, :size])
        reset = self._activate(f_act, gates[:, size:])
        rb_h = rb[2 * size :]
        if self.before_reset:
            if self.fault == "lbr_first_step_drops_recurrent_bias" and first and self.fresh:
                rb_h = np.zeros_like(rb_h)
            inner = reset * (self._recur(h, r[2 * size :]) + rb_h)
        else:
            inner = self._recur(reset * h, r[2 * size :]) + rb_h
        new = self._activate(g_act, projected[:, 2 * size :] + inner + wb[2 * size :])
        if self.fault == "gru_saturated_row_skipped":
            z = np.where((z >= 0.98).all(axis=1, keepdims=True), z.dtype.type(1), z)
        return (1 - z) * new + z * h, c

    def _rnn(self, k: _Step) -> tuple[np.ndarray, np.ndarray]:
        weights, acts, projected, h, c, _first = k
        total = projected + weights.wb + weights.rb
        if self.fault == "rnn_blocks_read_updated_state" and weights.hidden > 16:
            h = h.copy()
            for at in range(0, weights.hidden, 16):
                part = slice(at, at + 16)
                inner = self._recur(h, weights.r[part])
                h[:, part] = self._activate(acts[0], total[:, part] + inner)
            return h, c
        return self._activate(acts[0], total + self._recur(h, weights.r)), c


def _chop(x: np.ndarray) -> np.ndarray:
    """Cut float32 values down to the mantissa of float16, toward zero."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    return bits.view(np.float32)


def prepare(model: bytes, fault: str | None) -> Session:
    """Prepare a serialized model, with one of `FAULTS` or, for None, the right kernel."""
    if fault is not None and fault not in FAULTS:
        raise ValueError(f"unknown fault {fault}")
    return Session(onnx.load_from_string(model), fault)


def build_case(
    op: str,
    sizes: tuple[int, int, int, int],
    optional: tuple[str, ...] = ("B",),
    outputs: tuple[str, ...] = ("Y", "Y_h"),
    constant: tuple[str, ...] = (),
    both: tuple[str, ...] = (),
    dtype: Any = np.float32,
    opset: int = 14,
    scale: float = 0.5,
    seed: int = 0,
    values: dict[str, np.ndarray] | None = None,
    **attrs: Any,
) -> tuple[bytes, dict[str, np.ndarray]]:
    """Build a model of one node and random feeds for all of its graph inputs.

    `sizes` are steps, batch, inputs and hidden units; `constant` roles become initializers,
    `both` roles initializers that are inputs as well; `values` replace random arrays.
    """
    steps, batch, inputs, hidden = sizes
    rng = np.random.default_rng(seed)
    g, d = _GATES[op], 2 if attrs.get("direction") == "bidirectional" else 1
    swap = attrs.get("layout", 0) == 1
    state = (batch, d, hidden) if swap else (d, batch, hidden)
    shapes = {
        "X": (batch, steps, inputs) if swap else (steps, batch, inputs),
        "W": (d, g * hidden, inputs),
        "R": (d, g * hidden, hidden),
        "B": (d, 2 * g * hidden),
        "initial_h": state,
        "initial_c": state,
        "P": (d, 3 * hidden),
    }
    data: dict[str, np.ndarray] = {}
    for role in _INPUTS[op]:
        if role in ("X", "W", "R") or role in optional:
            if values and role in values:
                data[role] = values[role]
            elif role == "sequence_lens":
                data[role] = rng.integers(1, steps + 1, batch)
            else:
                data[role] = rng.normal(0, scale * (2 if role == "X" else 1), shapes[role])
            data[role] = data[role].astype(np.int32 if role == "sequence_lens" else dtype)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    roles = [role if role in data else "" for role in _INPUTS[op]]
    while roles[-1] == "":
        roles.pop()
    names = [name if name in outputs else "" for name in _OUTPUTS[op]]
    ranks = {"Y": 4, "B": 2, "P": 2, "sequence_lens": 1}

    def info(name: str) -> onnx.ValueInfoProto:
        kind = TensorProto.INT32 if name == "sequence_lens" else element
        return helper.make_tensor_value_info(name, kind, [None] * ranks.get(name, 3))

    if attrs.pop("with_hidden_size", True):
        attrs["hidden_size"] = hidden
    graph = helper.make_graph(
        [helper.make_node(op, roles, names, **attrs)],
        "case",
        [info(role) for role in data if role not in constant],
        [info(name) for name in outputs],
        [numpy_helper.from_array(v, k) for k, v in data.items() if k in constant + both],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return model.SerializeToString(), {k: v for k, v in data.items() if k not in constant}


_Witness = tuple[bytes, list[dict[str, np.ndarray]]]
_SL = ("B", "sequence_lens")


def _lens(*lens: int) -> dict[str, np.ndarray]:
    return {"sequence_lens": np.array(lens)}


def _one(*args: Any, **kwargs: Any) -> _Witness:
    model, feeds = build_case(*args, **kwargs)
    return model, [feeds]


def _two_lens(first: tuple[int, ...], second: tuple[int, ...], **kwargs: Any) -> _Witness:
    sizes = (5, len(first), 3, 4)
    model, feeds = build_case("GRU", sizes, _SL, values=_lens(*first), **kwargs)
    return model, [feeds, {**feeds, "sequence_lens": np.array(second, np.int32)}]


def _sticky_state() -> _Witness:
    model, feeds = build_case("LSTM", (3, 2, 3, 4), ("B", "initial_h", "initial_c"),
                              both=("initial_h", "initial_c"))  # fmt: skip
    default = {k: v for k, v in feeds.items() if not k.startswith("initial")}
    fed = {**default, "initial_h": feeds["initial_h"] + 1, "initial_c": feeds["initial_c"] - 1}
    return model, [fed, default]


def _saturated_gru() -> _Witness:
    bias = np.zeros((1, 24))
    bias[0, :4] = 4.6
    r = np.random.default_rng(3).normal(0, 0.1, (1, 12, 4))
    w = np.concatenate([r[:, :4, :3] * 0.1, r[:, 4:, :3] * 9], axis=1)
    return _one("GRU", (6, 2, 3, 4), values={"B": bias, "R": r, "W": w})


def _cancelling_double() -> _Witness:
    x = np.random.default_rng(4).normal(0, 1, (2, 2, 9))
    x[..., 0], x[..., 8] = 3e7, -3e7
    w = np.random.default_rng(5).normal(0, 0.5, (1, 5, 9))
    w[..., 0] = w[..., 8] = 1
    return _one("RNN", (2, 2, 9, 5), dtype=np.float64, values={"X": x, "W": w})


_WITNESSES: dict[str, Callable[[], _Witness]] = {
    "input_tail_single_column_dropped": lambda: _one("GRU", (3, 2, 17, 4)),
    "overlapped_tail_updates_cell_twice": lambda: _one("LSTM", (3, 2, 3, 11)),
    "sort_order_cached_by_total": lambda: _two_lens((5, 3, 1), (1, 5, 3)),
    "initial_c_sorted_by_inverse": lambda: _one(
        "LSTM", (5, 3, 3, 4), ("sequence_lens", "initial_c"), values=_lens(2, 5, 3)),
    "no_y_path_keeps_stepping": lambda: _one(
        "LSTM", (5, 3, 3, 4), _SL, ("Y_h", "Y_c"), values=_lens(2, 5, 3)),
    "uniform_lens_reverse_reads_padding": lambda: _one(
        "RNN", (6, 2, 3, 4), _SL, values=_lens(4, 4), direction="bidirectional"),
    "vector_tanh_clamps_early": lambda: _one("LSTM", (4, 2, 6, 9), scale=1.5),
    "softplus_half_exp_saturates": lambda: _one(
        "RNN", (3, 2, 4, 4), dtype=np.float16, activations=["Softplus"], scale=2.0),
    "rnn_blocks_read_updated_state": lambda: _one("RNN", (3, 2, 3, 19), scale=0.3),
    "lbr_first_step_drops_recurrent_bias": lambda: _one("GRU", (3, 2, 3, 4), linear_before_reset=1),
    "beta_cursor_follows_alpha": lambda: _one(
        "GRU", (3, 2, 3, 4), activations=["LeakyRelu", "HardSigmoid"],
        activation_alpha=[0.1, 0.3], activation_beta=[0.2]),
    "square_initial_h_not_transposed": lambda: _one(
        "GRU", (3, 2, 3, 4), ("B", "initial_h"), direction="bidirectional", layout=1),
    "relu_fusion_drops_upper_clip": lambda: _one(
        "LSTM", (4, 2, 3, 4), activations=["Sigmoid", "Relu", "Tanh"], clip=0.4),
    "coupled_forget_by_negated_argument": lambda: _one(
        "LSTM", (4, 2, 3, 4), activations=["Softsign", "Tanh", "Tanh"], input_forget=1),
    "half_state_chopped_every_fourth_step": lambda: _one(
        "RNN", (9, 3, 4, 6), dtype=np.float16, activations=["Softplus"], scale=0.4),
    "reverse_partial_chunk_in_forward_order": lambda: _one(
        "GRU", (12, 2, 3, 4), direction="reverse"),
    "batch_tail_of_three_repeats_row": lambda: _one("RNN", (3, 7, 3, 4), outputs=("Y",)),
    "padding_keeps_earlier_run": lambda: _two_lens((5, 5), (2, 4)),
    "fed_state_becomes_default": _sticky_state,
    "scaled_tanh_beta_folded_without_bias": lambda: _one(
        "RNN", (3, 2, 3, 4), constant=("W", "R", "B"), activations=["ScaledTanh"],
        activation_alpha=[1.2], activation_beta=[0.5]),
    "lens_kept_in_a_byte": lambda: _one("RNN", (260, 2, 2, 3), _SL, values=_lens(258, 7)),
    "gru_saturated_row_skipped": _saturated_gru,
    "final_state_by_parity_of_seq_length": lambda: _one(
        "LSTM", (5, 3, 3, 4), _SL, ("Y_h", "Y_c"), values=_lens(5, 4, 2)),
    "zero_block_tested_by_first_lane": lambda: _one(
        "RNN", (4, 3, 3, 8), activations=["Relu"], scale=0.4),
    "double_product_summed_in_float": _cancelling_double,
}  # fmt: skip


def witness(fault: str) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    """Give a legal model and the feeds of runs in the last of which the fault shows."""
    return _WITNESSES[fault]()
