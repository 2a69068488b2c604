# ruff: noqa: B023 - handed over so; closures are called where they are made
"""Correct integer kernels of quantized recurrent nodes (ONNX LSTM, GRU, RNN), in NumPy.

Written 2026-11-25 from the literature, by an author who had not seen the project's tables of faults, axes, profiles or
cases: B. Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference"
(2018) and gemmlowp's documents (integer accumulation, zero points subtracted, int32 bias of scale s_x * s_w,
fixed-point multipliers), TFLite's integer LSTM (hidden state in the output's levels, 16-bit cell state with a
power-of-two scale), and ONNX's QuantizeLinear / DequantizeLinear.

Every kernel is called as ``kernel(op, attributes, inputs, outputs)``:

``op``
    "LSTM", "GRU" or "RNN".
``attributes``
    The node's attributes; absent ones have ONNX's defaults (activations, activation_alpha, activation_beta, clip,
    direction, hidden_size, input_forget, layout, linear_before_reset).
``inputs``
    Name (X, W, R, B, sequence_lens, initial_h, initial_c, P) to (integers, scale, zero_point) or a float array. An
    input that is None or missing is an absent input. sequence_lens is a plain array of integers. Scales and zero points
    are scalars; those of W, R, B and P may be per channel: of length G * hidden_size (axis 1), of length num_directions
    (axis 0), or of a shape that broadcasts, as long as W's and R's do not vary along the summed axis.
``outputs``
    Name (Y, Y_h, Y_c) to (scale, zero_point, dtype), scalars.

A kernel returns a dict from name to integer array, for the requested outputs. Quantization rounds half to even and
saturates.

``FLOAT_STATE``   kernels that keep the state in float between steps; compare with a float node between DQ and Q.
``LEVEL_STATE``   kernels whose hidden state between steps is the quantized Y; compare with a composition that does the
                  same. If Y is not requested, the state is float, since Y_h's levels need not hold the states before
                  the last. They also differ from a float node by the rounded (and saturated!) state that is fed back:
                  this can be some levels where the recurrent gain is high.

Where ONNX is silent, these kernels follow these rules; a comparison should avoid these points or allow both behaviours:

- Y is the real value 0 (that is, the zero point) in rows past sequence_lens; Y_h and Y_c come from the last valid step;
  a row of length 0 returns its initial state;
- input_forget=1 makes the forget gate 1 - i; its weights are not used;
- clip bounds the inputs of f and g in all gates, and that of h as in the operator's text ("applied to the input of
  activations"), not as in onnxruntime;
- alpha and beta are consumed in order by the activations that use them (as in onnxruntime); the defaults of Affine
  (1, 0) and ScaledTanh (1, 1) are not onnxruntime's: a comparison should set them explicitly;
- if Y's levels cannot hold an initial state, a LEVEL_STATE kernel still uses the exact state in the first step.
"""

from functools import partial

import numpy as np

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_ACTIVATIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_ALPHA = {"affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0, "hardsigmoid": 0.2, "elu": 1.0}
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}


def quantize(value, scale, zero_point, dtype, ftype=np.float64):
    """Return round-half-even(value / scale) + zero_point, saturated to dtype."""
    dtype = np.dtype(dtype)
    info = np.iinfo(dtype)
    levels = np.rint(np.asarray(value, ftype) / ftype(scale)).astype(np.float64) + float(zero_point)
    return np.clip(levels, info.min, info.max).astype(dtype)


