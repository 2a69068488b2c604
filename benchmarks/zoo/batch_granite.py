"""Granite: twenty-five faults of a runtime's LSTM, GRU and RNN, written blind.

How it was written.  The author had the operator documents of ONNX (LSTM, GRU, RNN of versions 1 to 22), the schemas of
the installed onnx package, and a look at public issue threads for the flavour of what goes wrong in practice: ONNX
Runtime (clip missing before the LSTM's last activation, results that change from run to run), OpenVINO (layout=1),
onnx-mlir (a state updated in place while the next product still reads it), onnx-tensorflow (one initial state without
the other, reversal of padded rows), MNN and OpenCV (state kept between two forwards), torch-mlir (batch taken from
the initial state), tract, ncnn.  The author had seen none of the project's tables of faults, its axes, profiles, cases
or results.  All faults are deterministic, and each leaves most models untouched.

How the right kernel behaves where ONNX is silent or loose:

* Y past a row's length is 0, in either direction; Y_h and Y_c are the states after the row's last valid step, and of a
  row of length 0 its initial states (also for T = 0).  A reverse direction reverses the first `length` steps of a row.
* input_forget couples the gates as forget = 1 - input; the forget gate's own weights and peephole are then unused.
* clip bounds the argument of every activation, also of the LSTM's h(Ct); the cell that is carried on stays unclipped.
* activation_alpha and activation_beta are consumed in order by the activations that have such a coefficient (alpha:
  Affine, LeakyRelu, ThresholdedRelu, ScaledTanh, HardSigmoid, Elu; beta: Affine, ScaledTanh, HardSigmoid), all of the
  forward direction first; what the lists don't cover has the default of the ONNX operator (Affine 1 and 0, ScaledTanh 1
  and 1).  Names of activations are compared without regard to case.
* Versions 1 and 3 return Y whenever it is named, whatever output_sequence says; the misspelt default "foward" of GRU-1
  is forward.
* float64 is computed in float64, other types in float32, and only the outputs are rounded to the type of X.
* An initializer that is a graph input too may be overridden by a feed, in each run anew.

Graphs inside of nodes (If, Loop, Scan), sparse or external initializers raise NotImplementedError; model-local functions
are inlined.
"""

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

WRITTEN = "2026-11-25"

