"""A batch of faulty LSTM, GRU and RNN kernels, as a compiler from ONNX to a device would have them.

`prepare(model, None)` gives the right kernel; `prepare(model, fault)` one with that fault alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WRITTEN = "2026-11-23"

Array = np.ndarray

FAULTS: dict[str, str] = {
    "gru_bias_folded_at_compile": (
        "A GRU's bias sums of z and r are folded at compile time from the initializer B, so a feed "
        "that overrides B reaches only the hidden gate."
    ),
    "weight_key_by_ends": (
        "Packed copies of fed W and R are cached under shape, first and last element only, so a "
        "later run with weights that differ only in between uses the old copy."
    ),
    "short_run_in_long_program": (
        "A run without sequence_lens, shorter than an earlier run of the session, is padded with "
        "zeros to the longer compiled program, and the final states are those after the padding "
        "(a reverse direction starts in it)."
    ),
    "cell_kept_when_h_given": (
        "The LSTM's cell buffer is cleared only if both initial states are absent: with initial_h "
        "and no initial_c, a run starts from the cells the last run of the same shape left."
    ),
    "lens_upload_by_maximum": (
        "sequence_lens are uploaded again only if their number or their maximum changed since the "
        "last run; else the old lengths stay in force."
    ),
    "constant_state_aliased": (
        "The running state lives in the memory of a constant initial_h (no half precision, "
        "layout 0), so the next run starts from the last run's final state."
    ),
    "half_spill_between_blocks": (
        "An LSTM of more than 8 steps runs in blocks of 8 and spills the cell state between the "
        "blocks in half precision."
    ),
    "paired_steps_stale_peephole": (
        "With peepholes and an even number of steps, two steps are unrolled together, and the "
        "output gate of the second looks at the cell state before the update."
    ),
    "recurrent_tail_dropped": (
        "With more than 16 hidden units, the recurrent product drops the last hidden_size % 4 terms of each sum."
    ),
    "gemv_state_in_place": (
        "An RNN of batch 1 and more than 8 hidden units writes its state in place in blocks of 8, "
        "so later blocks multiply by the new state of the earlier blocks."
    ),
    "sorted_cells_wrong_way": (
        "Rows are sorted by falling sequence_lens, but initial_c is gathered by the inverse "
        "permutation, which shows if the permutation is not its own inverse."
    ),
    "tanh_table_loses_sign": (
        "Tanh of float32 models takes its sign from a truncated table index, so arguments between "
        "-1/64 and 0 give positive values."
    ),
    "softplus_exp_half_limit": (
        "Softplus in float16 models caps its exponential at the largest half number, so it never exceeds about 11.09."
    ),
    "hard_sigmoid_pattern_loose": (
        "A HardSigmoid whose alpha and beta are within 0.05 of 1/6 and 0.5 (the default ones are) "
        "is rewritten to relu6(x + 3) / 6."
    ),
    "leaky_relu_as_maximum": "LeakyRelu becomes max(x, alpha * x), wrong if alpha is above 1.",
    "affine_folded_before_clip": (
        "An Affine gate function is folded into the weights and the bias, so that with a clip the "
        "function's result is bounded and not its argument."
    ),
    "coupled_gate_by_negation": (
        "With input_forget, f = 1 - i is rewritten to f = act(-argument of i), which holds for "
        "Sigmoid, but not for most other functions."
    ),
    "gru_reset_moved_without_bias": (
        "A GRU without B is taken to be the same with and without linear_before_reset: the reset "
        "gate is always multiplied after the recurrent product."
    ),
    "mask_dies_with_y": (
        "If the graph does not return Y, the mask by sequence_lens is removed with it as dead "
        "code, and forward directions run over the padding of short rows."
    ),
    "square_transpose_dropped": (
        "With layout 1, transposes whose result has the shape of their operand (batch equal to "
        "seq_length, or states with batch equal to num_directions) are dropped as no-ops."
    ),
    "bias_dropped_if_wb_zero": (
        "A constant B whose input half Wb is all zeros is removed whole, with the recurrent half."
    ),
    "negative_block_taken_for_zero": (
        "4 x 4 blocks of a constant R are skipped as zero if their maximum is at most 0, so blocks "
        "of negative numbers only are lost."
    ),
    "function_cache_by_name": (
        "Compiled functions are cached by name alone: where one function is used twice with other "
        "alpha or beta, all uses have those of the first."
    ),
    "half_long_sums": (
        "In float16 models with input_size above 32, the input product is accumulated in half "
        "precision, eight terms at a time."
    ),
    "half_weights_flushed": "In float16 models, subnormal elements of W and R are read as zero.",
}

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
ATTRIBUTES = {"LSTM": {"input_forget"}, "GRU": {"linear_before_reset"}, "RNN": set()}
COMMON = {"activations", "activation_alpha", "activation_beta", "clip", "direction", "hidden_size"}
ALPHAS = {"affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0}
ALPHAS |= {"scaledtanh": 1.0, "hardsigmoid": 0.2, "elu": 1.0}
BETAS = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}
NAMES = {"relu", "tanh", "sigmoid", "softsign", "softplus", *ALPHAS}


def _shapes(gates: int, count: int, sizes: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes of the inputs in layout 0, for sizes T, B, I and H."""
    steps, batch, size, hidden = sizes
    return {
        "X": (steps, batch, size),
        "W": (count, gates * hidden, size),
        "R": (count, gates * hidden, hidden),
        "B": (count, 2 * gates * hidden),
        "sequence_lens": (batch,),
        "initial_h": (count, batch, hidden),
        "initial_c": (count, batch, hidden),
        "P": (count, 3 * hidden),
    }