def _activation(name, alpha, beta, f):
    """Return the activation function, computed in float type f."""
    name, a, b, one, zero = name.lower(), f(alpha), f(beta), f(1), f(0)
    return {
        "sigmoid": lambda x: np.where(
            x >= 0, one / (one + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (one + np.exp(-np.abs(x)))
        ),
        "tanh": np.tanh,
        "relu": lambda x: np.maximum(x, zero),
        "affine": lambda x: a * x + b,
        "leakyrelu": lambda x: np.where(x >= 0, x, a * x),
        "thresholdedrelu": lambda x: np.where(x >= a, x, zero),
        "scaledtanh": lambda x: a * np.tanh(b * x),
        "hardsigmoid": lambda x: np.minimum(np.maximum(a * x + b, zero), one),
        "elu": lambda x: np.where(x >= 0, x, a * np.expm1(np.minimum(x, zero))),
        "softsign": lambda x: x / (one + np.abs(x)),
        "softplus": lambda x: np.logaddexp(zero, x),
    }[name]


def _activations(op, attributes, directions, f):
    """Return the activation functions of each direction; functions that use alpha or beta consume them in order."""
    names = [n if isinstance(n, str) else n.decode() for n in attributes.get("activations") or []]
    names = names or _ACTIVATIONS[op] * directions
    alphas, betas = (list(attributes.get("activation_" + k) or []) for k in ("alpha", "beta"))
    made = []
    for name in names:
        alpha, beta = _ALPHA.get(name.lower(), 0.0), _BETA.get(name.lower(), 0.0)
        if name.lower() in _ALPHA and alphas:
            alpha = alphas.pop(0)
        if name.lower() in _BETA and betas:
            beta = betas.pop(0)
        made.append(_activation(name, alpha, beta, f))
    size = len(_ACTIVATIONS[op])
    return [made[d * size : (d + 1) * size] for d in range(directions)]


def _broadcast(parameter, shape):
    """Reshape a scale or zero point of any accepted shape to as many dimensions as ``shape``, so that it broadcasts."""
    p = np.asarray(parameter)
    if p.size == 1:
        return p.reshape((1,) * len(shape))
    if p.ndim == 1 and p.size == shape[1]:
        return p.reshape((1, -1) + (1,) * (len(shape) - 2))
    if p.ndim == 1 and p.size == shape[0]:
        return p.reshape((-1,) + (1,) * (len(shape) - 1))
    return p.reshape(p.shape + (1,) * (len(shape) - p.ndim))


class _Tensor:
    """Integers minus their zero point, with a scale that broadcasts; or floats (scale None)."""

    @classmethod
    def of(cls, q, scale):
        """Return a tensor of integers from which the zero point is subtracted."""
        made = object.__new__(cls)
        made.q, made.scale = q, scale
        return made

    def __init__(self, value):
        if isinstance(value, tuple):
            integers, scale, zero_point = value
            integers = np.asarray(integers)
            zero = _broadcast(0 if zero_point is None else zero_point, integers.shape).astype(np.int64)
            self.q = integers.astype(np.int64) - zero
            self.scale = _broadcast(np.asarray(scale, np.float64), integers.shape)
        else:
            self.q, self.scale = np.asarray(value), None

    def real(self, f):
        """Return the real values in float type f."""
        return self.q.astype(f) if self.scale is None else self.q.astype(f) * self.scale.astype(f)


class _Weight:
    """Weight W or R of one direction: integers [G*H, K], scales [G*H] or [1]; or floats (integers None)."""

    def __init__(self, real, q=None, scale=None):
        self.real, self.q, self.scale = real, q, scale

    @classmethod
    def of(cls, tensor, d, f):
        """Return a direction's weight from the tensor of all directions."""
        if tensor.scale is None:
            return cls(tensor.real(f)[d])
        if tensor.scale.shape[2] != 1:
            raise NotImplementedError("weight scales that vary along the axis of the sum")
        return cls(tensor.real(f)[d], tensor.q[d], tensor.scale[d if tensor.scale.shape[0] > 1 else 0, :, 0])

    def rows(self, rows):
        """Return the weight of one gate."""
        if self.q is None:
            return _Weight(self.real[rows])
        return _Weight(self.real[rows], self.q[rows], self.scale[rows] if self.scale.size > 1 else self.scale)


class _Term:
    """Product in the sum before an activation: exact integers with the scales of both sides, or floats."""

    def __init__(self, real=None, acc=None, left=None, right=None):
        self.real, self.acc, self.left, self.right = real, acc, left, right


class _Arithmetic:
    """Arithmetic of the sum before an activation: exact, except for the roundings that its options name."""

    def __init__(self, f, accumulate="direct", scaling="product", bias="float", bits=0):
        self.f, self.accumulate, self.scaling, self.bias, self.bits = f, accumulate, scaling, bias, bits

    def product(self, left, weight):
        """Multiply left [N, K] (a _Tensor with a single scale: integers or floats) by a transposed weight."""
        f = self.f
        if left.scale is None or weight.q is None or self.accumulate == "dequantized":
            if weight.q is not None and left.scale is None and self.accumulate != "dequantized":
                return _Term(real=(left.q.astype(f) @ weight.q.astype(f).T) * weight.scale.astype(f))
            return _Term(real=left.real(f) @ weight.real.T)
        return _Term(acc=left.q @ weight.q.T, left=left.scale.reshape(-1)[0], right=weight.scale)

    def sum(self, pairs, extra=None):
        """Return the sum of (term, bias) pairs and of ``extra`` (peepholes), as floats."""
        f, total, base = self.f, None, None
        if self.scaling == "last":
            base = next((t.left * t.right for t, _ in pairs if t.acc is not None), None)
        for term, bias in pairs:
            if base is not None:
                value = (
                    term.real / base.astype(f)
                    if term.acc is None
                    else (term.acc.astype(f) * (term.left * term.right / base).astype(f))
                )
                value = value + bias.astype(f) / base.astype(f)
            elif term.acc is None:
                value = term.real + bias.astype(f)
            else:
                value = self.scaled(term, bias)
            total = value if total is None else total + value
        if base is not None:
            total = total * base.astype(f)
        total = total.astype(f)
        return total if extra is None else total + extra.astype(f)

    def scaled(self, term, bias):
        f, acc, scale = self.f, term.acc, term.left * term.right
        if self.scaling == "fixed":
            return fixed_point(acc, scale, bias, f)
        if self.bias == "integer":
            fine = scale / 2.0**self.bits
            acc = (acc << self.bits) + np.rint(bias / fine).astype(np.int64)
            return acc.astype(f) * fine.astype(f)
        if self.scaling == "separate":
            return acc.astype(f) * term.right.astype(f) * f(term.left) + bias.astype(f)
        return acc.astype(f) * scale.astype(f) + bias.astype(f)


def fixed_point(acc, scale, bias, f, fraction=28):
    """Return acc * scale + bias in gemmlowp's fixed-point arithmetic.

    acc is multiplied by a 31-bit multiplier and shifted with rounding to a fixed-point number with ``fraction``
    fractional bits, to which the bias is added. Python's integers are used, so nothing overflows.
    """
    mantissa, exponent = np.frexp(scale)
    multiplier = np.broadcast_to(np.rint(mantissa * 2.0**31).astype(np.int64), acc.shape)
    shift = np.broadcast_to(31 - exponent - fraction, acc.shape)
    bias = np.broadcast_to(np.rint(bias * 2.0**fraction).astype(np.int64), acc.shape)
    out = np.empty(acc.shape, f)
    for i in np.ndindex(*acc.shape):
        wide, s = int(acc[i]) * int(multiplier[i]), int(shift[i])
        wide = (wide + (1 << (s - 1))) >> s if s > 0 else wide << -s
        out[i] = f((wide + int(bias[i])) * 2.0**-fraction)
    return out


def _run(
    op,
    attributes,
    inputs,
    outputs,
    f=np.float64,
    state="float",
    accumulate="direct",
    scaling="product",
    bias="float",
    back=None,
    shown=quantize,
):
    """Compute the node. ``state``: float, or levels (of Y).

    Wrong kernels are made with two options: ``back`` is another scale, zero point and type for the state than those of
    Y, and ``shown`` quantizes the outputs.
    """
    present = {k: v for k, v in inputs.items() if v is not None}
    wide = any(np.dtype(o[2]).itemsize > 1 for o in outputs.values())
    arithmetic = _Arithmetic(f, accumulate, scaling, bias, bits=16 if wide else 0)
    tensor = {k: _Tensor(v) for k, v in present.items() if k != "sequence_lens"}
    direction = attributes.get("direction", "forward")
    direction = direction if isinstance(direction, str) else direction.decode()
    directions = 2 if direction == "bidirectional" else 1
    layout = attributes.get("layout", 0)
    if layout:
        for name in {"X", "initial_h", "initial_c"} & set(tensor):
            tensor[name].q = np.swapaxes(tensor[name].q, 0, 1)
    x, r = tensor["X"], tensor["R"]
    if any(t.scale is not None and t.scale.size > 1 for k, t in tensor.items() if k in ("X", "initial_h", "initial_c")):
        raise NotImplementedError("scales per channel of what is not a weight")
    length, batch = x.q.shape[:2]
    hidden, count = r.q.shape[2], GATES[op]
    lens = present.get("sequence_lens")
    lens = np.full(batch, length) if lens is None else np.asarray(lens).astype(np.int64)
    both = tensor["B"].real(np.float64) if "B" in tensor else np.zeros((directions, 2 * count * hidden))
    peephole = tensor["P"].real(f) if "P" in tensor else None
    functions = _activations(op, attributes, directions, f)
    clip = attributes.get("clip") or None
    levels = (back or outputs.get("Y")) if state == "levels" else None

    def bounded(v):
        return v if clip is None else np.clip(v, f(-clip), f(clip))

    def act(function, v):
        return function(v).astype(f)

    def fed(h, encoding):
        """Return a state as operand of a product: floats, or levels."""
        if encoding is None:
            return _Tensor(h)
        scale, zero, dtype = encoding
        zero = 0 if zero is None else int(zero)
        return _Tensor((quantize(h, scale, zero, dtype, f), float(scale), zero))

    y = np.zeros((length, directions, batch, hidden), f)
    y_h, y_c = np.zeros((directions, batch, hidden), f), np.zeros((directions, batch, hidden), f)
    for d in range(directions):
        backward = direction == "reverse" or d == 1
        w_d, r_d = _Weight.of(tensor["W"], d, f), _Weight.of(r, d, f)
        bw, br = both[d, : count * hidden], both[d, count * hidden :]
        G = [slice(g * hidden, (g + 1) * hidden) for g in range(count)]
        fn = functions[d]
        p = None if peephole is None else np.split(peephole[d], 3)
        h = tensor["initial_h"].real(f)[d] if "initial_h" in tensor else np.zeros((batch, hidden), f)
        c = tensor["initial_c"].real(f)[d] if "initial_c" in tensor else np.zeros((batch, hidden), f)
        first = tensor.get("initial_h")
        for step in range(int(lens.max(initial=0))):
            at = np.where(lens > step, lens - 1 - step if backward else step, 0)
            rows = np.flatnonzero(lens > step)
            now = _Tensor.of(x.q[at[rows], rows], None if x.scale is None else x.scale.reshape(1, 1))
            if step == 0 and first is not None and first.scale is not None and state == "levels":
                before = _Tensor.of(first.q[d][rows], first.scale.reshape(1, 1))
            elif step == 0 and first is not None:
                before = _Tensor(h[rows])
            else:
                before = fed(h[rows], levels)
            known = before.real(f)
            if op == "GRU":
                reset_before = attributes.get("linear_before_reset", 0)

                def gate(g, left, scale=None):
                    ws, rs = w_d.rows(G[g]), r_d.rows(G[g])
                    if scale is None:
                        return arithmetic.sum(
                            [(arithmetic.product(now, ws), bw[G[g]]), (arithmetic.product(left, rs), br[G[g]])]
                        )
                    inner = arithmetic.sum([(arithmetic.product(left, rs), br[G[g]])])
                    return arithmetic.sum([(arithmetic.product(now, ws), bw[G[g]])], scale * inner)

                z = act(fn[0], bounded(gate(0, before)))
                rt = act(fn[0], bounded(gate(1, before)))
                if reset_before:
                    ht = act(fn[1], bounded(gate(2, before, rt)))
                else:
                    ht = act(fn[1], bounded(gate(2, _Tensor(rt * known))))
                new = (f(1) - z) * ht + z * known
            else:
                products = [(arithmetic.product(now, w_d), bw), (arithmetic.product(before, r_d), br)]
                total = arithmetic.sum(products)
                if op == "RNN":
                    new = act(fn[0], bounded(total))
                else:
                    i, o, ff, g = (total[:, s] for s in G)
                    old = c[rows]
                    if p is not None:
                        i, ff = i + p[0] * old, ff + p[2] * old
                    i = act(fn[0], bounded(i))
                    ff = f(1) - i if attributes.get("input_forget") else act(fn[0], bounded(ff))
                    g = act(fn[1], bounded(g))
                    cell_now = ff * old + i * g
                    if p is not None:
                        o = o + p[1] * cell_now
                    o = act(fn[0], bounded(o))
                    new = o * act(fn[2], bounded(cell_now))
                    c[rows] = cell_now
                    y_c[d][rows] = cell_now
            h[rows] = new
            y[at[rows], d, rows] = new
        y_h[d] = h
        if op == "LSTM":
            y_c[d][lens == 0] = c[lens == 0]
    result = {"Y": y, "Y_h": y_h, "Y_c": y_c}
    if layout:
        result = {"Y": np.transpose(y, (2, 0, 1, 3)), "Y_h": np.swapaxes(y_h, 0, 1), "Y_c": np.swapaxes(y_c, 0, 1)}
    return {k: shown(result[k], s, 0 if z is None else z, t, f) for k, (s, z, t) in outputs.items()}


# The state stays in float between the steps.
FLOAT_OPTIONS = {
    # Exact integer sums of X by W, times s_x * s_w, then float64; H by R as floats by integers, times s_r: the node
    # between DequantizeLinear and QuantizeLinear, with the integers multiplied before their scales.
    "float_state": {},
    # float32 throughout, as the epilogue of a runtime: ONNX's own type between DQ and Q.
    "float_state_32": {"f": np.float32},
    # W's bias rounded to an integer of scale s_x * s_w in the accumulator (TFLite, QNN). With 16-bit outputs it has 16
    # more bits, as TFLite's 16x8 mode needs.
    "float_state_bias_integer": {"f": np.float32, "bias": "integer"},
    # All terms before an activation in units of s_x * s_w, scaled once at the end.
    "float_state_scale_last": {"f": np.float32, "scaling": "last"},
    # The accumulator times W's scale (per channel, if W has it), then times X's: only weight scales are folded ahead.
    "float_state_scales_separate": {"f": np.float32, "scaling": "separate"},
    # A 31-bit multiplier and a rounding shift (gemmlowp), 28 fractional bits: an error of at most 2^-28.
    "float_state_fixed_point": {"scaling": "fixed"},
    # X, W and R dequantized for a float32 node: ONNX's Q-DQ form to the letter.
    "float_state_dequantized": {"f": np.float32, "accumulate": "dequantized"},
}
# The state between the steps is the quantized Y, as in integer runtimes (TFLite, QNN), so that both products are exact
# integers; the cell is in float. A tie that rounds the other way is fed back.
LEVEL_OPTIONS = {
    "level_state": {},
    "level_state_32": {"f": np.float32},
    "level_state_bias_integer": {"f": np.float32, "bias": "integer"},
    "level_state_scale_last": {"f": np.float32, "scaling": "last"},
    "level_state_fixed_point": {"scaling": "fixed"},
}
FLOAT_STATE = {name: partial(_run, **options) for name, options in FLOAT_OPTIONS.items()}
LEVEL_STATE = {name: partial(_run, state="levels", **options) for name, options in LEVEL_OPTIONS.items()}