FAULTS = {
    "lstm-coupled-output-peephole": (
        "With input_forget=1 the fused gate kernel adds the output gate's peephole of the previous cell, not of the new one."
    ),
    "lstm-clip-in-place-without-yc": (
        "When Y_c is not asked for, the cell is clipped in place before its activation, and the clipped cell is carried to the next step."
    ),
    "lstm-bfloat16-cell-carry": (
        "For bfloat16 the cell is stored between steps in a buffer of the tensors' type, so that small increments of a large cell are lost."
    ),
    "lstm-square-state-layout": (
        "With layout=1 an initial state whose first dimension equals num_directions is taken for one of layout 0, which is wrong when "
        "batch and directions are both 2."
    ),
    "lstm-yc-left-sorted": "Rows are sorted by falling length for packed steps; Y and Y_h are put back in order afterwards, Y_c is not.",
    "lstm-yc-gets-hidden": "The state outputs are filled in the order of those present: with Y_h absent, Y_c receives the hidden state.",
    "lstm-pack-keyed-by-w": (
        "Packed constant weights are cached by the name of W alone, so a second LSTM node that shares W and has another R runs with the"
        " first one's R."
    ),
    "lstm-length-byte": "The plan of valid steps stores each row's length in an unsigned byte, so lengths from 256 on wrap around.",
    "lstm-chunk-initial-c": (
        "Batches above 16 rows are split over threads in chunks of 16; initial_h is advanced to the chunk's rows, initial_c is not."
    ),
    "lstm-last-slice-is-yh": (
        "A graph rewrite replaces the last time step picked out of Y (Slice or Gather of -1) by Y_h, guarded against sequence_lens and "
        "layout but not against a reverse direction."
    ),
    "gru-lbr-forward-only": (
        "linear_before_reset isn't handed to the backward cell of a bidirectional GRU, which uses the default formula."
    ),
    "gru-one-step-batch-major": (
        "With layout=1 and a single time step Y is reshaped rather than transposed, which mixes rows and directions of a bidirectional GRU."
    ),
    "gru-lens-plan-cached": (
        "The plan of valid steps made from sequence_lens in a session's first run is kept for later runs of the same sequence length "
        "and batch size."
    ),
    "gru-state-buffer-kept": (
        "Without initial_h and without Y the state is updated in a zeroed buffer kept by the session, which is not zeroed again in the "
        "next run of the same shape."
    ),
    "gru-blocked-candidate": (
        "The candidate gate (linear_before_reset=0) is computed in blocks of 32 hidden units and each block updates H in place, so "
        "later blocks multiply with partly new state."
    ),
    "gru-equal-lengths-full": (
        "When all of sequence_lens are equal the kernel believes there is no padding and runs all T steps, though the common length is "
        "less than T."
    ),
    "gru-weights-guessed-orientation": (
        "The importer transposes a constant W that looks stored as [input, gates*hidden]; with input_size equal to 3*hidden_size it "
        "transposes a right one."
    ),
    "gru-beta-missing-zero": (
        "When activation_alpha is given and activation_beta is not, the missing betas are 0 instead of the activations' defaults."
    ),
    "rnn-tail-clip-after": (
        "In the vector kernel (8 lanes, hidden_size above 8) the scalar tail clips the activation's result instead of its argument."
    ),
    "rnn-twin-nodes-merged": (
        "Common-subexpression elimination compares an RNN's inputs and its int and string attributes only, so two nodes that differ in "
        "clip or coefficients become one."
    ),
    "rnn-double-weights-narrowed": "Constant float64 W and R are packed through float32 when the model is loaded.",
    "rnn-half-bias-overflow": (
        "For float16 a constant B's two halves are added in float16 when the model is loaded, and overflow to infinity although the "
        "whole argument is small."
    ),
    "rnn-y-yh-shared": (
        "For a single time step Y_h shares Y's memory, and a unary operator that is Y's only reader and works in place changes Y_h too."
    ),
    "rnn-scaledtanh-literal": (
        "ScaledTanh is evaluated as (1 - e^-2x)/(1 + e^-2x), which is NaN for arguments so negative that the exponential overflows."
    ),
    "rnn-v1-yh-last-slice": "In version 1 with output_sequence=1, Y_h is taken from Y's last time step, whatever the direction.",
}

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_F32 = {key: float(np.float32(value)) for key, value in (("0.01", 0.01), ("0.2", 0.2))}
_ALPHA = {
    "affine": 1.0,
    "leakyrelu": _F32["0.01"],
    "thresholdedrelu": 1.0,
    "scaledtanh": 1.0,
    "hardsigmoid": _F32["0.2"],
    "elu": 1.0,
}
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}
_DOMAINS = ("", "ai.onnx")
_IN_PLACE = {"Abs", "Exp", "Identity", "Neg", "Relu", "Sigmoid", "Sqrt", "Tanh"}


def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _literal_tanh(x):
    e = np.exp(-2 * x)
    return (1 - e) / (1 + e)


def _activation(name, a, b, fault):
    """The function named `name` with coefficients a and b."""
    tanh = _literal_tanh if fault == "rnn-scaledtanh-literal" else np.tanh
    functions = {
        "relu": lambda x: np.maximum(x, 0),
        "tanh": np.tanh,
        "sigmoid": _sigmoid,
        "affine": lambda x: a * x + b,
        "leakyrelu": lambda x: np.where(x >= 0, x, a * x),
        "thresholdedrelu": lambda x: np.where(x < a, np.zeros_like(x), x),
        "scaledtanh": lambda x: a * tanh(b * x),
        "hardsigmoid": lambda x: np.clip(a * x + b, 0, 1),
        "elu": lambda x: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))),
        "softsign": lambda x: x / (1 + np.abs(x)),
        "softplus": lambda x: np.logaddexp(x, np.zeros_like(x)),
    }
    if name not in functions:
        raise NotImplementedError(f"activation {name!r}")
    return functions[name]


