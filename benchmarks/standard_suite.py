"""Which faults ONNX's own 18 node cases for LSTM, GRU and RNN find, with their tolerance, and which ours.

Every fault is run as a target. Of ONNX's cases it survives all whose expected outputs it meets to within the
runner's rtol and atol; of ours as ``onnxspec prove`` says, whose table can be given (it takes minutes to make).

    python benchmarks/standard_suite.py [proof.csv]
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.cases import operator_versions, profile
from onnxspec.cases.directories.reading import read_model
from onnxspec.conformance.proof.proof import Proof, prove
from onnxspec.reference import FAULTS, OPERATORS, Fault, Node, run_recurrent_fault

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Standard:
    """One of ONNX's cases."""

    name: str
    node: Node
    inputs: Arrays
    outputs: Arrays
    rtol: float
    atol: float

    def finds(self, fault: Fault) -> bool:
        """Whether the runner of ONNX would fail an implementation with this fault."""
        if not fault.applies(self.node.op_type, self.node.since_version, "float32") or fault.accepts:
            return False
        memory: dict[str, Any] = {}
        fed = {name: array.copy() for name, array in self.inputs.items()}
        got = run_recurrent_fault(fault, self.node, self.inputs, fed=fed, memory=memory)
        for name, expected in self.outputs.items():
            array = got.get(name)
            if array is None or array.shape != expected.shape or array.dtype != expected.dtype:
                return True
            if not np.allclose(array, expected, self.rtol, self.atol):
                return True
        return False


def standard_cases() -> Iterator[Standard]:
    """The 18 cases, in the newest version that the installed onnx gives them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        tests = load_model_tests(kind="node")
    for test in tests:
        if not any(test.name.startswith(f"test_{op}") for op in ("lstm", "gru", "rnn", "simple_rnn")):
            continue
        if test.model is None or not test.data_sets:
            raise SystemExit("this onnx keeps its cases in files; use onnx 1.19 or newer")
        one = read_model(test.model)
        given, expected = test.data_sets[0]
        order = [value.name for value in test.model.graph.input]
        arrays = dict(zip(order, given, strict=True))
        inputs = {name: arrays[graph_name] for name, graph_name in one.inputs.items()}
        results = dict(zip((value.name for value in test.model.graph.output), expected, strict=True))
        outputs = {name: results[graph_name] for name, graph_name in one.outputs.items()}
        yield Standard(test.name, one.node, {**one.constants, **inputs}, outputs, test.rtol, test.atol)


def proved(table: Path | None) -> set[tuple[str, str]]:
    """(fault, operator) pairs that core catches, by two cases or more with a discrimination of at least 4 in every
    type in which they can show."""
    if table is not None:
        with table.open(newline="", encoding="utf-8") as file:
            rows = [(r["fault"], r["operator"], int(r["well"]) >= 2) for r in csv.DictReader(file)]
    else:
        specs = [spec for op, version in operator_versions() for spec in profile("core", op, version)]
        *_, proof = prove(specs, styles=(), processes=2)
        assert isinstance(proof, Proof)
        rows = [(row.fault, row.op, row.proved) for row in proof.rows]
    caught: dict[tuple[str, str], bool] = defaultdict(lambda: True)
    for fault, op, well in rows:
        caught[fault, op] &= well
    return {pair for pair, well in caught.items() if well}


def main() -> None:
    cases = list(standard_cases())
    ours = proved(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    table = []
    for op in OPERATORS:
        faults = [d for d in FAULTS.values() if op in d.operators]
        theirs = {d.id for d in faults if any(c.finds(d) for c in cases if c.node.op_type == op)}
        table.append((op, len(faults), len(theirs), sum((d.id, op) in ours for d in faults)))
    everywhere = {(d.id, op) for d in FAULTS.values() for op in d.operators}
    caught = {(d.id, c.node.op_type) for c in cases for d in FAULTS.values() if c.finds(d)}
    print(f"{len(cases)} cases of ONNX, rtol {cases[0].rtol:g}, atol {cases[0].atol:g}; core of onnxspec\n")
    print("| | faults | found by ONNX's node cases | found by `core` |\n| --- | --- | --- | --- |")
    for op, total, theirs_count, ours_count in table:
        print(f"| {op} | {total} | {share(theirs_count, total)} | {share(ours_count, total)} |")
    total = len(everywhere)
    print(f"| all | {total} | {share(len(caught), total)} | {share(len(ours & everywhere), total)} |")


def share(count: int, total: int) -> str:
    return f"{count} ({100 * count / total:.0f} %)"


if __name__ == "__main__":
    main()
