"""Fjord: twenty-five faults of a runtime's LSTM, GRU and RNN, written blind.

Written 2026-11-25 by an author who had seen none of the project's tables of faults, axes, profiles or cases, no other
batch of this zoo, and no results. Looked at: the operators' documents (LSTM, GRU, RNN, versions 1 to 22), the form a
batch has, and what comes to mind from bug reports and sources of real runtimes: weight prepacking, vectorised tails,
threading by rows, sequence lengths, layouts, activation functors, folding, session state, half precision, fusions.

The kernel computes float64 in float64 and the other types in float32, rounding the outputs only. Other nodes of a graph
are evaluated by onnx's reference. Where ONNX is silent it does as follows, and no witness depends on it: Y is 0 past a
row's length; Y_h and Y_c of a row of length 0 are its initial state; input_forget makes the forget gate 1 - i; clip
bounds what goes into every activation (CLIP_CELL: h(C) as well, as the operator's text has it; onnxruntime does not);
alpha and beta are consumed, in order, by the activations that have them.
"""

import numpy as np
import onnx
import onnx.inliner
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

WRITTEN = "2026-11-25"
CLIP_CELL = True

FAULTS = {
    # LSTM
    "lstm-backward-packed-once": "When W and R are inputs, not initializers, the backward direction keeps the weights packed on the first run.",
    "lstm-peephole-tail": "Above 8 units, the scalar tail (hidden_size % 8) of the output gate's peephole reads the previous cell.",
    "lstm-partition-initial-c": "With 6 rows or more a batch is cut in two for threads, and the second part of the backward direction takes "
    "initial_c from the forward one.",
    "lstm-coupled-before-clip": "With input_forget the coupled forget gate is made from the input gate as it was before clip.",
    "lstm-only-cell-ignores-lengths": "A node whose only output is Y_c takes a path that does not look at sequence_lens.",
    "lstm-layout-initial-c": "In layout 1, initial_c of a bidirectional node is reshaped to layout 0 where initial_h is transposed.",
    "lstm-cell-scratch-grown-back": "The cell's scratch, cleared only over the rows common to this run's batch and the last one's, brings stale "
    "cells when a batch shrinks and grows back.",
    "lstm-bfloat16-odd": "bfloat16 is widened in pairs, and the last element of an initial_h with an odd number of elements is lost.",
    "lstm-lengths-first-and-last": "Lengths are taken to be all equal when the first and the last row's are.",
    "lstm-shared-weights-reordered": "Each node reorders the gates of its W initializer in place, so that a second node with the same W undoes it.",
    "lstm-hard-sigmoid-beta": "HardSigmoid's beta is 0, not 0.5, when activation_alpha is given and activation_beta is not.",
    # GRU
    "gru-sorted-rows-misplaced": "Rows are sorted by length, and Y_h is put back by the permutation where its inverse is meant.",
    "gru-reset-bias-single-row": "For a batch of 1, linear_before_reset adds the recurrent bias of the hidden gate after the reset gate.",
    "gru-initial-h-overwritten": "An initial_h that is an initializer serves as the state buffer, so the next run starts from where this ended.",
    "gru-initial-h-folded": "An initial_h whose default is all zeros is folded away even if it is also an input, and fed.",
    "gru-half-subnormal-weights": "float16 weights below the smallest normal are flushed to zero when they are widened.",
    "gru-bias-first-chunk": "X is multiplied by W in chunks of 32 steps, and W's bias is added in the first chunk only.",
    "gru-lengths-int8": "sequence_lens are kept in 8 bits: a row of more than 127 steps has a negative length and is not computed.",
    "gru-version-22-attributes": "The kernel added for 16-bit floats with version 22 was made from that of version 1 and does not read "
    "linear_before_reset.",
    # RNN
    "rnn-tanh-negative-unclamped": "The rational approximation of float32's Tanh is clamped above 9 but not below -9.",
    "rnn-activation-by-name": "Activations are made once for a name in a session: a second LeakyRelu has the first one's alpha.",
    "rnn-offset-16-bits": "The offset of a step in X is kept in 16 bits and wraps at 65536 elements.",
    "rnn-reverse-table-not-shrunk": "The table of reversed steps is only rebuilt for longer sequences: a shorter run reads beyond its last step.",
    "rnn-fused-initial-h": "A forward and a reverse node of the same X with concatenated Y are fused into a bidirectional one, which uses "
    "the first one's initial_h for both.",
    "rnn-lengths-by-multiplication": "A finished row is masked by a multiplication by 0, so that NaN or infinity in the padding gets into Y_h.",
}

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DEFAULT = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_ALPHA = {"affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0, "hardsigmoid": 0.2, "elu": 1.0}
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}