class _Layer:
    """An LSTM, GRU or RNN node with its attributes read."""

    def __init__(self, node, opset, fault):
        self.node, self.op = node, node.op_type
        self.fault = fault if fault is not None and fault.startswith(self.op.lower() + "-") else None
        self.version = onnx.defs.get_schema(self.op, opset).since_version
        if any(attribute.ref_attr_name for attribute in node.attribute):
            raise NotImplementedError("attribute of a function")
        self.attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        known = {"activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size"}
        known |= {"layout"} if self.version >= 14 else set()
        known |= {"output_sequence"} if self.version < 7 else set()
        known |= {"input_forget"} if self.op == "LSTM" else set()
        known |= {"linear_before_reset"} if self.op == "GRU" and self.version >= 3 else set()
        if set(self.attributes) - known:
            raise NotImplementedError(f"attributes {sorted(set(self.attributes) - known)} of {self.op}-{self.version}")
        direction = self.attributes.get("direction", b"forward").decode().lower()
        if direction not in ("forward", "foward", "reverse", "bidirectional"):
            raise NotImplementedError(f"direction {direction!r}")
        self.reverse = {"reverse": [True], "bidirectional": [False, True]}.get(direction, [False])
        self.layout = self.attributes.get("layout", 0)
        if self.layout not in (0, 1):
            raise NotImplementedError(f"layout {self.layout}")
        self.coupled = self.attributes.get("input_forget", 0) != 0
        self.lbr = self.attributes.get("linear_before_reset", 0) != 0
        self.clip = self.attributes.get("clip")
        if self.clip is not None and not self.clip >= 0:
            raise NotImplementedError(f"clip {self.clip}")
        self.functions = self._functions()

    def _functions(self):
        """The activation functions of each direction."""
        per = len(_DEFAULTS[self.op])
        names = [name.decode().lower() for name in self.attributes.get("activations", [])]
        names = names or [name.lower() for name in _DEFAULTS[self.op]] * len(self.reverse)
        if len(names) != per * len(self.reverse):
            raise NotImplementedError(f"{len(names)} activations")
        alphas, betas = (
            list(self.attributes.get("activation_alpha", [])),
            list(self.attributes.get("activation_beta", [])),
        )
        if self.fault == "gru-beta-missing-zero" and alphas and not betas:
            betas = [0.0] * len(names)
        functions = []
        for name in names:
            a, b = _ALPHA.get(name), _BETA.get(name)
            a = alphas.pop(0) if a is not None and alphas else a
            b = betas.pop(0) if b is not None and betas else b
            functions.append(_activation(name, a, b, self.fault))
        return [functions[per * d : per * (d + 1)] for d in range(len(self.reverse))]

    def output(self, index):
        return self.node.output[index] if index < len(self.node.output) else ""

    def bounded(self, x):
        return x if self.clip is None else np.clip(x, -self.clip, self.clip)

    def apply(self, function, x):
        """The activation of the clipped argument."""
        if self.fault == "rnn-tail-clip-after" and x.shape[-1] > 8 and x.shape[-1] % 8:
            body = x.shape[-1] // 8 * 8
            return np.concatenate([function(self.bounded(x[:, :body])), self.bounded(function(x[:, body:]))], axis=-1)
        return function(self.bounded(x))

    def run(self, tensors, constants, cache):
        """Y, Y_h and Y_c (None unless an LSTM); `constants` names the tensors known when the model was loaded."""
        names = [*self.node.input, *[""] * (8 - len(self.node.input))]
        x, w, r, b, lens, h0, c0, p = (tensors[name] if name else None for name in names)
        if x is None or w is None or r is None:
            raise ValueError("X, W or R is missing")
        fault, dtype, d_count = self.fault, x.dtype, len(self.reverse)
        work = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)
        if fault == "rnn-double-weights-narrowed":
            w = w.astype(np.float32) if names[1] in constants else w
            r = r.astype(np.float32) if names[2] in constants else r
        if (
            fault == "gru-weights-guessed-orientation"
            and names[1] in constants
            and w.ndim == 3
            and w.shape[1] == w.shape[2]
        ):
            w = w.transpose(0, 2, 1)
        if fault == "lstm-pack-keyed-by-w" and names[1] in constants and names[2] in constants:
            packed = cache.setdefault(("pack", names[1]), r)
            r = packed if packed.shape == r.shape else r
        bias = None if b is None else self._bias(b, work, names[3] in constants)
        x, w, r = x.astype(work), w.astype(work), r.astype(work)
        if x.ndim != 3 or w.ndim != 3 or r.ndim != 3:
            raise ValueError("X, W and R have three dimensions")
        x = x.transpose(1, 0, 2) if self.layout else x
        (t, n, i), h = x.shape, r.shape[2]
        gates = _GATES[self.op]
        self._check("W", w, (d_count, gates * h, i))
        self._check("R", r, (d_count, gates * h, h))
        if self.attributes.get("hidden_size", h) != h:
            raise ValueError(f"hidden_size is {self.attributes['hidden_size']}, R's {h}")
        lens = np.full(n, t, np.int64) if lens is None else self._lengths(lens, t, n, cache)
        start = np.zeros((d_count, n, h), work)
        h0, c0 = (start if state is None else self._state(state, (d_count, n, h), work) for state in (h0, c0))
        keeps = fault == "gru-state-buffer-kept" and not names[5] and not self.output(0)
        if keeps:
            h0 = cache.get(("state", id(self), h0.shape), h0)
        if fault == "lstm-chunk-initial-c" and n > 16:
            c0 = c0[:, np.arange(n) % 16]
        if p is not None:
            self._check("P", p, (d_count, 3 * h))
            p = p.astype(work)
        y = np.zeros((t, d_count, n, h), work)
        y_h, y_c = np.zeros((d_count, n, h), work), np.zeros((d_count, n, h), work)
        steps, rows = np.arange(t)[:, None], np.arange(n)[None, :]
        for d, reverse in enumerate(self.reverse):
            valid = steps < lens
            order = np.where(valid, lens - 1 - steps, steps) if reverse else np.broadcast_to(steps, (t, n))
            wb, rb = (np.zeros((2, gates * h), work) if bias is None else bias[d]).reshape(2, gates * h)
            cell = _Cell(self, d, r[d], rb, None if p is None else p[d].reshape(3, h), dtype)
            hidden, state = h0[d], c0[d]
            out = np.zeros((t, n, h), work)
            for step in range(t):
                live = valid[step][:, None]
                gx = x[order[step], rows[0]] @ w[d].T + wb
                new_hidden, new_state = cell.step(gx, hidden, state)
                hidden, state = np.where(live, new_hidden, hidden), np.where(live, new_state, state)
                out[step] = np.where(live, hidden, 0)
            y[order, d, rows] = out
            y_h[d], y_c[d] = hidden, state
        if keeps:
            cache[("state", id(self), h0.shape)] = y_h
        if fault == "rnn-v1-yh-last-slice" and self.version == 1 and self.attributes.get("output_sequence", 0) and t:
            y_h = y[-1]
        if fault == "lstm-yc-left-sorted":
            y_c = y_c[:, np.argsort(-lens, kind="stable")]
        y, y_h, y_c = (array.astype(dtype) for array in (y, y_h, y_c))
        if self.layout:
            one = fault == "gru-one-step-batch-major" and t == 1
            y = y.reshape(n, t, d_count, h) if one else y.transpose(2, 0, 1, 3)
            y_h, y_c = y_h.transpose(1, 0, 2), y_c.transpose(1, 0, 2)
        if fault == "lstm-yc-gets-hidden" and not self.output(1):
            y_c = y_h
        return y, y_h, y_c if self.op == "LSTM" else None

    @staticmethod
    def _check(name, array, shape):
        if array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, not {shape}")

    def _bias(self, b, work, constant):
        """B as [directions, 2 * gates * hidden] in the type of the computation."""
        if b.ndim != 2 or b.shape[0] != len(self.reverse) or b.shape[1] % (2 * _GATES[self.op]):
            raise ValueError(f"B has shape {b.shape}")
        if self.fault == "rnn-half-bias-overflow" and constant and b.dtype == np.float16:
            half = b.shape[1] // 2
            b = np.concatenate([b[:, :half] + b[:, half:], np.zeros_like(b[:, half:])], axis=1)
        return b.astype(work)

    def _lengths(self, lens, t, n, cache):
        self._check("sequence_lens", lens, (n,))
        lens = lens.astype(np.int64)
        if ((lens < 0) | (lens > t)).any():
            raise ValueError(f"sequence_lens {lens} for {t} steps")
        if self.fault == "lstm-length-byte":
            lens = lens & 255
        if self.fault == "gru-lens-plan-cached":
            lens = cache.setdefault(("lens", id(self), t, n), lens)
        if self.fault == "gru-equal-lengths-full" and n and lens.min() == lens.max() > 0:
            lens = np.full(n, t, np.int64)
        return lens

    def _state(self, state, shape, work):
        d_count, n, h = shape
        self._check("an initial state", state, (n, d_count, h) if self.layout else shape)
        swap = self.layout and not (self.fault == "lstm-square-state-layout" and state.shape[0] == d_count)
        return (state.transpose(1, 0, 2) if swap else state).reshape(shape).astype(work)