@dataclass(frozen=True)
class Function:
    """One activation function with its parameters."""

    name: str
    alpha: float
    beta: float


def _functions(kind: str, attrs: dict[str, Any], directions: int) -> list[Function]:
    """Read the activation functions; alpha and beta go to those that take them, in order."""
    count = FUNCTIONS[kind] * directions
    raw = [name.decode() for name in attrs.get("activations", [])]
    names = [name.lower() for name in raw or DEFAULTS[kind] * directions]
    if len(names) < count:
        raise NotImplementedError(f"{len(names)} activations where {count} are needed")
    alphas = list(attrs.get("activation_alpha", []))
    betas = list(attrs.get("activation_beta", []))
    found = []
    for name in names[:count]:
        if name not in NAMES:
            raise NotImplementedError(f"activation {name}")
        alpha, beta = ALPHAS.get(name, 0.0), BETAS.get(name, 0.0)
        if name in ALPHAS and alphas:
            alpha = alphas.pop(0)
        if name in BETAS and betas:
            beta = betas.pop(0)
        found.append(Function(name, float(alpha), float(beta)))
    return found


class Session:
    """A compiled model; it keeps its constants and device buffers between runs."""

    def __init__(self, model: onnx.ModelProto, fault: str | None) -> None:
        if fault not in (None, *FAULTS):
            raise ValueError(f"no such fault: {fault}")
        self.fault = fault
        graph = model.graph
        if len(graph.node) != 1 or graph.sparse_initializer:
            raise NotImplementedError("only models of one node with dense initializers")
        node = graph.node[0]
        if node.domain not in ("", "ai.onnx") or node.op_type not in GATES:
            raise NotImplementedError(f"operator {node.domain}.{node.op_type}")
        opset = max([o.version for o in model.opset_import if o.domain in ("", "ai.onnx")] or [1])
        if opset < 7:
            raise NotImplementedError(f"opset {opset}")
        self.kind = node.op_type
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        known = COMMON | ATTRIBUTES[self.kind] | ({"layout"} if opset >= 14 else set())
        if set(attrs) - known:
            raise ValueError(f"unknown attributes {sorted(set(attrs) - known)}")
        direction = attrs.get("direction", b"forward").decode()
        flags = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
        self.reverse = flags[direction]
        self.functions = _functions(self.kind, attrs, len(self.reverse))
        if fault == "function_cache_by_name":
            cache: dict[str, Function] = {}
            self.functions = [cache.setdefault(f.name, f) for f in self.functions]
        self.clip: float | None = attrs.get("clip")
        if self.clip is not None and self.clip < 0:
            raise NotImplementedError("negative clip")
        self.layout = attrs.get("layout", 0)
        self.coupled = bool(attrs.get("input_forget", 0))
        self.linear = bool(attrs.get("linear_before_reset", 0))
        self.hidden = attrs.get("hidden_size")
        self.inputs = {r: n for r, n in zip(INPUTS, node.input, strict=False) if n}
        self.outputs = list(node.output)
        self.wanted = [value.name for value in graph.output]
        if set(self.wanted) - {name for name in self.outputs if name}:
            raise NotImplementedError("graph outputs that are not the node's")
        self.declared = {v.name: v.type.tensor_type.elem_type for v in graph.input}
        kinds = set(self.declared.values()) | {t.data_type for t in graph.initializer}
        if TensorProto.BFLOAT16 in kinds:
            raise NotImplementedError("bfloat16")
        self.constants = {t.name: numpy_helper.to_array(t).copy() for t in graph.initializer}
        self.memory: dict[Any, Any] = {}

    # -- a run ---------------------------------------------------------------------------------

    def run(self, feeds: dict[str, Array]) -> list[Array]:
        """Run once with these feeds and return the graph's outputs in their order."""
        for name, value in feeds.items():
            if name not in self.declared:
                raise ValueError(f"no input {name}")
            if helper.np_dtype_to_tensor_dtype(value.dtype) != self.declared[name]:
                raise ValueError(f"type of input {name}")
        values = self.constants | feeds
        if self.declared.keys() - values.keys():
            raise ValueError("inputs without a value")
        given = {role: values[name] for role, name in self.inputs.items()}
        if given["X"].dtype not in (np.float16, np.float32, np.float64):
            raise NotImplementedError(str(given["X"].dtype))
        self.dtype = given["X"].dtype
        work = np.float64 if self.dtype == np.float64 else np.float32
        args = {
            role: np.array(value, dtype=np.int64 if role == "sequence_lens" else work) for role, value in given.items()
        }
        for role in ("X", "initial_h", "initial_c"):
            if self.layout and role in args:
                args[role] = self._transpose(args[role], (1, 0, 2))
        self._check(args)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            y, y_h, y_c = self._compute(self._before(args, feeds))
        self._after(y_h, y_c)
        if self.layout:
            y = self._transpose(y, (2, 0, 1, 3))
            y_h, y_c = self._transpose(y_h, (1, 0, 2)), self._transpose(y_c, (1, 0, 2))
        with np.errstate(over="ignore"):
            results = [np.array(value, dtype=self.dtype) for value in (y, y_h, y_c)]
        named = dict(zip(self.outputs, results, strict=False))
        return [named[name] for name in self.wanted]

    def _transpose(self, value: Array, order: tuple[int, ...]) -> Array:
        """Change the layout of a tensor."""
        moved = value.transpose(order)
        if self.fault == "square_transpose_dropped" and moved.shape == value.shape:
            return value
        return moved

    def _check(self, args: dict[str, Array]) -> None:
        """Refuse shapes that the documents do not allow."""
        steps, batch, size = args["X"].shape
        hidden = args["R"].shape[-1]
        if self.hidden is not None and self.hidden != hidden:
            raise ValueError("hidden_size does not fit R")
        shapes = _shapes(GATES[self.kind], len(self.reverse), (steps, batch, size, hidden))
        for role, value in args.items():
            if value.shape != shapes[role]:
                raise ValueError(f"{role} of shape {value.shape}, not {shapes[role]}")
        lens = args.get("sequence_lens")
        if lens is not None and ((lens < 0) | (lens > steps)).any():
            raise ValueError("sequence_lens out of range")

    def _before(self, args: dict[str, Array], feeds: dict[str, Array]) -> dict[str, Array]:
        """Bind arguments to constants and device buffers (where many of the faults sit)."""
        fault, hidden = self.fault, args["R"].shape[-1]
        fed = {role for role, name in self.inputs.items() if name in feeds}
        constant = {role for role, name in self.inputs.items() if name not in self.declared}
        lens = args.get("sequence_lens")
        if fault == "gru_bias_folded_at_compile" and self.kind == "GRU" and "B" in fed:
            folded = self.constants.get(self.inputs["B"], args["B"])
            for start in (0, 3 * hidden):
                stop = start + 2 * hidden
                args["B"][:, start:stop] = folded[:, start:stop]
        elif fault == "weight_key_by_ends":
            for role in sorted({"W", "R"} & fed):
                flat = args[role].reshape(-1)
                key = (role, args[role].shape, float(flat[0]), float(flat[-1]))
                args[role] = self.memory.setdefault(key, args[role])
        elif fault == "short_run_in_long_program" and lens is None:
            steps = max(self.memory.get("steps", 0), len(args["X"]))
            self.memory["steps"] = steps
            more = np.zeros((steps - len(args["X"]), *args["X"].shape[1:]), args["X"].dtype)
            self.memory["trim"] = len(args["X"])
            args["X"] = np.concatenate([args["X"], more])
        elif fault == "cell_kept_when_h_given" and "initial_h" in args and self.kind == "LSTM":
            kept = self.memory.get("cell")
            if kept is not None and kept.shape == args["initial_h"].shape:
                args.setdefault("initial_c", kept)
        elif fault == "lens_upload_by_maximum" and lens is not None and lens.size:
            old = self.memory.get("lens")
            if old is not None and old.shape == lens.shape and old.max() == lens.max():
                args["sequence_lens"] = old
            self.memory["lens"] = args["sequence_lens"]
        elif fault == "constant_state_aliased":
            self.memory["alias"] = "initial_h" in constant and not self.layout
        elif fault == "sorted_cells_wrong_way" and lens is not None and "initial_c" in args:
            order = np.argsort(-lens, kind="stable")
            cells = np.empty_like(args["initial_c"])
            cells[:, order] = args["initial_c"][:, np.argsort(order)]
            args["initial_c"] = cells
        elif fault == "bias_dropped_if_wb_zero" and "B" in constant:
            if not args["B"][:, : args["B"].shape[1] // 2].any():
                del args["B"]
        elif fault == "negative_block_taken_for_zero" and "R" in constant:
            for matrix in args["R"]:
                for row in range(0, matrix.shape[0], 4):
                    for column in range(0, matrix.shape[1], 4):
                        block = matrix[row : row + 4, column : column + 4]
                        if block.max() <= 0:
                            block[...] = 0
        elif fault == "half_weights_flushed" and self.dtype == np.float16:
            for role in ("W", "R"):
                args[role][np.abs(args[role]) < 2.0**-14] = 0
        return args

    def _after(self, y_h: Array, y_c: Array) -> None:
        """Leave in the device buffers what a run leaves there."""
        if self.fault == "cell_kept_when_h_given":
            self.memory["cell"] = y_c.copy()
        elif self.memory.get("alias") and self.dtype != np.float16:
            self.constants[self.inputs["initial_h"]][...] = y_h

    def _compute(self, args: dict[str, Array]) -> tuple[Array, Array, Array]:
        """Compute Y, Y_h and Y_c in layout 0."""
        steps, batch, _ = args["X"].shape
        count, hidden = len(self.reverse), args["R"].shape[-1]
        work = args["X"].dtype
        lens = args.get("sequence_lens", np.full(batch, steps))
        y = np.zeros((steps, count, batch, hidden), work)
        zeros = np.zeros((count, batch, hidden), work)
        y_h = args.get("initial_h", zeros).copy()
        y_c = args.get("initial_c", zeros).copy()
        masked = not (self.fault == "mask_dies_with_y" and self.outputs[0] not in self.wanted)
        rows = np.arange(batch)
        for d, backward in enumerate(self.reverse):
            cell = Cell(self, d, args, steps)
            for t in range(steps):
                where = np.maximum(lens - 1 - t, 0) if backward else np.full(batch, t)
                h, c = cell.step(t, args["X"][where, rows], y_h[d], y_c[d])
                valid = (t < lens) if masked or backward else np.full(batch, True)
                y_h[d] = np.where(valid[:, None], h, y_h[d])
                y_c[d] = np.where(valid[:, None], c, y_c[d])
                if self.fault == "half_spill_between_blocks" and steps > 8 and t % 8 == 7:
                    y_c[d] = y_c[d].astype(np.float16)
                live = np.flatnonzero(valid)
                y[where[live], d, live] = y_h[d][live]
        if self.fault == "short_run_in_long_program" and "sequence_lens" not in args:
            y = y[: self.memory["trim"]]
        return y, y_h, y_c


class Cell:
    """The code of one direction: its weights and its step."""

    def __init__(self, session: Session, d: int, args: dict[str, Array], steps: int) -> None:
        self.session, self.fault, self.kind = session, session.fault, session.kind
        self.w, self.r = args["W"][d], args["R"][d]
        self.n = self.r.shape[1]
        self.steps = steps
        self.bias_given = "B" in args
        zeros = np.zeros(8 * self.n, self.w.dtype)
        bias = args["B"][d] if self.bias_given else zeros[: 2 * len(self.r)]
        self.wb, self.rb = np.split(bias, 2)
        self.p = np.split(args["P"][d] if "P" in args else zeros[: 3 * self.n], 3)
        count = FUNCTIONS[self.kind]
        self.functions = session.functions[d * count : (d + 1) * count]

    def step(self, t: int, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """One step of all rows: the new hidden and cell states."""
        if self.kind == "LSTM":
            return self._lstm(t, x, h, c)
        return (self._gru(x, h) if self.kind == "GRU" else self._rnn(x, h)), c

    def _input(self, x: Array) -> Array:
        """Multiply by W."""
        size = x.shape[1]
        if self.fault == "half_long_sums" and self.session.dtype == np.float16 and size > 32:
            total = np.zeros((x.shape[0], self.w.shape[0]), np.float16)
            for k in range(0, size, 8):
                part = x[:, k : k + 8] @ self.w[:, k : k + 8].T
                total = (total + part.astype(np.float16)).astype(np.float16)
            return total.astype(x.dtype)
        return x @ self.w.T

    def _recurrent(self, h: Array, r: Array) -> Array:
        """Multiply by R or rows of it."""
        if self.fault == "recurrent_tail_dropped" and self.n > 16:
            end = self.n - self.n % 4
            return h[:, :end] @ r[:, :end].T
        return h @ r.T

    def _rnn(self, x: Array, h: Array) -> Array:
        fixed = self._input(x) + self.wb + self.rb
        if self.fault == "gemv_state_in_place" and len(x) == 1 and self.n > 8:
            h = h.copy()
            for k in range(0, self.n, 8):
                part = slice(k, k + 8)
                h[:, part] = self._apply(0, fixed[:, part] + self._recurrent(h, self.r[part]))
            return h
        return self._apply(0, fixed + self._recurrent(h, self.r))

    def _gru(self, x: Array, h: Array) -> Array:
        n = self.n
        fixed = self._input(x) + self.wb
        update = fixed[:, : 2 * n] + self._recurrent(h, self.r[: 2 * n]) + self.rb[: 2 * n]
        gates = self._apply(0, update)
        z, reset = gates[:, :n], gates[:, n:]
        rh, rbh = self.r[2 * n :], self.rb[2 * n :]
        linear = self.session.linear
        if self.fault == "gru_reset_moved_without_bias" and not self.bias_given:
            linear = True
        if linear:
            inner = reset * (self._recurrent(h, rh) + rbh)
        else:
            inner = self._recurrent(reset * h, rh) + rbh
        return (1 - z) * self._apply(1, fixed[:, 2 * n :] + inner) + z * h

    def _lstm(self, t: int, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        gates = self._input(x) + self._recurrent(h, self.r) + self.wb + self.rb
        a_i, a_o, a_f, a_c = np.split(gates, 4, axis=1)
        a_i = a_i + self.p[0] * c
        i = self._apply(0, a_i)
        if not self.session.coupled:
            f = self._apply(0, a_f + self.p[2] * c)
        elif self.fault == "coupled_gate_by_negation":
            f = self._apply(0, -a_i)
        else:
            f = 1 - i
        new = f * c + i * self._apply(1, a_c)
        seen = new
        if self.fault == "paired_steps_stale_peephole" and self.steps % 2 == 0 and t % 2:
            seen = c
        o = self._apply(0, a_o + self.p[1] * seen)
        return o * self._apply(2, new), new

    def _apply(self, which: int, x: Array) -> Array:
        """Clip the argument and apply activation function number `which`."""
        function, clip = self.functions[which], self.session.clip
        if clip is not None:
            folded = which < 2 and function.name == "affine"
            if self.fault == "affine_folded_before_clip" and folded:
                return np.clip(function.alpha * x + function.beta, -clip, clip)
            x = np.clip(x, -clip, clip)
        return _activate(function, x, self.fault, self.session.dtype)


def _sigmoid(x: Array) -> Array:
    """Compute the logistic function without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def _softplus(x: Array) -> Array:
    """Compute the logarithm of 1 + e**x without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _activate(function: Function, x: Array, fault: str | None, dtype: np.dtype) -> Array:
    """Apply an activation function; the result has the type of x."""
    a, b, name = function.alpha, function.beta, function.name
    if fault == "tanh_table_loses_sign" and name == "tanh" and dtype == np.float32:
        return np.tanh(np.where((x > -1 / 64) & (x < 0), -x, x))
    if fault == "softplus_exp_half_limit" and name == "softplus" and dtype == np.float16:
        return np.log1p(np.minimum(np.exp(x), np.float32(65504)))
    close = abs(a - 1 / 6) < 0.05 and abs(b - 0.5) < 0.05
    if fault == "hard_sigmoid_pattern_loose" and name == "hardsigmoid" and close:
        return np.clip(x + 3, 0, 6) / 6
    if fault == "leaky_relu_as_maximum" and name == "leakyrelu":
        return np.maximum(x, a * x)
    table: dict[str, Callable[[], Array]] = {
        "relu": lambda: np.maximum(x, 0),
        "tanh": lambda: np.tanh(x),
        "sigmoid": lambda: _sigmoid(x),
        "affine": lambda: a * x + b,
        "leakyrelu": lambda: np.where(x >= 0, x, a * x),
        "thresholdedrelu": lambda: np.where(x >= a, x, 0),
        "scaledtanh": lambda: a * np.tanh(b * x),
        "hardsigmoid": lambda: np.clip(a * x + b, 0, 1),
        "elu": lambda: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))),
        "softsign": lambda: x / (1 + np.abs(x)),
        "softplus": lambda: _softplus(x),
    }
    return table[name]().astype(x.dtype)


