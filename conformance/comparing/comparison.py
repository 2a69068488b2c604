"""Comparison of a model with a framework's results: whether they agree, and which single change explains a difference.

The reference evaluates the recurrent nodes. Results agree if no element differs by more than a tolerance:
:data:`TOLERANCES` times the largest number of the tensor. A framework computes in the type of its tensors. Roundings
move an output of a recurrent layer, which lies within -1 and 1, by some dozens of units in the last place (2^-24 in
float32), and layers behind it scale that like the numbers themselves. The tolerance is at least ten times as wide. It
tells a changed model from an unchanged one; it is no test of a runtime.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from ...reference.errors import UserError
from ..models.content import ModelError
from ..models.execution import ExecutionError, onnxruntime_process, require_inputs
from .changes import Change, changes_of, with_inputs
from .split import Array, Arrays, Evaluator, SplitModel

TOLERANCES = {"float64": 1e-6, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
"""Largest difference of equal results, as a share of the tensor's largest number, by the type of the results."""


class ComparisonError(UserError):
    """Model and arrays that cannot be compared; the text gives the reason in one line."""


@dataclass(frozen=True)
class Match:
    """A change with which the model computes the results.

    words, remedy
        As in :class:`.changes.Change`, with the name of the node.
    difference
        The largest remaining difference.
    """

    words: str
    remedy: str
    difference: float