class _Cell:
    """One direction's step: from the gates' input part, hidden and cell to the new hidden and cell."""

    def __init__(self, layer, d, r, rb, p, dtype):
        self.layer, self.functions, self.r, self.rb, self.p, self.dtype = layer, layer.functions[d], r, rb, p, dtype
        self.size = r.shape[1]
        self.lbr = layer.lbr and not (layer.fault == "gru-lbr-forward-only" and d == 1)
        self.step = {"LSTM": self.lstm, "GRU": self.gru, "RNN": self.rnn}[layer.op]

    def parts(self, array):
        return (
            [array[..., k : k + self.size] for k in range(0, array.shape[-1], self.size)] if self.size else [array] * 4
        )

    def rnn(self, gx, hidden, state):
        return self.layer.apply(self.functions[0], gx + hidden @ self.r.T + self.rb), state

    def gru(self, gx, hidden, state):
        (f, g), apply, size = self.functions, self.layer.apply, self.size
        xz, xr, xh = self.parts(gx)[:3]
        bz, br, bh = self.parts(self.rb)[:3]
        rz, rr, rh = self.r[:size], self.r[size : 2 * size], self.r[2 * size :]
        z = apply(f, xz + hidden @ rz.T + bz)
        reset = apply(f, xr + hidden @ rr.T + br)
        if self.lbr:
            candidate = apply(g, xh + reset * (hidden @ rh.T + bh))
        elif self.layer.fault == "gru-blocked-candidate":
            mixed = hidden.copy()
            for k in range(0, size, 32):
                block = slice(k, k + 32)
                candidate = apply(g, (xh + bh)[:, block] + (reset * mixed) @ rh[block].T)
                mixed[:, block] = (1 - z[:, block]) * candidate + z[:, block] * mixed[:, block]
            return mixed, state
        else:
            candidate = apply(g, xh + (reset * hidden) @ rh.T + bh)
        return (1 - z) * candidate + z * hidden, state

    def lstm(self, gx, hidden, state):
        (f, g, h), apply, fault, p = self.functions, self.layer.apply, self.layer.fault, self.p
        gi, go, gf, gc = self.parts(gx + hidden @ self.r.T + self.rb)[:4]
        coupled = self.layer.coupled
        i = apply(f, gi if p is None else gi + p[0] * state)
        forget = 1 - i if coupled else apply(f, gf if p is None else gf + p[2] * state)
        new = forget * state + i * apply(g, gc)
        seen = state if fault == "lstm-coupled-output-peephole" and coupled else new
        o = apply(f, go if p is None else go + p[1] * seen)
        if fault == "lstm-clip-in-place-without-yc" and not self.layer.output(2):
            new = self.layer.bounded(new)
        if fault == "lstm-bfloat16-cell-carry" and self.dtype == ml_dtypes.bfloat16:
            new = new.astype(ml_dtypes.bfloat16).astype(new.dtype)
        return o * apply(h, new), new


