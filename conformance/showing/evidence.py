"""Evidence for the verdict on one case: node, inputs, expected outputs, actual outputs.

All of it is plain JSON data of bounded size, computed like the verdict. Numbers that JSON lacks are the texts ``nan``,
``inf`` and ``-inf``; values that are not judged, or were not reported, are null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.printer
from numpy.typing import NDArray

from ...cases import Trial
from ...reference import Interpretations, Node, fault_named
from ...reference.numbers.affine import Channels, Codec
from ..judging.judgement import Judgement
from ..judging.runs import NodeView, view_of
from ..workers.process import Outcome
from .comparison import Comparison, Unit, comparison_of
from .records import SCHEMA, Diagnosis, Gates, Input, Numbers, Plane, Process, Rows, to_json

Array = NDArray[Any]

# Maximum sizes: as much as a page can show and a person can read.
_STEPS, _UNITS, _ROWS = 64, 64, 64
_VALUES = 24
_TEXT = 4000
_DIGITS, _DOUBLE_DIGITS = 9, 17
"""Digits from which a number of the tensors can be read back: of float32 and less, and of float64."""


def evidence_of(
    model: bytes,
    feeds: Sequence[Mapping[str, Array]],
    trials: Sequence[Trial],
    judgement: Judgement,
    outcomes: Sequence[Outcome],
    accuracy: str,
    diagnosis: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the evidence of one case on one target; docs/results.md explains its keys.

    feeds
        The model's inputs in each run.
    trials
        The case's own trial, and its all-outputs run where it has one; empty where no document covers the model.
    outcomes
        The target's outcomes of these trials.
    accuracy
        Name of the accuracy class by which the target is judged.
    diagnosis
        Ids of the faults that explain it.
    """
    outcome = outcomes[0]
    view = view_of(trials, outcomes, judgement) if trials else None
    sequence = view.trials[0].node.operator.sequence if view is not None else "X"
    evidence: dict[str, Any] = {
        "schema": SCHEMA,
        "verdict": judgement.verdict.value,
        "reason": judgement.reason,
        "message": _short(judgement.message),
        "class": accuracy,
        "interpretations": dict(judgement.interpretations or {}),
        "diagnosis": [Diagnosis(d, m.summary if (m := fault_named(d)) else "") for d in diagnosis],
        "process": Process(outcome.status, outcome.signal, outcome.captured[-_TEXT:], outcome.phase),
        **_node(model),
        "inputs": _inputs(model, feeds, trials, view),
        "runs_before": [list(feed[sequence].shape) for feed in feeds[:-1] if sequence in feed],
    }
    if view is not None and view.name:
        evidence |= {"about": view.name, "operator": trials[0].subject.named(view.name).node.operator.name}
    if view is not None and (codecs := codecs_of(view.trials[0].node)):
        evidence["codecs"] = codecs
    digits = _DIGITS
    if view is not None and trials[0].violation is None and outcome.status == "ran" and not outcome.malformed:
        interpretations = Interpretations(**dict(judgement.interpretations or {}))
        comparison = comparison_of(view, accuracy, interpretations)
        digits = _DOUBLE_DIGITS if comparison.configuration.format.name == "float64" else _DIGITS
        evidence["numbers"] = numbers_of(comparison)
    json: dict[str, Any] = to_json(evidence, digits)
    return json


def _short(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[:_TEXT]} ..."


def _node(model: bytes) -> dict[str, Any]:
    """Return the model as text, with its versions and its output names."""
    read = onnx.load_model_from_string(model)
    nodes = read.graph.node
    try:
        text = onnx.printer.to_text(nodes[0] if len(nodes) == 1 else read.graph).strip()
    except Exception:  # the printer knows few types; the model file has all
        text = ", ".join(node.op_type for node in nodes)
    outputs = [name for name in nodes[0].output if name] if len(nodes) == 1 else [v.name for v in read.graph.output]
    return {
        "node": _short(text),
        "nodes": len(nodes),
        "opset": next((opset.version for opset in read.opset_import if opset.domain in ("", "ai.onnx")), None),
        "ir_version": read.ir_version,
        "asked": outputs,
    }


def _inputs(
    model: bytes, feeds: Sequence[Mapping[str, Array]], trials: Sequence[Trial], view: NodeView | None
) -> list[Input]:
    """Return the inputs of the node in its last run; absent inputs have a record, too."""
    if view is None:
        return [_input(name, array, "graph input") for name, array in feeds[-1].items()]
    trial = view.trials[0]
    constants = {tensor.name for tensor in onnx.load_model_from_string(model).graph.initializer}
    bound = trials[0].subject.named(view.name)
    inputs = []
    for name in dict.fromkeys([*trial.node.operator.inputs, *trial.feeds[-1].inputs]):
        array = trial.feeds[-1].inputs.get(name)
        origin = bound.origin(name)
        source = "graph input" if origin in feeds[-1] or view.name == "" else f"{origin}, as it was reported"
        source = "initializer" if origin in constants else source
        inputs.append(Input(name=name, given="absent") if array is None else _input(name, array, source))
    return inputs


def _input(name: str, array: Array, given: str) -> Input:
    record = Input(name=name, given=given, type=array.dtype.name, shape=list(array.shape))
    if array.dtype.kind in "OSUc":
        return record
    numbers = array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    record.values = numbers.ravel()[:_VALUES].tolist()
    if finite.size:
        record.low, record.high = float(finite.min()), float(finite.max())
    if finite.size < numbers.size:
        record.nonfinite = int(numbers.size - finite.size)
    return record