def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


def _rational_tanh(x):
    """The well-known 13/6 rational approximation, good in [-9, 9] only."""
    x2 = x * x
    p = np.float32(-2.76076847742355e-16)
    for c in (
        2.00018790482477e-13,
        -8.60467152213735e-11,
        5.12229709037114e-08,
        1.48572235717979e-05,
        6.37261928875436e-04,
        4.89352455891786e-03,
    ):
        p = p * x2 + np.float32(c)
    q = np.float32(1.19825839466702e-06)
    for c in (1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03):
        q = q * x2 + np.float32(c)
    return x * p / q


def _function(name, alpha, beta):
    """An activation, which keeps its argument's type."""
    return {
        "sigmoid": _sigmoid,
        "tanh": np.tanh,
        "relu": lambda x: np.maximum(x, x.dtype.type(0)),
        "affine": lambda x: x.dtype.type(alpha) * x + x.dtype.type(beta),
        "leakyrelu": lambda x: np.where(x >= 0, x, x.dtype.type(alpha) * x),
        "thresholdedrelu": lambda x: np.where(x >= x.dtype.type(alpha), x, x.dtype.type(0)),
        "scaledtanh": lambda x: x.dtype.type(alpha) * np.tanh(x.dtype.type(beta) * x),
        "hardsigmoid": lambda x: np.clip(
            x.dtype.type(alpha) * x + x.dtype.type(beta), x.dtype.type(0), x.dtype.type(1)
        ),
        "elu": lambda x: np.where(x >= 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(x, x.dtype.type(0)))),
        "softsign": lambda x: x / (1 + np.abs(x)),
        "softplus": lambda x: np.logaddexp(x.dtype.type(0), x),
    }[name]


def _lstm_order(w):
    """Swaps the blocks of the output and the forget gate."""
    i, o, f, c = np.split(w, 4, axis=1)
    return np.concatenate([i, f, o, c], axis=1)