class _Session:
    def __init__(self, model, fault):
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
        graph = model.graph
        if graph.sparse_initializer or any(
            tensor.data_location == TensorProto.EXTERNAL for tensor in graph.initializer
        ):
            raise NotImplementedError("sparse or external initializers")
        self.model, self.graph, self.fault, self.cache = model, graph, fault, {}
        self.initializers = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.inputs = [value.name for value in graph.input]
        self.constants = set(self.initializers) - set(self.inputs)
        opset = next((entry.version for entry in model.opset_import if entry.domain in _DOMAINS), 1)
        self.steps = []
        for node in graph.node:
            if node.op_type in _GATES and node.domain in _DOMAINS:
                self.steps.append((node, _Layer(node, opset, fault)))
            else:
                self.steps.append((node, self._reference(node)))
        self.readers = {}
        for name in [name for node in graph.node for name in node.input] + [value.name for value in graph.output]:
            self.readers[name] = self.readers.get(name, 0) + 1

    def _reference(self, node):
        """onnx.reference's evaluator of one node that isn't recurrent."""
        if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
            raise NotImplementedError(f"{node.op_type} with a graph inside")
        inputs = [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(node.input) if name]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "node", inputs, outputs)
        single = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        try:
            return ReferenceEvaluator(single)
        except Exception as error:
            raise NotImplementedError(f"{node.op_type} isn't known to onnx.reference") from error

    def run(self, feeds):
        with np.errstate(all="ignore"):
            return self._run(feeds)

    def _run(self, feeds):
        if set(feeds) - set(self.inputs):
            raise ValueError(f"feeds of no input: {sorted(set(feeds) - set(self.inputs))}")
        tensors = {**self.initializers, **{name: np.asarray(value) for name, value in feeds.items()}}
        if any(name not in tensors for name in self.inputs):
            raise ValueError(f"inputs without a feed: {[name for name in self.inputs if name not in tensors]}")
        if self.model.ir_version < 4:
            self.constants = set(self.initializers) - set(feeds)
        made, merged = {}, {}
        for node, worker in self.steps:
            if isinstance(worker, _Layer):
                twin = self._twin(worker)
                results = merged.get(twin) if twin else None
                results = worker.run(tensors, self.constants, self.cache) if results is None else results
                if twin:
                    merged[twin] = results
                made[worker.output(0)] = (worker, results)
                tensors.update({name: result for name, result in zip(node.output, results, strict=False) if name})
                continue
            names = [name for name in node.output if name]
            results = self._last_step(node, tensors, made)
            if results is None:
                results = worker.run(None, {name: tensors[name] for name in node.input if name})
            tensors.update(zip(names, results, strict=True))
            self._overwrite(node, tensors, made)
        return [tensors[value.name] for value in self.graph.output]

    def _twin(self, layer):
        """What the merging of equal RNN nodes compares, or None."""
        if self.fault != "rnn-twin-nodes-merged" or layer.op != "RNN":
            return None
        kept = {
            name: value
            for name, value in layer.attributes.items()
            if name not in ("clip", "activation_alpha", "activation_beta")
        }
        return repr((list(layer.node.input), sorted(kept.items())))

    def _last_step(self, node, tensors, made):
        """The rewrite of an LSTM's last time step to its Y_h, or None where it doesn't apply."""
        if (
            self.fault != "lstm-last-slice-is-yh"
            or node.op_type not in ("Slice", "Gather")
            or node.input[0] not in made
        ):
            return None
        layer, (_, y_h, _) = made[node.input[0]]
        if layer.op != "LSTM" or layer.layout or (len(layer.node.input) > 4 and layer.node.input[4]):
            return None
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        if node.op_type == "Gather":
            index = tensors[node.input[1]]
            picks = (
                node.input[1] in self.constants
                and index.size == 1
                and index.item() == -1
                and attributes.get("axis", 0) == 0
            )
            return [y_h.reshape(index.shape + y_h.shape)] if picks else None
        given = [tensors[name].tolist() for name in node.input[1:] if name in self.constants]
        if len(node.input) == 1:
            given = [list(attributes["starts"]), list(attributes["ends"]), list(attributes.get("axes", [0]))]
        picks = len(given) >= 3 and given[0] == [-1] and given[2] == [0] and given[1][0] >= len(tensors[node.input[0]])
        return [y_h[None]] if picks and given[3:] in ([], [[1]]) else None

    def _overwrite(self, node, tensors, made):
        """A unary operator in place on a single step's Y, whose memory is Y_h's too."""
        if self.fault != "rnn-y-yh-shared" or node.op_type not in _IN_PLACE or node.input[0] not in made:
            return
        layer, (y, y_h, _) = made[node.input[0]]
        if layer.op == "RNN" and y.shape[layer.layout] == 1 and self.readers[node.input[0]] == 1 and layer.output(1):
            tensors[layer.output(1)] = tensors[node.output[0]].reshape(y_h.shape)