@dataclass(frozen=True)
class TensorDifference:
    """Difference of one tensor of the results from the unchanged model.

    name, layout
        Its name, and the framework's layout in which it was given; empty for the model's own.
    difference, largest
        The largest difference, and the largest number of the model's tensor.
    agrees
        Whether the difference is within the tolerance.
    where
        The first index that differs, in the results' own axes; empty if they agree.
    """

    name: str
    layout: str
    difference: float
    largest: float
    agrees: bool
    where: tuple[int, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison.

    tensors
        The difference of each tensor, in the order of the model.
    matches
        The single changes that explain all tensors, the closest first; none if the results agree.
    tried
        Number of changes tried.
    first
        Name of the recurrent node whose own outputs are the first to differ; empty if none was given or all agree.
    """

    tensors: tuple[TensorDifference, ...]
    matches: tuple[Match, ...]
    tried: int
    first: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the model computes the results."""
        return all(tensor.agrees for tensor in self.tensors)

    def __str__(self) -> str:
        lines = [self._answer()]
        for tensor in self.tensors:
            layout = f" ({tensor.layout})" if tensor.layout else ""
            verdict = "agrees" if tensor.agrees else f"differs first at [{', '.join(map(str, tensor.where))}]"
            largest = f"largest difference {tensor.difference:.2g} of numbers up to {tensor.largest:.2g}"
            lines.append(f"  {tensor.name}{layout}: {verdict}; {largest}")
        if self.first and not self.agrees:
            lines.append(f"  first node whose outputs differ: {self.first}")
        for match in self.matches:
            lines.append(f"  {match.words} (largest difference {match.difference:.2g})\n    {match.remedy}")
        if not (self.agrees or self.matches or self.first):
            lines.append("  give outputs of the recurrent nodes, too, to see which node is the first to differ")
        return "\n".join(lines)

    def _answer(self) -> str:
        if self.agrees:
            return "the model computes these results"
        difference = "the model computes other numbers"
        if not self.matches:
            return f"{difference}, and none of {self.tried} single changes explains them"
        if len(self.matches) == 1:
            return f"{difference}; with {self.matches[0].words} it would compute these results"
        alternatives = f"with each of {len(self.matches)} single changes it would compute these results"
        return f"{difference}; {alternatives}, and these data cannot tell them apart"


def compare(model: str | Path, inputs: Arrays, outputs: Arrays) -> Comparison:
    """Compare a model with results of a framework.

    inputs
        Arrays by name of the model's inputs.
    outputs
        The framework's results, by name of the model's outputs or of tensors inside its main graph.

    Raise ComparisonError if the model cannot be read or run, or arrays are missing or have wrong names or shapes.
    """
    try:
        split = SplitModel.read(Path(model))
        require_inputs(split.model, inputs)
        _require_results(split, outputs)
        with onnxruntime_process() as process:
            return _compared(split, Evaluator(split, inputs, process), dict(outputs))
    except ModelError as error:
        raise ComparisonError(f"{model} {error}") from None
    except ExecutionError as error:
        raise ComparisonError(str(error)) from None


def _require_results(split: SplitModel, outputs: Arrays) -> None:
    graph = split.model.graph
    names = ", ".join(value.name for value in graph.output)
    if not outputs:
        raise ComparisonError(f"no results are given; the model's outputs are {names}")
    computed = {name for node in graph.node for name in node.output if name}
    if strange := ", ".join(repr(name) for name in outputs if name not in computed):
        raise ComparisonError(f"the model's main graph computes no tensor named {strange}; its outputs are {names}")
    for name, array in outputs.items():
        if array.dtype.kind not in "fV":
            raise ComparisonError(f"{name} of the results is {array.dtype}, not floating-point numbers")


def _compared(split: SplitModel, values: Evaluator, given: dict[str, Array]) -> Comparison:
    names = [name for node in split.model.graph.node for name in node.output if name in given]
    plain = values.wanted(names)
    tensors = tuple(_nearest(split, name, plain[name], given[name]) for name in names)
    first = next(
        (node.name for node in split.nodes for t in tensors if t.name in node.outputs.values() and not t.agrees), ""
    )
    if all(tensor.agrees for tensor in tensors):
        return Comparison(tensors, (), 0)
    matches, tried = [], 0
    for description, remedy, changes in _candidates(split, values):
        tried += 1
        differences = []
        try:
            changed = values.wanted(names, changes)
            for name in names:
                found = _nearest(split, name, changed[name], given[name])
                if not found.agrees:
                    break
                differences.append(found.difference)
            else:
                matches.append(Match(description, remedy, max(differences)))
        except (ComparisonError, ExecutionError):
            continue  # the node is illegal with this change, or the results have other shapes
    matches.sort(key=lambda match: match.difference)
    return Comparison(tensors, tuple(matches), tried, first)


def _candidates(split: SplitModel, values: Evaluator) -> Iterator[tuple[str, str, dict[int, Change]]]:
    """Yield changes with their descriptions and remedies.

    First come those of all nodes of an operator together, then those of each node alone, then exchanges of the weights
    of two nodes.
    """
    changes_by_node = [
        list(changes_of(node, inputs, values.given)) for node, inputs in zip(split.nodes, values.before, strict=True)
    ]
    together: dict[str, dict[int, Change]] = {}
    for number, changes in enumerate(changes_by_node):
        for change in changes:
            together.setdefault(change.words, {})[number] = change
    for description, members in together.items():
        if len(members) > 1:
            names = ", ".join(split.nodes[number].name for number in members)
            yield f"{description} at {names}", f"{names}: {next(iter(members.values())).remedy}", members
    for number, changes in enumerate(changes_by_node):
        for change in changes:
            name = split.nodes[number].name
            yield f"{change.words} at {name}", f"{name}: {change.remedy}", {number: change}
    weights = [{n: a for n, a in inputs.items() if n in ("W", "R", "B", "P")} for inputs in values.before]
    shapes = [{name: array.shape for name, array in arrays.items()} for arrays in weights]
    for (i, first), (j, second) in combinations(enumerate(split.nodes), 2):
        if first.node.op_type == second.node.op_type and shapes[i] == shapes[j]:
            yield (
                f"the weights of {first.name} and {second.name} exchanged",
                f"exchange W, R and B of {first.name} and {second.name}",
                {i: with_inputs("", "", **weights[j]), j: with_inputs("", "", **weights[i])},
            )


def _nearest(split: SplitModel, name: str, ours: Array, theirs: Array) -> TensorDifference:
    """Return the difference in the layout of a framework in which the model's tensor differs least from the results.

    Raise ComparisonError if none has the shape of the results.
    """
    formal = next((f for node in split.nodes for f, n in node.outputs.items() if n == name), "")
    forms = [("", ours)]
    if formal == "Y" and ours.ndim == 4:
        T, D, N, H = ours.shape
        merged = ours.transpose(0, 2, 1, 3).reshape(T, N, D * H)
        names = ("directions in the last axis", "batch first, directions in the last axis")
        forms += zip(names, (merged, merged.swapaxes(0, 1)), strict=True)
        forms += [(words, array[:, 0]) for words, array in forms[1:] if N == 1]
    if formal in ("Y_h", "Y_c") and ours.ndim == 3:
        D, N, H = ours.shape
        forms.append(("batch first", ours.swapaxes(0, 1)))
        forms.append(("directions in the last axis", ours.swapaxes(0, 1).reshape(N, D * H)))
    if not formal and ours.ndim >= 2:
        forms.append(("first two axes exchanged", ours.swapaxes(0, 1)))
    found = [(words, array) for words, array in forms if array.shape == theirs.shape]
    if not found and ours.size == theirs.size and ours.squeeze().shape == theirs.squeeze().shape:
        found = [("without axes of one", ours.reshape(theirs.shape))]
    if not found:
        raise ComparisonError(f"{name} of the results has shape {theirs.shape}; the model gives {ours.shape}")
    differences = [_difference(name, words, array, theirs) for words, array in found]
    return min(differences, key=lambda tensor: tensor.difference)


def _difference(name: str, words: str, ours: Array, theirs: Array) -> TensorDifference:
    share = max(TOLERANCES.get(array.dtype.name, TOLERANCES["float32"]) for array in (ours, theirs))
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    if not ours.size:
        return TensorDifference(name, words, 0.0, 0.0, True)
    with np.errstate(all="ignore"):
        error = np.abs(ours - theirs)
    error = np.where(np.isnan(ours) & np.isnan(theirs) | (ours == theirs), 0.0, error)
    error = np.where(np.isnan(error), np.inf, error)
    finite = np.abs(ours[np.isfinite(ours)])
    largest = float(finite.max(initial=0.0))
    tolerance = share * max(largest, float(np.finfo(np.float32).tiny))
    wrong = np.argwhere(error > tolerance)
    where = tuple(int(k) for k in wrong[0]) if len(wrong) else ()
    return TensorDifference(name, words, float(error.max()), largest, not len(wrong), where)