class _Session:
    """A graph, node by node. ``memo`` is what nodes keep between runs."""

    def __init__(self, model, fault):
        model = onnx.load_model_from_string(model) if isinstance(model, bytes) else model
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
        graph = model.graph
        if graph.sparse_initializer:
            raise NotImplementedError("sparse initializers")
        self.fault = fault
        self.opsets = list(model.opset_import)
        self.version = next((o.version for o in self.opsets if o.domain in ("", "ai.onnx")), 1)
        self.initializers = {t.name: np.array(numpy_helper.to_array(t)) for t in graph.initializer}
        self.inputs = [i.name for i in graph.input]
        self.outputs = [o.name for o in graph.output]
        self.nodes = list(graph.node)
        self.memo = [{} for _ in self.nodes]
        self.functors = {}
        self.others = {}
        for k, node in enumerate(self.nodes):
            recurrent = node.domain in ("", "ai.onnx") and node.op_type in _GATES
            if not recurrent:
                if any(a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for a in node.attribute):
                    raise NotImplementedError("subgraphs")
                self.others[k] = self._other(node)
        self.alias = self._fuse() if fault == "rnn-fused-initial-h" else {}

    def _other(self, node):
        info = [onnx.ValueInfoProto(name=n) for n in dict.fromkeys(node.input) if n]
        outs = [onnx.ValueInfoProto(name=n) for n in node.output if n]
        newer = [helper.make_opsetid("", 23)] if node.op_type in ("QuantizeLinear", "DequantizeLinear") else None
        failed = None
        for opsets in filter(None, (self.opsets, newer)):  # the reference has no old versions of these two
            model = helper.make_model(helper.make_graph([node], "other", info, outs), opset_imports=opsets)
            try:
                return ReferenceEvaluator(model)
            except Exception as error:
                failed = error
        raise NotImplementedError(node.op_type) from failed

    def _fuse(self):
        """Index of a reverse RNN to the initial_h of the forward one that it is fused with."""
        joined = [set(n.input) for n in self.nodes if n.op_type == "Concat"]
        alias = {}
        ways = {k: _attributes(n).get("direction", "forward") for k, n in enumerate(self.nodes) if n.op_type == "RNN"}
        for k, way in ways.items():
            for j, other in ways.items():
                a, b = self.nodes[k], self.nodes[j]
                if (way, other) != ("forward", "reverse") or a.input[0] != b.input[0]:
                    continue
                pattern = [[bool(n) for n in v.input] for v in (a, b)]
                if (
                    pattern[0] == pattern[1]
                    and len(a.input) > 5
                    and a.input[5]
                    and a.output
                    and b.output
                    and any({a.output[0], b.output[0]} <= c for c in joined)
                ):
                    alias[j] = a.input[5]
        return alias

    def run(self, feeds):
        """The outputs of the graph, in order."""
        values = dict(self.initializers)
        values.update({k: np.asarray(v) for k, v in feeds.items()})
        self.fed = set(feeds)
        with np.errstate(all="ignore"):
            for k, node in enumerate(self.nodes):
                if k in self.others:
                    given = {n: values[n] for n in node.input if n}
                    try:
                        made = self.others[k].run(None, given)
                    except NotImplementedError:
                        raise
                    except Exception as error:
                        raise NotImplementedError(node.op_type) from error
                    names = [n for n in node.output if n]
                else:
                    made, names = self._recurrent(k, node, values), list(node.output)
                values.update({n: v for n, v in zip(names, made, strict=False) if n})
        return [values[n] for n in self.outputs]

    def constant(self, name):
        """Whether a name is an initializer which this run does not override."""
        return name in self.initializers and name not in self.fed

    def _activations(self, op, a, directions):
        fault = self.fault
        names = [n.lower() for n in a.get("activations") or _DEFAULT[op] * directions]
        alphas, betas = list(a.get("activation_alpha") or []), list(a.get("activation_beta") or [])
        only_alpha = bool(alphas) and not betas
        made = []
        for name in names:
            alpha, beta = _ALPHA.get(name), _BETA.get(name)
            if alpha is not None and alphas:
                alpha = alphas.pop(0)
            if beta is not None and betas:
                beta = betas.pop(0)
            if fault == "lstm-hard-sigmoid-beta" and op == "LSTM" and name == "hardsigmoid" and only_alpha:
                beta = 0.0
            function = _function(name, alpha, beta)
            if fault == "rnn-activation-by-name" and op == "RNN":
                function = self.functors.setdefault(name, function)
            if fault == "rnn-tanh-negative-unclamped" and op == "RNN" and name == "tanh":

                def function(x):
                    return np.where(x < -9, _rational_tanh(x), np.tanh(x)) if x.dtype == np.float32 else np.tanh(x)

            made.append(function)
        size = len(_DEFAULT[op])
        return [made[d * size : (d + 1) * size] for d in range(directions)]

    def _recurrent(self, k, node, values):
        op, a, fault, memo = node.op_type, _attributes(node), self.fault, self.memo[k]
        lstm, gru, rnn = op == "LSTM", op == "GRU", op == "RNN"
        names = list(node.input) + [""] * (8 - len(node.input))
        if k in self.alias:
            names[5] = self.alias[k]
        x, w, r, b, lens, h0, c0, p = (values[n] if n else None for n in names)
        if not lstm:
            c0 = p = None
        kind = x.dtype
        f = np.float64 if kind == np.float64 else np.float32
        direction = a.get("direction", "forward")
        directions = 2 if direction == "bidirectional" else 1
        count, hidden = _GATES[op], r.shape[2]
        layout = a.get("layout", 0)
        if layout:
            x = np.swapaxes(x, 0, 1)
            h0 = None if h0 is None else np.swapaxes(h0, 0, 1)
            if c0 is not None:
                wrong = fault == "lstm-layout-initial-c" and directions == 2
                c0 = c0.reshape(c0.shape[1], c0.shape[0], c0.shape[2]) if wrong else np.swapaxes(c0, 0, 1)
        length, batch, size = x.shape

        if fault == "lstm-shared-weights-reordered" and lstm and self.constant(names[1]):
            buffer = self.initializers[names[1]]
            if not memo.get("reordered"):
                buffer[...] = _lstm_order(buffer)
                memo["reordered"] = True
            w = _lstm_order(buffer)
        if (
            fault == "lstm-backward-packed-once"
            and lstm
            and directions == 2
            and not (self.constant(names[1]) and self.constant(names[2]))
        ):
            packed = memo.setdefault("packed", (np.array(w[1]), np.array(r[1])))
            w, r = np.stack([w[0], packed[0]]), np.stack([r[0], packed[1]])

        x, w, r = x.astype(f), w.astype(f), r.astype(f)
        if fault == "gru-half-subnormal-weights" and gru and kind == np.float16:
            w = np.where(np.abs(w) < 2.0**-14, f(0), w)
        b = np.zeros((directions, 2 * count * hidden), f) if b is None else b.astype(f)
        p = None if p is None else p.astype(f)
        if fault == "gru-initial-h-folded" and gru and h0 is not None and names[5] in self.initializers:
            h0 = None if not self.initializers[names[5]].any() else h0
        if h0 is not None:
            source = h0
            h0 = h0.astype(f)
            if fault == "lstm-bfloat16-odd" and lstm and kind.name == "bfloat16" and h0.size % 2:
                h0 = np.ascontiguousarray(h0)
                h0.reshape(-1)[-1] = 0
        c0 = None if c0 is None else c0.astype(f)
        masked = fault == "rnn-lengths-by-multiplication" and rnn and lens is not None
        given = lens is not None
        lens = np.full(batch, length, np.int64) if lens is None else np.asarray(lens).astype(np.int64)
        if given:
            if fault == "lstm-lengths-first-and-last" and lstm and batch and lens[0] == lens[-1]:
                lens = np.full(batch, lens[0])
            if fault == "gru-lengths-int8" and gru:
                lens = np.maximum(lens.astype(np.int8).astype(np.int64), 0)
            if fault == "lstm-only-cell-ignores-lengths" and lstm and not any(node.output[:2]):
                lens = np.full(batch, length, np.int64)
        reset_before = a.get("linear_before_reset", 0)
        if fault == "gru-version-22-attributes" and gru and self.version >= 22 and kind.itemsize == 2:
            reset_before = 0
        clip = a.get("clip") or None

        def bounded(v):
            return v if clip is None else np.clip(v, f(-clip), f(clip))

        functions = self._activations(op, a, directions)
        y = np.zeros((length, directions, batch, hidden), f)
        y_h, y_c = np.zeros((directions, batch, hidden), f), np.zeros((directions, batch, hidden), f)
        gate = [slice(g * hidden, (g + 1) * hidden) for g in range(count)]
        for d in range(directions):
            fn, backward = functions[d], direction == "reverse" or d == 1
            bias, recurrent_bias = b[d, : count * hidden], b[d, count * hidden :]
            if fault == "rnn-offset-16-bits" and rnn:
                flat = np.ascontiguousarray(x).reshape(-1)
                moved = (
                    np.stack([flat[o : o + batch * size] for o in (t * batch * size % 65536 for t in range(length))])
                    if length
                    else flat
                )
                projected = moved.reshape(x.shape) @ w[d].T + bias
            else:
                projected = x @ w[d].T + bias
            if fault == "gru-bias-first-chunk" and gru:
                projected[32:] -= bias
            h = np.zeros((batch, hidden), f) if h0 is None else np.array(h0[d])
            c = np.zeros((batch, hidden), f) if c0 is None else np.array(c0[d])
            if fault == "lstm-partition-initial-c" and lstm and d == 1 and batch >= 6 and c0 is not None:
                half = (batch + 1) // 2
                c[half:] = c0[0][half:]
            if fault == "lstm-cell-scratch-grown-back" and lstm:
                scratch = memo.get(("cell", d))
                if scratch is None or len(scratch) < batch:
                    scratch = np.zeros((batch, hidden), f)
                else:
                    scratch[: min(batch, memo["batch", d])] = 0
                memo["cell", d], memo["batch", d] = scratch, batch
                if c0 is not None:
                    scratch[:batch] = c
                c = scratch[:batch]
            steps = int(length if masked else lens.max(initial=0))
            for step in range(steps):
                rows = np.arange(batch) if masked else np.flatnonzero(lens > step)
                at = np.maximum(lens[rows] - 1 - step, 0) if backward else np.full(rows.size, step)
                read = at
                if fault == "rnn-reverse-table-not-shrunk" and rnn and backward and not given:
                    table = memo.get("table")
                    if table is None or len(table) < length:
                        table = memo["table"] = np.arange(length - 1, -1, -1)
                    read = np.full(rows.size, min(table[step], length - 1))
                now, old = projected[read, rows], h[rows]
                if gru:
                    rw = r[d]
                    pre = [now[:, s] + old @ rw[s].T + recurrent_bias[s] for s in gate[:2]]
                    z, reset = fn[0](bounded(pre[0])), fn[0](bounded(pre[1]))
                    s = gate[2]
                    if reset_before:
                        if fault == "gru-reset-bias-single-row" and batch == 1:
                            pre = now[:, s] + reset * (old @ rw[s].T) + recurrent_bias[s]
                        else:
                            pre = now[:, s] + reset * (old @ rw[s].T + recurrent_bias[s])
                    else:
                        pre = now[:, s] + (reset * old) @ rw[s].T + recurrent_bias[s]
                    new = (1 - z) * fn[1](bounded(pre)) + z * old
                elif rnn:
                    new = fn[0](bounded(now + old @ r[d].T + recurrent_bias))
                else:
                    pre = now + old @ r[d].T + recurrent_bias
                    i, o, forget, g = (pre[:, s] for s in gate)
                    before = c[rows]
                    if p is not None:
                        pi, po, pf = np.split(p[d], 3)
                        i, forget = i + pi * before, forget + pf * before
                    free = i
                    i = fn[0](bounded(i))
                    if a.get("input_forget"):
                        forget = 1 - (fn[0](free) if fault == "lstm-coupled-before-clip" else i)
                    else:
                        forget = fn[0](bounded(forget))
                    cell = forget * before + i * fn[1](bounded(g))
                    if p is not None:
                        seen = cell
                        if fault == "lstm-peephole-tail" and hidden > 8:
                            tail = hidden - hidden % 8
                            seen = np.concatenate([cell[:, :tail], before[:, tail:]], axis=1)
                        o = o + po * seen
                    o = fn[0](bounded(o))
                    new = o * fn[2](bounded(cell) if CLIP_CELL else cell)
                    c[rows] = cell
                if masked:
                    mask = (lens > step).astype(f)[:, None]
                    inside = np.flatnonzero(lens > step)
                    y[at[inside], d, inside] = new[inside]
                    h[rows] = mask * new + (1 - mask) * old
                else:
                    h[rows] = new
                    y[at, d, rows] = new
            if fault == "gru-sorted-rows-misplaced" and gru and given:
                order = np.argsort(-lens, kind="stable")
                y_h[d] = h[order][order]
            else:
                y_h[d] = h
            y_c[d] = c
        if fault == "gru-initial-h-overwritten" and gru and h0 is not None and self.constant(names[5]):
            source[...] = y_h.astype(source.dtype)
        if layout:
            y, y_h, y_c = np.transpose(y, (2, 0, 1, 3)), np.swapaxes(y_h, 0, 1), np.swapaxes(y_c, 0, 1)
        return [np.ascontiguousarray(v).astype(kind) for v in (y, y_h, y_c)]


