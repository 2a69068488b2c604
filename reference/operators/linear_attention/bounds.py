"""Error bounds of LinearAttention: how far a conforming implementation may be from the equations.

Only the outputs and the last state are visible. So a node is judged by a *free run*: the local errors of every step are
carried to the end. An implementation may compute step by step, or fused (it reads before it writes and adds the
difference), or in chunks of any length. Within a chunk, the written values w come from a triangular system; outputs and
the state at the chunk's end come from matrix products (the WY form). A delta rule may also multiply the state by the
matrix A = (I - beta k k') exp(g) of each step. All of these solve the same equations, so they differ only by roundings
of the same three quantities. Let u be the rounding of a sum, h the rounding of a stored number (both float32 in most
classes), and p the operand rounding of matrix products:

    in w_t           |beta| [ ((d_k + n + 6) u + 4 p + E) |k|'P + (3 h + 2 p) (|v| + |P'k|) ] + 2 h |w|
    in S, at an end  ((n + 2) u + 2 h + 3 p) M + E P
    in S, by A       ((d_k + 7) u + 4 p + E) (P + |beta| |k| |k|'P)
    in o_t           |scale| [ ((d_k + n + 6) u + 4 p) |q|'M + E |q|'P ] + 2 h |o|

**Local errors.** n counts the steps since the chunk began. M bounds every partial sum of the state: it starts from |S|
at the beginning of each chunk, and M = P + |k| |w|', with P = exp(g) M before it. A sum in any order of d_k products,
each a sum of n terms, costs at most d_k + n roundings of |k|'P or |q|'M. Six more roundings cover the products with
decays, scale and beta. Sequential and fused kernels are chunks of one step. E is the relative error of a decay. It
covers exp itself, the rounding of its argument, and the sum of the exponents g since the chunk began; each partial sum
G is rounded, in order or as a tree. WGSL allows exp 3 + 2|x| units in the last place, the largest error of the
implementations in use. The elements of A cost three roundings and E, and a row of A times S is a sum of d_k products,
with |A| |S| at most P + |beta| |k| |k|'P; adding beta k v' costs up to four more. This form is of single steps: its
error is added to S where chunks have one step.

**Carried errors.** The equations are linear in S. An error e in w_s enters the state as k_s e, and an error in S enters
as itself. A later step sees the error multiplied by Phi, the exact product of the matrices A = (I - beta k k') exp(g)
in between. A row x' of the later result (scale q_t', or a row of the identity for the last state) sees |x' Phi k_s| of
the first error and |x' Phi| of the second. Rows are carried backwards exactly, and absolute values are taken of the
result only. Absolute values of the matrices themselves would grow without end where the delta rule contracts.

**Every chunk length.** The bound is the greatest over chunks of 1, 16, 32, 64, 128, chunk_size and T steps. M and n
only grow when two chunks become one. So the errors of w and o are greatest for one chunk of T steps, which covers every
length and uneven chunks. In S, longer chunks have fewer ends, each with a greater share: chunks of c steps add (c + 4)
M at every c-th step, single steps add 5 M at every step. Where M changes little within c steps, the ratio is 1 + 4 / c
to 5, so single steps cover every length with a factor of three to spare. Where M changes fast, the next greater length
of the list covers it. The last sentence is an argument, not a proof; tests run chunks of 7 and 48 steps.

**Triangular systems** are solved by substitution, whose error has the form above, or by an inverse that is computed by
substitution, in blocks or not; in tests the inverse is as good. An inverse by repeated squaring is not: where keys are
similar, its error is thousands of bounds.

**Exact cases.** Where every number is a small integer, no conforming implementation rounds at all (:func:`is_exact`).

Measured with sixteen implementations (``tests/reference/operators/linear_attention``): at most 0.2 of the bound in
float32, and 0.97 in half types, where most of the error is the rounding of the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from ...numbers.accuracy import FORMATS, Format, accuracy_class, budget
from .recurrence import Array, Attention, Operands, Step, advance, outer, pack, retrieve, step_of

CHUNKS = (1, 16, 32, 64, 128)
"""Chunk lengths that kernels use."""

_SINGLE = FORMATS["float32"]

_SLACK = 1.01
"""Margin for second-order errors, which the formulas leave out, and for roundings of the bound itself."""

_LEAST_SINGLE = 1 << 16
"""Number of state elements of a node from which error bounds are computed in float32, which takes half the time."""


class Costs(Struct, frozen=True):
    """Largest errors of operations in an accuracy class, relative to their results.

    sums
        One rounding in a sum of products.
    held
        One rounding of a stored number: w, the state, an exponent.
    operands
        Rounding an operand of a matrix product.
    floor
        Additional absolute error of one rounding, below the normal range.
    flushed
        Smaller inputs may be treated as zero.
    largest
        Larger intermediate numbers may become infinite.
    exponentials
        (a, b): the error of exp(x) is at most (a + b|x|) roundings.
    """

    sums: float
    held: float
    operands: float
    floor: float
    flushed: float
    largest: float
    exponentials: tuple[float, float] = (6.0, 4.0)

    @property
    def exact_below(self) -> float:
        """Integers up to this value are never rounded."""
        return 0.25 / max(self.sums, self.held, self.operands)


def costs_of(accuracy: str, type: str) -> Costs:
    """Return the costs of an accuracy class for tensors of a type. Raise ValueError for an unknown class."""
    chosen = accuracy_class(accuracy)

    def coarser(name: str | None) -> Format:
        form = FORMATS.get(name or "", _SINGLE)
        return form if form.precision < _SINGLE.precision else _SINGLE

    tensor = coarser(type)
    held = tensor if chosen.accumulator == "storage" else coarser(chosen.storage)
    sums = tensor if chosen.accumulator == "storage" else _SINGLE
    unit = budget(accuracy, type)
    operands = coarser(chosen.operands)
    rounded = unit.operand_unit if chosen.operands == "tf32" else operands.unit
    floors = [form.least_normal if chosen.flushes else form.least_subnormal for form in (sums, held)]
    if chosen.operands in FORMATS:
        floors.append(operands.least_normal if chosen.flushes else operands.least_subnormal)
    return Costs(
        sums=sums.unit,
        held=held.unit,
        operands=rounded if rounded > _SINGLE.unit else 0.0,
        floor=max(floors),
        flushed=FORMATS[type].least_normal if chosen.flushes else 0.0,
        largest=min(sums.largest, held.largest, operands.largest),
        exponentials=(4.0, 2.0) if accuracy == "strict" else (6.0, 4.0),
    )


def chunk_lengths(steps: int, chunk_size: int) -> list[int]:
    """Return the chunk lengths whose bounds are computed; the bound is the greatest of them."""
    longest = max(steps, 1)
    return sorted({min(length, longest) for length in (*CHUNKS, chunk_size, longest) if length >= 1})


class Radii(Struct, frozen=True):
    """Values and error bounds of both outputs before they are rounded to their types.

    Shapes are (B, T, R * d_v) and (B, H, d_k, d_v). An infinite or NaN bound means that there is no bound.
    """

    output: Array
    state: Array
    output_radius: Array
    state_radius: Array


class _Local(Struct, frozen=True):
    """Local errors of every step.

    Errors of w have the shape (C, B, T, H, d_v) and errors of o (C, B, T, R, d_v), for C chunk lengths. Errors of S are
    {step: [(index of a chunk length, (B, H, d_k, d_v))]}.
    """

    written: Array
    outputs: Array
    states: dict[int, list[tuple[int, Array]]]


class _Sizes(Struct, frozen=True):
    """Absolute values of one step's operands, and errors from flushed operands.

    The values are |q| (B, R, d_k), |k|, |beta| (B, H, 1), |w|, |v| + |P'k| and |o|. ``flushed`` is None where no
    operand is flushed to zero.
    """

    query: Array
    key: Array
    beta: Array | None
    written: Array
    corrected: Array
    output: Array
    flushed: _Flushed | None


class _Flushed(Struct, frozen=True):
    """Errors of w, o / scale and S that come from operands flushed to zero."""

    written: Array
    output: Array
    state: Array


def bound(attention: Attention, costs: Costs) -> Radii:
    """Return the values of a node's outputs, and the greatest errors of an implementation with these rounding costs."""
    operands = attention.operands()
    with np.errstate(all="ignore"):
        lengths = chunk_lengths(operands.steps, attention.chunk_size)
        local, outputs, state = _run(operands, lengths, costs)
        output_radius, state_radius = _carried(operands, local, len(lengths))
        if operands.steps and is_exact(attention, operands, costs):
            output_radius, state_radius = np.zeros_like(output_radius), np.zeros_like(state_radius)
    return Radii(pack(outputs), state, pack(output_radius), state_radius)


