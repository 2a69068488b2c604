"""A target's own functions: faults are tried with them where they are approximated."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from msgspec import structs

sys.path.insert(0, str(Path(__file__).parents[3]))  # benchmarks are no part of the package

from benchmarks.staging import staged
from onnxspec.cases import CaseSpec
from onnxspec.conformance.diagnosis.explainer import explained
from onnxspec.conformance.diagnosis.measured.own_functions import function_classes
from onnxspec.conformance.diagnosis.measured.own_sums import summing_faults
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import Probe, SpecProbe
from onnxspec.conformance.probes.stream import tried
from onnxspec.conformance.results.evidence import Kept
from onnxspec.conformance.results.result import result_of
from onnxspec.conformance.workers.job import Job, Outcome
from onnxspec.reference import CELLS, operator_version, versions_of

SPECS = [
    CaseSpec("RNN", 14, T=3, N=2, I=3, H=5, bias=True, clip=clip, seed=seed)
    for clip in (None, 0.25)
    for seed in range(4)
]


def kernel(off: float) -> Callable[[bytes], Any]:
    """A kernel of RNN that ignores clip, and whose Tanh is off by a part of itself."""

    def opened(model: bytes) -> Any:
        assert onnx.load_model_from_string(model).graph.node[0].op_type == "RNN"

        def run(feeds: dict[str, Any]) -> list[Any]:
            x, w, r, b = (feeds[name].astype(np.float64) for name in ("X", "W", "R", "B"))
            h, states = np.zeros((x.shape[1], w.shape[1])), []
            for step in x:
                wb, rb = np.split(b[0], 2)
                h = np.tanh(step @ w[0].T + h @ r[0].T + wb + rb) * (1 - off)
                states.append(h)
            return [np.stack(states)[:, np.newaxis].astype(feeds["X"].dtype)]

        return run

    return opened


def test_a_fault_of_a_kernel_whose_functions_are_approximated_is_named_with_those_functions() -> None:
    process = staged(kernel(1e-4))
    probes: dict[str, Probe] = {spec.id: SpecProbe(spec) for spec in SPECS}
    kept, results = Kept(), []
    for one in tried(process, list(probes.values()), "standard"):
        kept.offer(one)
        results.append(result_of(one.probe, "staged", one.judgement, 0.0, None))
    assert all(result.failing for result in results)
    own = function_classes(process.run, results, "standard")
    (name,) = own["float32"]
    assert 1e-4 < int(name.removeprefix("functions-off-")) * 2.0**-24 < 1e-3
    # Others of that type are right, so that no wider class is thought of.
    plain = structs.replace(results[0], verdict=Verdict.PASS, accuracy=None, judged=9)
    results += [structs.replace(plain, case=f"right-{number}") for number in range(20)]
    clipped = {spec.id for spec in SPECS if spec.clip is not None}
    for functions, named in ((own, clipped), (None, set())):
        causes = explained(results, probes, kept, "standard", (), functions)
        assert {case for case, ids in causes.items() if "clip.ignored" in ids} == named


def test_a_target_that_returns_nothing_of_the_form_tells_nothing() -> None:
    (spec, *_) = SPECS
    (one,) = tried(staged(kernel(1e-4)), [SpecProbe(spec)], "standard")
    results = [result_of(one.probe, "staged", one.judgement, 0.0, None)]

    class Nothing:
        def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
            return (Outcome(job.key, "ran", "run", (((),),)) for job in jobs)

    assert function_classes(Nothing().run, results, "standard") == {}


def test_functions_within_their_class_and_nodes_that_are_wrong_otherwise_tell_nothing() -> None:
    (spec, *_) = SPECS
    (one,) = tried(staged(kernel(1e-4)), [SpecProbe(spec)], "standard")
    results = [result_of(one.probe, "staged", one.judgement, 0.0, None)]
    for off in (0.0, 0.5):
        assert function_classes(staged(kernel(off)).run, results, "standard") == {}


def summing(lanes: int, half: bool) -> Callable[[bytes], Any]:
    """A kernel of RNN whose Tanh is 0.02 off, and which sums up in so many lanes, in float16 or float32."""

    def opened(model: bytes) -> Any:
        def run(feeds: dict[str, Any]) -> list[Any]:
            products = (feeds["X"][0] * feeds["W"][0]).astype(np.float16 if half else np.float32)
            total = np.zeros((len(products), lanes), products.dtype)
            for start in range(0, products.shape[1], lanes):
                part = products[:, start : start + lanes]
                total[:, : part.shape[1]] += part
            h = np.tanh(total.sum(axis=1, dtype=np.float32)) * 0.98
            return [h.astype(np.float16)[np.newaxis, np.newaxis, :, np.newaxis]]

        return run

    return opened


def test_sums_in_half_types_are_seen_by_what_they_lose_whatever_the_functions_are() -> None:
    spec = CaseSpec("RNN", 14, type="float16", T=1, bias=True)
    (one,) = tried(staged(summing(1, True)), [SpecProbe(spec)], "standard")
    results = [result_of(one.probe, "staged", one.judgement, 0.0, None)]
    assert results[0].failing
    for lanes in (1, 16):
        assert [d.id for d in summing_faults(staged(summing(lanes, True)).run, results)] == ["precision.half-sums"]
        assert summing_faults(staged(summing(lanes, False)).run, results) == []
    in_single = [structs.replace(results[0], type="float32")]
    assert summing_faults(staged(summing(1, True)).run, in_single) == []
    endless = staged(lambda model: lambda feeds: [np.full(s, np.inf, np.float16) for s in ((1, 1, 3, 1), (1, 3, 1))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a runtime that overflows leaves no line of ours on a terminal
        # All at once: while it answers, the staged target keeps NumPy silent.
        assert summing_faults(lambda jobs: iter([*endless.run(jobs)]), results) == []


@pytest.mark.parametrize(("op", "version"), [(op, version) for op in CELLS for version in versions_of(op)])
def test_every_version_is_asked_for_the_outputs_that_it_demands(op: str, version: int) -> None:
    outputs = tuple(operator_version(op, version).outputs)
    spec = CaseSpec(op, version, T=2, bias=True, outputs=outputs)
    (one,) = tried(staged(lambda model: lambda feeds: []), [SpecProbe(spec)], "standard")
    result = structs.replace(
        result_of(one.probe, "staged", one.judgement, 0.0, None), verdict=Verdict.WRONG, accuracy=None
    )
    asked: list[Job] = []

    class Recorder:
        def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
            for job in jobs:
                asked.append(job)
                yield Outcome(job.key, "ran", "run", (((),),))

    assert function_classes(Recorder().run, [result], "standard") == {}
    assert asked
    for job in asked:
        onnx.checker.check_model(onnx.load_model_from_string(job.model), full_check=True)


@pytest.mark.parametrize("op", ["DynamicQuantizeLSTM", "ExtendedLSTM"])
def test_no_function_shows_where_weights_are_levels(op: str) -> None:
    (one,) = tried(staged(lambda model: lambda feeds: []), [SpecProbe(SPECS[0])], "standard")
    failing = result_of(one.probe, "staged", one.judgement, 0.0, None)
    result = structs.replace(failing, op=op, version=1, type="float32", verdict=Verdict.WRONG, accuracy=None)

    def asked(jobs: Iterable[Job]) -> Iterator[Outcome]:
        raise AssertionError(f"{op} is asked for {len(list(jobs))} nodes")

    assert function_classes(asked, [result], "standard") == {}
    assert summing_faults(asked, [structs.replace(result, type="float16")]) == []