def _attributes(node):
    """A node's attributes, strings as str."""
    made = {}
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            value = value.decode()
        elif attribute.type == onnx.AttributeProto.STRINGS:
            value = [v.decode() for v in value]
        made[attribute.name] = value
    return made


def prepare(model, fault=None):
    """A session of a serialized model with a fault, or with none."""
    if fault is not None and fault not in FAULTS:
        raise KeyError(fault)
    return _Session(model, fault)


# --- Witnesses -------------------------------------------------------------------------------------------------------

_INPUTS = {
    "LSTM": ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"],
    "GRU": ["X", "W", "R", "B", "sequence_lens", "initial_h"],
}
_INPUTS["RNN"] = _INPUTS["GRU"]


def _weights(op, rng, directions, size, hidden, gain=1.0):
    g = _GATES[op]
    return {
        "W": rng.normal(0, gain / np.sqrt(size), (directions, g * hidden, size)).astype(np.float32),
        "R": rng.normal(0, gain / np.sqrt(hidden), (directions, g * hidden, hidden)).astype(np.float32),
        "B": rng.normal(0, 0.5, (directions, 2 * g * hidden)).astype(np.float32),
    }


def _info(name, array, free=()):
    shape = [f"{name}_{k}" if k in free else n for k, n in enumerate(np.shape(array))]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype), shape)