def _run(operands: Operands, lengths: list[int], costs: Costs) -> tuple[_Local, Array, Array]:
    """Return the local errors, the outputs (B, T, R, d_v) and the last state."""
    batch, steps, reads, _ = operands.query.shape
    heads, d_v = operands.past.shape[1], operands.past.shape[3]
    dtype: np.dtype[Any] = np.dtype(np.float32 if operands.past.size >= _LEAST_SINGLE else np.float64)
    outputs = np.zeros((batch, steps, reads, d_v))
    local = _Local(
        np.zeros((len(lengths), batch, steps, heads, d_v)), np.zeros((len(lengths), batch, steps, reads, d_v)), {}
    )
    state = operands.past
    # For each chunk length: M, and its greatest element in every head (B, H).
    majorants: list[tuple[Array, Array]] = [(np.abs(state).astype(dtype), _greatest(state)) for _ in lengths]
    exponents = _exponent_errors(operands, lengths, costs)
    for t in range(steps):
        step = step_of(operands, t, state)
        after, outputs[:, t], written = advance(step)
        sizes = _sizes(step, written, outputs[:, t], costs, first=t == 0)
        size, top = np.abs(state).astype(dtype), _greatest(state)
        added: Array = outer(sizes.key, sizes.written).astype(dtype)
        decay: Array = step.decay[..., None].astype(dtype)
        most: Array = step.decay.max(axis=-1, initial=0)
        ends = local.states.setdefault(t, [])
        for index, length in enumerate(lengths):
            position = t % length + 1
            if position == 1:
                majorants[index] = size, top
            majorant, greatest = majorants[index]
            error_of_decay = exponents[index][:, t]
            decayed = decay * majorant  # P
            majorant = decayed + added
            greatest = most * greatest + sizes.key.max(axis=-1, initial=0) * sizes.written.max(axis=-1, initial=0)
            majorants[index] = majorant, greatest
            _step_errors(local, (index, t), (step, sizes), decayed, greatest, error_of_decay, position, costs)
            if position == length or t == steps - 1:
                share = (position + 2) * costs.sums + 2 * costs.held + 3 * costs.operands
                end: Array = dtype.type(share) * majorant + error_of_decay[..., None].astype(dtype) * decayed
                end += costs.floor * (4 + greatest)[..., None, None]
                if length == 1 and sizes.beta is not None:
                    end += _dense_error(sizes, decayed, error_of_decay, costs)
                end[greatest >= costs.largest] = np.inf
                ends.append((index, end))
            if sizes.flushed is not None:
                ends.append((index, sizes.flushed.state))
        state = after
    return local, outputs, state


