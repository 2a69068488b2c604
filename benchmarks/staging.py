"""Faulty targets in this process, diagnosed like any run: faults of the table, several at once, and kernels."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from msgspec import structs
from onnx import helper, numpy_helper

from benchmarks.truths import TRUTHS
from benchmarks.zoo.batches import batches
from onnxspec.conformance.diagnosis.causes import DiagnosisContext, experiments_of
from onnxspec.conformance.diagnosis.diagnose import with_causes
from onnxspec.conformance.diagnosis.explainer import explained
from onnxspec.conformance.diagnosis.findings import findings_of
from onnxspec.conformance.diagnosis.needed_classes import with_needed_classes
from onnxspec.conformance.probes.probe import Probe, SpecProbe
from onnxspec.conformance.probes.stream import tried
from onnxspec.conformance.results.evidence import Kept
from onnxspec.conformance.results.records import Finding
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.conformance.workers.in_process import outcome_of_job
from onnxspec.conformance.workers.job import Job, Outcome
from onnxspec.reference import Fault, Node, fault_named, operator_for

Session = Callable[[dict[str, np.ndarray[Any, Any]]], Any]
Opened = Callable[[bytes], Session]
"""Function from a model to a session that runs it."""

ACCURACY = "standard"


class _Staged:
    """A target in this process, in place of one behind a worker."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Yield the outcomes of jobs, in order."""
        for job in jobs:
            with np.errstate(all="ignore"):
                yield outcome_of_job(_Backend(self._opened), job)


class _Backend:
    """A target with the interface of ``onnx.backend.base.Backend``."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def prepare(self, model: Any, device: str = "CPU", **options: Any) -> Any:
        session = self._opened(model.SerializeToString())
        names = [value.name for value in model.graph.input]

        class Prepared:
            def run(self, inputs: Sequence[Any], **options: Any) -> Any:
                return session(dict(zip(names, inputs, strict=False)))

        return Prepared()


def of_faults(ids: Sequence[str]) -> Opened:
    """Return a target with faults, by id."""
    faults = [d for d in map(fault_named, ids) if isinstance(d, Fault)]
    assert len(faults) == len(ids)

    def opened(model: bytes) -> Session:
        graph = onnx.load_model_from_string(model)
        (proto,) = graph.graph.node
        opset = next(entry.version for entry in graph.opset_import if entry.domain == proto.domain)
        version = onnx.defs.get_schema(proto.op_type, opset, proto.domain).since_version
        attributes = {a.name: _plain(helper.get_attribute_value(a)) for a in proto.attribute}
        outputs = tuple(name for name in proto.output if name)
        node = Node(proto.op_type, version, attributes, outputs)
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.graph.initializer}
        made = [d for d in faults if d.applies(node.op_type, version)]
        memory: dict[str, Any] = {}

        def run(feeds: dict[str, Any]) -> list[Any]:
            inputs = {**constants, **feeds}
            answer = operator_for(node).answer(node, inputs, made, fed=feeds, memory=memory)
            return [answer.get(name) for name in outputs]

        return run

    return opened


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return [_plain(each) for each in value] if isinstance(value, list) else value


def kernel_names() -> list[str]:
    """Return the kernels of ``benchmarks/kernels`` with known faults."""
    return list(TRUTHS)


@cache
def _adapter(name: str) -> Any:
    path = Path(__file__).parent / "kernels" / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_kernel(name: str) -> Opened:
    """Return one of the kernels."""
    module = next(m for m in map(_adapter, ("kernels.py", "devices.py")) if name in m.TRUTH)

    def opened(model: bytes) -> Session:
        session: Session = module.Adapter({"kernel": name}).prepare(model).run
        return session

    return opened


def zoo_names() -> list[str]:
    """Return the faults of ``benchmarks/zoo``, whose authors had not seen the table of faults."""
    return [f"{batch.__name__}:{fault}" for batch in batches([]) for fault in batch.FAULTS]


def words_of_zoo(name: str) -> str:
    """Return the description of a zoo kernel's fault by its author."""
    batch, _, fault = name.partition(":")
    return str(_batch(batch).FAULTS[fault])


def on_zoo(name: str) -> Opened:
    """Return a kernel of the zoo with one of its faults."""
    batch, _, fault = name.partition(":")

    def opened(model: bytes) -> Session:
        session: Session = _batch(batch).prepare(model, fault).run
        return session

    return opened


def _batch(name: str) -> Any:
    (batch,) = batches([name])
    return batch


def staged(opened: Opened) -> Any:
    """Return a target in this process, which answers jobs like one behind a worker."""
    return _Staged(opened)


def findings_on(opened: Opened, specs: Sequence[Any]) -> tuple[list[Finding], list[Result], dict[str, Probe]]:
    """Return the findings of a target on some cases, all its results, and its probes by id."""
    probes: dict[str, Probe] = {spec.id: SpecProbe(spec) for spec in specs}
    process = staged(opened)
    kept, results = Kept(), []
    for run in tried(process, list(probes.values()), ACCURACY):
        kept.offer(run)
        results.append(result_of(run.probe, "staged", run.judgement, 0.0, None))
    needed = {result.case: result for result in with_needed_classes(results)}
    results = [needed.get(r.case, r) for r in results]
    causes = explained(results, probes, kept, ACCURACY)
    results = [structs.replace(r, diagnosis=causes.get(r.case, ())) for r in results]
    probes_by_id = dict(probes)
    context = DiagnosisContext(process, ACCURACY, lambda p: p.id, results, probes_by_id, kept)
    findings, updates = with_causes(findings_of(results, probes), context, experiments_of(results))
    amended = {result.case: result for result in updates}
    return findings, [amended.get(r.case, r) for r in results], probes
