"""Shares of the faults of operators that ONNX's own node tests find, with their tolerance, and that our cases find.

    python -m benchmarks.standard_suite [OPERATOR ...]

Every fault is run as a target. A node test finds it where an expected output is not met within the runner's rtol and
atol; a case of ours where the verdict fails. One case in one type is enough. Wrongly accepted models are left out: ONNX
has no tests of these. Takes minutes per operator.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.cases import profile
from onnxspec.cases.directories.graph_reading import read_model
from onnxspec.cases.profiles.random_cases import random_specs
from onnxspec.conformance.proof.proof import Proof, prove
from onnxspec.reference import FAULTS, OPERATORS, Fault, Node, run_fault, versions_of

Arrays = Mapping[str, NDArray[Any]]

RANDOM = 300


@dataclass(frozen=True)
class Standard:
    """One of ONNX's node tests."""

    name: str
    node: Node
    inputs: Arrays
    outputs: Arrays
    rtol: float
    atol: float

    def finds(self, fault: Fault) -> bool:
        """Return whether ONNX's runner would fail an implementation with this fault."""
        memory: dict[str, Any] = {}
        fed = {name: array.copy() for name, array in self.inputs.items()}
        got = run_fault(fault, self.node, self.inputs, fed=fed, memory=memory)
        for name, expected in self.outputs.items():
            array = got.get(name)
            if array is None or array.shape != expected.shape or array.dtype != expected.dtype:
                return True
            if not np.allclose(array, expected, self.rtol, self.atol):
                return True
        return False


def standard_cases(ops: Sequence[str]) -> Iterator[Standard]:
    """Yield ONNX's node tests with a single node of these operators, in the version of the installed onnx."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        tests = load_model_tests(kind="node")
    for test in tests:
        if test.model is None or [node.op_type for node in test.model.graph.node] not in [[op] for op in ops]:
            continue
        if not test.data_sets:
            raise SystemExit("this onnx keeps its cases in files; use onnx 1.19 or newer")
        lone_node = read_model(test.model)
        feeds, expected = test.data_sets[0]
        order = [value.name for value in test.model.graph.input]
        arrays = dict(zip(order, feeds, strict=True))
        inputs = {name: arrays[graph_name] for name, graph_name in lone_node.inputs.items()}
        results = dict(zip((value.name for value in test.model.graph.output), expected, strict=True))
        outputs = {name: results[graph_name] for name, graph_name in lone_node.outputs.items()}
        yield Standard(test.name, lone_node.node, {**lone_node.constants, **inputs}, outputs, test.rtol, test.atol)


def found(specs: Sequence[Any]) -> set[str]:
    """Return the faults that cases find."""
    *_, proof = prove(specs, styles=(), processes=2)
    assert isinstance(proof, Proof)
    if proof.internal_errors:
        raise SystemExit(proof.internal_errors[0])
    return {row.fault for row in proof.rows if row.cases}


def main() -> None:
    ops = sys.argv[1:] or list(OPERATORS)
    standard = list(standard_cases(ops))
    columns = f"`smoke` | `core` | {RANDOM} random cases"
    print(f"| | faults | ONNX's node tests (of {len(standard)}) | {columns} |\n| --- | --- | --- | --- | --- | --- |")
    for op in ops:
        version = versions_of(op)[-1]
        faults = {fault.id for fault in FAULTS.values() if fault.applies(op, version) and not fault.accepts}
        tests = [case for case in standard if case.node.op_type == op]
        theirs = {id for id in faults if any(case.finds(FAULTS[id]) for case in tests)}
        ours = [found([spec for spec in profile(name, op, version) if not spec.illegal]) for name in ("smoke", "core")]
        ours.append(found(random_specs(RANDOM, "standard-suite", [op], [version])))
        cells = [
            _share(theirs, faults) + f", by {len(tests)}",
            *(_share(detected & faults, faults) for detected in ours),
        ]
        print(f"| {op} | {len(faults)} | {' | '.join(cells)} |", flush=True)


def _share(some: set[str], faults: set[str]) -> str:
    return f"{len(some)} ({100 * len(some) / len(faults):.0f} %)"


if __name__ == "__main__":
    main()
