"""A recurrent kernel for ONNX LSTM, GRU and RNN nodes, and twenty-five faulty variants of it.

The kernel is written as a small embedded inference library would write it: rows of a batch are
sorted by length and run as a packed prefix, constant weights are prepared once, and a session
keeps buffers from run to run.  Each fault is one wrong turn of that kind of code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WRITTEN = "2026-11-23"

FAULTS: dict[str, str] = {
    "r_override_stale": "The packed weights are rebuilt only when W is fed: an R that is an "
    "initializer and is overridden alone by a feed is not used.",
    "shrunk_batch_state": "With no initial_h, the state buffers of the last run are not cleared "
    "when the batch is smaller than that of the last run.",
    "y_padding_dirty": "The buffer of Y is kept between runs of one shape and not zeroed again, "
    "so steps past a row's length hold what an earlier run with longer rows left there.",
    "length_plan_by_sum": "The plan made of sequence_lens is cached under the seq_length, the "
    "batch and the sum of the lengths: a later run with other lengths of the same sum uses the "
    "old lengths.",
    "stream_resume": "When initial_h equals the last run's Y_h to the bit, the session takes it "
    "for a continued stream and keeps its own last cell state instead of the initial_c it is fed "
    "(LSTM).",
    "const_h0_inplace": "An initial_h that is an initializer serves as the state buffer itself, "
    "so the second run starts from where the first ended.",
    "unsort_not_inverted": "Y_h and Y_c of rows sorted by length are put back with the sorting "
    "permutation instead of its inverse, which shows only when the two differ (a cycle of three "
    "or more rows).",
    "reverse_group_padding": "In the reverse direction with more than four rows, each group of "
    "four rows starts at the longest row's last step, so the shorter rows' states run through "
    "their padding.",
    "equal_lengths_full": "Lengths that are all equal are taken for 'no padding', also when they "
    "are shorter than seq_length: all steps are run.",
    "yh_only_len_by_four": "When Y is not asked for, a forward pass looks at the lengths only "
    "every fourth step, so a row's state moves on to the next multiple of four (or the end).",
    "zero_frame_masked": "With no sequence_lens, a step of a row whose inputs are all exactly "
    "zero is taken for masked: the state is carried over unchanged.",
    "beta_cursor_shared": "activation_beta is consumed also by functions that take only an alpha, "
    "so the betas behind a LeakyRelu, ThresholdedRelu or Elu are shifted.",
    "zero_alpha_default": "An activation_alpha or activation_beta of exactly 0 counts as not "
    "given and is replaced by the function's default.",
    "hardsigmoid_sixth": "A HardSigmoid with beta 0.5 is matched to relu6(x + 3) / 6, so its alpha becomes 1/6.",
    "half_softplus_cap": "In float16 Softplus takes the exponential in half precision, capped at "
    "65504, so that its values end at about 11.09.",
    "clip_before_fed_bias": "With a clip and a B that is a graph input (not folded), the clip "
    "bounds the product's result before the bias is added instead of the sum.",
    "cell_clipped_in_place": "The clip of the argument of h is done in place, so the LSTM's cell "
    "state that is carried on and returned is clipped too.",
    "coupled_gate_no_peephole": "With input_forget and peepholes, the forget gate is 1 minus an "
    "input gate computed without its peephole.",
    "lone_initial_c": "When initial_c is given and initial_h is left out, the tensor is bound as "
    "initial_h and the cell starts from zero.",
    "gru_gemv_bias_fold": "A GRU with linear_before_reset and a batch of one folds Wbh into Rbh, "
    "inside the product with the reset gate.",
    "h0_zero_probe": "The first step's recurrent product is skipped for the whole batch when the "
    "first row of initial_h is zero.",
    "rnn_inplace_blocks": "An RNN with a batch of one and a hidden_size above 8 updates its state "
    "in place in blocks of eight, so later blocks read the earlier blocks' new values.",
    "tied_w_shares_r": "A constant W that is the same in both directions makes the converter "
    "share the forward direction's R with the reverse one, without comparing R.",
    "layout1_square_noop": "With layout 1 the transposition of X is dropped as leaving the shape "
    "unchanged when batch_size equals seq_length.",
    "zero_wb_drops_bias": "A constant B whose Wb half is all zeros is dropped as an absent bias, Rb with it.",
}

_SLOTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
_OUTS = ("Y", "Y_h", "Y_c")
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_ACTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
_ALPHA = dict.fromkeys(("affine", "thresholdedrelu", "scaledtanh", "elu"), 1.0)
_ALPHA |= {"leakyrelu": 0.01, "hardsigmoid": 0.2}
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}
_NAMES = ("relu", "tanh", "sigmoid", "softsign", "softplus", *_ALPHA)
_TYPES = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)

Array = np.ndarray


@dataclass(frozen=True)
class Activation:
    """One activation function with its parameters; `cap` bounds the exponential of Softplus."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0
    cap: float | None = None

    def __call__(self, x: Array) -> Array:
        """Return the function's values at x, in x's type."""
        a, b = x.dtype.type(self.alpha), x.dtype.type(self.beta)
        match self.name:
            case "relu":
                y = np.maximum(x, 0)
            case "tanh":
                y = np.tanh(x)
            case "sigmoid":
                e = np.exp(-np.abs(x))
                y = np.where(x >= 0, 1 / (1 + e), e / (1 + e))
            case "affine":
                y = a * x + b
            case "leakyrelu":
                y = np.where(x >= 0, x, a * x)
            case "thresholdedrelu":
                y = np.where(x >= a, x, 0)
            case "scaledtanh":
                y = a * np.tanh(b * x)
            case "hardsigmoid":
                y = np.minimum(np.maximum(a * x + b, 0), 1)
            case "elu":
                y = np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0)))
            case "softsign":
                y = x / (1 + np.abs(x))
            case _:
                y = np.logaddexp(0, x)
                if self.cap is not None:
                    y = np.minimum(y, np.log(self.cap))
        return y.astype(x.dtype, copy=False)


