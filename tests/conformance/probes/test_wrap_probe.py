"""Cases with surrounding graphs: the same cases have the same verdicts beside other nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxspec.cases import CaseSpec, profile
from onnxspec.cases.specs.wrapping import EXACT, WRAPS, can_wrap
from onnxspec.conformance.diagnosis.experiments import Budget, alike, shrink
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import CaseRun, tried
from onnxspec.conformance.probes.wrapped import split_wrap, wrap_lane, wrapped_probes
from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.conformance.workers.process import TargetProcess

from ..miniatures import Inside, read_results

SPEC = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, initial="all", outputs=("", "Y_h", "Y_c"))

ADAPTER = """
import onnx, onnxruntime
class Adapter:
    def __init__(self, options): pass
    def describe(self): return {{"runtime": "faulty", "version": "1"}}
    def prepare(self, model):
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        last = onnx.load_model_from_string(model).graph.node[-1]
        def spoilt(name, array):
            return {}
        class Session:
            def run(self, feeds):
                return [spoilt(name, array) for name, array in zip(names, session.run(None, feeds))]
        return Session()
"""


def faulty(folder: Path, spoilt: str) -> Target:
    """Return a target that changes each output of onnxruntime."""
    (folder / "faulty.py").write_text(ADAPTER.format(spoilt))
    return Target("faulty", str(folder / "faulty.py"))


def run_on(target: Target, probes: list[SpecProbe]) -> list[CaseRun]:
    with TargetProcess(target) as process:
        process.start()
        return list(tried(process, probes, target.accuracy))


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.WRONG])
def test_a_right_runtime_passes_in_every_wrap_and_a_wrong_one_in_none(verdict: Verdict, tmp_path: Path) -> None:
    target = parse_target("onnxruntime") if verdict is Verdict.PASS else faulty(tmp_path, "-array")
    runs = run_on(target, [SpecProbe(SPEC, wrap=name) for name in EXACT])
    assert [run.judgement.verdict for run in runs] == [verdict] * len(EXACT)


def test_what_goes_wrong_only_in_the_second_of_two_nodes_is_made_small(tmp_path: Path) -> None:
    spec = CaseSpec("LSTM", 14, T=3, N=2, I=2, H=3, bias=True, initial="all", direction="bidirectional")
    doubled = "array + array if 'second' in name and len(last.input) > 5 and last.input[5] else array"
    with TargetProcess(faulty(tmp_path, doubled)) as process:
        process.start()
        (first,) = tried(process, [SpecProbe(spec, wrap="shared")], "standard")
        assert first.judgement.verdict is Verdict.WRONG
        assert (first.judgement.where or {})["node"] == "second"
        shrunk = shrink(process, first, alike(first), "standard", Budget(200))
    assert shrunk.one.probe == SpecProbe(CaseSpec("LSTM", 14, initial="h"), wrap="shared")
    assert [(need.field, need.value) for need in shrunk.needs] == [("initial", "h")]
    assert shrunk.one.probe.repeat("faulty+shared")[-1] == "faulty+shared"


def test_what_is_quantized_already_is_not_wrapped_once_more() -> None:
    quantized = [spec for spec in profile("quantized", "LSTM", 14) if not spec.illegal]
    assert quantized
    assert not any(can_wrap(spec, name) for spec in quantized[:20] for name in WRAPS)


def test_a_lane_is_named_by_its_target() -> None:
    target = wrap_lane(parse_target("onnxruntime:CUDAExecutionProvider"), "qdq")
    assert (target.name, target.wrap) == ("onnxruntime:CUDAExecutionProvider+qdq", "qdq")
    assert target.options == {"provider": "CUDAExecutionProvider", "surroundings": True}
    assert wrap_lane(parse_target("onnx-reference"), "neg").options == {}
    names = ("onnxruntime:CUDAExecutionProvider+qdq", "a+optimized+neg", "a+b", "+neg")
    assert list(map(split_wrap, names)) == [
        ("onnxruntime:CUDAExecutionProvider", "qdq"),
        ("a+optimized", "neg"),
        ("a+b", ""),
        ("+neg", ""),
    ]


def test_only_what_can_be_wrapped_is_run() -> None:
    probes = [SpecProbe(SPEC), SpecProbe(CaseSpec("LSTM", 1, T=4, N=3, I=2, H=5))]
    assert [probe.id for probe in wrapped_probes(probes, "qdq")] == [SPEC.id]
    assert [probe.id for probe in wrapped_probes(probes, "neg")] == [probe.id for probe in probes]
    assert wrapped_probes(probes, "neg")[0].features >= {"wrapped", "wrapped-neg", "initial-state"}


def test_the_command_runs_lanes_and_repeats_their_cases(inside: Inside, tmp_path: Path) -> None:
    lanes = ("--target", "onnxruntime", "--target", "onnxruntime+qdq")
    chosen = ("--profile", "smoke", "--case", "lstm-14.float32.*numerics*")
    assert inside("run", *chosen, *lanes, "--out", "run").code == 0
    rows = read_results(tmp_path / "run")
    assert {row["verdict"] for row in rows} == {"pass"}
    cases = {target: {row["case"] for row in rows if row["target"] == target} for target in lanes[1::2]}
    assert cases["onnxruntime"] == cases["onnxruntime+qdq"] != set()
    repeat = next(row["repeat"] for row in rows if row["target"] == "onnxruntime+qdq").split()
    assert repeat[-1] == "onnxruntime+qdq"
    done = inside(*repeat[1:])
    assert done.code == 0
    assert "They part nowhere." in done.out


def test_a_wrap_that_there_is_not_is_an_unknown_target(inside: Inside) -> None:
    done = inside("run", "--case", "rnn-14.float32.*numerics*", "--target", "onnxruntime+foil")
    assert done.code == 2
    assert "unknown target 'onnxruntime+foil'; nearest: onnxruntime" in done.err
