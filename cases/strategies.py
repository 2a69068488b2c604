"""Hypothesis strategies: legal configurations of an operator version, for property tests.

::

    from hypothesis import given
    from onnxspec.cases import strategies
    from onnxspec import assert_conforms

    @given(strategies.cases("GRU", 14))
    def test_gru(case):
        assert_conforms(case, my_backend)

A draw is a spec, for ONNX's own operators a :class:`.specs.spec.CaseSpec`: a configuration and the seed of its numbers,
from which :func:`onnxspec.cases.build_case` makes the model and its inputs. The operator's
:class:`.specs.family.Family` defines the strategy. Failures shrink towards one step, one row, one input, one unit,
every attribute at its default, and no optional input.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ..reference import CELLS, operator_version, versions_of
from .specs.drawing import Bounds, listed
from .specs.family import family_of


def cases(
    op: str,
    version: int,
    *,
    types: str | Collection[str] | None = None,
    max_steps: int = 6,
    max_rows: int = 4,
    max_inputs: int = 8,
    max_size: int = 8,
    min_steps: int = 1,
    min_rows: int = 1,
    activations: Collection[str] | None = None,
    only: Mapping[str, Collection[Any]] | None = None,
) -> SearchStrategy[Any]:
    """Return a strategy of legal configurations of one operator version.

    op, version
        The operator and its since_version: ``"GRU", 14``.
    types
        NumPy's name of the tensor type, or several names (default: all types of the version).
    max_steps, max_rows, max_inputs, max_size
        The largest seq_length, batch_size, input_size and hidden_size.
    min_steps, min_rows
        The smallest seq_length and batch_size. 0 is legal too, but some runtimes crash on it, so it is drawn only if it
        is given here.
    activations
        Names of the functions that a node may list (default: all eleven). If empty, no node lists functions.
    only
        Allowed values of axes of the configuration, by field of the operator's spec: ``{"layout": [0], "lengths":
        ["absent", "full"], "clip": [None]}``. Values of ``outputs`` are tuples.

    Raise UnknownOperator for an operator version that does not exist, and ValueError for other impossible arguments,
    with the possible ones in the message. Both are raised immediately, not when the first case is drawn.
    """
    sizes = (min_steps, max_steps, min_rows, max_rows, max_inputs, max_size)
    operator_version(op, version)
    return _drawn(op, version, Bounds(*sizes, types, activations, only or {}))


def operator_cases(operators: str | Collection[str] | None = None, **limits: Any) -> SearchStrategy[Any]:
    """Return a strategy of legal configurations of every version of some operators (default: LSTM, GRU and RNN).

    limits
        The keyword arguments of :func:`cases`.

    A version that has none of the types, or that lacks an axis or all of
    its values, is left out. Raise UnknownOperator and ValueError immediately, the latter also if no version is left.
    """
    bounds = Bounds(**limits)
    chosen = list(CELLS) if operators is None else listed("operators", operators)
    drawn, reasons = [], []
    for op in chosen:
        # The newest version comes first, because a failure of all versions shrinks to it.
        for version in reversed(versions_of(op)):
            try:
                drawn.append(_drawn(op, version, bounds))
            except ValueError as error:
                reasons.append(error)
    if not drawn:
        raise reasons[0] if reasons else ValueError("operators is empty; it names at least one operator")
    return st.one_of(drawn)


def _drawn(op: str, version: int, bounds: Bounds) -> SearchStrategy[Any]:
    """Return the strategy of an operator's own family."""
    strategy: SearchStrategy[Any] = family_of(op).cases(op, version, bounds)
    return strategy