@dataclass
class Kept:
    """What a session keeps between its runs."""

    y: dict[tuple[int, ...], Array] = field(default_factory=dict)
    plans: dict[tuple[int, int, int], Array] = field(default_factory=dict)
    packed: tuple[Array, Array] | None = None
    live_h0: Array | None = None
    state: list[tuple[Array, Array]] = field(default_factory=list)
    last_h: Array = field(default_factory=lambda: np.zeros(0))
    last_c: Array | None = None


@dataclass
class Pass:
    """One direction's weights, functions and switches for the length of a run."""

    w: Array
    r: Array
    wb: Array
    rb: Array
    p: Array | None
    acts: list[Activation]
    fed_bias: bool
    skip_first: bool
    masked: bool


class Session:
    """A prepared model: `run` computes the graph's outputs, keeping buffers between runs."""

    def __init__(self, model: bytes, fault: str | None = None) -> None:
        """Parse the model and prepare what is constant."""
        if fault is not None and fault not in FAULTS:
            raise KeyError(fault)
        self.fault = fault
        proto = onnx.load_model_from_string(model)
        graph = proto.graph
        if len(graph.node) != 1 or graph.sparse_initializer:
            raise NotImplementedError("one node and dense initializers only")
        node = graph.node[0]
        if node.op_type not in _GATES or node.domain not in ("", "ai.onnx"):
            raise NotImplementedError(f"operator {node.domain}:{node.op_type}")
        opset = next(o.version for o in proto.opset_import if o.domain in ("", "ai.onnx"))
        if onnx.defs.get_schema(node.op_type, opset).since_version not in (7, 14, 22):
            raise NotImplementedError(f"{node.op_type} of opset {opset}")
        types = [i.type.tensor_type.elem_type for i in graph.input]
        types += [t.data_type for t in graph.initializer]
        if any(t not in (*_TYPES, TensorProto.INT32) for t in types):
            raise NotImplementedError("element type")
        self.op = node.op_type
        self.slots = dict(zip(_SLOTS, node.input, strict=False))
        self.outs = dict(zip(_OUTS, node.output, strict=False))
        self.inputs = [i.name for i in graph.input]
        self.outputs = [o.name for o in graph.output]
        self.const = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        attrs: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        direction = attrs.get("direction", b"forward").decode().lower()
        if direction not in ("forward", "reverse", "bidirectional"):
            raise ValueError(f"direction {direction!r}")
        self.reverse = {"forward": [False], "reverse": [True]}.get(direction, [False, True])
        clip = attrs.get("clip")
        self.clip: float | None = None if clip is None else float(clip)
        self.coupled = bool(attrs.get("input_forget", 0))
        self.before = bool(attrs.get("linear_before_reset", 0))
        self.layout = int(attrs.get("layout", 0))
        self.hidden: int | None = attrs.get("hidden_size")
        self.acts = self._activations(attrs)
        self.kept = Kept()

    def _activations(self, attrs: dict[str, Any]) -> list[list[Activation]]:
        """Read the functions of each direction, handing out alphas and betas in order."""
        per, dirs = len(_ACTS[self.op]), len(self.reverse)
        listed = attrs.get("activations")
        names = [n.decode().lower() for n in listed] if listed else []
        names = names or [n.lower() for n in _ACTS[self.op]] * dirs
        if len(names) < per * dirs:
            raise ValueError("too few activations")
        alphas = list(attrs.get("activation_alpha", ()))
        betas = list(attrs.get("activation_beta", ()))

        def take(values: list[float], default: float) -> float:
            if not values:
                return default
            value = float(values.pop(0))
            return default if value == 0 and self.fault == "zero_alpha_default" else value

        found = []
        for name in names[: per * dirs]:
            if name not in _NAMES:
                raise ValueError(f"activation {name!r}")
            alpha = take(alphas, _ALPHA[name]) if name in _ALPHA else 0.0
            beta = take(betas, _BETA[name]) if name in _BETA else 0.0
            if self.fault == "beta_cursor_shared" and name in _ALPHA and name not in _BETA:
                betas = betas[1:]
            if self.fault == "hardsigmoid_sixth" and name == "hardsigmoid" and beta == 0.5:
                alpha = 1 / 6
            found.append(Activation(name, alpha, beta))
        return [found[d * per : (d + 1) * per] for d in range(dirs)]

    def _weights(self, vals: dict[str, Array], feeds: dict[str, Array]) -> tuple[Array, Array]:
        """Return W and R as computed with: kept when both are constant, else from this run."""
        names = (self.slots["W"], self.slots["R"])
        fed = [n in feeds for n in names]
        constant = all(n in self.const for n in names)
        stale = fed[0] if self.fault == "r_override_stale" and constant else any(fed)
        if stale or self.kept.packed is None:
            w, r = (self._wide((vals if stale else self.const)[n]) for n in names)
            tied = names[0] in self.const and not fed[0] and len(w) == 2
            if self.fault == "tied_w_shares_r" and tied and np.array_equal(w[0], w[1]):
                r = np.stack([r[0], r[0]])
            if stale:
                return w, r
            self.kept.packed = (w, r)
        return self.kept.packed

    def _wide(self, x: Array) -> Array:
        """Return x in the type that is computed in."""
        return x.astype(np.float64 if x.dtype == np.float64 else np.float32)

    def run(self, feeds: dict[str, Array]) -> list[Array]:
        """Compute the graph's outputs from the feeds."""
        unknown = set(feeds) - set(self.inputs)
        if unknown:
            raise ValueError(f"not inputs: {sorted(unknown)}")
        vals = self.const | feeds
        missing = [n for n in self.slots.values() if n and n not in vals]
        if missing:
            raise ValueError(f"not fed: {missing}")
        with np.errstate(over="ignore", invalid="ignore"):
            made = self._compute(vals, feeds)
        for slot, name in self.outs.items():
            if name:
                vals[name] = made[slot]
        return [vals[n] for n in self.outputs]

    def _compute(self, vals: dict[str, Array], feeds: dict[str, Array]) -> dict[str, Array]:
        """Run all directions and return every output of the node."""
        fault, kept = self.fault, self.kept

        def get(slot: str) -> Array | None:
            return vals.get(self.slots.get(slot, ""))

        def is_const(slot: str) -> bool:
            name = self.slots.get(slot, "")
            return name in self.const and name not in feeds

        x = vals[self.slots["X"]]
        dtype = x.dtype
        if dtype not in (np.float16, np.float32, np.float64):
            raise NotImplementedError(f"type {dtype}")
        x = self._wide(x)
        w, r = self._weights(vals, feeds)
        hid, dirs = r.shape[2], len(self.reverse)
        gates = _GATES[self.op]
        if self.hidden not in (None, hid) or w.shape[:2] != (dirs, gates * hid):
            raise ValueError("shapes of W and R")
        if self.layout:
            batch, steps = x.shape[:2]
            if fault != "layout1_square_noop" or batch != steps:
                x = x.transpose(1, 0, 2)
        steps, batch = x.shape[:2]

        b = get("B")
        fed_bias = b is not None and self.slots["B"] not in self.const
        if fault == "zero_wb_drops_bias" and b is not None and is_const("B"):
            b = b if np.any(b[:, : gates * hid]) else None
        bias = np.zeros((dirs, 2 * gates * hid), x.dtype) if b is None else self._wide(b)
        peep = get("P")
        h0, c0 = get("initial_h"), get("initial_c")
        h0_slot = "initial_h"
        if fault == "lone_initial_c" and h0 is None and c0 is not None:
            h0, c0, h0_slot = c0, None, "initial_c"
        h_all = self._initial(h0, dirs, batch, hid, x.dtype)
        c_all = self._initial(c0, dirs, batch, hid, x.dtype)
        const_h0 = fault == "const_h0_inplace" and is_const(h0_slot)
        if const_h0 and kept.live_h0 is not None:
            h_all = kept.live_h0
        resumed = h0 is not None and c0 is not None and np.array_equal(kept.last_h, h0)
        if fault == "stream_resume" and resumed and kept.last_c is not None:
            c_all = kept.last_c
        if fault == "shrunk_batch_state" and h0 is None and kept.state:
            old = kept.state
            if batch < old[0][0].shape[0]:
                h_all = np.stack([h[:batch] for h, _ in old])
                c_all = c_all if c0 is not None else np.stack([c[:batch] for _, c in old])

        lens, limits = self._lengths(get("sequence_lens"), steps, batch)
        y = self._y_buffer((steps, dirs, batch, hid), x.dtype)
        ends = []
        kept.state = []
        for d, reverse in enumerate(self.reverse):
            acts = self.acts[d]
            if fault == "half_softplus_cap" and dtype == np.float16:
                acts = [Activation(a.name, a.alpha, a.beta, 65504.0) for a in acts]
            probe = h0 is not None and batch > 0 and not np.any(h_all[d, 0])
            one = Pass(
                w=w[d],
                r=r[d],
                wb=bias[d, : gates * hid],
                rb=bias[d, gates * hid :],
                p=None if peep is None else self._wide(peep)[d],
                acts=acts,
                fed_bias=fed_bias,
                skip_first=fault == "h0_zero_probe" and probe,
                masked=fault == "zero_frame_masked" and get("sequence_lens") is None,
            )
            ends.append(self._direction(one, x, limits[d], reverse, h_all[d], c_all[d], y[:, d]))
            if fault == "reverse_group_padding":
                y[:, d][np.arange(steps)[:, None] >= lens[None, :]] = 0
        y_h = np.stack([h for h, _ in ends])
        y_c = np.stack([c for _, c in ends])
        if const_h0:
            kept.live_h0 = y_h.copy()
        y = y.copy()
        if self.layout:
            y = y.transpose(2, 0, 1, 3)
            y_h, y_c = y_h.transpose(1, 0, 2), y_c.transpose(1, 0, 2)
        kept.last_h = y_h.astype(dtype)
        kept.last_c = np.stack([c for _, c in ends])
        made = {"Y": y, "Y_h": y_h, "Y_c": y_c}
        return {k: np.ascontiguousarray(v.astype(dtype)) for k, v in made.items()}

    def _initial(self, s: Array | None, dirs: int, batch: int, hid: int, dtype: Any) -> Array:
        """Return an initial state as (directions, batch, hidden), zeros when it is not given."""
        if s is None:
            return np.zeros((dirs, batch, hid), dtype)
        s = self._wide(s)
        s = s.transpose(1, 0, 2) if self.layout else s
        if s.shape != (dirs, batch, hid):
            raise ValueError("shape of an initial state")
        return s

    def _y_buffer(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return the buffer for Y, kept between runs of one shape, and zeroed."""
        buffer = self.kept.y.get(shape)
        if buffer is None:
            buffer = self.kept.y[shape] = np.zeros(shape, dtype)
        elif self.fault != "y_padding_dirty":
            buffer.fill(0)
        return buffer

    def _lengths(self, given: Array | None, steps: int, batch: int) -> tuple[Array, list[Array]]:
        """Return the rows' lengths, and for each direction the steps each row is run for."""
        fault = self.fault
        lens = np.full(batch, steps) if given is None else given.astype(np.int64)
        if lens.shape != (batch,) or np.any(lens < 0) or np.any(lens > steps):
            raise ValueError("sequence_lens")
        if fault == "length_plan_by_sum" and given is not None:
            lens = self.kept.plans.setdefault((steps, batch, int(lens.sum())), lens.copy())
        if fault == "equal_lengths_full" and np.unique(lens).size == 1:
            lens = np.full(batch, steps)
        limits = []
        for reverse in self.reverse:
            limit = lens
            if fault == "yh_only_len_by_four" and not reverse and not self.outs.get("Y"):
                limit = np.minimum((lens + 3) // 4 * 4, steps)
            if fault == "reverse_group_padding" and reverse and batch > 4:
                limit = np.array([lens[i // 4 * 4 : i // 4 * 4 + 4].max() for i in range(batch)])
            limits.append(limit)
        return lens, limits

    def _direction(
        self, one: Pass, x: Array, lens: Array, reverse: bool, h0: Array, c0: Array, y: Array
    ) -> tuple[Array, Array]:
        """Run one direction over rows sorted by length; write Y, return the last states."""
        order = np.argsort(-lens, kind="stable")
        h, c = h0[order].copy(), c0[order].copy()
        for s in range(int(lens.max(initial=0))):
            n = int(np.count_nonzero(lens > s))
            rows = order[:n]
            t = lens[rows] - 1 - s if reverse else np.full(n, s)
            xt = x[t, rows]
            new_h, new_c = self._step(one, xt, h[:n], c[:n], s == 0 and one.skip_first)
            if one.masked:
                live = np.any(xt != 0, axis=1, keepdims=True)
                new_h, new_c = np.where(live, new_h, h[:n]), np.where(live, new_c, c[:n])
            h[:n], c[:n] = new_h, new_c
            y[t, rows] = new_h
        self.kept.state.append((h.copy(), c.copy()))
        if self.fault == "unsort_not_inverted":
            return h[order], c[order]
        back = np.argsort(order, kind="stable")
        return h[back], c[back]

    def _step(self, one: Pass, x: Array, h: Array, c: Array, skip: bool) -> tuple[Array, Array]:
        """Advance the given rows by one step and return their new states."""
        hid = h.shape[1]
        xw = x @ one.w.T
        hm = np.zeros_like(h) if skip else h

        def cut(k: int) -> slice:
            return slice(k * hid, (k + 1) * hid)

        def hr(k: int, left: Array) -> Array:
            return left @ one.r[cut(k)].T

        def fire(act: Activation, total: Array, add: Array | float) -> Array:
            if self.clip is None:
                return act(total + add)
            if self.fault == "clip_before_fed_bias" and one.fed_bias:
                return act(np.clip(total, -self.clip, self.clip) + add)
            return act(np.clip(total + add, -self.clip, self.clip))

        both = one.wb + one.rb
        if self.op == "RNN":
            f = one.acts[0]
            if self.fault == "rnn_inplace_blocks" and len(x) == 1 and hid > 8:
                new = hm.copy()
                for start in range(0, hid, 8):
                    e = slice(start, start + 8)
                    new[:, e] = fire(f, xw[:, e] + new @ one.r[e].T, both[e])
                return new, c
            return fire(f, xw + hr(0, hm), both), c
        if self.op == "GRU":
            f, g = one.acts
            z = fire(f, xw[:, cut(0)] + hr(0, hm), both[cut(0)])
            r = fire(f, xw[:, cut(1)] + hr(1, hm), both[cut(1)])
            k = cut(2)
            if not self.before:
                n = fire(g, xw[:, k] + hr(2, r * hm), both[k])
            elif self.fault == "gru_gemv_bias_fold" and len(h) == 1:
                n = fire(g, xw[:, k] + r * (hr(2, hm) + both[k]), 0.0)
            else:
                n = fire(g, xw[:, k] + r * (hr(2, hm) + one.rb[k]), one.wb[k])
            return (1 - z) * n + z * h, c
        f, g, last = one.acts
        p = np.zeros(3 * hid, h.dtype) if one.p is None else one.p
        plain_i = xw[:, cut(0)] + hr(0, hm)
        i = fire(f, plain_i + p[cut(0)] * c, both[cut(0)])
        if not self.coupled:
            fg = fire(f, xw[:, cut(2)] + hr(2, hm) + p[cut(2)] * c, both[cut(2)])
        elif self.fault == "coupled_gate_no_peephole":
            fg = 1 - fire(f, plain_i, both[cut(0)])
        else:
            fg = 1 - i
        new_c = fg * c + i * fire(g, xw[:, cut(3)] + hr(3, hm), both[cut(3)])
        o = fire(f, xw[:, cut(1)] + hr(1, hm) + p[cut(1)] * new_c, both[cut(1)])
        shown = new_c if self.clip is None else np.clip(new_c, -self.clip, self.clip)
        if self.fault == "cell_clipped_in_place":
            new_c = shown
        return o * last(shown), new_c


def prepare(model: bytes, fault: str | None = None) -> Session:
    """Return a session for a model of one LSTM, GRU or RNN node, right or with one fault."""
    return Session(model, fault)


class _Case:
    """A model under construction: a node's tensors and attributes."""

    def __init__(self, op: str, steps: int, batch: int, size: int, hid: int, seed: int = 0, **attrs: Any) -> None:
        self.op, self.attrs = op, attrs
        self.dirs = 2 if attrs.get("direction") == "bidirectional" else 1
        self.steps, self.batch, self.size, self.hid = steps, batch, size, hid
        self.rng = np.random.default_rng(seed + 7)
        gates = _GATES[op] * hid
        self.tensors: dict[str, Array] = {
            "W": self.draw(self.dirs, gates, size),
            "R": self.draw(self.dirs, gates, hid),
        }
        self.outs: tuple[str, ...] = _OUTS if op == "LSTM" else _OUTS[:2]
        self.dtype: Any = np.float32

    def draw(self, *shape: int) -> Array:
        """Return random values of a tensor."""
        return self.rng.uniform(-0.8, 0.8, shape).astype(np.float32)

    def x(self, batch: int | None = None) -> Array:
        """Return a random X."""
        ends = (self.steps, batch or self.batch)
        ends = ends[::-1] if self.attrs.get("layout") else ends
        return self.draw(*ends, self.size).astype(self.dtype)

    def state(self) -> Array:
        """Return a random initial state (layout 0)."""
        return self.draw(self.dirs, self.batch, self.hid)

    def bias(self) -> Array:
        """Return a random B."""
        return self.draw(self.dirs, 2 * _GATES[self.op] * self.hid)

    def model(self, *fed: str, also: tuple[str, ...] = ()) -> bytes:
        """Return the model, with the named tensors as inputs, `also` as overridable ones."""
        used = ["X"] + [s if s in (*self.tensors, *fed) else "" for s in _SLOTS[1:]]
        while not used[-1]:
            used.pop()
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        first = ["batch", "steps"] if self.attrs.get("layout") else ["steps", "batch"]
        inputs = [helper.make_tensor_value_info("X", kind, [*first, self.size])]
        for name in (*fed, *also):
            array = self.tensors.get(name)
            of = TensorProto.INT32 if name == "sequence_lens" else kind
            shape = list(array.shape) if array is not None else ["batch"]
            inputs.append(helper.make_tensor_value_info(name, of, shape))
        initial = [numpy_helper.from_array(a.astype(self.dtype), n) for n, a in self.tensors.items() if n not in fed]
        outs = [o for o in _OUTS if o in self.outs]
        named = [o if o in outs else "" for o in _OUTS]
        node = helper.make_node(self.op, used, named[: named.index(outs[-1]) + 1], hidden_size=self.hid, **self.attrs)
        values = [helper.make_tensor_value_info(o, kind, [None] * (3 + (o == "Y"))) for o in outs]
        graph = helper.make_graph([node], "witness", inputs, values, initial)
        opsets = [helper.make_opsetid("", 14)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def _lens(*values: int) -> Array:
    return np.array(values, np.int32)


Witness = tuple[bytes, list[dict[str, Array]]]


def _session_witness(fault: str) -> Witness | None:
    """Witnesses that need lengths or more than one run."""
    lens = "sequence_lens"
    match fault:
        case "r_override_stale":
            k = _Case("GRU", 3, 2, 3, 4)
            return k.model(also=("R",)), [{"X": k.x(), "R": k.draw(1, 12, 4)}]
        case "shrunk_batch_state":
            k = _Case("RNN", 2, 3, 3, 4)
            return k.model(), [{"X": k.x()}, {"X": k.x(2)}]
        case "y_padding_dirty":
            k = _Case("LSTM", 4, 2, 2, 3)
            return k.model(lens), [{"X": k.x(), lens: v} for v in (_lens(4, 4), _lens(4, 2))]
        case "length_plan_by_sum":
            k = _Case("GRU", 4, 2, 2, 3)
            return k.model(lens), [{"X": k.x(), lens: v} for v in (_lens(4, 2), _lens(2, 4))]
        case "stream_resume":
            k = _Case("LSTM", 3, 2, 2, 3)
            k.tensors |= {"initial_h": k.state(), "initial_c": k.state()}
            first = {"X": k.x(), "initial_h": k.state(), "initial_c": k.state()}
            model = k.model("initial_h", "initial_c")
            h = prepare(model).run(first)[1]
            return model, [first, {"X": k.x(), "initial_h": h, "initial_c": k.state()}]
        case "const_h0_inplace":
            k = _Case("GRU", 3, 2, 2, 3)
            k.tensors["initial_h"] = k.state()
            return k.model(), [{"X": k.x()}, {"X": k.x()}]
        case "unsort_not_inverted":
            k = _Case("LSTM", 4, 3, 2, 3)
            return k.model(lens), [{"X": k.x(), lens: _lens(3, 2, 4)}]
        case "reverse_group_padding":
            k = _Case("RNN", 4, 5, 2, 3, direction="reverse")
            return k.model(lens), [{"X": k.x(), lens: _lens(4, 2, 3, 4, 1)}]
        case "equal_lengths_full":
            k = _Case("GRU", 5, 2, 2, 3)
            return k.model(lens), [{"X": k.x(), lens: _lens(3, 3)}]
        case "yh_only_len_by_four":
            k = _Case("LSTM", 7, 2, 2, 3)
            k.outs = ("Y_h",)
            return k.model(lens), [{"X": k.x(), lens: _lens(7, 2)}]
    return None


def witness(fault: str) -> Witness:
    """Return a legal model and the feeds of a session's runs; the last run shows the fault."""
    made = _session_witness(fault)
    if made is not None:
        return made
    match fault:
        case "zero_frame_masked":
            k = _Case("RNN", 4, 2, 3, 3)
            x = k.x()
            x[2, 1] = 0
            return k.model(), [{"X": x}]
        case "beta_cursor_shared":
            acts: Any = {"activation_alpha": [0.1, 0.3], "activation_beta": [0.2]}
            k = _Case("GRU", 3, 2, 2, 3, activations=["LeakyRelu", "HardSigmoid"], **acts)
        case "zero_alpha_default":
            acts = {"activation_alpha": [0.3, 0.5], "activation_beta": [0.0, 0.1]}
            k = _Case("GRU", 3, 2, 2, 3, activations=["HardSigmoid", "Affine"], **acts)
        case "hardsigmoid_sixth":
            k = _Case("LSTM", 3, 2, 2, 3, activations=["HardSigmoid", "Tanh", "Softsign"])
        case "half_softplus_cap":
            k = _Case("RNN", 2, 2, 2, 3, activations=["Softplus"])
            k.dtype = np.float16
            k.tensors["B"] = k.bias() + 8
        case "clip_before_fed_bias":
            k = _Case("GRU", 3, 2, 2, 3, clip=0.5)
            k.tensors["B"] = k.bias()
            return k.model("B"), [{"X": k.x(), "B": k.tensors["B"]}]
        case "cell_clipped_in_place":
            k = _Case("LSTM", 4, 2, 2, 3, clip=0.75)
            k.tensors["initial_c"] = 4 * k.state()
        case "coupled_gate_no_peephole":
            k = _Case("LSTM", 3, 2, 2, 3, input_forget=1)
            k.tensors |= {"P": k.draw(1, 9), "initial_c": k.state()}
        case "lone_initial_c":
            k = _Case("LSTM", 3, 2, 2, 3)
            k.tensors["initial_c"] = k.state()
        case "gru_gemv_bias_fold":
            k = _Case("GRU", 3, 1, 2, 3, linear_before_reset=1)
            k.tensors["B"] = k.bias()
        case "h0_zero_probe":
            k = _Case("LSTM", 3, 2, 2, 3)
            k.tensors["initial_h"] = k.state()
            k.tensors["initial_h"][0, 0] = 0
        case "rnn_inplace_blocks":
            k = _Case("RNN", 3, 1, 3, 11)
        case "tied_w_shares_r":
            k = _Case("GRU", 3, 2, 2, 3, direction="bidirectional")
            k.tensors["W"][1] = k.tensors["W"][0]
        case "layout1_square_noop":
            k = _Case("LSTM", 3, 3, 2, 4, layout=1)
        case "zero_wb_drops_bias":
            k = _Case("RNN", 3, 2, 2, 3)
            k.tensors["B"] = k.bias()
            k.tensors["B"][:, :3] = 0
        case _:
            raise KeyError(fault)
    return k.model(), [{"X": k.x()}]
