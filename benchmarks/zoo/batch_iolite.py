"""Batch "iolite": twenty-five faults of a kernel for ONNX's LSTM, GRU and RNN.

`prepare(model, fault)` gives a session of a serialized model, with one fault of FAULTS or (None) with
the right kernel; `witness(fault)` gives a legal model and the feeds of one session's runs, in the last
of which the fault is to be seen.

How the right kernel works.  It computes in float64 (float64's own nodes in long double), rounds only the
outputs, and handles LSTM 1, 7, 14, 22, GRU 1, 3, 7, 14, 22 and RNN 1, 7, 14, 22; other nodes of the
model are run by onnx.reference.ReferenceEvaluator, one by one, and refused (NotImplementedError) where
that cannot run them, where they hold subgraphs or where they are of another domain.

Where the documents are silent it behaves so:
* The old versions write Ht-1*R without a transpose; R is applied transposed in every version, as W is.
* GRU 1 has no linear_before_reset: it is taken as 0 there.  GRU 1's default direction "foward" is
  forward.  output_sequence changes nothing: an output that is named is computed.
* Y is 0 at the steps at and after a row's length; Y_h (and Y_c) are the states after the row's own last
  step.  A reverse direction starts at a row's last valid step, ends at step 0, and its results lie in Y
  at the step they belong to.  A row of length 0 (or of an empty sequence) hands its initial state on.
* Lengths beyond the sequence are taken as the sequence's length, negative ones as 0.
* input_forget couples as f = 1 - i (the forget gate's own weights are then not used).
* clip bounds the argument of every activation (LSTM's h too), after bias and peepholes; it never bounds
  a state that is handed on.  clip 0, when specified, bounds to 0.
* Activation names match in any letter case.  alpha is consumed by Affine, LeakyRelu, ThresholdedRelu,
  ScaledTanh, HardSigmoid and Elu only, beta by Affine, ScaledTanh and HardSigmoid only, forward
  direction first; when a list is used up the defaults follow: LeakyRelu 0.01, ThresholdedRelu 1, Elu 1,
  HardSigmoid 0.2 and 0.5, Affine 1 and 0, ScaledTanh 1 and 1.  A list of activations longer than needed
  is cut (RNN's own default has two), one that is too short is refused.  ThresholdedRelu passes x >= alpha.
* hidden_size that is missing is R's last dimension.
* An initializer that is a graph input too gives way to a feed of its name.
"""

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

WRITTEN = "2026-11-26"

FAULTS = {
    "lstm-first-step-skips-output-peephole": "When initial_c is absent the first step runs a kernel without peepholes, the cell being zero, and so loses "
    "the output gate's peephole, which looks at the new cell.",
    "lstm-sorted-batch-yc-order": "With sequence_lens the batch is sorted by falling length; Y and Y_h are put back in order afterwards, Y_c is "
    "handed out in the sorted order.",
    "lstm-prepacked-r-shadows-feed": "R is prepacked when the session is made if it is an initializer, and the packed copy is used even where a "
    "feed overrides that initializer.",
    "lstm-cell-scratch-survives-run": "With initial_h given and initial_c absent the zero cell lives in a scratch buffer that is cleared only when "
    "its size changes, so a further run of the same batch starts from the last run's cell.",
    "lstm-fast-path-looks-at-forward-names": "A bidirectional node goes to the sigmoid/tanh/tanh kernel when the first three activation names are the "
    "defaults; the backward direction's three names are not looked at.",
    "lstm-half-sigmoid-exp-overflow": "float16's Sigmoid is e^x/(1+e^x) in half: e^x overflows above 11.09 and the NaN of inf/inf is flushed to 0, "
    "so a wide open gate is shut.",
    "lstm-stacked-fusion-one-initial-state": "LSTM-Squeeze-LSTM of one hidden size with initial states on both is fused into one two-layer call which "
    "starts both layers from the first layer's initial states.",
    "lstm-vector-tail-half-bias": "The packed bias Wb+Rb is summed for whole vectors of 8 hidden units only; the tail units of a hidden size "
    "over 8 that is no multiple of it get Wb alone.",
    "lstm-clip-before-peephole": "clip is applied when the gate's sums leave the matrix product, before the peephole terms are added, and "
    "not again after them.",
    "gru-lbr-nobias-accumulates": "With linear_before_reset and no B, in batches of three or more, the buffer of Ht-1*Rh^T is not cleared "
    "between steps because only the bias copy used to overwrite it, and the product is added to the last step's.",
    "gru-folded-bias-with-lbr": "A constant B is folded at load time into one vector Wb+Rb for all three gates, though linear_before_reset "
    "needs Rbh inside the reset gate's product.",
    "gru-v3-linear-before-reset-unread": "The importer reads linear_before_reset from version 7 on; a GRU of version 3 that sets it is run with 0.",
    "gru-beta-cursor-shared": "activation_beta is indexed with activation_alpha's cursor, so a function that takes alpha alone moves the "
    "betas of the functions after it along (past the list's end the default is used).",
    "gru-equal-lengths-reverse-from-end": "When all lengths are equal the batch is run as a dense one of that many steps, and a reverse direction then "
    "reads X from the end of the padded buffer instead of from the last valid step.",
    "gru-thread-chunk-state-offset": "Batches over 4 are shared among four workers in chunks of ceil(batch/4) rows, but a worker's offset into "
    "initial_h is counted in chunks of floor(batch/4).",
    "gru-pingpong-without-y": "When Y is not asked for two state buffers alternate and Y_h is the one the longest row ended in; rows that "
    "ended an odd number of steps earlier are one step behind in it.",
    "gru-tanh-pade-unclamped": "float32's Tanh is a rational (7/6) approximation whose argument is not clamped, so it grows past 1 for large "
    "arguments.",
    "gru-gather-last-to-yh": "An optimizer replaces Gather(Y, -1) on the time axis of a forward GRU by Y_h without asking whether "
    "sequence_lens makes rows end before the last step.",
    "rnn-backward-restarts-alpha": "Activation parsing starts again at the head of activation_alpha and activation_beta for the backward "
    "direction instead of going on.",
    "rnn-length-byte": "Row lengths are kept in bytes in the kernel's row descriptors, so a length of 256 or more wraps.",
    "rnn-yh-reuses-shared-initial-h": "The memory planner writes Y_h over initial_h, taking the RNN as its last reader, though a later node of the "
    "graph reads the same initial_h.",
    "rnn-v22-layout-state-order": "The version 22 registration hands layout to the transposes of X and Y only: with layout 1 initial_h and Y_h "
    "are read and written with the memory order of layout 0.",
    "rnn-single-step-skips-rb": "A sequence of one step without initial_h goes to a cell kernel that leaves out the whole recurrent half, "
    "Rb included.",
    "rnn-prepack-cache-by-shape": "The session's cache of prepacked R is keyed by shape and type, so a later node whose constant R has the "
    "same shape gets the first node's.",
    "rnn-bf16-pair-dot-odd-k": "bfloat16's X*W^T uses a dot product of pairs; with an odd input_size (3 or more) the last column is lost.",
}

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
NACT = {"LSTM": 3, "GRU": 2, "RNN": 1}
DEFAULT_ACTS = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}
VERSIONS = {"LSTM": (1, 7, 14, 22), "GRU": (1, 3, 7, 14, 22), "RNN": (1, 7, 14, 22)}
FLOATS = ("float16", "bfloat16", "float32", "float64")
ALPHA = {"affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0, "hardsigmoid": 0.2, "elu": 1.0}
BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}