def _greatest(states: Array) -> Array:
    """Return the greatest absolute value in every head's state."""
    greatest: Array = np.abs(states).max(axis=(-2, -1), initial=0)
    return greatest


def _exponent_errors(operands: Operands, lengths: list[int], costs: Costs) -> list[Array]:
    """Return the relative error of the decay since the chunk began: (B, T, H, d_k) for each chunk length."""
    errors = []
    constant, slope = costs.exponentials
    sizes = np.abs(operands.exponent)
    for length in lengths:
        error = np.zeros(operands.exponent.shape)
        for begin in range(0, operands.steps if sizes.any() else 0, length):
            chunk = slice(begin, begin + length)
            partial = np.abs(np.cumsum(operands.exponent[:, chunk], axis=1))
            sums = np.cumsum(partial, axis=1) if length > 1 else 0.0
            error[:, chunk] = costs.held * (constant + slope * np.cumsum(sizes[:, chunk], axis=1) + sums)
        errors.append(error + costs.flushed * sizes.any())
    return errors


def _sizes(step: Step, written: Array, output: Array, costs: Costs, *, first: bool) -> _Sizes:
    """Return the absolute values of one step's operands and results."""
    query, key, value = np.abs(step.query), np.abs(step.key), np.abs(step.value)
    beta = None if step.beta is None else np.abs(step.beta)[..., None]
    retrieved = np.abs(retrieve(step.decay[..., None] * step.state, step.key)) if beta is not None else 0.0
    sizes = _Sizes(query, key, beta, np.abs(written), value + retrieved, np.abs(output), None)
    if not costs.flushed:
        return sizes

    def lost(size: Array) -> Array:
        return np.where(size < costs.flushed, size, 0.0)

    if not any(lost(size).any() for size in (query, key, value, np.abs(step.state) if first else value)):
        return sizes
    past = step.decay[..., None] * (lost(np.abs(step.state)) if first else np.zeros_like(step.state))
    decayed = step.decay[..., None] * np.abs(step.state)
    new = lost(value)
    if beta is not None:
        new = beta * (new + retrieve(decayed, lost(key)) + retrieve(past, key))
    state = past + outer(lost(key), sizes.written) + outer(key, lost(value) if beta is None else np.zeros_like(value))
    after = decayed + outer(key, sizes.written)
    read = retrieve(_of_heads(after, step.heads), lost(query)) + retrieve(_of_heads(state, step.heads), query)
    return structs.replace(sizes, flushed=_Flushed(new, read, state))


