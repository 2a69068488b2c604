"""com.microsoft::DynamicQuantizeLSTM: LSTM with 8-bit weights, which quantizes X and the states at run time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...documents.interpretations import Interpretations, Question
from ...documents.operators import Document, OperatorVersion, operator_version
from ...documents.tensors import HIDDEN_SIZE, LENGTHS, Dynamic, Extent, Levels, TensorForm, by_name
from ...numbers.bounded import Bounded, either
from ...recurrent.configuration import RECURRENT_QUESTIONS
from ...recurrent.rnn import LSTM, in_order
from ..operator import register
from ..recurrent import RecurrentOperator

Array = NDArray[np.float64]
OP_TYPE, DOMAIN = "DynamicQuantizeLSTM", "com.microsoft"
QUESTIONS = (
    # The elements of X that a range covers: all up to the longest row's last step ("sequence"), all of X ("tensor"),
    # the valid steps of all rows ("valid"), each step with all rows ("step") or with its valid rows ("running"), each
    # row ("row"), or each step of each row ("vector").
    Question(
        "input_range",
        ("sequence", "tensor", "valid", "step", "running", "row", "vector"),
        rare=("tensor", "valid", "running", "row", "vector"),
    ),
    # The rows of Ht-1 that a range covers: those that had the previous step ("batch"), those that have this step
    # ("running"), all rows including waiting and finished ones with their states ("held"), or each row ("row").
    Question("state_range", ("batch", "running", "held", "row"), rare=("running", "held")),
    # The steps that reverse processes together for rows of different lengths: those with the same distance from each
    # row's last step ("own"), or those at the same position of X, where shorter rows wait ("clock").
    Question("reverse_pace", ("own", "clock"), rare=("clock",)),
)
_OF_WHOLE_ROWS = {"tensor": "sequence", "valid": "sequence", "running": "step"}
_LEVELS = 255
_QUOTIENT = 2.0**-22  # the relative error of a quotient in float32: a difference, two divisions or a reciprocal


@dataclass(frozen=True)
class QuantizedOperands:
    """Quantized operands in place of X and Ht-1, with ranges of selected elements.

    inputs, states
        The elements that a range covers, see QUESTIONS. `inputs` may be the ``first`` step; empty `states` means that
        states are not quantized.
    by_clock
        Whether reverse processes rows by position in X, see ``reverse_pace``.
    with_zero
        Whether a range is extended to include zero.
    nearest
        Function that rounds quotients to whole numbers.
    block
        Function from the number of rows to the number of rows that share a range. The rows may belong to several
        `runs`.
    """

    inputs: str = "sequence"
    states: str = "batch"
    by_clock: bool = False
    with_zero: bool = True
    nearest: Callable[[Array], Array] = np.rint
    block: Callable[[int], int] = lambda rows: rows
    runs: int = 1

    @classmethod
    def by(cls, interpretations: Interpretations, ragged: bool) -> QuantizedOperands:
        """Return the operands for these interpretations. Many of them are equivalent if all rows have all steps."""
        inputs, states = interpretations.input_range, interpretations.state_range
        if not ragged:
            return cls(_OF_WHOLE_ROWS.get(inputs, inputs), "row" if states == "row" else "batch")
        paced = inputs in ("step", "running") or states != "row"
        return cls(inputs, states, paced and interpretations.reverse_pace == "clock")

    def beside(self, runs: int) -> QuantizedOperands:
        """Return the operands for several runs evaluated as one batch."""
        return replace(self, runs=runs)

    def of_inputs(self, X: Any, lengths: NDArray[np.int64], positions: NDArray[np.int64] | slice) -> Any:
        """Return X (T, N, I), in processing order, as it is multiplied. No implementation computes steps after the
        longest row's last step.

        positions
            Index from processing order into the positions of X.
        """
        steps = np.arange(len(_values(X)))[:, np.newaxis]
        valid = steps < lengths
        selections = {"sequence": steps < lengths.max(initial=0), "first": steps < 1}
        selections |= dict.fromkeys(("valid", "running", "row"), valid)
        chosen = np.broadcast_to(selections.get(self.inputs, steps >= 0), valid.shape)
        whole = self.inputs not in ("step", "running", "vector")
        order = positions if self.by_clock else slice(None)
        size = 1 if self.inputs in ("row", "vector") else None
        chosen = in_order(chosen, order)[..., np.newaxis]
        return in_order(self._quantized(in_order(X, order), chosen, size, whole=whole), order)

    def of_states(self, states: Any, had: NDArray[np.int64], lengths: NDArray[np.int64]) -> Any:
        """Return Ht-1 (steps, N, H) as it is multiplied.

        had
            (steps, N): steps that a row has had; below 0 while it waits, beyond its length after its last step.
        """
        if not self.states:
            return states
        selections = {"batch": (had >= 0) & (had <= lengths), "running": (had >= 0) & (had < lengths)}
        selected = selections.get(self.states, np.ones_like(had, bool))[..., np.newaxis]
        size = 1 if self.states == "row" else self.block(_values(states).shape[1] // self.runs)
        return self._quantized(states, selected, max(1, size), whole=False)

    def _quantized(self, number: Any, among: NDArray[np.bool_], size: int | None = None, *, whole: bool) -> Any:
        """Return numbers rounded to levels of the range of the elements in `among`.

        A range covers all steps if `whole`, else one step; and `size` rows, or all rows if `size` is None.
        """
        value = _values(number)
        parts = np.arange(value.shape[1]) // (size or max(1, value.shape[1]))
        starts = np.flatnonzero(np.diff(parts, prepend=-1))

        def over(ufunc: np.ufunc, array: NDArray[Any], start: float) -> NDArray[Any]:
            of_parts = ufunc.reduceat(ufunc.reduce(array, axis=2, initial=start), starts, axis=1)
            if whole:
                of_parts = ufunc.reduce(of_parts, axis=0, keepdims=True, initial=start)
            return np.asarray(of_parts[:, parts, np.newaxis])

        start = 0.0 if self.with_zero else np.inf
        low = over(np.minimum, np.where(among, value, start), start)
        high = over(np.maximum, np.where(among, value, -start), -start)
        low, high = (np.where(low <= high, end, 0.0).astype(np.float32) for end in (low, high))
        span = (high - low).astype(np.float64)
        scale = ((high - low) / np.float32(_LEVELS)).astype(np.float64)
        scale = np.where(scale > 0, scale, 1.0)  # empty range, or one so small that its 255th part underflows
        zero = -low.astype(np.float64) / scale
        quotient = value / scale
        level = self._level(quotient, zero)
        if not isinstance(number, Bounded):
            return level * scale
        # Error of the range's ends, and so of the scale; a quotient by a power of two is always exact.
        end_error = 2 * over(np.maximum, number.radius, 0.0) / np.where(span > 0, span, 1.0)
        share = end_error + np.where((np.frexp(scale)[0] == 0.5) & (end_error == 0), 0.0, _QUOTIENT)
        reach, lower = np.abs(quotient) * share + number.radius / scale, zero * share + end_error * _LEVELS
        least = self._level(quotient - reach, zero + lower)
        most = self._level(quotient + reach, np.maximum(zero - lower, 0.0))
        levels = np.maximum(most - level, level - least) * (1 + share)
        off = scale * (levels + np.abs(level) * (share + _QUOTIENT))
        undefined = number.doubt
        if undefined is not None:
            undefined = either(undefined, np.broadcast_to(over(np.maximum, undefined & among, False), value.shape))
        return Bounded(level * scale, off, number.budget, undefined)

    def _level(self, quotient: Array, zero: Array) -> Array:
        zero_point = np.rint(np.clip(zero, 0, _LEVELS))
        return np.clip(self.nearest(quotient), -zero_point, _LEVELS - zero_point)


def _values(number: Any) -> Array:
    values: Array = number.value if isinstance(number, Bounded) else number
    return values


def _forms() -> list[TensorForm]:
    """Return forms like LSTM's, except for weights: 8-bit levels, whose last axis is the channel."""
    D, I, H, G = Extent("num_directions"), Extent("input_size"), Extent(HIDDEN_SIZE), Extent(HIDDEN_SIZE, 4)
    of = operator_version("LSTM", 22).tensors
    forms = [replace(form, batch_first=None) for form in of.values() if form.name not in "WR"]
    forms[0] = replace(forms[0], codec=Dynamic())
    for name, columns in (("W", I), ("R", H)):
        codec = Levels(f"{name}_scale", f"{name}_zero_point")
        forms.append(TensorForm(name, ((D, columns, G),), kind="T2", codec=codec))
        forms.append(TensorForm(codec.scale, ((D,), (D, G))))
        forms.append(TensorForm(codec.zero_point, ((D,), (D, G)), kind="T2"))
    return forms