def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0 / (1.0 + e), e / (1.0 + e))


FUNCTIONS = {
    "relu": lambda x, a, b: np.maximum(x, 0.0),
    "tanh": lambda x, a, b: np.tanh(x),
    "sigmoid": lambda x, a, b: _sigmoid(x),
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "thresholdedrelu": lambda x, a, b: np.where(x >= a, x, 0.0),
    "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
    "hardsigmoid": lambda x, a, b: np.minimum(np.maximum(a * x + b, 0.0), 1.0),
    "elu": lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0.0))),
    "softsign": lambda x, a, b: np.where(np.isinf(x), np.sign(x), x / (1.0 + np.abs(np.where(np.isinf(x), 0.0, x)))),
    "softplus": lambda x, a, b: np.logaddexp(0.0, x),
}


def _half_sigmoid(x, a, b):
    """e^x/(1+e^x) as a half kernel has it: above ln(65520) e^x is inf, and the NaN becomes 0."""
    return np.where(x > 11.0899, 0.0, _sigmoid(x))


def _pade_tanh(x, a, b):
    q = x * x
    return x * (135135 + q * (17325 + q * (378 + q))) / (135135 + q * (62370 + q * (3150 + q * 28)))


class _Cell:
    """What one direction of one node needs besides its tensors."""

    def __init__(self, op, fault, dtype, acts, clip, lbr, coupled):
        self.op, self.fault, self.dtype, self.clip, self.lbr, self.coupled = op, fault, dtype, clip, lbr, coupled
        self.acts = []
        for name, alpha, beta in acts:
            fn = FUNCTIONS[name]
            if fault == "lstm-half-sigmoid-exp-overflow" and name == "sigmoid" and dtype == "float16":
                fn = _half_sigmoid
            if fault == "gru-tanh-pade-unclamped" and name == "tanh" and dtype == "float32":
                fn = _pade_tanh
            self.acts.append((fn, alpha, beta))

    def bound(self, x):
        return x if self.clip is None else np.clip(x, -self.clip, self.clip)

    def act(self, k, x, bounded=False):
        fn, alpha, beta = self.acts[k]
        return fn(x if bounded else self.bound(x), alpha, beta)

    def gate(self, k, x, peephole):
        if peephole is None:
            return self.act(k, x)
        if self.fault == "lstm-clip-before-peephole":
            return self.act(k, self.bound(x) + peephole, True)
        return self.act(k, x + peephole)

    # one step: xw is X*W^T [B, gates*H]; returns the new h, c
    def lstm(self, xw, r, wb, rb, p, h, c, first):
        n = h.shape[1]
        z = xw + wb + rb + h @ r.T
        zi, zo, zf, zc = (z[:, k * n : (k + 1) * n] for k in range(4))
        pi, po, pf = (None,) * 3 if p is None or first else (p[k * n : (k + 1) * n] for k in range(3))
        i = self.gate(0, zi, None if pi is None else pi * c)
        f = 1.0 - i if self.coupled else self.gate(0, zf, None if pf is None else pf * c)
        c = f * c + i * self.act(1, zc)
        o = self.gate(0, zo, None if po is None else po * c)
        return o * self.act(2, c), c

    def gru(self, xw, r, wb, rb, h, lin):
        n = h.shape[1]
        hr = h @ r[: 2 * n].T
        z = self.act(0, xw[:, :n] + hr[:, :n] + wb[:n] + rb[:n])
        g = self.act(0, xw[:, n : 2 * n] + hr[:, n:] + wb[n : 2 * n] + rb[n : 2 * n])
        x3, r3, wb3, rb3 = xw[:, 2 * n :], r[2 * n :], wb[2 * n :], rb[2 * n :]
        if self.lbr:
            lin = h @ r3.T + rb3 + (0.0 if lin is None else lin)
            q = self.act(1, x3 + g * lin + wb3)
        else:
            q = self.act(1, x3 + (g * h) @ r3.T + rb3 + wb3)
        return (1.0 - z) * q + z * h, lin

    def rnn(self, xw, r, wb, rb, h):
        return self.act(0, xw + h @ r.T + wb + rb)

    def sequence(self, x, w, r, wb, rb, p, h, c, lens, reverse, facts):
        """x [T, B, I]; returns Y [T, B, H], the last h and c, and the h before the last for ping-pong."""
        steps, batch = x.shape[0], x.shape[1]
        n, rows = r.shape[1], np.arange(x.shape[1])
        fault = self.fault
        if fault == "rnn-bf16-pair-dot-odd-k" and self.dtype == "bfloat16" and x.shape[2] % 2 and x.shape[2] > 2:
            x, w = x[:, :, :-1], w[:, :-1]
        if fault == "rnn-single-step-skips-rb" and steps == 1 and not facts["h0"]:
            rb = np.zeros_like(rb)
        if fault == "rnn-length-byte":
            lens = lens & 255
        if fault == "lstm-vector-tail-half-bias" and n > 8 and n % 8:
            rb = rb.copy().reshape(4, n)
            rb[:, n - n % 8 :] = 0.0
            rb = rb.reshape(-1)
        if fault == "gru-folded-bias-with-lbr" and self.lbr and facts["b_const"]:
            wb, rb = wb + rb, np.zeros_like(rb)
        from_end = (
            fault == "gru-equal-lengths-reverse-from-end"
            and reverse
            and facts["lens"]
            and batch > 0
            and lens.min() == lens.max()
        )
        accumulate = fault == "gru-lbr-nobias-accumulates" and not facts["b"] and batch >= 3
        xw_all = x @ w.T
        y = np.zeros((steps, batch, n), h.dtype)
        last, lin = h, None
        for s in range(int(lens.max()) if batch else 0):
            live = s < lens
            at = np.where(live, lens - 1 - s, 0) if reverse else np.where(live, s, 0)
            xw = xw_all[np.full(batch, steps - 1 - s) if from_end else at, rows]
            if self.op == "LSTM":
                first = s == 0 and not facts["c0"] and fault == "lstm-first-step-skips-output-peephole"
                hn, cn = self.lstm(xw, r, wb, rb, p, h, c, first)
                c = np.where(live[:, None], cn, c)
            elif self.op == "GRU":
                hn, lin_now = self.gru(xw, r, wb, rb, h, lin)
                lin = lin_now if accumulate else None
            else:
                hn = self.rnn(xw, r, wb, rb, h)
            last = np.where(live[:, None], h, last)
            h = np.where(live[:, None], hn, h)
            y[at[live], rows[live]] = hn[live]
        return y, h, c, last