def _step_errors(
    local: _Local,
    place: tuple[int, int],
    operands: tuple[Step, _Sizes],
    decayed: Array,
    greatest: Array,
    error_of_decay: Array,
    position: int,
    costs: Costs,
) -> None:
    """Store the local errors of w and o of one step in `local`."""
    index, t = place
    step, sizes = operands
    d_k = sizes.key.shape[-1]
    product = (d_k + position + 6) * costs.sums + 4 * costs.operands
    floor = (costs.floor * (d_k + position + 8) * (4 + greatest))[..., None]
    if sizes.beta is not None:
        rows = (sizes.key * (product + error_of_decay)).astype(decayed.dtype)
        sums = retrieve(decayed, rows) + (3 * costs.held + 2 * costs.operands) * sizes.corrected
        new = sizes.beta * (sums + floor * (1 + sizes.key.max(axis=-1, initial=0, keepdims=True)))
        local.written[index, :, t] = new + 2 * costs.held * sizes.written + costs.floor
    heads = step.heads
    rows = (sizes.query * (product + error_of_decay[:, heads])).astype(decayed.dtype)
    along = (sizes.query * sizes.key[:, heads]).sum(axis=-1, keepdims=True)
    sums = retrieve(_of_heads(decayed, heads), rows) + product * along * sizes.written[:, heads]
    sums += floor[:, heads] * (1 + sizes.query.max(axis=-1, initial=0, keepdims=True))
    if sizes.flushed is not None:
        local.written[index, :, t] += sizes.flushed.written if sizes.beta is not None else 0.0
        sums += sizes.flushed.output
    local.outputs[index, :, t] = abs(step.scale) * sums + 2 * costs.held * sizes.output + costs.floor


def _dense_error(sizes: _Sizes, decayed: Array, error_of_decay: Array, costs: Costs) -> Array:
    """Return the additional error of S where one step multiplies it by the matrix A."""
    d_k = sizes.key.shape[-1]
    share = (d_k + 7) * costs.sums + 4 * costs.operands + error_of_decay
    through = retrieve(decayed, (sizes.key * share).astype(decayed.dtype))
    error: Array = share[..., None].astype(decayed.dtype) * decayed + outer(sizes.beta * sizes.key, through)
    return error.astype(decayed.dtype)


def _of_heads(states: Array, heads: NDArray[np.int64]) -> Array:
    """Return the state of every output head; `states` itself where the heads correspond one to one."""
    return states if len(heads) == states.shape[1] and (np.diff(heads) == 1).all() else states[:, heads]