def prepare(model, fault=None):
    """A session for a serialized model, of the right kernel or of one with a fault of FAULTS."""
    if fault is not None and fault not in FAULTS:
        raise ValueError(f"no fault {fault!r}")
    return _Session(onnx.load_model_from_string(model), fault)


def _weights(op, d, i, h, seed, scale=0.6, dtype=np.float32):
    rng, g = np.random.default_rng(seed), _GATES[op]
    shapes = {"W": (d, g * h, i), "R": (d, g * h, h), "B": (d, 2 * g * h)}
    return {name: (scale * rng.standard_normal(shape)).astype(dtype) for name, shape in shapes.items()}


def _values(seed, *shape, scale=1.0, dtype=np.float32):
    return (scale * np.random.default_rng(1000 + seed).standard_normal(shape)).astype(dtype)


def _model(nodes, feeds, outputs, constants, opset=22):
    """A serialized model: inputs as in `feeds`, outputs as name -> rank of the type of X."""
    kind = helper.np_dtype_to_tensor_dtype(feeds["X"].dtype)
    inputs = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()
    ]
    made = [helper.make_tensor_value_info(name, kind, [None] * rank) for name, rank in outputs.items()]
    initializers = [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in constants.items()]
    ir = 3 if opset < 9 else 10
    if ir == 3:
        inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in initializers]
    graph = helper.make_graph(nodes, "witness", inputs, made, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir).SerializeToString()


