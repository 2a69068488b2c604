"""Batch halite: one NumPy kernel of LSTM, GRU and RNN, and twenty-five faults in it.

The right kernel computes in float64 whatever the type of the tensors, and rounds only what it hands out. Where the
document is silent or says it twice, it behaves like this:

* Y beyond the length of a sequence is zero. A sequence of length 0 (or seq_length 0) leaves Y_h and Y_c at initial_h
  and initial_c, zero if these are missing.
* A reverse direction starts at the last step of each sequence's own length; Y stands at the step of X it belongs to.
* Lengths below 0 or above seq_length are refused (ValueError).
* ``clip`` bounds the input of every activation, so also of h(Ct); the cell that is carried on, seen by the peephole
  of the output gate and returned as Y_c is not clipped. ``clip`` 0 is a threshold of zero, not the absence of one.
* ``input_forget``, if not 0: ft = 1 - it; whatever W, R, B and P hold for the forget gate is not used.
* Activations are named in any case. Coefficients are consumed in the order of the activations, those of the backward
  direction after those of the forward one, alpha by Affine, LeakyRelu, ThresholdedRelu, ScaledTanh, HardSigmoid and
  Elu, beta by Affine, ScaledTanh and HardSigmoid, whether or not a function with none stands between. What is missing
  at the end is the default of the ONNX operator, in single precision as schemas have it (LeakyRelu 0.01, HardSigmoid
  0.2 and 0.5, Elu and ThresholdedRelu 1); for Affine and ScaledTanh, which are operators no more, 1 and 0, 1 and 1.
  Superfluous coefficients are ignored. ThresholdedRelu passes x >= alpha, as the document of these operators says.
* Superfluous activations are ignored (RNN's own default has two); of too few for two directions, the backward one
  takes the forward one's; fewer than one direction needs are refused.
* Versions 1 and 3: Y is returned if it is named, whatever ``output_sequence``. GRU-1 has no linear_before_reset: 0.
  The misspelt default direction of GRU-1 is forward.
* A missing ``hidden_size`` is the last dimension of R; one that disagrees with R is refused.
* Initializers are defaults of graph inputs of the same name. If, Loop and model-local functions may hold the operators;
  Scan, sequence maps, sparse initializers and operators of other domains may not (NotImplementedError).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.inliner
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

WRITTEN = "2026-11-26"

FAULTS = {
    "lstm-fed-peephole-order": "Peepholes are brought into the kernel's order (i, f, o) while constants are packed, so "
    "that a P which is computed or fed at run time is read as i, f, o.",
    "lstm-clip-in-bias": "The gates are clipped by the routine that adds B, which is not called if B is missing.",
    "lstm-thread-initial-c": "From a batch of eight on, rows are divided between two threads, and the second reads "
    "initial_c from row 0 instead of its own first row.",
    "lstm-sorted-y-c": "Rows are sorted by falling length to be packed; Y and Y_h are put back into order, Y_c is not.",
    "lstm-pingpong-y-h": "If Y is not asked for, the state swings between two buffers and Y_h is read from the one of "
    "the last step of X: a sequence that ended an odd number of steps before hands back the state before its last.",
    "lstm-bf16-pairs": "bfloat16 products run over pairs of elements; the last of an odd input_size or hidden_size "
    "above one is left out.",
    "lstm-coupled-forward-only": "input_forget is handed to the kernel of the first direction only; the backward one "
    "of a bidirectional node has a forget gate of its own.",
    "lstm-alpha-halves": "activation_alpha of a bidirectional node is divided into halves of equal length for the two "
    "directions, instead of being consumed in order.",
    "lstm-resized-cell": "Without initial_c, the cell's buffer of a session is cleared in the rows it had in the run "
    "before; rows that it regains after a smaller batch hold what an earlier run left.",
    "gru-lbr-no-bias": "With linear_before_reset and without B, Ht-1*(Rh^T) is added to what the step before left in "
    "the buffer, in rows of the batch after the second.",
    "gru-double-functions": "Sigmoid and Tanh of double tensors are computed in single precision.",
    "gru-square-transpose": "With layout 1 the transpose of X is dropped as one that changes nothing if it does not "
    "change the shape, that is if batch_size equals seq_length.",
    "gru-first-lengths": "Without sequence_lens, lengths are filled in with seq_length in the first run of a session "
    "and kept; a longer run ends after as many steps.",
    "gru-tail-functions": "The elements of hidden_size that are left over by vectors of eight (if there is one "
    "vector) go through Sigmoid and Tanh whatever the activations are.",
    "gru-last-step": "A Gather of the last step of Y (index -1, axis 0) is rewritten to Y_h, without a look at the "
    "direction.",
    "gru-three-lbr": "linear_before_reset is read from version 7 on only, though version 3 has it.",
    "gru-half-sigmoid": "Sigmoid of float16 is looked up in a table of [-8, 8], whose ends stand for all beyond.",
    "rnn-clip-fused": "clip is fused as a clamp of the result of Relu, LeakyRelu and Affine instead of their input.",
    "rnn-folded-bias": "Wb + Rb of an initializer B are added while the session is made, and a feed which overrides "
    "that initializer (a graph input too) is not seen.",
    "rnn-zero-state": "A constant initial_h is dropped as zero if its first row is zero, whatever the other rows hold.",
    "rnn-k-block": "Xt*(Wi^T) runs over input_size in blocks of 128; a shorter last block overwrites the sum of those "
    "before instead of being added.",
    "rnn-equal-lengths": "sequence_lens are dropped if all are equal (and above 0), even if below seq_length.",
    "rnn-beta-with-alpha": "If activation_alpha is given and activation_beta is not, beta is 0 and not the default.",
    "rnn-scaled-tanh-range": "ScaledTanh saturates by bounding x to [-9, 9] and multiplies by beta after that.",
    "rnn-reverse-chunk": "Without sequence_lens, inputs are projected sixteen steps at a time; after at least one full "
    "chunk, the shorter last one of a reverse direction is read in forward order.",
}

OPS = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULT_FUNCTIONS = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}
ALPHA = {
    "affine": 1.0,
    "leakyrelu": float(np.float32(0.01)),
    "thresholdedrelu": 1.0,
    "scaledtanh": 1.0,
    "hardsigmoid": float(np.float32(0.2)),
    "elu": 1.0,
}
BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}


def _sigmoid(x: Any, alpha: float = 0, beta: float = 0) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


FUNCTIONS: dict[str, Any] = {
    "relu": lambda x, a, b: np.maximum(x, 0),
    "tanh": lambda x, a, b: np.tanh(x),
    "sigmoid": _sigmoid,
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "thresholdedrelu": lambda x, a, b: np.where(x >= a, x, 0),
    "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
    "hardsigmoid": lambda x, a, b: np.minimum(np.maximum(a * x + b, 0), 1),
    "elu": lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))),
    "softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "softplus": lambda x, a, b: np.logaddexp(0, x),
}


class _Kernel:
    """One node; what it keeps between runs is of a faulty kernel only."""

    def __init__(self, node: Any, version: int, fault: str | None) -> None:
        self.op: str = node.op_type
        self.fault = fault
        self.version = version
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        self.hidden: int | None = attributes.get("hidden_size")
        direction = attributes.get("direction", b"forward").decode().lower()
        if direction == "foward":
            direction = "forward"
        if direction not in ("forward", "reverse", "bidirectional"):
            raise ValueError(f"direction {direction!r}")
        self.reverse = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
        self.layout: int = attributes.get("layout", 0)
        self.clip: float | None = attributes.get("clip")
        self.coupled: int = attributes.get("input_forget", 0)
        self.linear_first: int = attributes.get("linear_before_reset", 0) if version >= 3 else 0
        if fault == "gru-three-lbr" and self.op == "GRU" and version < 7:
            self.linear_first = 0
        self.functions = self._functions(attributes)
        self.cells: Any = None
        self.rows = 0
        self.first_length: int | None = None

    def has(self, fault: str) -> bool:
        """Whether this node has that fault."""
        return self.fault == fault and fault.startswith(self.op.lower())

    def _functions(self, attributes: dict[str, Any]) -> list[list[tuple[str, float, float]]]:
        default = DEFAULT_FUNCTIONS[self.op]
        each, directions = len(default), len(self.reverse)
        names = [n.decode().lower() for n in attributes.get("activations", [])] or default * directions
        if len(names) < each:
            raise ValueError(f"{len(names)} activations")
        if len(names) < each * directions:
            names = names[:each] * directions
        names = names[: each * directions]
        if unknown := [n for n in names if n not in FUNCTIONS]:
            raise NotImplementedError(f"activation {unknown[0]}")
        alphas = list(attributes.get("activation_alpha", []))
        betas = list(attributes.get("activation_beta", []))
        given = bool(alphas) and not betas
        halves = None
        if self.has("lstm-alpha-halves") and directions == 2:
            half = len(alphas) // 2
            halves = [alphas[:half], alphas[half:]]
        functions = []
        for d in range(directions):
            if halves is not None:
                alphas = halves[d]
            functions.append([])
            for name in names[d * each : (d + 1) * each]:
                alpha = beta = 0.0
                if name in ALPHA:
                    alpha = alphas.pop(0) if alphas else ALPHA[name]
                if name in BETA:
                    beta = betas.pop(0) if betas else BETA[name]
                    if given and self.has("rnn-beta-with-alpha"):
                        beta = 0.0
                functions[-1].append((name, alpha, beta))
        return functions

    def _apply(self, function: tuple[str, float, float], x: Any, clip: bool = True, slot: int = 0) -> Any:
        """An activation of an input, which is clipped before."""
        name, alpha, beta = function
        bound = self.clip if clip else None
        after = bound is not None and self.has("rnn-clip-fused") and name in ("relu", "leakyrelu", "affine")
        if bound is not None and not after:
            x = np.clip(x, -bound, bound)
        if self.has("gru-double-functions") and self.type == np.float64 and name in ("sigmoid", "tanh"):
            return FUNCTIONS[name](x.astype(np.float32), alpha, beta).astype(np.float32).astype(np.float64)
        if self.has("gru-half-sigmoid") and self.type == np.float16 and name == "sigmoid":
            x = np.clip(x, -8, 8)
        if self.has("rnn-scaled-tanh-range") and name == "scaledtanh":
            x = np.clip(x, -9, 9)
        y = FUNCTIONS[name](x, alpha, beta)
        if after:
            y = np.clip(y, -bound, bound)  # type: ignore[operator]
        if self.has("gru-tail-functions") and x.shape[1] > 8 and x.shape[1] % 8:
            tail = x.shape[1] // 8 * 8
            y = np.array(y)
            y[:, tail:] = FUNCTIONS[DEFAULT_FUNCTIONS["GRU"][slot]](x[:, tail:], 0, 0)
        return y

    def _product(self, x: Any, weights: Any, of_input: bool = False) -> Any:
        """x * weights^T."""
        size = x.shape[1]
        if self.has("lstm-bf16-pairs") and self.type == ml_dtypes.bfloat16 and size % 2 and size > 1:
            return x[:, :-1] @ weights[:, :-1].T
        if of_input and self.has("rnn-k-block") and size > 128 and size % 128:
            start = size // 128 * 128
            return x[:, start:] @ weights[:, start:].T
        return x @ weights.T

    def run(self, values: list[Any], constant: list[bool], packed: list[Any], wanted: list[bool]) -> list[Any]:
        """The outputs Y, Y_h and Y_c; `packed` are the initializers behind the inputs, fed over or not."""
        names = ["X", "W", "R", "B", "lens", "h", "c", "P"]
        given = dict(zip(names, values, strict=False))
        fixed = dict(zip(names, constant, strict=False))
        self.type = given["X"].dtype
        if self.has("rnn-folded-bias") and len(packed) > 3 and packed[3] is not None:
            given["B"] = packed[3]

        def wide(name: str) -> Any:
            value = given.get(name)
            return None if value is None else np.asarray(value).astype(np.float64)

        x, w, r, b, h0, c0, p = (wide(n) for n in ("X", "W", "R", "B", "h", "c", "P"))
        if self.layout:
            if not (self.has("gru-square-transpose") and x.shape[0] == x.shape[1]):
                x = x.transpose(1, 0, 2)
            h0, c0 = (None if s is None else s.transpose(1, 0, 2) for s in (h0, c0))
        steps, batch, _ = x.shape
        directions, hidden, gates = len(self.reverse), r.shape[2], OPS[self.op]
        if self.hidden is not None and self.hidden != hidden:
            raise ValueError(f"hidden_size {self.hidden}, R of {hidden}")
        if w.shape != (directions, gates * hidden, x.shape[2]) or r.shape != (directions, gates * hidden, hidden):
            raise ValueError(f"W {w.shape}, R {r.shape}")
        state = (directions, batch, hidden)
        if any(s is not None and s.shape != state for s in (h0, c0)):
            raise ValueError("the shape of an initial state")

        lens = given.get("lens")
        has_lens = lens is not None
        if lens is None:
            length = steps
            if self.has("gru-first-lengths"):
                if self.first_length is None:
                    self.first_length = steps
                length = min(steps, self.first_length)
            lens = np.full(batch, length, np.int64)
        else:
            lens = np.asarray(lens).astype(np.int64)
            if lens.shape != (batch,) or (lens < 0).any() or (lens > steps).any():
                raise ValueError(f"sequence_lens {lens}")
            if self.has("rnn-equal-lengths") and batch and lens[0] > 0 and (lens == lens[0]).all():
                lens = np.full(batch, steps, np.int64)

        if self.has("rnn-zero-state") and h0 is not None and fixed["h"] and batch and not h0[0, 0].any():
            h0 = None
        h0 = np.zeros(state) if h0 is None else h0
        own_cells = self.op == "LSTM" and c0 is None
        if own_cells and self.has("lstm-resized-cell"):
            c0 = self._cells(state)
        elif c0 is None:
            c0 = np.zeros(state)
        elif self.has("lstm-thread-initial-c") and batch >= 8:
            half = (batch + 1) // 2
            c0 = np.concatenate([c0[:, :half], c0[:, : batch - half]], axis=1)

        no_bias = b is None
        b = np.zeros((directions, 2 * gates * hidden)) if b is None else b
        p = np.zeros((directions, 3 * hidden)) if p is None else p
        if self.has("lstm-fed-peephole-order") and not fixed.get("P", True):
            i, f, o = np.split(p, 3, axis=1)
            p = np.concatenate([i, o, f], axis=1)

        y = np.zeros((steps, directions, batch, hidden))
        h_last, c_last = np.array(h0), np.array(c0)
        rows = np.arange(batch)
        for d, reverse in enumerate(self.reverse):
            h, c = np.array(h0[d]), np.array(c0[d])
            before = np.array(h)
            self.linear = np.zeros((batch, hidden))
            for s in range(int(lens.max()) if batch else 0):
                active = s < lens
                at = np.maximum(lens - 1 - s, 0) if reverse else np.full(batch, s)
                read = at
                if reverse and not has_lens and self.has("rnn-reverse-chunk") and steps > 16 and s >= steps // 16 * 16:
                    read = np.full(batch, s - steps // 16 * 16)
                new_h, new_c = self._step(d, x[read, rows], h, c, w[d], r[d], b[d], p[d], no_bias)
                before = np.where(active[:, None], h, before)
                h = np.where(active[:, None], new_h, h)
                c = np.where(active[:, None], new_c, c)
                y[at[active], d, rows[active]] = h[active]
            h_last[d], c_last[d] = h, c
            if self.has("lstm-pingpong-y-h") and not wanted[0]:
                odd = ((steps - lens) % 2 == 1) & (lens > 0)
                h_last[d][odd] = before[odd]
        if own_cells and self.has("lstm-resized-cell"):
            self.cells[:, :batch] = c_last
        if self.has("lstm-sorted-y-c") and has_lens:
            c_last = c_last[:, np.argsort(-lens, kind="stable")]
        if self.layout:
            y, h_last, c_last = y.transpose(2, 0, 1, 3), h_last.transpose(1, 0, 2), c_last.transpose(1, 0, 2)
        return [np.ascontiguousarray(v).astype(self.type) for v in (y, h_last, c_last)]

    def _cells(self, state: tuple[int, int, int]) -> Any:
        """The cells a session keeps, of which some may not have been cleared."""
        directions, batch, hidden = state
        kept = self.cells
        if kept is None or kept.shape[1] < batch or kept.shape[::2] != (directions, hidden):
            self.cells = np.zeros(state)
        else:
            kept[:, : min(batch, self.rows)] = 0
        self.rows = batch
        return np.array(self.cells[:, :batch])

    def _step(self, d: int, x: Any, h: Any, c: Any, w: Any, r: Any, b: Any, p: Any, no_bias: bool) -> tuple[Any, Any]:
        """One step of all rows in a direction: the new hidden and cell."""
        size = h.shape[1]
        functions = self.functions[d]
        gates = OPS[self.op]
        wb, rb = b[: gates * size], b[gates * size :]
        xw = self._product(x, w, of_input=True) + wb
        if self.op == "RNN":
            return self._apply(functions[0], xw + self._product(h, r) + rb), c
        if self.op == "GRU":
            f, g = functions
            hr = self._product(h, r[: 2 * size]) + rb[: 2 * size]
            z = self._apply(f, xw[:, :size] + hr[:, :size])
            reset = self._apply(f, xw[:, size : 2 * size] + hr[:, size:])
            rh, rbh = r[2 * size :], rb[2 * size :]
            if self.linear_first:
                linear = self._product(h, rh)
                if self.has("gru-lbr-no-bias") and no_bias:
                    linear[2:] += self.linear[2:]
                    self.linear = linear
                inner = reset * (linear + rbh)
            else:
                inner = self._product(reset * h, rh) + rbh
            candidate = self._apply(g, xw[:, 2 * size :] + inner, slot=1)
            return (1 - z) * candidate + z * h, c
        f, g, last = functions
        clip = not (no_bias and self.has("lstm-clip-in-bias"))
        i, o, forget, cell = np.split(xw + self._product(h, r) + rb, 4, axis=1)
        pi, po, pf = p[:size], p[size : 2 * size], p[2 * size :]
        i = self._apply(f, i + pi * c, clip)
        if self.coupled and not (d == 1 and self.has("lstm-coupled-forward-only")):
            forget = 1 - i
        else:
            forget = self._apply(f, forget + pf * c, clip)
        new = forget * c + i * self._apply(g, cell, clip)
        o = self._apply(f, o + po * new, clip)
        return o * self._apply(last, new), new


def _graphs(node: Any) -> list[Any]:
    return [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]


def _holds(graph: Any) -> bool:
    return any(n.op_type in OPS or any(_holds(g) for g in _graphs(n)) for n in graph.node)


def _captured(graph: Any) -> set[str]:
    """Names a subgraph takes from around it."""
    known = {i.name for i in graph.input} | {i.name for i in graph.initializer}
    free: set[str] = set()
    for node in graph.node:
        for inner in _graphs(node):
            free |= _captured(inner) - known
        free |= {n for n in node.input if n} - known
        known |= set(node.output)
    return free | ({o.name for o in graph.output} - known)


class _Graph:
    """A graph, its nodes made ready."""

    def __init__(self, graph: Any, model: Any, version: int, fault: str | None) -> None:
        self.graph = graph
        self.model = model
        self.fault = fault
        if graph.sparse_initializer:
            raise NotImplementedError("sparse initializers")
        if any(t.data_location == TensorProto.EXTERNAL for t in graph.initializer):
            raise NotImplementedError("external data")
        self.initializers = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.constants = set(self.initializers)
        self.runners: list[Any] = []
        for node in graph.node:
            if node.domain not in ("", "ai.onnx"):
                raise NotImplementedError(f"domain {node.domain}")
            if node.op_type in OPS:
                self.runners.append(_Kernel(node, version, fault))
            elif node.op_type == "If" or (node.op_type == "Loop" and any(_holds(g) for g in _graphs(node))):
                self.runners.append({a.name: _Graph(a.g, model, version, fault) for a in node.attribute})
            elif any(_holds(g) for g in _graphs(node)):
                raise NotImplementedError(f"{node.op_type} around a recurrent operator")
            else:
                self.runners.append(self._evaluator(node))
            if node.op_type == "Constant":
                self.constants |= set(node.output)

    def _evaluator(self, node: Any) -> tuple[Any, list[str], list[str]]:
        captured: set[str] = set()
        for inner in _graphs(node):
            captured |= _captured(inner)
        taken = list(dict.fromkeys([n for n in node.input if n] + sorted(captured)))
        made = [n for n in node.output if n]
        inputs, outputs = ([onnx.ValueInfoProto(name=n) for n in names] for names in (taken, made))
        model = onnx.ModelProto(ir_version=self.model.ir_version, opset_import=self.model.opset_import)
        model.graph.CopyFrom(onnx.GraphProto(name="one", node=[node], input=inputs, output=outputs))
        try:
            return ReferenceEvaluator(model), taken, made
        except Exception as error:
            raise NotImplementedError(f"{node.op_type}: {error}") from error

    def run(self, feeds: dict[str, Any], outer: dict[str, Any]) -> list[Any]:
        """The outputs, from values of inputs and those around."""
        values = {**outer, **self.initializers, **feeds}
        constants = self.constants - set(feeds)
        hidden: dict[str, Any] = {}
        for node, runner in zip(self.graph.node, self.runners, strict=True):
            if isinstance(runner, _Kernel):
                given = [values[n] if n else None for n in node.input]
                packed = [self.initializers.get(n) for n in node.input]
                wanted = [bool(n) for n in node.output] + [False] * 3
                with np.errstate(all="ignore"):
                    results = runner.run(given, [n in constants for n in node.input], packed, wanted)
                if self.fault == "gru-last-step" and node.op_type == "GRU" and not runner.layout and wanted[0]:
                    if results[0].shape[0] and not (len(given) > 4 and given[4] is not None):
                        hidden[node.output[0]] = results[1]
                made = dict(zip(node.output, results, strict=False))
            elif node.op_type == "If":
                branch = runner["then_branch" if np.asarray(values[node.input[0]]).item() else "else_branch"]
                made = dict(zip(node.output, branch.run({}, values), strict=True))
            elif isinstance(runner, dict):
                made = dict(zip(node.output, _loop(node, runner["body"], values), strict=False))
            elif node.op_type == "Gather" and node.input[0] in hidden and _is_last(node, values, constants):
                made = {node.output[0]: hidden[node.input[0]]}
            else:
                evaluator, taken, names = runner
                made = dict(zip(names, evaluator.run(None, {n: values[n] for n in taken}), strict=True))
            made.pop("", None)
            values.update(made)
        return [values[o.name] for o in self.graph.output]


def _is_last(node: Any, values: dict[str, Any], constants: set[str]) -> bool:
    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
    index = np.asarray(values[node.input[1]])
    return axis == 0 and node.input[1] in constants and index.shape == () and int(index) == -1


def _loop(node: Any, body: _Graph, values: dict[str, Any]) -> list[Any]:
    names = [*node.input, "", ""]
    limit = int(np.asarray(values[names[0]]).item()) if names[0] else None
    going = bool(np.asarray(values[names[1]]).item()) if names[1] else True
    carried = [values[n] for n in node.input[2:]]
    inputs = [i.name for i in body.graph.input]
    scans: list[list[Any]] = [[] for _ in range(len(body.graph.output) - 1 - len(carried))]
    turn = 0
    while going and (limit is None or turn < limit):
        given = [np.array(turn, np.int64), np.array(going), *carried]
        results = body.run(dict(zip(inputs, given, strict=True)), values)
        going = bool(np.asarray(results[0]).item())
        carried = results[1 : 1 + len(carried)]
        for scan, value in zip(scans, results[1 + len(carried) :], strict=True):
            scan.append(value)
        turn += 1
    if any(not scan for scan in scans):
        raise NotImplementedError("a loop of no turns with scan outputs")
    return [*carried, *(np.stack(scan) for scan in scans)]


class _Session:
    """A model made ready; it may be run many times."""

    def __init__(self, data: bytes, fault: str | None) -> None:
        model = onnx.load_model_from_string(data)
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
        versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
        version = versions[0] if versions else 1
        self.graph = _Graph(model.graph, model, version, fault)
        self.needed = [i.name for i in model.graph.input if i.name not in self.graph.initializers]

    def run(self, feeds: dict[str, Any]) -> list[Any]:
        """The outputs of the graph in order."""
        feeds = {n: np.asarray(v) for n, v in feeds.items()}
        if missing := [n for n in self.needed if n not in feeds]:
            raise ValueError(f"no feed of {missing}")
        return [np.array(v) if isinstance(v, np.ndarray | np.generic) else v for v in self.graph.run(feeds, {})]


def prepare(model: bytes, fault: str | None = None) -> _Session:
    """A session of a serialized model with a fault, or of the right kernel."""
    if fault is not None and fault not in FAULTS:
        raise ValueError(f"no fault {fault!r}")
    return _Session(model, fault)


def _model(
    op: str,
    values: dict[str, Any],
    *,
    fed: tuple[str, ...] = ("X",),
    overridable: tuple[str, ...] = (),
    outputs: tuple[str, ...] | None = None,
    after: tuple[Any, ...] = (),
    results: tuple[str, ...] | None = None,
    version: int = 22,
    **attributes: Any,
) -> bytes:
    """A model of one node (and those after it); inputs by name, of which some are fed and the rest initializers."""
    slots = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"]
    names = [n if n in values else "" for n in slots]
    while not names[-1]:
        names.pop()
    outputs = outputs or (("Y", "Y_h", "Y_c") if op == "LSTM" else ("Y", "Y_h"))
    kind = helper.np_dtype_to_tensor_dtype(values["X"].dtype)
    node = helper.make_node(op, names, list(outputs), hidden_size=values["R"].shape[2], **attributes)
    inputs = [
        helper.make_tensor_value_info(
            n,
            helper.np_dtype_to_tensor_dtype(values[n].dtype),
            [f"{n}_{k}" for k in range(values[n].ndim)] if n in fed else values[n].shape,
        )
        for n in slots
        if n in fed or n in overridable
    ]
    made = [
        helper.make_tensor_value_info(n, kind, [f"{n}_{k}" for k in range(4 if n == "Y" else 3)])
        for n in results or [o for o in outputs if o]
    ]
    constants = [numpy_helper.from_array(values[n], n) for n in slots if n in values and n not in fed]
    extra = [numpy_helper.from_array(np.array(-1, np.int64), "last")] if after else []
    graph = helper.make_graph([node, *after], "halite", inputs, made, [*constants, *extra])
    ir = 10 if version >= 22 else 8
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=ir)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _values(
    op: str, t: int, n: int, i: int, h: int, *extra: str, d: int = 1, layout: int = 0, kind: Any = np.float32
) -> dict[str, Any]:
    """Random inputs, of which `extra` are there besides X, W and R; the same each time."""
    rng = np.random.default_rng([t, n, i, h, d, len(op)])
    gates = OPS[op]
    state = (n, d, h) if layout else (d, n, h)
    shapes = {
        "X": (n, t, i) if layout else (t, n, i),
        "W": (d, gates * h, i),
        "R": (d, gates * h, h),
        "B": (d, 2 * gates * h),
        "initial_h": state,
        "initial_c": state,
        "P": (d, 3 * h),
    }
    values = {k: rng.uniform(-1, 1, s) for k, s in shapes.items()}
    values["W"] *= 1.5 / np.sqrt(i)
    values["R"] *= 1.5 / np.sqrt(h)
    return {k: v.astype(kind) for k, v in values.items() if k in ("X", "W", "R", *extra)}


def plain(op: str) -> tuple[bytes, list[dict[str, Any]]]:
    """A model no fault shows on."""
    v = _values(op, 3, 2, 4, 4, "B")
    return _model(op, v), [{"X": v["X"]}]


def witness(fault: str) -> tuple[bytes, list[dict[str, Any]]]:
    """A legal model, and the feeds of the runs of a session in the last of which a fault shows."""

    def lens(v: dict[str, Any], *lengths: int) -> dict[str, Any]:
        return {**v, "sequence_lens": np.array(lengths, np.int32)}

    match fault:
        case "lstm-fed-peephole-order":
            v = _values("LSTM", 4, 2, 3, 4, "B", "P", "initial_c")
            return _model("LSTM", v, fed=("X", "P")), [{"X": v["X"], "P": v["P"]}]
        case "lstm-clip-in-bias":
            v = _values("LSTM", 4, 2, 3, 4)
            return _model("LSTM", v, clip=0.3), [{"X": v["X"]}]
        case "lstm-thread-initial-c":
            v = _values("LSTM", 2, 9, 3, 4, "B", "initial_h", "initial_c")
            return _model("LSTM", v, fed=("X", "initial_c")), [{"X": v["X"], "initial_c": v["initial_c"]}]
        case "lstm-sorted-y-c":
            v = lens(_values("LSTM", 5, 3, 3, 4, "B"), 2, 5, 3)
            return _model("LSTM", v), [{"X": v["X"]}]
        case "lstm-pingpong-y-h":
            v = lens(_values("LSTM", 5, 3, 3, 4, "B"), 5, 4, 2)
            return _model("LSTM", v, outputs=("", "Y_h", "Y_c")), [{"X": v["X"]}]
        case "lstm-bf16-pairs":
            v = _values("LSTM", 3, 2, 5, 4, "B", kind=ml_dtypes.bfloat16)
            return _model("LSTM", v), [{"X": v["X"]}]
        case "lstm-coupled-forward-only":
            v = _values("LSTM", 4, 2, 3, 4, "B", "initial_c", d=2)
            return _model("LSTM", v, direction="bidirectional", input_forget=1), [{"X": v["X"]}]
        case "lstm-alpha-halves":
            v = _values("LSTM", 4, 2, 3, 4, "B", d=2)
            names = ["Sigmoid", "Tanh", "Tanh", "HardSigmoid", "LeakyRelu", "Tanh"]
            model = _model("LSTM", v, direction="bidirectional", activations=names, activation_alpha=[0.4, 0.1])
            return model, [{"X": v["X"]}]
        case "lstm-resized-cell":
            v = _values("LSTM", 3, 4, 3, 4, "B")
            return _model("LSTM", v), [{"X": v["X"]}, {"X": v["X"][:, :2]}, {"X": v["X"][:, ::-1]}]
        case "gru-lbr-no-bias":
            v = _values("GRU", 4, 4, 3, 4)
            return _model("GRU", v, linear_before_reset=1), [{"X": v["X"]}]
        case "gru-double-functions":
            v = _values("GRU", 4, 2, 3, 4, "B", kind=np.float64)
            return _model("GRU", v), [{"X": v["X"]}]
        case "gru-square-transpose":
            v = _values("GRU", 3, 3, 4, 5, "B", layout=1)
            return _model("GRU", v, layout=1), [{"X": v["X"]}]
        case "gru-first-lengths":
            v = _values("GRU", 5, 2, 3, 4, "B")
            return _model("GRU", v), [{"X": v["X"][:3]}, {"X": v["X"]}]
        case "gru-tail-functions":
            v = _values("GRU", 4, 2, 3, 11, "B")
            return _model("GRU", v, activations=["HardSigmoid", "Softsign"]), [{"X": v["X"]}]
        case "gru-last-step":
            v = _values("GRU", 4, 2, 3, 4, "B")
            gather = helper.make_node("Gather", ["Y", "last"], ["end"], axis=0)
            model = _model("GRU", v, direction="reverse", outputs=("Y",), after=(gather,), results=("end",))
            return model, [{"X": v["X"]}]
        case "gru-three-lbr":
            v = _values("GRU", 4, 2, 3, 4, "B", "initial_h")
            return _model("GRU", v, version=3, linear_before_reset=1, output_sequence=1), [{"X": v["X"]}]
        case "gru-half-sigmoid":
            v = _values("GRU", 4, 2, 3, 4, "B", kind=np.float16)
            v["B"][0, :4] = 13  # z is all but one, and stays so
            v["R"][0, :4] = 0
            v["B"][0, 8:12] = 4000
            return _model("GRU", v, activations=["Sigmoid", "Relu"]), [{"X": v["X"]}]
        case "rnn-clip-fused":
            v = _values("RNN", 4, 2, 3, 4, "B")
            return _model("RNN", v, activations=["LeakyRelu"], activation_alpha=[0.5], clip=0.25), [{"X": v["X"]}]
        case "rnn-folded-bias":
            v = _values("RNN", 4, 2, 3, 4, "B")
            return _model("RNN", v, overridable=("B",)), [{"X": v["X"], "B": v["B"][:, ::-1] + np.float32(0.5)}]
        case "rnn-zero-state":
            v = _values("RNN", 3, 3, 3, 4, "B", "initial_h")
            v["initial_h"][0, 0] = 0
            return _model("RNN", v), [{"X": v["X"]}]
        case "rnn-k-block":
            v = _values("RNN", 3, 2, 200, 4, "B")
            return _model("RNN", v), [{"X": v["X"]}]
        case "rnn-equal-lengths":
            v = lens(_values("RNN", 5, 2, 3, 4, "B"), 3, 3)
            return _model("RNN", v), [{"X": v["X"]}]
        case "rnn-beta-with-alpha":
            v = _values("RNN", 4, 2, 3, 4, "B")
            return _model("RNN", v, activations=["HardSigmoid"], activation_alpha=[0.3]), [{"X": v["X"]}]
        case "rnn-scaled-tanh-range":
            v = _values("RNN", 4, 2, 3, 4, "B")
            v["X"] = v["X"] * np.float32(40)
            functions = {"activations": ["ScaledTanh"], "activation_alpha": [1.5], "activation_beta": [0.05]}
            return _model("RNN", v, **functions), [{"X": v["X"]}]
        case "rnn-reverse-chunk":
            v = _values("RNN", 19, 2, 3, 4, "B")
            return _model("RNN", v, direction="reverse"), [{"X": v["X"]}]
    raise ValueError(f"no fault {fault!r}")