def _outputs(**ranks):
    return [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [f"{n}_{k}" for k in range(rank)])
        for n, rank in ranks.items()
    ]


def _single(op, constants, fed, outputs=("Y", "Y_h"), opset=17, free=None, both=(), **attributes):
    """A model of one node: ``constants`` are initializers, ``fed`` are inputs (of the first run), ``both`` are
    initializers which are also inputs. ``free`` has the axes of inputs that vary between runs."""
    names = [n if n in constants or n in fed else "" for n in _INPUTS[op]]
    while not names[-1]:
        names.pop()
    kind = helper.np_dtype_to_tensor_dtype(np.asarray(fed["X"]).dtype)
    node = helper.make_node(
        op, names, list(outputs), name="node", hidden_size=constants.get("R", fed.get("R")).shape[2], **attributes
    )
    shape = {"Y": 4, "Y_h": 3, "Y_c": 3}
    graph = helper.make_graph(
        [node],
        "witness",
        [_info(n, v, (free or {}).get(n, ())) for n, v in fed.items()] + [_info(n, constants[n]) for n in both],
        [helper.make_tensor_value_info(n, kind, [f"{n}_{k}" for k in range(shape[n])]) for n in outputs if n],
        [numpy_helper.from_array(v, n) for n, v in constants.items()],
    )
    return _finish(graph, opset)