def _version() -> OperatorVersion:
    base = operator_version("LSTM", 7)
    scales = tuple(f"{name}_{part}" for name in "WR" for part in ("scale", "zero_point"))
    return replace(
        base,
        domain=DOMAIN,
        op_type=OP_TYPE,
        since_version=1,
        inputs=(*base.inputs, *scales),
        required=base.required | set(scales),
        types=("float32",),
        kinds=MappingProxyType({LENGTHS: ("int32",), "T2": ("uint8", "int8")}),
        tensors=by_name(_forms()),
    )


def _open(T: int, lengths: NDArray[np.int64], directions: tuple[str, ...]) -> frozenset[str]:
    """Return the questions that affect a node: those whose ranges may cover more than one step or row."""
    rows = len(lengths) > 1
    paces = rows and "reverse" in directions and bool((lengths != T).any())
    asked = {"input_range": T > 1 or rows, "state_range": rows, "reverse_pace": paces}
    return frozenset(name for name, is_open in asked.items() if is_open)


_CELL = replace(LSTM, op_type=OP_TYPE, unmarked=frozenset(), operands=QuantizedOperands.by, questions=_open)

_CLAUSES = Path(__file__).with_name("clauses.toml")
_DOCUMENT = Document(OP_TYPE, DOMAIN, _CLAUSES, {1: _version()}, questions=(*RECURRENT_QUESTIONS, *QUESTIONS))
register(RecurrentOperator(_CELL, _DOCUMENT))