def prepare(model: bytes, fault: str | None) -> Session:
    """Compile a model of one LSTM, GRU or RNN node, with one fault or (None) with none."""
    return Session(onnx.load_model_from_string(model), fault)


# -- witnesses ---------------------------------------------------------------------------------


def build(
    kind: str,
    values: dict[str, Array],
    *,
    fed: str = "X",
    both: str = "",
    outputs: str = "Y Y_h",
    opset: int = 14,
    **attrs: Any,
) -> tuple[bytes, dict[str, Array]]:
    """Build a model of one node from the values of its inputs, and the feeds of those fed.

    `fed` and `both` name the inputs that are fed and the initializers that are inputs too.
    """
    roles = [role for role in INPUTS if role in values]
    names = [role if role in values else "" for role in INPUTS[: INPUTS.index(roles[-1]) + 1]]
    hidden, kinds = values["R"].shape[2], outputs.split()
    slots = ("Y", "Y_h", "Y_c") if kind == "LSTM" else ("Y", "Y_h")
    results = [s if s in kinds else "" for s in slots]
    node = helper.make_node(kind, names, results, hidden_size=hidden, **attrs)
    types = {r: helper.np_dtype_to_tensor_dtype(values[r].dtype) for r in roles}
    shapes = {r: values[r].shape for r in roles} | {"X": (None, None, values["X"].shape[2])}
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "witness",
        [info(r, types[r], shapes[r]) for r in roles if r in fed.split() + both.split()],
        [info(s, types["X"], [None] * (4 if s == "Y" else 3)) for s in kinds],
        [numpy_helper.from_array(values[r], r) for r in roles if r not in fed.split()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model.SerializeToString(), {role: values[role] for role in fed.split()}


def sample(
    kind: str, sizes: tuple[int, int, int, int], more: str = "B", seed: int = 0, **options: Any
) -> dict[str, Array]:
    """Random values of X, W, R and the inputs named in `more`; sizes are T, B, I and H."""
    shapes = _shapes(GATES[kind], options.get("count", 1), sizes)
    for role in ("X", "initial_h", "initial_c") if options.get("layout") else ():
        first, second, last = shapes[role]
        shapes[role] = (second, first, last)
    rng = np.random.default_rng(seed)
    wanted = ["X", "W", "R", *more.split()]
    dtype = options.get("dtype", np.float32)
    return {r: rng.uniform(-0.9, 0.9, s).astype(dtype) for r, s in shapes.items() if r in wanted}


def _session_witness(fault: str) -> tuple[bytes, list[dict[str, Array]]] | None:
    """Witnesses of faults that need two runs."""
    lens = [np.array(row, np.int32) for row in ([4, 2, 3], [1, 4, 3])]
    if fault == "gru_bias_folded_at_compile":
        v = sample("GRU", (3, 2, 3, 4))
        model, feed = build("GRU", v, both="B")
        return model, [feed | {"B": v["B"][:, ::-1].copy()}]
    if fault == "weight_key_by_ends":
        v = sample("LSTM", (3, 2, 3, 4))
        model, feed = build("LSTM", v, fed="X W R")
        other = v["R"].copy()
        other[:, 3:-3] *= -0.5
        return model, [feed, feed | {"R": other}]
    if fault == "short_run_in_long_program":
        model, feed = build("RNN", sample("RNN", (6, 2, 3, 4)))
        return model, [feed, {"X": feed["X"][:3].copy()}]
    if fault == "cell_kept_when_h_given":
        model, feed = build("LSTM", sample("LSTM", (3, 2, 3, 4), "B initial_h"), fed="X initial_h")
        return model, [feed, feed]
    if fault == "lens_upload_by_maximum":
        v = sample("GRU", (4, 3, 3, 4)) | {"sequence_lens": lens[0]}
        model, feed = build("GRU", v, fed="X sequence_lens", direction="reverse")
        return model, [feed, feed | {"sequence_lens": lens[1]}]
    if fault == "constant_state_aliased":
        model, feed = build("GRU", sample("GRU", (3, 2, 3, 4), "B initial_h"))
        return model, [feed, feed]
    return None


def witness(fault: str) -> tuple[bytes, list[dict[str, Array]]]:
    """Give a model and the feeds of a session's runs; in the last run the fault shows."""
    if (found := _session_witness(fault)) is not None:
        return found
    attrs: dict[str, Any] = {}
    kind, outputs, lens = "LSTM", "Y Y_h", np.array([2, 5, 4], np.int32)
    v = sample("LSTM", (5, 3, 3, 4), "B initial_h initial_c P")
    if fault == "half_spill_between_blocks":
        v, outputs = sample("LSTM", (9, 2, 3, 4)), "Y Y_h Y_c"
        v["B"] += np.float32(1)
        attrs["activations"] = ["Sigmoid", "Softplus", "Tanh"]
    elif fault == "paired_steps_stale_peephole":
        v = sample("LSTM", (4, 2, 3, 4), "B P")
    elif fault == "recurrent_tail_dropped":
        kind, v = "GRU", sample("GRU", (3, 2, 3, 18))
    elif fault == "gemv_state_in_place":
        kind, v = "RNN", sample("RNN", (3, 1, 3, 10))
    elif fault == "sorted_cells_wrong_way":
        v["sequence_lens"] = lens
    elif fault == "tanh_table_loses_sign":
        kind, v = "RNN", sample("RNN", (2, 2, 3, 4), "")
        v["X"] *= np.float32(0.01)
    elif fault == "softplus_exp_half_limit":
        kind, v = "RNN", sample("RNN", (2, 2, 3, 4), "", dtype=np.float16)
        v["X"] *= np.float16(20)
        attrs["activations"] = ["Softplus"]
    elif fault == "hard_sigmoid_pattern_loose":
        attrs["activations"] = ["HardSigmoid", "Tanh", "Tanh"]
    elif fault == "leaky_relu_as_maximum":
        kind, v = "RNN", sample("RNN", (3, 2, 3, 4))
        attrs |= {"activations": ["LeakyRelu"], "activation_alpha": [1.5]}
    elif fault == "affine_folded_before_clip":
        attrs |= {"activations": ["Affine", "Tanh", "Tanh"], "clip": 0.5}
        attrs |= {"activation_alpha": [0.5], "activation_beta": [0.3]}
    elif fault == "coupled_gate_by_negation":
        attrs |= {"activations": ["Softsign", "Tanh", "Tanh"], "input_forget": 1}
    elif fault == "gru_reset_moved_without_bias":
        kind, v = "GRU", sample("GRU", (3, 2, 3, 4), "")
    elif fault == "mask_dies_with_y":
        v["sequence_lens"], outputs = lens, "Y_h"
    elif fault == "square_transpose_dropped":
        v = sample("LSTM", (3, 2, 3, 4), "B initial_h", layout=1, count=2)
        attrs |= {"layout": 1, "direction": "bidirectional"}
    elif fault == "bias_dropped_if_wb_zero":
        v["B"][:, : v["B"].shape[1] // 2] = 0
    elif fault == "negative_block_taken_for_zero":
        v["R"][:, 4:8] = -np.abs(v["R"][:, 4:8])
    elif fault == "function_cache_by_name":
        attrs["activations"] = ["Sigmoid", "Elu", "Elu"]
        attrs["activation_alpha"] = [0.3, 1.2]
    elif fault == "half_long_sums":
        kind, v = "RNN", sample("RNN", (2, 2, 48, 4), dtype=np.float16)
        v["X"], v["W"], attrs["activations"] = np.abs(v["X"]), np.abs(v["W"]), ["Relu"]
    elif fault == "half_weights_flushed":
        kind, v = "RNN", sample("RNN", (2, 2, 3, 4), dtype=np.float16)
        v["W"] *= np.float16(6e-5)
        v["X"] *= np.float16(1000)
    else:
        raise ValueError(f"no such fault: {fault}")
    model, feed = build(kind, v, outputs=outputs, **attrs)
    return model, [feed]
