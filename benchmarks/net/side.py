"""One side of the comparison: values that an installed onnxspec computes on the frozen corpus.

    PYTHON benchmarks/net/side.py RECORDING OUT.pickle [every Nth case]

It runs with v0.4.0's interpreter and with this version's. Only this module uses internals. A change that moves them
must adapt the part that is not in a ``try`` for v0.4.0.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from corpus import corpus

from onnxspec.cases import build_case
from onnxspec.cases.portable import case_from_json
from onnxspec.reference import evaluate, expect, operator_of

CLASSES = ("standard", "strict", "bf16-storage", "flushing")
LEAST_ELEMENTS, MOST_ELEMENTS = 1, 60_000
"""Sizes of the inputs of cases on which faults and conforming kernels are run."""


def runs(every: int, illegal: bool = False) -> Iterator[tuple[str, Any, dict[str, np.ndarray]]]:
    """Yield (case and run, node, inputs) of the first node of every Nth legal case."""
    for number, row in enumerate(corpus()):
        if number % every or ("illegal" in row["case"]) != illegal:
            continue
        first = build_case(case_from_json(row["case"])).trial.first
        for run, feed in enumerate(first.feeds):
            yield f"{row['id']}#{run}", first.node, dict(feed.inputs)


def numbers(every: int) -> dict[str, Any]:
    """Return values, radii and undefined elements by case, class, and mode of judging.

    The mode is ``steps`` (step by step) or ``free`` (a free run).
    """
    record: dict[str, Any] = {}
    for name, node, inputs in runs(every):
        with np.errstate(all="ignore"):
            computed = evaluate(node, inputs)
            reported = {n: a.astype(node_type(node, inputs, a)) for n, a in computed.items()}
        for accuracy in CLASSES:
            for mode, observed in (("steps", reported), ("free", {})):
                try:
                    expected = expect(node, inputs, observed, accuracy)
                except ValueError as error:  # an operator with arithmetics of its own
                    record[f"{name} {accuracy} {mode}"] = str(type(error))
                    continue
                record[f"{name} {accuracy} {mode}"] = [
                    (e.output, e.clause, e.number.value, e.number.radius, undefined(e.number)) for e in expected
                ]
    return record


def node_type(node: Any, inputs: dict[str, np.ndarray], array: np.ndarray) -> Any:
    """Return the type of a reported output: that of X, unless the output is quantized."""
    X = inputs.get("X")
    return X.dtype if X is not None and X.dtype.kind not in "iu" else array.dtype


def undefined(number: Any) -> Any:
    return getattr(number, "doubt", None) if hasattr(number, "doubt") else number.undefined


def margin(node: Any, inputs: dict[str, np.ndarray], returned: dict[str, np.ndarray], accuracy: str) -> float:
    """Return the largest error over its bound, of an implementation's outputs judged step by step."""
    worst = 0.0
    for e in expect(node, inputs, returned, accuracy):
        if e.output not in returned:
            return np.inf
        got = returned[e.output].astype(np.float64)
        mask = undefined(e.number)
        if got.shape != np.shape(e.number.value):
            return np.inf
        with np.errstate(all="ignore"):
            ratio = np.abs(got - e.number.value) / np.maximum(e.number.radius, 1e-300)
        ratio = np.where(got == e.number.value, 0.0, ratio)
        ratio = ratio if mask is None else np.where(mask, 0.0, ratio)
        worst = max(worst, float(np.nan_to_num(ratio, nan=0.0).max(initial=0.0)))
    return worst


def faults(every: int) -> dict[str, Any]:
    """Return the ratio of error to bound of an implementation with each fault, by fault and case."""
    from onnxspec.reference import faults_of

    ratios_by_name: dict[str, Any] = {}
    for name, node, inputs in small_runs(every):
        operator = operator_of(node.op_type, node.domain)
        for fault in faults_of(node.op_type, node.since_version):
            if fault.accepts or node.domain == "com.amd.quark":
                continue
            try:
                with np.errstate(all="ignore"):
                    returned = operator.answer(node, inputs, (fault,), memory={})
                ratios_by_name[f"{fault.id} {name}"] = margin(node, inputs, returned, "standard")
            except Exception as error:  # a difference, if only one side raises it
                ratios_by_name[f"{fault.id} {name}"] = type(error).__name__
    return ratios_by_name


def conforming(every: int) -> dict[str, Any]:
    """Return the ratio of error to bound of conforming kernels, by kernel and case; it is at most 1."""
    ratios_by_name: dict[str, Any] = {}
    for name, node, inputs in small_runs(every):
        for style, kernel in operator_of(node.op_type, node.domain).conforming.items():
            with np.errstate(all="ignore"):
                returned = kernel.run(node, inputs)
            ratios_by_name[f"{style} {name}"] = margin(node, inputs, dict(returned), kernel.accuracy)
    return ratios_by_name


def small_runs(every: int) -> Iterator[tuple[str, Any, dict[str, np.ndarray]]]:
    for name, node, inputs in runs(every):
        elements = sum(array.size for array in inputs.values())
        if LEAST_ELEMENTS <= elements <= MOST_ELEMENTS and not node.codecs and name.endswith("#0"):
            yield name, node, inputs


if __name__ == "__main__":
    recording, out, step = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    out.write_bytes(pickle.dumps(globals()[recording](step)))
