"""Cases with surrounding graphs: the same cases have the same verdicts beside other nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxspec.cases import CaseSpec, profile
from onnxspec.cases.specs.wrapping import EXACT, WRAPS, can_wrap
from onnxspec.conformance.cli.application import main
from onnxspec.conformance.diagnosis.experiments import Budget, alike, shrink
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import tried
from onnxspec.conformance.probes.wrapped import split_wrap, wrap_lane, wrapped_probes
from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.conformance.workers.process import TargetProcess

from ..miniatures import read_results

SPEC = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, initial="all", outputs=("", "Y_h", "Y_c"))

FAULTY = """
import onnxruntime
class Adapter:
    def __init__(self, options): pass
    def describe(self): return {"runtime": "faulty", "version": "1"}
    def prepare(self, model):
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        class Session:
            def run(self, feeds):
                return [-output for output in session.run(None, feeds)]
        return Session()
"""


def verdicts(target: Target, spec: CaseSpec = SPEC) -> dict[str, Verdict]:
    probes = [SpecProbe(spec, wrap=name) for name in EXACT]
    with TargetProcess(target) as process:
        process.start()
        return {
            case_run.probe.wrap: case_run.judgement.verdict
            for case_run in tried(process, probes, target.accuracy)
            if isinstance(case_run.probe, SpecProbe)
        }


def test_a_right_runtime_passes_in_every_wrap() -> None:
    assert verdicts(parse_target("onnxruntime")) == dict.fromkeys(EXACT, Verdict.PASS)


def test_a_wrong_one_passes_in_none(tmp_path: Path) -> None:
    file = tmp_path / "faulty.py"
    file.write_text(FAULTY)
    assert verdicts(Target("faulty", str(file))) == dict.fromkeys(EXACT, Verdict.WRONG)


BESIDE = """
import onnx, onnxruntime
class Adapter:
    def __init__(self, options): pass
    def describe(self): return {"runtime": "beside", "version": "1"}
    def prepare(self, model):
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        _, last = onnx.load_model_from_string(model).graph.node
        off = 2 if len(last.input) > 5 and last.input[5] else 1
        class Session:
            def run(self, feeds):
                arrays = zip(names, session.run(None, feeds))
                return [array * array.dtype.type(off) if "second" in name else array for name, array in arrays]
        return Session()
"""


def test_what_goes_wrong_only_in_the_second_of_two_nodes_is_made_small(tmp_path: Path) -> None:
    file = tmp_path / "beside.py"
    file.write_text(BESIDE)
    spec = CaseSpec("LSTM", 14, T=3, N=2, I=2, H=3, bias=True, initial="all", direction="bidirectional")
    with TargetProcess(Target("beside", str(file))) as process:
        process.start()
        (first,) = tried(process, [SpecProbe(spec, wrap="shared")], "standard")
        assert first.judgement.verdict is Verdict.WRONG
        assert (first.judgement.where or {})["node"] == "second"
        shrunk = shrink(process, first, alike(first), "standard", Budget(200))
    probe = shrunk.one.probe
    assert isinstance(probe, SpecProbe)
    assert probe.wrap == "shared"
    assert probe.spec == CaseSpec("LSTM", 14, initial="h")
    assert [(need.field, need.value) for need in shrunk.needs] == [("initial", "h")]
    assert probe.repeat("beside+shared")[-1] == "beside+shared"


def test_what_is_quantized_already_is_not_wrapped_once_more() -> None:
    quantized = [spec for spec in profile("quantized", "LSTM", 14) if not spec.illegal]
    assert quantized
    assert not any(can_wrap(spec, name) for spec in quantized[:20] for name in WRAPS)


def test_a_lane_is_named_by_its_target() -> None:
    target = wrap_lane(parse_target("onnxruntime:CUDAExecutionProvider"), "qdq")
    assert (target.name, target.wrap) == ("onnxruntime:CUDAExecutionProvider+qdq", "qdq")
    assert target.options == {"provider": "CUDAExecutionProvider", "surroundings": True}
    assert wrap_lane(parse_target("onnx-reference"), "neg").options == {}
    assert split_wrap(target.name) == ("onnxruntime:CUDAExecutionProvider", "qdq")
    assert split_wrap("a+optimized+neg") == ("a+optimized", "neg")
    assert split_wrap("a+b") == ("a+b", "")
    assert split_wrap("+neg") == ("+neg", "")


def test_only_what_can_be_wrapped_is_run() -> None:
    probes = [SpecProbe(SPEC), SpecProbe(CaseSpec("LSTM", 1, T=4, N=3, I=2, H=5))]
    assert [probe.id for probe in wrapped_probes(probes, "qdq")] == [SPEC.id]
    assert [probe.id for probe in wrapped_probes(probes, "neg")] == [probe.id for probe in probes]
    assert wrapped_probes(probes, "neg")[0].features >= {"wrapped", "wrapped-neg", "initial-state"}


def run(*arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["onnxspec", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
    return int(caught.value.code or 0)


def test_the_command_runs_lanes_and_repeats_their_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    case = "lstm-14.float32.*numerics*"
    lanes = ["--target", "onnxruntime", "--target", "onnxruntime+qdq"]
    assert run("run", "--profile", "smoke", "--case", case, *lanes, "--out", str(out)) == 0
    rows = read_results(out)
    assert {row["target"] for row in rows} == {"onnxruntime", "onnxruntime+qdq"}
    assert {row["verdict"] for row in rows} == {"pass"}
    assert len({row["case"] for row in rows}) == len(rows) // 2
    capsys.readouterr()
    repeat = next(row["repeat"] for row in rows if row["target"] == "onnxruntime+qdq").split()
    assert repeat[-1] == "onnxruntime+qdq"
    assert run(*repeat[1:]) == 0
    assert "They part nowhere." in capsys.readouterr().out


def test_a_wrap_that_there_is_not_is_an_unknown_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "--case", "rnn-14.float32.*numerics*", "--target", "onnxruntime+foil") == 2
    assert "unknown target 'onnxruntime+foil'; nearest: onnxruntime" in capsys.readouterr().err
