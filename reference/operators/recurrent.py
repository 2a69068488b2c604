"""ONNX's recurrent operators: a scan over steps around a cell, in a selectable arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..documents.operators import Document, declare
from ..documents.tensors import recurrent_forms
from ..numbers.accuracy import WIDER_PRESETS
from ..numbers.activations import kind_named
from ..numbers.affine import Affine
from ..numbers.bounding import LEAST_SINGLE
from ..numbers.plain import Ordered
from ..recurrent.agreement import Expected, special_mismatches
from ..recurrent.cell import Cell, register_cell
from ..recurrent.computation import computation_of, steps_of
from ..recurrent.configuration import RECURRENT_QUESTIONS, Configuration, configure, open_questions_of
from ..recurrent.expectation import Expectation, ExpectationsBy, bounds, expect
from ..recurrent.node import Diagnostic, Node, StatedSize, Written
from ..recurrent.rnn import CELLS, run
from .operator import Classes, Conforming, Operator, register

if TYPE_CHECKING:
    from ..faults.fault import Fault

_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def diagnostics(written: Written, cell: Cell) -> Iterator[Diagnostic]:
    """Yield the violations in a node's attributes."""
    direction = written.given("direction")
    if direction is not None and direction not in _DIRECTIONS:
        yield Diagnostic("direction", f"direction is {direction!r}, none of forward, reverse and bidirectional")
    layout = written.given("layout")
    if layout is not None and layout not in (0, 1):
        yield Diagnostic("layout", f"layout is {layout}, for which no shapes are defined: it is 0 or 1")
    yield from _activations(written, cell)
    clip = written.given("clip")
    if clip is not None and not clip >= 0:
        yield Diagnostic("clip", f"clip is {clip:g}: the range from -clip to clip is empty")
    coupled = written.given("input_forget")
    if coupled is not None and coupled not in (0, 1):
        yield Diagnostic("input-forget", f"input_forget is {coupled}, neither 0 nor 1")


def _activations(written: Written, cell: Cell) -> Iterator[Diagnostic]:
    names = written.given("activations")
    per_direction, directions = len(cell.activations), _DIRECTIONS.get(written.chosen("direction"))
    count = len(names) if names is not None else None
    if count is not None and directions is not None and count != per_direction * directions:
        need = "both directions need" if directions == 2 else "one direction needs"
        yield Diagnostic("activations", f"activations are {count} names; {need} {per_direction * directions}")
    for name in dict.fromkeys(names or ()):
        if kind_named(name) is None:
            message = f"activations name {name!r}, none of the functions that the document defines"
            yield Diagnostic("activations", message)
    for coefficient in ("activation_alpha", "activation_beta"):
        values = written.given(coefficient) or ()
        expected = count if count is not None else per_direction * (directions or 2)
        if len(values) > expected:
            message = f"{coefficient} has {len(values)} entries for {expected} activations"
            yield Diagnostic(coefficient.replace("_", "-"), message)


def stated_sizes(written: Written) -> Mapping[str, StatedSize]:
    """Return the number of directions, where the direction is valid."""
    directions = _DIRECTIONS.get(written.chosen("direction"))
    if directions is None:
        return {}
    return {"num_directions": StatedSize(directions, f"direction is {written.chosen('direction')}")}


Array = NDArray[Any]
Arrays = Mapping[str, Array]
Outputs = dict[str, Array]


def _document(cell: Cell) -> Document:
    """Return the document of one of ONNX's recurrent operators."""
    forms = recurrent_forms(len(cell.gates), len(cell.peepholes), cell.inner)
    clauses = Path(__file__).with_name(cell.op_type.lower()) / "clauses.toml"
    return Document(cell.op_type, "", clauses, questions=RECURRENT_QUESTIONS, tensors=forms)