def _one(op, feeds, constants, attributes, outputs=("Y", "Y_h"), opset=22):
    """A model of one node; feeds and constants are named as in the operator's document."""
    order = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"]
    names = [name if name in feeds or name in constants else "" for name in order]
    while not names[-1]:
        names.pop()
    node = helper.make_node(op, names, list(outputs), **attributes)
    return _model([node], feeds, {name: 4 if name == "Y" else 3 for name in outputs if name}, constants, opset)


def _lens(*lengths):
    return np.array(lengths, np.int32)


def _witness_lstm(name):
    weights, outputs, opset, attributes, both = (
        _weights("LSTM", 1, 3, 4, 1),
        ("Y", "Y_h", "Y_c"),
        22,
        {"hidden_size": 4},
        "bidirectional",
    )
    feeds = {"X": _values(1, 5, 3, 3)}
    if name == "coupled-output-peephole":
        weights["P"] = _values(2, 1, 12, scale=2.0)
        attributes["input_forget"] = 1
    elif name == "clip-in-place-without-yc":
        feeds["initial_c"] = _values(3, 1, 3, 4, scale=2.0)
        outputs, opset, attributes["clip"] = ("Y", "Y_h"), 7, 0.5
    elif name == "bfloat16-cell-carry":
        half = ml_dtypes.bfloat16
        weights = {"W": np.zeros((1, 8, 1), half), "R": np.zeros((1, 8, 2), half), "B": np.zeros((1, 16), half)}
        weights["B"][0, :8] = [12, 12, 0, 0, 12, 12, 12, 6]
        feeds, outputs, attributes = {"X": np.zeros((400, 1, 1), half)}, ("", "Y_h", "Y_c"), {"hidden_size": 2}
    elif name == "square-state-layout":
        weights = _weights("LSTM", 2, 3, 4, 4)
        feeds = {"X": _values(4, 2, 3, 3), "initial_h": _values(5, 2, 2, 4), "initial_c": _values(6, 2, 2, 4)}
        opset, attributes = 14, {"hidden_size": 4, "direction": both, "layout": 1}
    elif name == "yc-left-sorted":
        feeds["sequence_lens"] = _lens(2, 5, 3)
        attributes["direction"] = "reverse"
    elif name == "yc-gets-hidden":
        outputs = ("Y", "", "Y_c")
    elif name == "pack-keyed-by-w":
        constants = {"W": weights["W"], "R": weights["R"], "R2": _weights("LSTM", 1, 3, 4, 7)["R"]}
        first = helper.make_node("LSTM", ["X", "W", "R"], ["Y"], hidden_size=4)
        second = helper.make_node("LSTM", ["X", "W", "R2"], ["", "Y_h"], hidden_size=4, direction="reverse")
        return _model([first, second], feeds, {"Y": 4, "Y_h": 3}, constants, 14), [feeds]
    elif name == "length-byte":
        feeds = {"X": _values(8, 260, 2, 3), "sequence_lens": _lens(258, 7)}
    elif name == "chunk-initial-c":
        feeds = {
            "X": _values(9, 2, 19, 3),
            "initial_h": _values(10, 1, 19, 4),
            "initial_c": _values(11, 1, 19, 4, scale=2.0),
        }
        feeds.update({key: weights.pop(key) for key in ("W", "R")})
    elif name == "last-slice-is-yh":
        constants = {**weights, "starts": np.array([-1]), "ends": np.array([2**31 - 1]), "axes": np.array([0])}
        layer = helper.make_node("LSTM", ["X", "W", "R", "B"], ["all"], hidden_size=4, direction="reverse")
        pick = helper.make_node("Slice", ["all", "starts", "ends", "axes"], ["last"])
        squeeze = helper.make_node("Squeeze", ["last", "axes"], ["out"])
        return _model([layer, pick, squeeze], feeds, {"out": 3}, constants, 14), [feeds]
    return _one("LSTM", feeds, weights, attributes, outputs, opset), [feeds]