class _Node:
    """A recurrent node, its attributes read once."""

    def __init__(self, proto, opset, fault, const):
        self.op = proto.op_type
        self.fault = fault if fault and fault.startswith(self.op.lower() + "-") else None
        self.since = max((v for v in VERSIONS[self.op] if v <= opset), default=None)
        if self.since is None:
            raise NotImplementedError(f"{self.op} at opset {opset}")
        self.ins, self.outs = list(proto.input), list(proto.output)
        attrs = {a.name: helper.get_attribute_value(a) for a in proto.attribute}

        def text(v):
            return v.decode() if isinstance(v, bytes) else v

        self.direction = text(attrs.get("direction", "forward"))
        if self.direction == "foward":
            self.direction = "forward"
        if self.direction not in ("forward", "reverse", "bidirectional"):
            raise ValueError(f"direction {self.direction!r}")
        self.dirs = 2 if self.direction == "bidirectional" else 1
        self.layout = int(attrs.get("layout", 0)) if self.since >= 14 else 0
        if self.layout not in (0, 1):
            raise ValueError("layout")
        self.clip = float(attrs["clip"]) if "clip" in attrs else None
        self.hidden = attrs.get("hidden_size")
        self.coupled = self.op == "LSTM" and int(attrs.get("input_forget", 0)) != 0
        reads_lbr = 7 if self.fault == "gru-v3-linear-before-reset-unread" else 3
        self.lbr = self.op == "GRU" and self.since >= reads_lbr and int(attrs.get("linear_before_reset", 0)) != 0
        self.read_activations(
            [text(v) for v in attrs.get("activations", [])],
            list(attrs.get("activation_alpha", [])),
            list(attrs.get("activation_beta", [])),
        )
        self.const = const
        self.scratch = None  # a fault's buffer that outlives a run
        self.packed = None  # a fault's R, packed when the session is made
        self.first_layer = None  # a fault's first layer of a fused pair
        self.last_reader_of = None  # a fault's tensor to be overwritten

    def read_activations(self, names, alphas, betas):
        per, need = NACT[self.op], NACT[self.op] * self.dirs
        names = [v.lower() for v in names] or DEFAULT_ACTS[self.op] * self.dirs
        if len(names) < need:
            raise ValueError(f"{len(names)} activations for {need}")
        self.acts, ia, ib = [], 0, 0
        for k, name in enumerate(names[:need]):
            if name not in FUNCTIONS:
                raise ValueError(f"activation {name!r}")
            if self.fault == "rnn-backward-restarts-alpha" and k == per:
                ia = ib = 0
            alpha, beta = ALPHA.get(name, 0.0), BETA.get(name, 0.0)
            at = ia if self.fault == "gru-beta-cursor-shared" else ib
            if name in ALPHA:
                alpha, ia = (float(alphas[ia]) if ia < len(alphas) else alpha), ia + 1
            if name in BETA:
                beta, ib = (float(betas[at]) if at < len(betas) else beta), ib + 1
            self.acts.append((name, alpha, beta))
        if (
            self.fault == "lstm-fast-path-looks-at-forward-names"
            and self.dirs == 2
            and [a[0] for a in self.acts[:3]] == DEFAULT_ACTS["LSTM"]
        ):
            self.acts[3:] = self.acts[:3]

    def name(self, k):
        return self.ins[k] if k < len(self.ins) else ""

    def wants(self, k):
        return k < len(self.outs) and self.outs[k] != ""

    def run(self, env, fed):
        op, fault, d = self.op, self.fault, self.dirs

        def get(k):
            return env[self.name(k)] if self.name(k) else None

        x, w, r, b, lens, h0 = (get(k) for k in range(6))
        c0, p = (get(6), get(7)) if op == "LSTM" else (None, None)
        if x is None or w is None or r is None:
            raise ValueError(f"{op} without X, W or R")
        x = np.asarray(x)
        dtype = x.dtype
        if dtype.name not in FLOATS or (dtype.name == "bfloat16" and self.since < 22):
            raise NotImplementedError(f"{op} of {dtype}")
        if self.packed is not None:
            if fault == "lstm-prepacked-r-shadows-feed" or self.name(2) not in fed:
                r = self.packed
        if self.first_layer is not None:
            theirs = [env[self.first_layer.name(k)] if self.first_layer.name(k) else None for k in (5, 6)]
            if theirs[0].shape == h0.shape:
                h0 = theirs[0]
                c0 = theirs[1] if c0 is not None and theirs[1] is not None else c0
        work = np.longdouble if dtype == np.float64 else np.float64

        def wide(v):
            return None if v is None else np.asarray(v).astype(work)

        x, w, r, b, h0, c0, p = (wide(v) for v in (x, w, r, b, h0, c0, p))
        if x.ndim != 3:
            raise ValueError("X is not three-dimensional")
        if self.layout:
            x = x.transpose(1, 0, 2)
        steps, batch, width = x.shape
        n, g = int(self.hidden) if self.hidden else r.shape[-1], GATES[op]
        self.expect(w, (d, g * n, width), "W")
        self.expect(r, (d, g * n, n), "R")
        self.expect(b, (d, 2 * g * n), "B")
        self.expect(p, (d, 3 * n), "P")
        in_order = self.layout and not (fault == "rnn-v22-layout-state-order" and self.since == 22)

        def state(v, what):
            if v is None:
                return np.zeros((d, batch, n), work)
            self.expect(v, (batch, d, n) if self.layout else (d, batch, n), what)
            return v.transpose(1, 0, 2) if in_order else v.reshape(d, batch, n)

        facts = {
            "b": b is not None,
            "h0": h0 is not None,
            "c0": c0 is not None,
            "lens": lens is not None,
            "b_const": bool(self.name(3)) and self.name(3) in self.const and self.name(3) not in fed,
        }
        h, c = state(h0, "initial_h"), state(c0, "initial_c")
        keeps_cell = fault == "lstm-cell-scratch-survives-run" and facts["h0"] and not facts["c0"]
        if keeps_cell and self.scratch is not None and self.scratch.shape == c.shape:
            c = self.scratch
        if fault == "gru-thread-chunk-state-offset" and facts["h0"] and batch > 4 and batch % 4:
            chunk, row = -(-batch // 4), np.arange(batch)
            h = h[:, row // chunk * (batch // 4) + row % chunk]
        if lens is None:
            lens = np.full(batch, steps)
        else:
            lens = np.asarray(lens).astype(np.int64)
            if lens.shape != (batch,):
                raise ValueError("sequence_lens")
            lens = np.clip(lens, 0, steps)
        ys, hs, cs = [], [], []
        for k in range(d):
            acts = self.acts[k * NACT[op] : (k + 1) * NACT[op]]
            cell = _Cell(op, fault, dtype.name, acts, self.clip, self.lbr, self.coupled)
            bias = np.zeros(2 * g * n, work) if b is None else b[k]
            y, hn, cn, last = cell.sequence(
                x,
                w[k],
                r[k],
                bias[: g * n],
                bias[g * n :],
                None if p is None else p[k],
                h[k],
                c[k],
                lens,
                self.direction == "reverse" or k == 1,
                facts,
            )
            if fault == "gru-pingpong-without-y" and not self.wants(0) and facts["lens"] and batch:
                behind = ((lens.max() - lens) % 2 == 1) & (lens > 0)
                hn = np.where(behind[:, None], last, hn)
            ys.append(y), hs.append(hn), cs.append(cn)
        y, h, c = np.stack(ys, 1), np.stack(hs), np.stack(cs)
        if keeps_cell:
            self.scratch = c
        if fault == "lstm-sorted-batch-yc-order" and facts["lens"]:
            c = c[:, np.argsort(-lens, kind="stable")]
        if self.layout:
            y = y.transpose(2, 0, 1, 3)
            h = h.transpose(1, 0, 2) if in_order else h.reshape(batch, d, n)
            c = c.transpose(1, 0, 2)
        outs = [np.ascontiguousarray(v).astype(dtype) for v in (y, h, c)]
        for k, name in enumerate(self.outs):
            if name:
                env[name] = outs[k]
        if self.last_reader_of and outs[1].shape == np.shape(env[self.last_reader_of]):
            env[self.last_reader_of] = outs[1]

    def expect(self, v, shape, what):
        if v is not None and v.shape != shape:
            raise ValueError(f"{self.op}: {what} is {v.shape}, not {shape}")


class _Other:
    """Any other node, run by the reference evaluator."""

    def __init__(self, proto, model):
        if proto.domain not in ("", "ai.onnx"):
            raise NotImplementedError(f"domain {proto.domain}")
        for a in proto.attribute:
            if a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
                raise NotImplementedError(f"{proto.op_type} with a subgraph")
        self.proto, self.model = proto, model
        self.ins, self.outs = list(proto.input), list(proto.output)
        self.engine = None

    def run(self, env, fed):
        names = [v for v in dict.fromkeys(self.ins) if v]
        attrs = {a.name: helper.get_attribute_value(a) for a in self.proto.attribute}
        if self.proto.op_type == "Reshape" and "shape" in attrs:  # version 1
            v = np.asarray(env[self.ins[0]])
            env[self.outs[0]] = v.reshape([v.shape[k] if m == 0 else m for k, m in enumerate(attrs["shape"])])
            return
        if self.proto.op_type == "Cast" and isinstance(attrs.get("to"), bytes):  # version 1
            to = helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(attrs["to"].decode().upper()))
            env[self.outs[0]] = np.asarray(env[self.ins[0]]).astype(to)
            return
        try:
            if self.engine is None:
                infos = [
                    helper.make_tensor_value_info(v, helper.np_dtype_to_tensor_dtype(np.asarray(env[v]).dtype), None)
                    for v in names
                ]
                graph = helper.make_graph(
                    [self.proto], "one", infos, [helper.make_empty_tensor_value_info(v) for v in self.outs if v]
                )
                one = helper.make_model(graph, opset_imports=self.model.opset_import)
                one.ir_version = max(self.model.ir_version, 4)
                self.engine = ReferenceEvaluator(one)
            values = self.engine.run(None, {v: np.asarray(env[v]) for v in names})
        except Exception as e:
            raise NotImplementedError(f"{self.proto.op_type}: {type(e).__name__}: {e}") from e
        for name, value in zip([v for v in self.outs if v], values, strict=False):
            env[name] = value


class _Alias:
    """A fault's rewrite: the node's output is another tensor."""

    def __init__(self, out, source):
        self.ins, self.outs, self.source = [source], [out], source

    def run(self, env, fed):
        env[self.outs[0]] = env[self.source]


class Session:
    def __init__(self, model, fault):
        proto = onnx.load_model_from_string(model) if isinstance(model, (bytes, bytearray)) else model
        graph = proto.graph
        if proto.functions or graph.sparse_initializer:
            raise NotImplementedError("functions or sparse initializers")
        opset = {v.domain or "ai.onnx": v.version for v in proto.opset_import}.get("ai.onnx")
        if opset is None:
            raise NotImplementedError("no opset of ai.onnx")
        self.const, self.fault = {}, fault
        for t in graph.initializer:
            if t.data_location == TensorProto.EXTERNAL:
                raise NotImplementedError("external data")
            self.const[t.name] = numpy_helper.to_array(t)
        self.initializers = set(self.const)
        self.inputs = [v.name for v in graph.input]
        self.outputs = [v.name for v in graph.output]
        self.nodes = []
        for node in graph.node:
            if node.op_type in GATES and node.domain in ("", "ai.onnx"):
                self.nodes.append(_Node(node, opset, fault, self.const))
            elif node.op_type == "Constant" and [a.name for a in node.attribute] == ["value"]:
                self.const[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
            else:
                self.nodes.append(_Other(node, proto))
        self.prepare_faults()

    def prepare_faults(self):
        fault, cache = self.fault, {}
        maker = {o: n for n in self.nodes for o in n.outs if o}
        for at, node in enumerate(self.nodes):
            if isinstance(node, _Node) and node.fault:
                r = self.const.get(node.name(2))
                if fault == "lstm-prepacked-r-shadows-feed":
                    node.packed = r
                if fault == "rnn-prepack-cache-by-shape" and r is not None:
                    node.packed = cache.setdefault((r.shape, r.dtype.name), r)
                if fault == "lstm-stacked-fusion-one-initial-state":
                    node.first_layer = self.layer_below(node, maker)
                h0 = node.name(5)
                if (
                    fault == "rnn-yh-reuses-shared-initial-h"
                    and node.wants(1)
                    and h0
                    and h0 not in self.const
                    and h0 not in self.outputs
                    and any(h0 in v.ins for v in self.nodes[at + 1 :])
                ):
                    node.last_reader_of = h0
            if fault == "gru-gather-last-to-yh" and isinstance(node, _Other) and node.proto.op_type == "Gather":
                below, index = maker.get(node.ins[0]), self.const.get(node.ins[1])
                axis = next((a.i for a in node.proto.attribute if a.name == "axis"), 0)
                if (
                    isinstance(below, _Node)
                    and below.op == "GRU"
                    and node.ins[0] == below.outs[0]
                    and axis == 0
                    and index is not None
                    and index.ndim == 0
                    and int(index) == -1
                    and below.direction == "forward"
                    and not below.layout
                ):
                    if not below.wants(1):
                        below.outs = [below.outs[0], node.outs[0] + "::Y_h"]
                    self.nodes[at] = _Alias(node.outs[0], below.outs[1])

    def layer_below(self, node, maker):
        squeeze = maker.get(node.name(0))
        if not isinstance(squeeze, _Other) or squeeze.proto.op_type != "Squeeze":
            return None
        below = maker.get(squeeze.ins[0])
        if not isinstance(below, _Node) or below.op != "LSTM" or squeeze.ins[0] != below.outs[0]:
            return None
        alike = below.dirs == node.dirs == 1 and below.layout == node.layout == 0 and below.hidden == node.hidden
        return below if alike and below.name(5) and node.name(5) else None

    def run(self, feeds):
        env = dict(self.const)
        fed = set(feeds) & set(self.inputs)
        for name in self.inputs:
            if name in feeds:
                env[name] = np.asarray(feeds[name])
            elif name not in self.initializers:
                raise ValueError(f"input {name} is not fed")
        env.pop("", None)
        with np.errstate(all="ignore"):
            for node in self.nodes:
                node.run(env, fed)
        return [np.array(env[name]) for name in self.outputs]


def prepare(model, fault=None):
    if fault is not None and fault not in FAULTS:
        raise KeyError(fault)
    return Session(model, fault)


# ------------------------------------------------------------------------------------------- witnesses

BF16 = np.dtype(ml_dtypes.bfloat16)
ARGS = {
    "LSTM": ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"],
    "GRU": ["X", "W", "R", "B", "sequence_lens", "initial_h"],
    "RNN": ["X", "W", "R", "B", "sequence_lens", "initial_h"],
}


def _tensors(op, rng, dtype, size, have, dirs=1, layout=0, lens=None, scale=0.7):
    t, b, i, n = size
    g = GATES[op]
    state = (b, dirs, n) if layout else (dirs, b, n)
    shapes = {
        "X": (b, t, i) if layout else (t, b, i),
        "W": (dirs, g * n, i),
        "R": (dirs, g * n, n),
        "B": (dirs, 2 * g * n),
        "initial_h": state,
        "initial_c": state,
        "P": (dirs, 3 * n),
    }
    out = {k: (rng.uniform(-1, 1, shapes[k]) * scale).astype(dtype) for k in ["X", "W", "R", *have] if k in shapes}
    out["X"] = (out["X"].astype(np.float64) * 2).astype(dtype)
    if lens is not None:
        out["sequence_lens"] = np.array(lens, np.int32)
    return out


def _node(op, present, outputs, prefix="", rename=None, **attrs):
    names = [(rename or {}).get(a, prefix + a) if a in present else "" for a in ARGS[op]]
    while not names[-1]:
        names.pop()
    return helper.make_node(op, names, outputs, **attrs)


def _model(nodes, fed, outputs, opset, const=None, both=(), ir=8):
    """fed: name -> an array of the input's type; outputs: names; const: initializers; both: those of them
    that are graph inputs too."""
    const = const or {}

    def info(k, v):
        return helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), list(v.shape))

    inputs = [info(k, v) for k, v in fed.items()] + [info(k, const[k]) for k in both]
    element = next(v.dtype for v in fed.values() if v.dtype.name in FLOATS)
    outs = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(element), [None] * rank)
        for k, rank in outputs.items()
    ]
    graph = helper.make_graph(nodes, "witness", inputs, outs, [numpy_helper.from_array(v, k) for k, v in const.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = ir
    return model.SerializeToString()


def _simple(
    op,
    opset,
    dtype,
    size,
    have=(),
    outs="YHC",
    const=(),
    both=(),
    runs=1,
    scale=0.7,
    seed=5,
    lens=None,
    dirs=1,
    layout=0,
    edit=None,
    **attrs,
):
    """One node; its output letters that are named; the constants; the same feeds again for further runs."""
    rng = np.random.RandomState(seed)
    if layout:
        attrs["layout"] = layout
    if dirs == 2:
        attrs["direction"] = "bidirectional"
    data = _tensors(op, rng, dtype, size, have, dirs, layout, lens, scale)
    if edit:
        edit(data)
    letters = "YHC" if op == "LSTM" else "YH"
    names = [{"Y": "Y", "H": "Y_h", "C": "Y_c"}[v] if v in outs else "" for v in letters]
    while not names[-1]:
        names.pop()
    node = _node(op, data, names, hidden_size=size[3], **attrs)
    held = {k: data[k] for k in const}
    fed = {k: v for k, v in data.items() if k not in const}
    model = _model([node], fed, {v: 4 if v == "Y" else 3 for v in names if v}, opset, held, both, 3 if opset < 7 else 8)
    feeds = [dict(fed) for _ in range(runs)]
    return model, feeds


def _w_override():
    model, feeds = _simple("LSTM", 14, np.float32, (3, 2, 3, 4), ["initial_h"], const=["R"], both=["R"])
    feeds[0]["R"] = (np.random.RandomState(9).uniform(-1, 1, (1, 16, 4))).astype(np.float32)
    return model, feeds


def _w_stacked():
    rng = np.random.RandomState(3)
    first = _tensors("LSTM", rng, np.float32, (3, 2, 3, 4), ["initial_h", "initial_c"])
    second = _tensors("LSTM", rng, np.float32, (3, 2, 4, 4), ["initial_h", "initial_c"])
    second.pop("X")
    nodes = [
        _node("LSTM", first, ["Y1"], hidden_size=4, prefix="a_"),
        helper.make_node("Squeeze", ["Y1", "axes"], ["S"]),
        _node("LSTM", {**second, "X": 0}, ["Y", "Y_h"], hidden_size=4, prefix="b_", rename={"X": "S"}),
    ]
    fed = {**{"a_" + k: v for k, v in first.items()}, **{"b_" + k: v for k, v in second.items()}}
    return _model(nodes, fed, {"Y": 4, "Y_h": 3}, 14, {"axes": np.array([1], np.int64)}), [fed]


def _w_gather():
    fed = _tensors("GRU", np.random.RandomState(4), np.float32, (4, 3, 2, 3), ["B"], lens=[4, 2, 3])
    nodes = [_node("GRU", fed, ["Y"], hidden_size=3), helper.make_node("Gather", ["Y", "last"], ["Z"], axis=0)]
    return _model(nodes, fed, {"Z": 3}, 14, {"last": np.array(-1, np.int64)}), [fed]


def _w_shared_state():
    rng = np.random.RandomState(6)
    first, second = (_tensors("RNN", rng, np.float32, (3, 2, 3, 4), ["initial_h"]) for _ in range(2))
    second.pop("initial_h")
    nodes = [
        helper.make_node("Identity", ["a_initial_h"], ["h"]),
        _node("RNN", first, ["Y1", "Y_h1"], hidden_size=4, prefix="a_", rename={"initial_h": "h"}),
        _node("RNN", {**second, "initial_h": 0}, ["Y2", "Y_h2"], hidden_size=4, prefix="b_", rename={"initial_h": "h"}),
    ]
    fed = {**{"a_" + k: v for k, v in first.items()}, **{"b_" + k: v for k, v in second.items()}}
    return _model(nodes, fed, {"Y1": 4, "Y_h1": 3, "Y2": 4, "Y_h2": 3}, 22), [fed]


def _w_two_constant():
    rng = np.random.RandomState(7)
    first, second = (_tensors("RNN", rng, np.float32, (3, 2, 3, 4), []) for _ in range(2))
    nodes = [
        _node("RNN", first, ["Y1"], hidden_size=4, prefix="a_"),
        _node("RNN", second, ["Y2"], hidden_size=4, prefix="b_"),
    ]
    every = {**{"a_" + k: v for k, v in first.items()}, **{"b_" + k: v for k, v in second.items()}}
    const = {k: v for k, v in every.items() if k[2:] in ("W", "R")}
    fed = {k: v for k, v in every.items() if k not in const}
    return _model(nodes, fed, {"Y1": 4, "Y2": 4}, 14, const), [fed]


def _open_gates(data):
    """Biases that open the input gate far beyond half's e^x."""
    data["B"][:, :4] = 14


def _drive(data):
    """A candidate far in tanh's flat part and an update gate that lets it in."""
    data["B"][:, 2:4], data["B"][:, 0:2] = 0, -2
    data["B"][:, 4:6] = [[25, -30]]


_WITNESS = {
    "lstm-first-step-skips-output-peephole": lambda: _simple(
        "LSTM", 14, np.float32, (3, 2, 3, 4), ["B", "initial_h", "P"], scale=1.0
    ),
    "lstm-sorted-batch-yc-order": lambda: _simple("LSTM", 14, np.float32, (4, 3, 3, 4), ["B"], lens=[2, 4, 3]),
    "lstm-prepacked-r-shadows-feed": _w_override,
    "lstm-cell-scratch-survives-run": lambda: _simple("LSTM", 7, np.float32, (3, 2, 3, 4), ["initial_h"], runs=2),
    "lstm-fast-path-looks-at-forward-names": lambda: _simple(
        "LSTM",
        14,
        np.float32,
        (3, 2, 3, 4),
        ["B"],
        dirs=2,
        activations=["Sigmoid", "Tanh", "Tanh", "HardSigmoid", "Softsign", "Relu"],
    ),
    "lstm-half-sigmoid-exp-overflow": lambda: _simple("LSTM", 14, np.float16, (3, 2, 3, 4), ["B"], edit=_open_gates),
    "lstm-stacked-fusion-one-initial-state": _w_stacked,
    "lstm-vector-tail-half-bias": lambda: _simple("LSTM", 14, np.float32, (3, 2, 3, 11), ["B"]),
    "lstm-clip-before-peephole": lambda: _simple(
        "LSTM", 14, np.float32, (3, 2, 3, 4), ["B", "initial_c", "P"], scale=1.0, clip=0.25
    ),
    "gru-lbr-nobias-accumulates": lambda: _simple(
        "GRU", 14, np.float32, (4, 3, 3, 4), ["initial_h"], linear_before_reset=1
    ),
    "gru-folded-bias-with-lbr": lambda: _simple(
        "GRU", 14, np.float32, (3, 2, 3, 4), ["B"], const=["W", "R", "B"], linear_before_reset=1
    ),
    "gru-v3-linear-before-reset-unread": lambda: _simple(
        "GRU", 3, np.float32, (3, 2, 3, 4), ["B", "initial_h"], linear_before_reset=1
    ),
    "gru-beta-cursor-shared": lambda: _simple(
        "GRU",
        14,
        np.float32,
        (3, 2, 3, 4),
        ["B"],
        activations=["Elu", "HardSigmoid"],
        activation_alpha=[0.5, 0.3],
        activation_beta=[0.1],
    ),
    "gru-equal-lengths-reverse-from-end": lambda: _simple(
        "GRU", 14, np.float32, (5, 2, 3, 4), ["B"], lens=[3, 3], direction="reverse"
    ),
    "gru-thread-chunk-state-offset": lambda: _simple("GRU", 14, np.float32, (2, 6, 3, 4), ["initial_h"]),
    "gru-pingpong-without-y": lambda: _simple("GRU", 14, np.float32, (4, 3, 3, 4), ["B"], outs="H", lens=[4, 3, 2]),
    "gru-tanh-pade-unclamped": lambda: _simple("GRU", 14, np.float32, (3, 2, 3, 2), ["B"], edit=_drive),
    "gru-gather-last-to-yh": _w_gather,
    "rnn-backward-restarts-alpha": lambda: _simple(
        "RNN",
        14,
        np.float32,
        (3, 2, 3, 4),
        ["B"],
        dirs=2,
        activations=["LeakyRelu", "LeakyRelu"],
        activation_alpha=[0.1, 0.6],
    ),
    "rnn-length-byte": lambda: _simple("RNN", 14, np.float32, (300, 2, 2, 2), ["B"], lens=[300, 258]),
    "rnn-yh-reuses-shared-initial-h": _w_shared_state,
    "rnn-v22-layout-state-order": lambda: _simple(
        "RNN", 22, np.float32, (3, 2, 3, 4), ["B", "initial_h"], dirs=2, layout=1
    ),
    "rnn-single-step-skips-rb": lambda: _simple("RNN", 14, np.float32, (1, 2, 3, 4), ["B"]),
    "rnn-prepack-cache-by-shape": _w_two_constant,
    "rnn-bf16-pair-dot-odd-k": lambda: _simple("RNN", 22, BF16, (3, 2, 5, 4), ["B"]),
}


def witness(fault):
    return _WITNESS[fault]()