def _carried(operands: Operands, local: _Local, lengths: int) -> tuple[Array, Array]:
    """Return the error bounds of the outputs (B, T, R, d_v) and of the last state, with local errors carried through
    later steps."""
    batch, steps, reads, d_k = operands.query.shape
    heads = operands.heads
    states, d_v = operands.past.shape[1], operands.past.shape[3]
    # Rows q_t' of the outputs and unit rows of the last state, multiplied by the steps processed so far (from the end).
    rows = np.zeros((batch, reads, steps, d_k))
    unit = np.broadcast_to(np.eye(d_k), (batch, states, d_k, d_k)).copy()
    rows_seen = np.zeros((batch, reads, steps, steps))  # |q_t' Phi k_s|
    unit_seen = np.zeros((batch, states, d_k, steps))
    carried = np.zeros((lengths, batch, reads, steps, d_v))
    last = np.zeros((lengths, batch, states, d_k, d_v))
    for t in range(steps - 1, -1, -1):
        later = rows[:, :, t + 1 :]
        for index, end in local.states.get(t, ()):
            if t < steps - 1:
                size = np.abs(later).astype(end.dtype)
                carried[index, :, :, t + 1 :] += size @ _of_heads(end, heads)
            last[index] += np.abs(unit).astype(end.dtype) @ end
        rows[:, :, t] = operands.query[:, t]
        seen = rows[:, :, t:]
        if operands.beta is not None:
            key, update = operands.key[:, t], operands.beta[:, t][..., None] * operands.key[:, t]
            along = seen @ key[:, heads, :, None]
            rows_seen[:, :, t:, t] = np.abs(along)[..., 0]
            seen -= along * update[:, heads, None]
            along = unit @ key[..., None]
            unit_seen[..., t] = np.abs(along)[..., 0]
            unit -= along * update[:, :, None]
        if operands.exponent.any():
            seen *= operands.decay[:, t][:, heads, None]
            unit *= operands.decay[:, t][:, :, None]
    written = local.written.transpose(0, 1, 3, 2, 4)  # (C, B, H, T, d_v)
    carried += rows_seen @ written[:, :, heads]
    last += unit_seen @ written
    outputs = local.outputs + abs(operands.scale) * carried.transpose(0, 1, 3, 2, 4)
    if not steps:
        return outputs.max(axis=0), last.max(axis=0)
    return _SLACK * outputs.max(axis=0), _SLACK * last.max(axis=0)


def is_exact(attention: Attention, operands: Operands, costs: Costs) -> bool:
    """Return whether no conforming implementation rounds any number of a node.

    The node has no decay, because no exponential is exact. Its scale is written in the node and is a power of two,
    because a root or its reciprocal need not be exact. All other numbers are integers. Sums of their absolute values,
    in any order and any chunks, are below the integers that the narrowest format holds. For the delta rules every key
    has at most one entry 1 or -1, and beta is 0, 1 or 2. Then the triangular matrix I + tril(beta K K') holds integers
    up to 2, and so does its inverse: beta times factors 1 - beta, each of which is -1, 0 or 1.
    """
    if not attention.scale or operands.exponent.any() or attention.update_rule in ("gated", "gated_delta"):
        return False
    fraction, exponent = np.frexp(abs(operands.scale))
    arrays = (operands.query, operands.key, operands.value, operands.past)
    if fraction != 0.5 or abs(int(exponent)) > 16 or not all((array == np.rint(array)).all() for array in arrays):
        return False
    size = {name: float(np.abs(getattr(operands, name)).max(initial=0)) for name in ("query", "key", "value", "past")}
    state = size["past"] + operands.steps * size["key"] * size["value"]
    if operands.beta is not None:
        if not np.isin(operands.beta, (0, 1, 2)).all() or size["key"] > 1 or (np.abs(operands.key).sum(-1) > 1).any():
            return False
        # A written value is a sum over the earlier steps, each with a factor of the inverse, beta and value up to 2.
        state = 4 * (operands.steps + 1) * (size["past"] + size["value"])
    return bool((1 + operands.query.shape[-1] * size["query"]) * state <= costs.exact_below)


def returned_radius(value: Array, radius: Array, accuracy: str, type: str) -> Array:
    """Return the error bound of an output in its own type.

    The result is rounded once more if that type is narrower than float32. The bound is infinite where a conforming
    implementation may have left the type's range.
    """
    form = FORMATS[type]
    least = form.least_normal if accuracy_class(accuracy).flushes else form.least_subnormal
    with np.errstate(all="ignore"):
        exact = radius == 0
        if form.precision < _SINGLE.precision:
            exact &= form.nearest(value).astype(np.float64) == value
            radius = radius + _SLACK * form.unit * (np.abs(value) + radius) + least
        radius = np.where(exact, 0.0, radius)
        return np.where(np.abs(value) + radius < form.largest, radius, np.inf)