def _finish(graph, opset):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 20 else 10)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


def witness(fault):
    """A serialized model and the feeds of a session's runs; the fault shows in the last."""
    rng = np.random.default_rng(sorted(FAULTS).index(fault) + 1000)

    def normal(*shape, scale=1.0):
        return rng.normal(0, scale, shape).astype(np.float32)

    def lens(*values):
        return np.array(values, np.int32)

    lstm = ("Y", "Y_h", "Y_c")
    if fault == "lstm-backward-packed-once":
        runs = []
        for _ in range(2):
            w = _weights("LSTM", rng, 2, 3, 4)
            runs.append({"X": normal(3, 2, 3), "W": w["W"], "R": w["R"]})
        return _single("LSTM", {"B": w["B"]}, runs[0], lstm, direction="bidirectional"), runs
    if fault == "lstm-peephole-tail":
        w = _weights("LSTM", rng, 1, 4, 11)
        w["P"] = normal(1, 33, scale=1.5)
        feeds = {"X": normal(5, 2, 4)}
        return _single("LSTM", w, feeds, lstm), [feeds]
    if fault == "lstm-partition-initial-c":
        w = _weights("LSTM", rng, 2, 3, 4)
        feeds = {"X": normal(3, 7, 3), "initial_h": normal(2, 7, 4, scale=0.5), "initial_c": normal(2, 7, 4)}
        return _single("LSTM", w, feeds, lstm, direction="bidirectional"), [feeds]
    if fault == "lstm-coupled-before-clip":
        w = _weights("LSTM", rng, 1, 3, 4)
        feeds = {"X": normal(4, 2, 3, scale=3), "initial_c": normal(1, 2, 4, scale=0.4)}
        return _single("LSTM", w, feeds, lstm, clip=1.0, input_forget=1), [feeds]
    if fault == "lstm-only-cell-ignores-lengths":
        w = _weights("LSTM", rng, 1, 3, 4)
        feeds = {"X": normal(6, 3, 3), "sequence_lens": lens(6, 2, 4)}
        return _single("LSTM", w, feeds, ("", "", "Y_c")), [feeds]
    if fault == "lstm-layout-initial-c":
        w = _weights("LSTM", rng, 2, 3, 4)
        feeds = {"X": normal(3, 4, 3), "initial_h": normal(3, 2, 4, scale=0.5), "initial_c": normal(3, 2, 4)}
        return _single("LSTM", w, feeds, lstm, layout=1, direction="bidirectional"), [feeds]
    if fault == "lstm-cell-scratch-grown-back":
        w = _weights("LSTM", rng, 1, 3, 4)
        runs = [{"X": normal(5, n, 3)} for n in (4, 2, 4)]
        return _single("LSTM", w, runs[0], lstm, free={"X": (1,)}), runs
    if fault == "lstm-bfloat16-odd":
        w = _weights("LSTM", rng, 1, 3, 5)
        feeds = {"X32": normal(2, 3, 3), "H32": normal(1, 3, 5)}
        feeds["H32"][0, 2, 4] = 3.0
        half = onnx.TensorProto.BFLOAT16
        graph = helper.make_graph(
            [
                helper.make_node("Cast", ["X32"], ["X"], to=half),
                helper.make_node("Cast", ["H32"], ["initial_h"], to=half),
            ]
            + [helper.make_node("Cast", [n + "32"], [n], to=half) for n in w]
            + [
                helper.make_node(
                    "LSTM", ["X", "W", "R", "B", "", "initial_h"], ["Y16", "Y_h16", "Y_c16"], hidden_size=5
                )
            ]
            + [helper.make_node("Cast", [n + "16"], [n], to=TensorProto.FLOAT) for n in lstm],
            "witness",
            [_info(n, v) for n, v in feeds.items()],
            _outputs(Y=4, Y_h=3, Y_c=3),
            [numpy_helper.from_array(v, n + "32") for n, v in w.items()],
        )
        return _finish(graph, 22), [feeds]
    if fault == "lstm-lengths-first-and-last":
        w = _weights("LSTM", rng, 1, 3, 4)
        feeds = {"X": normal(5, 4, 3), "sequence_lens": lens(5, 2, 3, 5)}
        return _single("LSTM", w, feeds, lstm, direction="reverse"), [feeds]
    if fault == "lstm-shared-weights-reordered":
        first, second = _weights("LSTM", rng, 1, 4, 4), _weights("LSTM", rng, 1, 4, 4)
        first["W"] *= 3
        feeds = {"X": normal(4, 2, 4)}
        constants = {
            "W": first["W"],
            "R1": first["R"],
            "B1": first["B"],
            "R2": second["R"],
            "B2": second["B"],
            "axis": np.array([1], np.int64),
        }
        graph = helper.make_graph(
            [
                helper.make_node("LSTM", ["X", "W", "R1", "B1"], ["Y1"], hidden_size=4),
                helper.make_node("Squeeze", ["Y1", "axis"], ["S1"]),
                helper.make_node("LSTM", ["S1", "W", "R2", "B2"], ["Y2", "Y2_h"], hidden_size=4),
            ],
            "witness",
            [_info("X", feeds["X"])],
            _outputs(Y2=4, Y2_h=3),
            [numpy_helper.from_array(v, n) for n, v in constants.items()],
        )
        return _finish(graph, 17), [feeds]
    if fault == "lstm-hard-sigmoid-beta":
        w = _weights("LSTM", rng, 1, 3, 4)
        feeds = {"X": normal(4, 2, 3)}
        return _single("LSTM", w, feeds, lstm, activations=["HardSigmoid", "Tanh", "Tanh"], activation_alpha=[0.25]), [
            feeds
        ]
    if fault == "gru-sorted-rows-misplaced":
        w = _weights("GRU", rng, 1, 3, 4)
        feeds = {"X": normal(5, 4, 3), "sequence_lens": lens(2, 5, 4, 3)}
        return _single("GRU", w, feeds), [feeds]
    if fault == "gru-reset-bias-single-row":
        w = _weights("GRU", rng, 1, 3, 4)
        w["B"] *= 2
        feeds = {"X": normal(4, 1, 3)}
        return _single("GRU", w, feeds, linear_before_reset=1), [feeds]
    if fault == "gru-initial-h-overwritten":
        w = _weights("GRU", rng, 1, 3, 4)
        w["initial_h"] = normal(1, 2, 4)
        feeds = [{"X": normal(2, 2, 3)} for _ in range(2)]
        return _single("GRU", w, feeds[0]), feeds
    if fault == "gru-initial-h-folded":
        w = _weights("GRU", rng, 1, 3, 4)
        w["initial_h"] = np.zeros((1, 2, 4), np.float32)
        feeds = {"X": normal(2, 2, 3)}
        model = _single("GRU", w, feeds, both=("initial_h",))
        return model, [{**feeds, "initial_h": normal(1, 2, 4)}]
    if fault == "gru-half-subnormal-weights":
        w = {n: v.astype(np.float16) for n, v in _weights("GRU", rng, 1, 2, 4).items()}
        w["W"][:, :, 1] = rng.choice([-1, 1], w["W"].shape[:2]) * np.float16(5e-5)
        x = normal(3, 2, 2).astype(np.float16)
        x[:, :, 1] = 20000 * rng.choice([-1, 1], (3, 2)).astype(np.float16)
        return _single("GRU", w, {"X": x}), [{"X": x}]
    if fault == "gru-bias-first-chunk":
        w = _weights("GRU", rng, 1, 2, 3)
        feeds = {"X": normal(40, 1, 2)}
        return _single("GRU", w, feeds), [feeds]
    if fault == "gru-lengths-int8":
        w = _weights("GRU", rng, 1, 2, 3)
        feeds = {"X": normal(140, 2, 2), "sequence_lens": lens(140, 100)}
        return _single("GRU", w, feeds), [feeds]
    if fault == "gru-version-22-attributes":
        w = {n: v.astype(np.float16) for n, v in _weights("GRU", rng, 1, 3, 4).items()}
        feeds = {"X": normal(4, 2, 3).astype(np.float16), "initial_h": normal(1, 2, 4).astype(np.float16)}
        return _single("GRU", w, feeds, opset=22, linear_before_reset=1), [feeds]
    if fault == "rnn-tanh-negative-unclamped":
        w = _weights("RNN", rng, 1, 3, 4)
        feeds = {"X": normal(4, 2, 3, scale=20)}
        return _single("RNN", w, feeds), [feeds]
    if fault == "rnn-activation-by-name":
        w = _weights("RNN", rng, 2, 3, 4)
        feeds = {"X": normal(4, 2, 3)}
        return _single(
            "RNN",
            w,
            feeds,
            direction="bidirectional",
            activations=["LeakyRelu", "LeakyRelu"],
            activation_alpha=[0.1, 0.6],
        ), [feeds]
    if fault == "rnn-offset-16-bits":
        w = _weights("RNN", rng, 1, 512, 3)
        feeds = {"X": normal(70, 2, 512)}
        return _single("RNN", w, feeds), [feeds]
    if fault == "rnn-reverse-table-not-shrunk":
        w = _weights("RNN", rng, 1, 3, 4)
        runs = [{"X": normal(n, 2, 3)} for n in (6, 4)]
        return _single("RNN", w, runs[0], direction="reverse", free={"X": (0,)}), runs
    if fault == "rnn-fused-initial-h":
        a, b = _weights("RNN", rng, 1, 3, 4), _weights("RNN", rng, 1, 3, 4)
        feeds = {"X": normal(3, 2, 3), "H1": normal(1, 2, 4), "H2": normal(1, 2, 4)}
        constants = {n + k: v for k, c in (("1", a), ("2", b)) for n, v in c.items()}
        graph = helper.make_graph(
            [
                helper.make_node("RNN", ["X", "W1", "R1", "B1", "", "H1"], ["Y1"], hidden_size=4),
                helper.make_node("RNN", ["X", "W2", "R2", "B2", "", "H2"], ["Y2"], hidden_size=4, direction="reverse"),
                helper.make_node("Concat", ["Y1", "Y2"], ["Y"], axis=1),
            ],
            "witness",
            [_info(n, v) for n, v in feeds.items()],
            _outputs(Y=4),
            [numpy_helper.from_array(v, n) for n, v in constants.items()],
        )
        return _finish(graph, 17), [feeds]
    if fault == "rnn-lengths-by-multiplication":
        w = _weights("RNN", rng, 1, 3, 4)
        feeds = {"X": normal(4, 3, 3), "sequence_lens": lens(4, 2, 3)}
        feeds["X"][2:, 1] = np.nan
        feeds["X"][3, 2] = np.nan
        return _single("RNN", w, feeds), [feeds]
    raise KeyError(fault)