def numbers_of(comparison: Comparison) -> Numbers:
    """Return the first divergence, the gates there, and error against radius around it."""
    c, unit = comparison.configuration, comparison.unit
    numbers = Numbers(
        title=comparison.title,
        from_reported=bool(comparison.steps) and comparison.main in comparison.run.outputs,
        direction=c.directions[unit[0]] if comparison.steps else "",
        row=unit[1],
        unit=unit[2],
        parting=comparison.first_record(),
    )
    if not comparison.steps:
        return numbers
    if c.T and c.N and c.H:
        surroundings = _Surroundings(comparison, unit)
        names = list(comparison.steps[unit[0]].numbers)
        numbers.gates = Gates(names, c.T, list(comparison.lines(unit, surroundings.shown)))
        if comparison.main in comparison.run.outputs:
            numbers.plane, numbers.rows = surroundings.plane(), surroundings.rows()
    if c.N and c.H:
        numbers.states = comparison.states(unit)
    return numbers


def window(size: int, most: int, centre: int) -> range:
    """Return the indices of ``most`` of ``size`` elements, around ``centre``."""
    start = min(max(centre - most // 2, 0), max(size - most, 0))
    return range(start, min(start + most, size))


class _Surroundings:
    """The neighbourhood of one direction, row and unit of a comparison."""

    def __init__(self, comparison: Comparison, unit: Unit) -> None:
        self.comparison, self.place = comparison, unit
        self.direction, self.row, self.unit = unit
        self.length = int(comparison.steps[self.direction].lengths[self.row])
        self.ratio = self._ratios()
        self.shown = window(comparison.configuration.T, _STEPS, self._step())

    def _ratios(self) -> Array:
        """Return error over radius of the first output, (T, D, N, H); NaN where it is not judged.

        Each element uses its own expectation.
        """
        comparison, main = self.comparison, self.comparison.main
        result = np.full(comparison.configuration.shape_of(main), np.nan)
        for e, ratio in zip(comparison.expectations, comparison.ratios, strict=True):
            if e.output == main and ratio is not None:
                result = np.where(np.isnan(ratio), result, ratio)
        return comparison.axes[main].by_step(result)

    def _step(self) -> int:
        """Return the step to show first: the first divergence, else the worst step."""
        first = self.comparison.first
        if first is not None and first.place.step is not None:
            return first.place.step
        ratio = np.nan_to_num(self._of_row(self.direction, self.row), nan=0.0)
        return int(ratio.max(axis=1).argmax())

    def _of_row(self, direction: int, row: int) -> Array:
        """Return error over radius of one row in processing order, (T, H)."""
        picked: Array = self.ratio[self.comparison.steps[direction].positions[:, row], direction, row]
        return picked

    def plane(self) -> Plane:
        """Return error over radius of the row, over steps and units."""
        c, positions = self.comparison.configuration, self.comparison.steps[self.direction].positions
        ratio = self._of_row(self.direction, self.row)
        units = window(c.H, _UNITS, self.unit)
        return Plane(
            list(self.shown),
            [int(positions[s, self.row]) for s in self.shown],
            c.T,
            list(units),
            c.H,
            self.length,
            [[_judged(ratio[s, u]) for u in units] for s in self.shown],
        )

    def rows(self) -> Rows:
        """Return the largest error over radius of every row of the batch at every step."""
        c = self.comparison.configuration
        index, total = self.direction * c.N + self.row, len(c.directions) * c.N
        shown_rows = window(total, _ROWS, index)
        indices = [divmod(number, c.N) for number in shown_rows]
        planes = [self._of_row(d, n) for d, n in indices]
        steps = self.comparison.steps
        return Rows(
            [f"{c.directions[d]} {n}" if len(c.directions) > 1 else str(n) for d, n in indices],
            total,
            [int(steps[d].lengths[n]) for d, n in indices],
            index - shown_rows.start,
            list(self.shown),
            c.T,
            [[_judged(np.fmax.reduce(plane[s], initial=np.nan)) for s in self.shown] for plane in planes],
        )


def _judged(ratio: float) -> float | None:
    """Return a ratio as a float; None where it is not judged."""
    return None if np.isnan(ratio) else float(ratio)


def codecs_of(node: Node) -> dict[str, str]:
    """Return the codecs of quantized inputs and outputs by name, as text."""
    names = [*node.operator.inputs, *node.outputs]
    return {name: _codec_text(node.codecs[name]) for name in names if name in node.codecs}


def _codec_text(codec: Codec) -> str:
    """Return type, scale and zero point as text; for channels also their number, and the ranges of both."""
    type_name = codec.dtype.name
    scales, zeros = np.atleast_1d(codec.scales), np.atleast_1d(codec.zero_points)
    if not isinstance(codec, Channels):
        return f"{type_name}, scale {scales[0]:.6g}, zero point {zeros[0]}"
    scale = f"scale {_span(f'{scales.min():.6g}', f'{scales.max():.6g}')}"
    zero = f"zero point {_span(str(zeros.min()), str(zeros.max()))}"
    return f"{type_name}, {len(scales)} channels along axis {codec.axis}, {scale}, {zero}"


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
