"""A CPU runtime's kernels of LSTM, GRU and RNN, right or with one of 25 faults.

The kernel works as a blocked one would: rows are sorted by length, the products of the inputs
are made for all steps at once, weights are packed and kept, activations run over lanes.
Rows of length 0 end in their initial states.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WRITTEN = "2026-11-23"

FAULTS: dict[str, str] = {
    "k_remainder_three_dropped": "The input product unrolls by four and treats a remainder of three"
    " as one of two: when input_size is at least 8 and 3 modulo 4, the last feature is lost.",
    "unsort_by_same_order": "Rows are sorted by length and the final states are put back by the"
    " sorting order instead of its inverse: wrong only when the order is not its own inverse.",
    "time_block_overruns_state": "The number of live rows is counted once per block of four steps,"
    " so the states of a row that ends inside a block (while longer rows go on) run on over the"
    " padding; Y itself is masked.",
    "padding_keeps_last_run": "Y's buffer is kept between runs of one shape and not cleared, so"
    " steps past a row's length hold what an earlier run with longer rows wrote there.",
    "pack_keyed_by_corners": "Packed W and R given at run time are kept under their shape and their"
    " first and last element: a later feed that differs only in between meets the old pack.",
    "fed_r_needs_fed_w": "R's default is packed ahead with W's; a feed that overrides R is seen"
    " only if the run feeds W too.",
    "gemv_folds_inner_bias": "The kernel for one row folds all biases of a GRU into the input"
    " product: with batch 1 and linear_before_reset the hidden gate's Rb escapes the reset gate.",
    "tanh_table_ends_at_four": "The vectorised Tanh returns 1 or -1 beyond an argument of 4; only"
    " units in full vectors of eight take it, the tail of hidden_size modulo 8 is exact.",
    "coupled_forget_negated_argument": "With input_forget the forget gate is f(-a) rather than"
    " 1 - f(a): the same for Sigmoid and the default HardSigmoid, wrong for other functions.",
    "hardsigmoid_clamps_argument": "HardSigmoid clamps its argument to [-2.5, 2.5] and then scales"
    " without clamping: right only for the default alpha and beta.",
    "shared_alpha_beta_cursor": "One cursor reads activation_alpha and activation_beta, so a"
    " function that takes an alpha only, ahead of one that takes both, makes a beta be skipped.",
    "clip_tail_upper_only": "In the scalar tail of hidden_size modulo 8 clip bounds arguments from above only.",
    "peephole_o_old_cell": "When Y_c is not asked for, the cell is updated after the output gate,"
    " whose peephole then reads the previous cell.",
    "zero_block_by_first_lane": "The recurrent product skips a full block of four hidden units of a"
    " row when the block's first value is zero, whatever the other three are.",
    "half_cell_stored": "In float16 the cell goes through a float16 buffer from step to step, so"
    " that small additions to a large cell are lost.",
    "layout_one_state_strides": "With layout 1 the initial states are read with the strides of"
    " layout 0: wrong only with two directions and more than one row.",
    "reverse_pair_in_padding": "The reverse sweep takes rows two by two and starts both at the"
    " longer one's last step, so the shorter row of a pair begins in its padding.",
    "arena_clears_planned_rows": "Without initial_h the hidden state starts in a kept arena, made"
    " for the batch rounded up to four but cleared for the rows of the run that made it: a batch"
    " that fits the rounding only is wrong from its second run on.",
    "batch_split_lengths": "From eight rows on the batch is split over two threads, and the second"
    " one reads sequence_lens from the start again.",
    "reset_in_place": "GRU without linear_before_reset and without Y asked for: r * H overwrites H,"
    " and the update gate then mixes in the reset state.",
    "leakyrelu_by_max": "LeakyRelu is max(x, alpha * x): wrong only for an alpha above 1.",
    "affine_folded_before_clip": "When W, R and B are constants an Affine gate is folded into them,"
    " so that clip bounds the function's result and not its argument.",
    "full_lengths_folded": "A default of sequence_lens in which all rows have X's static length is"
    " folded away while loading, and a feed that overrides it is not looked at.",
    "panel_bias_first_only": "The input product runs in panels of 64 rows (steps times batch) and"
    " only the first panel's sums start from the bias.",
    "empty_initial_h_shifts": "Empty names are dropped before inputs are counted off: an LSTM with"
    " initial_c but without initial_h starts its hidden state from initial_c, the cell from 0.",
}

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
ALPHA = {"affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0}
ALPHA |= {"hardsigmoid": 0.2, "elu": 1.0}
BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}
PLAIN = ("relu", "tanh", "sigmoid", "softsign", "softplus")
FLOATS = {TensorProto.FLOAT: "float32", TensorProto.DOUBLE: "float64"}
FLOATS |= {TensorProto.FLOAT16: "float16"}
ATTRIBUTES = {"direction", "activations", "activation_alpha", "activation_beta", "clip"}
ATTRIBUTES |= {"hidden_size"}
LANES = 8

Array = np.ndarray
Act = tuple[str, float, float]


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def parse_activations(
    names: Iterable[str], alphas: Iterable[float], betas: Iterable[float], fault: str | None
) -> list[Act]:
    """Pair functions with their alphas and betas, each list consumed by those that take one."""
    alpha_list, beta_list = list(alphas), list(betas)
    i = j = 0
    out: list[Act] = []
    for name in names:
        key = name.lower()
        if key not in ALPHA and key not in PLAIN:
            raise NotImplementedError(f"activation {name}")
        alpha, beta = ALPHA.get(key, 0.0), BETA.get(key, 0.0)
        if fault == "shared_alpha_beta_cursor":
            j = i
        if key in BETA:
            beta = beta_list[j] if j < len(beta_list) else beta
            j += 1
        if key in ALPHA:
            alpha = alpha_list[i] if i < len(alpha_list) else alpha
            i += 1
        out.append((key, float(alpha), float(beta)))
    return out


def activate(act: Act, x: Array, fault: str | None) -> Array:
    """Apply an activation to arguments whose last axis runs over the hidden units."""
    name, alpha, beta = act
    if name == "sigmoid":
        y = _sigmoid(x)
    elif name == "tanh":
        y = np.tanh(x)
        if fault == "tanh_table_ends_at_four":
            full = x.shape[-1] // LANES * LANES
            head = x[..., :full]
            y[..., :full] = np.where(np.abs(head) > 4, np.sign(head), y[..., :full])
    elif name == "relu":
        y = np.maximum(x, 0)
    elif name == "affine":
        y = alpha * x + beta
    elif name == "leakyrelu":
        if fault == "leakyrelu_by_max":
            y = np.maximum(x, alpha * x)
        else:
            y = np.where(x >= 0, x, alpha * x)
    elif name == "thresholdedrelu":
        y = np.where(x >= alpha, x, 0)
    elif name == "scaledtanh":
        y = alpha * np.tanh(beta * x)
    elif name == "hardsigmoid":
        if fault == "hardsigmoid_clamps_argument":
            y = alpha * np.clip(x, -2.5, 2.5) + beta
        else:
            y = np.clip(alpha * x + beta, 0, 1)
    elif name == "elu":
        y = np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0)))
    elif name == "softsign":
        y = x / (1 + np.abs(x))
    else:
        y = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return y.astype(x.dtype, copy=False)


class Session:
    """One loaded model: what does not change between runs is read and packed here."""

    def __init__(self, model: bytes, fault: str | None) -> None:
        if fault is not None and fault not in FAULTS:
            raise KeyError(fault)
        self.fault = fault
        proto = onnx.load_model_from_string(model)
        graph = proto.graph
        if len(graph.node) != 1 or graph.sparse_initializer or proto.functions:
            raise NotImplementedError("only graphs of one node")
        node = graph.node[0]
        if node.domain not in ("", "ai.onnx") or node.op_type not in GATES:
            raise NotImplementedError(f"{node.domain}:{node.op_type}")
        opset = next(o.version for o in proto.opset_import if o.domain in ("", "ai.onnx"))
        version = onnx.defs.get_schema(node.op_type, opset).since_version
        if version not in (7, 14, 22):
            raise NotImplementedError(f"version {version}")
        self.op = node.op_type
        self._read_attributes(node, version)
        self.names = dict(zip(INPUTS, node.input, strict=False))
        self.results = dict(zip(("Y", "Y_h", "Y_c"), node.output, strict=False))
        self.wanted = [o.name for o in graph.output]
        produced = [n for n in self.results.values() if n]
        if any(n not in produced for n in self.wanted):
            raise NotImplementedError("graph outputs that the node does not make")
        self.static = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
        types = {v.name: v.type.tensor_type for v in graph.input}
        self.inputs = set(types)
        for tensor in graph.initializer:
            self._check_type(tensor.name, tensor.data_type)
        for name, kind in types.items():
            self._check_type(name, kind.elem_type)
        self.shapes = {
            n: [d.dim_value if d.HasField("dim_value") else None for d in k.shape.dim] for n, k in types.items()
        }
        self.packs: dict[Any, Array] = {}
        self.buffers: dict[Any, Array] = {}
        self.planned: dict[int, int] = {}
        fixed = self.static.keys() - self.inputs
        parts = [n for k, n in self.names.items() if k in ("W", "R", "B") and n]
        self.folded = all(n in fixed for n in parts)
        self.lengths_folded = self._lengths_are_full()

    def _check_type(self, name: str, kind: int) -> None:
        if name == self.names.get("sequence_lens"):
            if kind != TensorProto.INT32:
                raise NotImplementedError("sequence_lens of another type than int32")
        elif name in self.names.values() and kind not in FLOATS:
            raise NotImplementedError(f"element type {kind}")

    def _read_attributes(self, node: onnx.NodeProto, version: int) -> None:
        known = set(ATTRIBUTES) | ({"layout"} if version >= 14 else set())
        known |= {"LSTM": {"input_forget"}, "GRU": {"linear_before_reset"}}.get(self.op, set())
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if attrs.keys() - known:
            raise NotImplementedError(f"attributes {sorted(attrs.keys() - known)}")
        self.direction = attrs.get("direction", b"forward").decode()
        if self.direction not in ("forward", "reverse", "bidirectional"):
            raise NotImplementedError(f"direction {self.direction}")
        self.dirs = 2 if self.direction == "bidirectional" else 1
        default = list(ACTIVATIONS[self.op]) * self.dirs
        names = [a.decode() for a in attrs.get("activations", [])] or default
        if len(names) < len(default):
            raise NotImplementedError("too few activations")
        acts = parse_activations(
            names[: len(default)],
            attrs.get("activation_alpha", []),
            attrs.get("activation_beta", []),
            self.fault,
        )
        each = len(default) // self.dirs
        self.acts = [acts[d * each : (d + 1) * each] for d in range(self.dirs)]
        self.clip = attrs.get("clip")
        self.layout = attrs.get("layout", 0)
        self.coupled = bool(attrs.get("input_forget", 0))
        self.linear = bool(attrs.get("linear_before_reset", 0))
        self.hidden_size = attrs.get("hidden_size")

    def _lengths_are_full(self) -> bool:
        lengths = self.static.get(self.names.get("sequence_lens", ""))
        shape = self.shapes.get(self.names["X"])
        if self.fault != "full_lengths_folded" or lengths is None or not shape:
            return False
        steps = shape[self.layout]
        return steps is not None and bool(np.all(lengths == steps))

    def _value(self, role: str, feeds: dict[str, Array]) -> Array | None:
        name = self.names.get(role, "")
        if not name:
            return None
        ahead = self.fault == "fed_r_needs_fed_w" and role == "R" and name in self.static
        if ahead and self.names["W"] not in feeds:
            return self.static[name]
        if name in feeds and name in self.inputs:
            return np.asarray(feeds[name])
        if name in self.static:
            return self.static[name]
        raise ValueError(f"input {name} is not fed")

    def _pack(self, role: str, value: Array, feeds: dict[str, Array], dtype: np.dtype) -> Array:
        """The weights with the shared axis first, kept where they cannot change."""
        name = self.names[role]
        key: Any = None
        if name in self.static and name not in feeds:
            key = (role, "static")
        elif self.fault == "pack_keyed_by_corners":
            flat = value.reshape(-1)
            key = (role, value.shape, float(flat[0]), float(flat[-1])) if flat.size else None
        if key is not None and key in self.packs:
            return self.packs[key]
        pack = np.ascontiguousarray(value.astype(dtype).transpose(0, 2, 1))
        if key is not None:
            self.packs[key] = pack
        return pack

    def run(self, feeds: dict[str, Array]) -> list[Array]:
        """Run the node and return the graph's outputs in order."""
        with np.errstate(all="ignore"):
            return self._run(feeds)

    def _run(self, feeds: dict[str, Array]) -> list[Array]:
        values = {role: self._value(role, feeds) for role in INPUTS}
        x, w, r = values["X"], values["W"], values["R"]
        if x is None or w is None or r is None:
            raise ValueError("X, W and R are required")
        kind = x.dtype
        if kind.name not in FLOATS.values() or w.dtype != kind or r.dtype != kind:
            raise NotImplementedError(f"element types {kind}, {w.dtype}, {r.dtype}")
        work = np.dtype("float64" if kind.name == "float64" else "float32")
        hidden = r.shape[-1]
        if self.hidden_size not in (None, hidden):
            raise ValueError("hidden_size does not fit R")
        x = x.astype(work)
        x = x.swapaxes(0, 1) if self.layout else x
        steps, rows, size = x.shape
        gates = GATES[self.op]
        if w.shape != (self.dirs, gates * hidden, size) or r.shape[0] != self.dirs:
            raise ValueError("shapes of W or R do not fit")
        packed_w = self._pack("W", w, feeds, work)
        packed_r = self._pack("R", r, feeds, work)
        bias = self._or_zeros(values["B"], (self.dirs, 2 * gates * hidden), work)
        peep = self._or_zeros(values["P"], (self.dirs, 3 * hidden), work)
        first_h, first_c = values["initial_h"], values["initial_c"]
        if self.fault == "empty_initial_h_shifts" and first_h is None and first_c is not None:
            first_h, first_c = first_c, None
        h0 = self._state(first_h, rows, hidden, work)
        c0 = self._state(first_c, rows, hidden, work)
        lengths = values["sequence_lens"]
        if lengths is None or self.lengths_folded:
            lengths = np.full(rows, steps)
        lengths = lengths.astype(np.int64)
        if lengths.shape != (rows,) or np.any(lengths < 0) or np.any(lengths > steps):
            raise ValueError("sequence_lens out of range")
        half = kind.name == "float16"
        y_all = np.zeros((steps, self.dirs, rows, hidden), work)
        h_all, c_all = np.zeros_like(h0), np.zeros_like(c0)
        for d in range(self.dirs):
            start = h0[d]
            if self.fault == "arena_clears_planned_rows" and first_h is None:
                start = self._arena(d, rows, hidden, work)
            backward = self.direction == "reverse" or d == 1
            y_all[:, d], h_all[d], c_all[d] = _Sweep(self, d, packed_w[d], packed_r[d], bias[d], peep[d], half).run(
                x, lengths, start, c0[d], backward
            )
            if ("arena", d) in self.buffers:
                self.buffers["arena", d][:rows] = h_all[d]
        if self.layout:
            y_all = y_all.transpose(2, 0, 1, 3)
            h_all, c_all = h_all.swapaxes(0, 1), c_all.swapaxes(0, 1)
        made = {"Y": y_all, "Y_h": h_all, "Y_c": c_all}
        by_name = {n: made[role] for role, n in self.results.items() if n}
        return [np.array(by_name[n], dtype=kind, order="C") for n in self.wanted]

    @staticmethod
    def _or_zeros(value: Array | None, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        if value is None:
            return np.zeros(shape, dtype)
        if value.shape != shape:
            raise ValueError(f"shape {value.shape}, expected {shape}")
        return value.astype(dtype)

    def _state(self, value: Array | None, rows: int, hidden: int, dtype: np.dtype) -> Array:
        shape = (self.dirs, rows, hidden)
        if value is None:
            return np.zeros(shape, dtype)
        if self.layout:
            if self.fault == "layout_one_state_strides":
                value = value.reshape(shape)
            else:
                value = value.swapaxes(0, 1)
        return self._or_zeros(value, shape, dtype)

    def _arena(self, d: int, rows: int, hidden: int, dtype: np.dtype) -> Array:
        arena = self.buffers.get(("arena", d))
        if arena is None or len(arena) < rows:
            arena = self.buffers["arena", d] = np.zeros(((rows + 3) // 4 * 4, hidden), dtype)
            self.planned[d] = rows
        arena[: self.planned[d]] = 0
        return arena[:rows].copy()


class _Sweep:
    """One direction of one run."""

    def __init__(self, session: Session, d: int, w: Array, r: Array, bias: Array, peep: Array, half: bool) -> None:
        self.s, self.fault, self.d, self.half = session, session.fault, d, half
        self.w, self.r, self.peep = w, r, peep
        self.acts = session.acts[d]
        self.hidden = r.shape[0]
        self.wb, self.rb = np.split(bias, 2)

    def run(self, x: Array, lengths: Array, h0: Array, c0: Array, backward: bool) -> tuple[Array, Array, Array]:
        """Return Y of the direction as [steps, rows, units], and the final states."""
        steps, rows, _ = x.shape
        own = lengths.copy()
        if self.fault == "batch_split_lengths" and rows >= 8:
            own[rows // 2 :] = lengths[: rows - rows // 2]
        going = own.copy()
        if self.fault == "reverse_pair_in_padding" and backward:
            for a in range(0, rows - 1, 2):
                going[a : a + 2] = going[a : a + 2].max()
        order = np.argsort(-going, kind="stable")
        count = going[order]
        at = np.tile(np.arange(steps)[:, None], (1, rows))
        if backward:
            at = np.maximum(count[None, :] - 1 - at, 0)
        inner_bias = self._inner_bias(rows)
        outer_bias = self.rb.copy()
        outer_bias[len(outer_bias) - len(inner_bias) :] -= inner_bias
        outer_bias += self.wb
        project = self._project(x[at, order[None, :]], outer_bias)
        h, c = h0[order].copy(), c0[order].copy()
        y = self._y_buffer((steps, rows, self.hidden), x.dtype)
        for t in range(steps):
            counted = t // 4 * 4 if self.fault == "time_block_overruns_state" else t
            live = int(np.sum(count > counted))
            if not live:
                break
            h[:live], c[:live] = self._step(project[t, :live], h[:live], c[:live], inner_bias)
            if self.half and self.fault == "half_cell_stored":
                c = c.astype(np.float16).astype(c.dtype)
            keep = count[:live] > t
            y[at[t, :live][keep], order[:live][keep]] = h[:live][keep]
        if self.fault != "padding_keeps_last_run":
            y[np.arange(steps)[:, None] >= own[None, :]] = 0
        back = order if self.fault == "unsort_by_same_order" else np.argsort(order)
        return y, h[back], c[back]

    def _inner_bias(self, rows: int) -> Array:
        """The part of a GRU's bias that has to stay under the reset gate."""
        if self.s.op != "GRU" or not self.s.linear:
            return np.zeros(0, self.rb.dtype)
        inner = self.rb[2 * self.hidden :].copy()
        if self.fault == "gemv_folds_inner_bias" and rows == 1:
            inner[:] = 0
        return inner

    def _y_buffer(self, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        if self.fault != "padding_keeps_last_run":
            return np.zeros(shape, dtype)
        key = ("y", self.d, shape)
        return self.s.buffers.setdefault(key, np.zeros(shape, dtype))

    def _project(self, x: Array, bias: Array) -> Array:
        steps, rows, size = x.shape
        depth = size
        if self.fault == "k_remainder_three_dropped" and size >= 8 and size % 4 == 3:
            depth = size - 1
        flat = x.reshape(steps * rows, size)
        out = flat[:, :depth] @ self.w[:depth]
        if self.fault == "panel_bias_first_only":
            out[:64] += bias
        else:
            out += bias
        return out.reshape(steps, rows, -1)

    def _recur(self, h: Array, r: Array) -> Array:
        if self.fault == "zero_block_by_first_lane":
            h = h.copy()
            for k in range(0, self.hidden // 4 * 4, 4):
                h[h[:, k] == 0, k : k + 4] = 0
        return h @ r

    def _clip(self, a: Array) -> Array:
        bound = self.s.clip
        if bound is None:
            return a
        out = np.clip(a, -bound, bound)
        if self.fault == "clip_tail_upper_only":
            full = self.hidden // LANES * LANES
            out[..., full:] = np.minimum(a[..., full:], bound)
        return out

    def _gate(self, which: int, a: Array) -> Array:
        act = self.acts[which]
        if self.fault == "affine_folded_before_clip" and act[0] == "affine" and self.s.folded:
            return self._clip(activate(act, a, self.fault))
        return activate(act, self._clip(a), self.fault)

    def _step(self, p: Array, h: Array, c: Array, inner_bias: Array) -> tuple[Array, Array]:
        if self.s.op == "LSTM":
            return self._lstm(p, h, c)
        if self.s.op == "GRU":
            return self._gru(p, h, inner_bias), c
        return self._gate(0, p + self._recur(h, self.r)), c

    def _lstm(self, p: Array, h: Array, c: Array) -> tuple[Array, Array]:
        ai, ao, af, ac = np.split(p + self._recur(h, self.r), 4, axis=1)
        pi, po, pf = np.split(self.peep, 3)
        i = self._gate(0, ai + pi * c)
        if not self.s.coupled:
            f = self._gate(0, af + pf * c)
        elif self.fault == "coupled_forget_negated_argument":
            f = self._gate(0, -(ai + pi * c))
        else:
            f = 1 - i
        new = f * c + i * self._gate(1, ac)
        seen = new
        if self.fault == "peephole_o_old_cell" and self.s.results.get("Y_c", "") == "":
            seen = c
        o = self._gate(0, ao + po * seen)
        return o * activate(self.acts[2], self._clip(new), self.fault), new

    def _gru(self, p: Array, h: Array, inner_bias: Array) -> Array:
        n = self.hidden
        pz, pr, ph = np.split(p, 3, axis=1)
        z, r = np.split(self._recur(h, self.r[:, : 2 * n]), 2, axis=1)
        z, r = self._gate(0, pz + z), self._gate(0, pr + r)
        if self.s.linear:
            g = self._gate(1, ph + r * (self._recur(h, self.r[:, 2 * n :]) + inner_bias))
            return (1 - z) * g + z * h
        reset = r * h
        g = self._gate(1, ph + self._recur(reset, self.r[:, 2 * n :]))
        if self.fault == "reset_in_place" and self.s.results.get("Y", "") == "":
            h = reset
        return (1 - z) * g + z * h


def prepare(model: bytes, fault: str | None) -> Session:
    """Load a model that holds one LSTM, GRU or RNN, with one fault or none."""
    return Session(model, fault)


Feeds = dict[str, np.ndarray]
Values = dict[str, Any]


def _case(
    op: str,
    dims: tuple[int, int, int, int],
    *,
    seed: str = "",
    give: str = "B",
    const: str = "",
    both: str = "",
    outs: str = "Y Y_h Y_c",
    kind: str = "float32",
    opset: int = 14,
    static: bool = False,
    put: Values | None = None,
    **attrs: Any,
) -> tuple[bytes, Feeds]:
    """A model and one run's feeds; dims are steps, rows, input_size and hidden_size."""
    steps, rows, size, hidden = dims
    dirs = 2 if attrs.get("direction") == "bidirectional" else 1
    n = GATES[op] * hidden
    state = (rows, dirs, hidden) if attrs.get("layout") else (dirs, rows, hidden)
    shapes: dict[str, tuple[int, ...]] = {
        "X": (rows, steps, size) if attrs.get("layout") else (steps, rows, size),
        "W": (dirs, n, size),
        "R": (dirs, n, hidden),
        "B": (dirs, 2 * n),
        "sequence_lens": (rows,),
        "initial_h": state,
        "initial_c": state,
        "P": (dirs, 3 * hidden),
    }
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    present = ["X", "W", "R", *give.split()]
    values: Feeds = {}
    for name in INPUTS:
        if name in present:
            given = (put or {}).get(name)
            if given is None:
                given = rng.uniform(-0.8, 0.8, shapes[name])
            number = "int32" if name == "sequence_lens" else kind
            values[name] = np.broadcast_to(np.asarray(given, number), shapes[name]).copy()
    names = [name if name in present else "" for name in INPUTS]
    while not names[-1]:
        names.pop()
    limit = 3 if op == "LSTM" else 2
    wanted = [o for o in ("Y", "Y_h", "Y_c")[:limit] if o in outs.split()]
    made = [o if o in wanted else "" for o in ("Y", "Y_h", "Y_c")[:limit]]
    while not made[-1]:
        made.pop()
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    inputs = []
    for name, value in values.items():
        shape: list[Any] = list(value.shape)
        if name in ("X", "sequence_lens", "initial_h", "initial_c") and not static:
            shape = [f"{name}_{k}" for k in range(len(shape))]
        if name not in const.split():
            element_type = TensorProto.INT32 if name == "sequence_lens" else element
            inputs.append(helper.make_tensor_value_info(name, element_type, shape))
    fixed = [numpy_helper.from_array(values[k], k) for k in (const + " " + both).split()]
    outputs = [helper.make_tensor_value_info(o, element, [None] * (4 if o == "Y" else 3)) for o in wanted]
    node = helper.make_node(op, names, made, hidden_size=hidden, **attrs)
    graph = helper.make_graph([node], "witness", inputs, outputs, initializer=fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model)
    feeds = {k: v for k, v in values.items() if k not in (const + " " + both).split()}
    return model.SerializeToString(), feeds


WITNESSES: dict[str, Callable[[str], tuple[bytes, list[Feeds]]]] = {}


def _single(fault: str, op: str, dims: tuple[int, int, int, int], **options: Any) -> None:
    def make(seed: str) -> tuple[bytes, list[Feeds]]:
        model, feeds = _case(op, dims, seed=seed, **options)
        return model, [feeds]

    WITNESSES[fault] = make


_LENS = "B sequence_lens"
_single("k_remainder_three_dropped", "GRU", (2, 2, 11, 3), const="W R B")
_single("unsort_by_same_order", "RNN", (4, 3, 2, 3), give=_LENS, put={"sequence_lens": [3, 2, 4]})
_single("time_block_overruns_state", "LSTM", (7, 3, 2, 3), give=_LENS, outs="Y_h Y_c", put={"sequence_lens": [5, 4, 7]})
_single("gemv_folds_inner_bias", "GRU", (3, 1, 3, 4), linear_before_reset=1, opset=22)
_single("tanh_table_ends_at_four", "RNN", (1, 2, 3, 9), put={"B": 2.15, "W": 0.1})
_single(
    "coupled_forget_negated_argument", "LSTM", (3, 2, 3, 4), input_forget=1, activations=["Softsign", "Tanh", "Tanh"]
)
_single(
    "hardsigmoid_clamps_argument",
    "GRU",
    (3, 2, 3, 4),
    put={"B": 1.0},
    activations=["HardSigmoid", "Tanh"],
    activation_alpha=[0.5],
    activation_beta=[0.25],
)
_single(
    "shared_alpha_beta_cursor",
    "GRU",
    (3, 2, 3, 4),
    activation_alpha=[0.3, 0.7],
    activations=["LeakyRelu", "ScaledTanh"],
    activation_beta=[0.4],
)
_single("clip_tail_upper_only", "LSTM", (2, 2, 3, 10), clip=0.2)
_single("peephole_o_old_cell", "LSTM", (3, 2, 3, 4), give="B P", outs="Y Y_h")
_single("zero_block_by_first_lane", "RNN", (4, 2, 3, 8), activations=["Relu"])
_single(
    "half_cell_stored",
    "LSTM",
    (8, 1, 2, 3),
    give="B initial_c",
    kind="float16",
    put={"B": 2.0, "initial_c": 1024.0, "W": 0.0, "R": 0.0},
    outs="Y_c",
    activations=["HardSigmoid", "HardSigmoid", "Tanh"],
    activation_alpha=[0.2, 0.0],
    activation_beta=[0.5, 0.375],
)
_single(
    "layout_one_state_strides", "LSTM", (3, 2, 3, 4), give="initial_h initial_c", layout=1, direction="bidirectional"
)
_single(
    "reverse_pair_in_padding",
    "GRU",
    (5, 4, 2, 3),
    give=_LENS,
    direction="bidirectional",
    put={"sequence_lens": [5, 5, 4, 2]},
    opset=7,
)
_single(
    "batch_split_lengths",
    "RNN",
    (3, 9, 2, 3),
    give=_LENS,
    direction="reverse",
    put={"sequence_lens": [3, 3, 2, 3, 3, 1, 2, 3, 3]},
)
_single("reset_in_place", "GRU", (3, 2, 3, 4), outs="Y_h")
_single("leakyrelu_by_max", "RNN", (3, 2, 3, 4), activations=["LeakyRelu"], activation_alpha=[1.5])
_single(
    "affine_folded_before_clip",
    "GRU",
    (3, 2, 3, 4),
    clip=0.5,
    const="W R B",
    activations=["Sigmoid", "Affine"],
    activation_alpha=[2.0],
    activation_beta=[0.1],
)
_single("panel_bias_first_only", "LSTM", (13, 5, 2, 3), const="W R B", outs="Y_h")
_single("empty_initial_h_shifts", "LSTM", (2, 2, 3, 4), give="initial_c")


def witness(fault: str) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    """A legal model and the feeds of a session's runs; the fault shows in the last run."""
    if fault in WITNESSES:
        return WITNESSES[fault](fault)
    rng = np.random.default_rng(zlib.crc32(fault.encode()))
    if fault == "padding_keeps_last_run":
        model, feeds = _case("LSTM", (4, 3, 2, 3), seed=fault, give=_LENS, outs="Y", put={"sequence_lens": 4})
        return model, [feeds, feeds | {"sequence_lens": np.array([4, 2, 3], np.int32)}]
    if fault == "pack_keyed_by_corners":
        model, feeds = _case("GRU", (3, 2, 3, 4), seed=fault)
        other = feeds["W"].copy()
        other[0, 2:-2] = rng.uniform(-0.8, 0.8, other[0, 2:-2].shape)
        return model, [feeds, feeds | {"W": other}]
    if fault == "fed_r_needs_fed_w":
        model, feeds = _case("LSTM", (3, 2, 3, 4), seed=fault, both="W R", const="B")
        other = rng.uniform(-0.8, 0.8, (1, 16, 4)).astype(np.float32)
        return model, [feeds | {"R": other}]
    if fault == "arena_clears_planned_rows":
        model, feeds = _case("RNN", (3, 4, 3, 4), seed=fault, const="W R B")
        return model, [{"X": feeds["X"][:, :3]}, feeds, feeds]
    if fault == "full_lengths_folded":
        model, feeds = _case(
            "GRU", (4, 3, 2, 3), seed=fault, give=_LENS, both="sequence_lens", static=True, put={"sequence_lens": 4}
        )
        return model, [feeds | {"sequence_lens": np.array([4, 1, 3], np.int32)}]
    raise KeyError(fault)