def expecting_each(node: Node, inputs: Arrays, several: Sequence[Arrays]) -> list[Expected]:
    """Return the expected outputs of each run; several are evaluated in one batch.

    several
        Each run's outputs by name, of the right shapes. Without Y nothing of a run is known beforehand.

    Raise IllegalNode.
    """
    free = cache(partial(expect, node, inputs, {}))
    each = [Expected(free, outputs) for outputs in several]
    reported = [number for number, outputs in enumerate(several) if "Y" in outputs]
    c = configure(node, inputs)
    # As many as leave radii in the type that one run has.
    products = c.T * c.N * max(c.I, c.H) * len(c.cell.gates) * c.H
    most = max(1, (LEAST_SINGLE - 1) // max(1, products))
    for start in range(0, len(reported), most):
        numbers = reported[start : start + most]
        if len(numbers) == 1:
            each[numbers[0]] = Expected(partial(expect, node, inputs, several[numbers[0]]), several[numbers[0]])
            continue
        side_by_side = _side_by_side(c, node, inputs, [several[number] for number in numbers])
        for number, expectations in zip(numbers, side_by_side, strict=True):
            each[number] = Expected(expectations, several[number])
    return each


def _side_by_side(c: Configuration, node: Node, inputs: Arrays, several: Sequence[Arrays]) -> Iterator[ExpectationsBy]:
    """Yield for each of several runs a function that returns its expected outputs, evaluated in one batch.

    Rows are independent, or operands know the number of runs. An evaluation of tiny tensors costs as much as its calls,
    which hardly depend on the number of rows.
    """

    def batch_axis(output: str) -> int:
        return 0 if c.layout == 1 else 2 if output == "Y" else 1

    Y = np.concatenate([outputs["Y"] for outputs in several], batch_axis("Y"))
    together = cache(partial(expect, node, inputs, {"Y": Y}, runs=len(several)))

    def expectations(rows: slice, accuracy: str, interpretations: Interpretations | None) -> list[Expectation]:
        of_run = []
        for each in together(accuracy, interpretations):
            own = (slice(None),) * batch_axis(each.output) + (rows,)
            about, weak = (None if mask is None else mask[own] for mask in (each.about, each.weak))
            of_run.append(Expectation(each.output, each.number[own], each.clause, about, weak, each.measure))
        return of_run

    for run_number in range(len(several)):
        yield partial(expectations, slice(run_number * c.N, (run_number + 1) * c.N))


class RecurrentOperator(Operator):
    """LSTM, GRU or RNN, or a user-defined operator with a scan around a cell."""

    scans = True
    # Members of the protocol that exist as functions of the scan.
    resolve = staticmethod(configure)
    open_questions = staticmethod(open_questions_of)
    computation = staticmethod(computation_of)
    expecting_each = staticmethod(expecting_each)
    special_mismatches = staticmethod(special_mismatches)
    bounds = staticmethod(bounds)
    steps = staticmethod(steps_of)

    def __init__(self, cell: Cell, document: Document | None = None) -> None:
        """Declare the operator of a cell; `document` is needed if the cell is not ONNX's."""
        self.document = _document(cell) if document is None else declare(document)
        self._cell = register_cell(replace(cell, domain=self.document.domain) if self.document.domain else cell)

    @cached_property
    def conforming(self) -> Mapping[str, Conforming]:  # type: ignore[override]
        """Kernels by the names of their styles."""
        from ..kernels.kernel import STYLES, run_kernel

        flushing = replace(STYLES["lanes"], name="flushing", flushes=True)
        kernels = {name: Conforming(partial(run_kernel, style=style)) for name, style in STYLES.items()}
        return {**kernels, "flushing": Conforming(partial(run_kernel, style=flushing), "flushing")}

    def meaning(self, node: Node, inputs: Arrays, interpretations: Interpretations) -> Hashable:
        """Return a key that is equal for nodes that compute the same."""
        return configure(node, inputs, interpretations).equivalence_key

    @property
    def joint_questions(self) -> frozenset[str]:
        """Ambiguities of the operands only; they come from the document of a user-defined operator."""
        return frozenset(q.name for q in self.document.questions if q not in RECURRENT_QUESTIONS)

    def classes(self, accuracy: str, type: str) -> Classes:
        """Return the declared accuracy class and the wider presets of the type.

        There are no wider presets where operands are levels: narrower floats hold levels exactly, and a number within
        their bounds may be a level off.
        """
        if self._cell.operands is not None:
            return Classes((accuracy,))
        return Classes((accuracy,), tuple(preset for preset in WIDER_PRESETS[type] if preset != accuracy))

    def evaluate_in_order(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Outputs:
        """Return outputs with the terms of each sum added from the first to the last; several times slower."""
        computation = self.computation(node, inputs, interpretations)
        with np.errstate(all="ignore"):
            outputs = run(computation.configuration, computation.inputs, Ordered())
        return {name: outputs[name] for name in node.outputs}

    def expect(
        self,
        node: Node,
        inputs: Arrays,
        observed: Arrays,
        accuracy: str = "standard",
        interpretations: Interpretations | None = None,
        faults: Sequence[Fault] = (),
    ) -> list[Expectation]:
        """Return the expected outputs with their bounds, of a correct target or of one with these faults."""
        if not faults:
            return expect(node, inputs, observed, accuracy, interpretations)
        from ..faults.contexts import reported_steps

        Y = reported_steps(self.computation(node, inputs, interpretations), observed)
        return super().expect(node, inputs, Y, accuracy, interpretations, faults)  # type: ignore[arg-type]

    def requantizing(self, codec: Affine, style: str) -> Callable[[Node, Arrays], Arrays]:
        """Return a kernel of a style that feeds back the hidden state quantized by `codec`."""

        from ..kernels.kernel import STYLES, Kernel, run_kernel

        class FedBackByLevels(Kernel):
            def feedback(self, hidden: Array) -> Array:
                levels = codec.levels(self.stored(hidden))
                return codec.dequantized(levels).astype(hidden.dtype)

        return partial(run_kernel, style=STYLES[style], arithmetic=FedBackByLevels)

    def diagnostics(self, written: Written) -> Iterator[Diagnostic]:
        """Yield the violations in the attributes of a written node."""
        return diagnostics(written, self._cell)

    def stated_sizes(self, written: Written) -> Mapping[str, StatedSize]:
        """Return the sizes that attributes set."""
        return stated_sizes(written)


for _cell in CELLS.values():
    register(RecurrentOperator(_cell))