def _witness_gru(name):
    weights, outputs, opset, attributes = _weights("GRU", 1, 3, 4, 21), ("Y", "Y_h"), 22, {"hidden_size": 4}
    feeds = {"X": _values(21, 5, 2, 3)}
    runs = [feeds]
    if name == "lbr-forward-only":
        weights, opset = _weights("GRU", 2, 3, 4, 22, 1.0), 3
        attributes.update(direction="bidirectional", linear_before_reset=1)
    elif name == "one-step-batch-major":
        weights, opset = _weights("GRU", 2, 3, 4, 23), 14
        runs = [{"X": _values(23, 3, 1, 3)}]
        attributes.update(direction="bidirectional", layout=1)
    elif name == "lens-plan-cached":
        runs = [
            {"X": _values(24, 5, 2, 3), "sequence_lens": _lens(2, 5)},
            {"X": _values(25, 5, 2, 3), "sequence_lens": _lens(4, 1)},
        ]
    elif name == "state-buffer-kept":
        runs, outputs = [{"X": _values(26, 3, 2, 3)}, {"X": _values(27, 3, 2, 3)}], ("", "Y_h")
    elif name == "blocked-candidate":
        weights, runs, attributes = _weights("GRU", 1, 3, 40, 28, 0.4), [{"X": _values(28, 4, 2, 3)}], {}
    elif name == "equal-lengths-full":
        runs, opset = [{"X": _values(29, 6, 2, 3), "sequence_lens": _lens(3, 3)}], 7
    elif name == "weights-guessed-orientation":
        weights, runs, attributes = _weights("GRU", 1, 6, 2, 30), [{"X": _values(30, 4, 2, 6)}], {"hidden_size": 2}
    elif name == "beta-missing-zero":
        attributes.update(activations=["HardSigmoid", "Tanh"], activation_alpha=[0.25])
    return _one("GRU", runs[0], weights, attributes, outputs, opset), runs


def _witness_rnn(name):
    weights, outputs, opset, attributes = _weights("RNN", 1, 3, 4, 41), ("Y", "Y_h"), 22, {"hidden_size": 4}
    feeds = {"X": _values(41, 5, 2, 3)}
    if name == "tail-clip-after":
        weights, attributes = _weights("RNN", 1, 3, 11, 42), {"hidden_size": 11, "clip": 0.5}
    elif name == "twin-nodes-merged":
        plain = {"activations": ["LeakyRelu"], "hidden_size": 4}
        first = helper.make_node("RNN", ["X", "W", "R"], ["Y"], activation_alpha=[0.1], **plain)
        second = helper.make_node("RNN", ["X", "W", "R"], ["", "Y_h"], activation_alpha=[0.5], **plain)
        constants = {key: weights[key] for key in ("W", "R")}
        return _model([first, second], feeds, {"Y": 4, "Y_h": 3}, constants, 14), [feeds]
    elif name == "double-weights-narrowed":
        big = float(2**25)
        feeds, attributes = {"X": np.ones((2, 1, 1))}, {"hidden_size": 1}
        weights = {"W": np.full((1, 1, 1), big + 1), "R": np.full((1, 1, 1), 0.5), "B": np.array([[-big, 0.0]])}
    elif name == "half-bias-overflow":
        feeds, attributes = {"X": np.full((2, 1, 1), 2.0, np.float16)}, {"hidden_size": 1}
        weights = {"W": np.full((1, 1, 1), -40000.0), "R": np.full((1, 1, 1), 0.5), "B": np.full((1, 2), 40000.0)}
        weights, opset = {key: value.astype(np.float16) for key, value in weights.items()}, 14
    elif name == "y-yh-shared":
        feeds = {"X": _values(43, 1, 2, 3)}
        nodes = [
            helper.make_node("RNN", ["X", "W", "R"], ["Y", "Y_h"], hidden_size=4),
            helper.make_node("Neg", ["Y"], ["minus"]),
        ]
        return _model(nodes, feeds, {"minus": 4, "Y_h": 3}, {key: weights[key] for key in ("W", "R")}, 14), [feeds]
    elif name == "scaledtanh-literal":
        feeds, opset = {"X": _values(44, 3, 2, 3, scale=150.0)}, 7
        attributes.update(activations=["ScaledTanh"], activation_alpha=[1.25], activation_beta=[0.75])
    elif name == "v1-yh-last-slice":
        opset = 1
        attributes.update(direction="reverse", output_sequence=1)
    return _one("RNN", feeds, weights, attributes, outputs, opset), [feeds]


def witness(fault):
    """A legal model (serialized) and the feeds of a session's runs, in the last of which the fault shows."""
    if fault not in FAULTS:
        raise ValueError(f"no fault {fault!r}")
    op, name = fault.split("-", 1)
    return {"lstm": _witness_lstm, "gru": _witness_gru, "rnn": _witness_rnn}[op](name)
