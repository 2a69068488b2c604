"""``onnxspec.run``: its result, its files, and a function as a target."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import onnxspec
from onnxspec import run
from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.conformance.judging.judgement import NO_CLEAN_REFUSAL, Verdict
from onnxspec.conformance.probes.naming import UnknownName
from onnxspec.conformance.results.result import Result
from onnxspec.conformance.results.summary import in_words
from onnxspec.conformance.targets.target import TargetError
from onnxspec.conformance.workers.job import TargetUnavailable
from onnxspec.reference import evaluate
from onnxspec.reference.errors import RecordError

from ..miniatures import needs_cell_output, read_results

NOTEBOOK = Path(__file__).parents[3] / "examples" / "notebook.ipynb"
RAGGED = CaseSpec("RNN", 14, T=4, N=3, H=3, lengths="ragged", outputs=("Y", "Y_h"))
PLAIN = CaseSpec("RNN", 14, T=3, N=2, H=3)


def by_onnx(model: bytes, inputs: dict[str, np.ndarray]) -> Any:
    return ReferenceEvaluator(model).run(None, inputs)


def test_a_run_is_returned_as_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[Result] = []
    outcome = run("onnxruntime", op="RNN-14", profile="smoke", type=["float32"], each=seen.append)
    assert len(seen) == len(outcome.results) > 3
    assert {result.op for result in outcome.results} == {"RNN"}
    assert sum(outcome.counts.values()) == len(outcome.results)
    assert outcome.runtime["runtime"] == "onnxruntime"
    assert [row["case"] for row in outcome.records()] == [result.case for result in outcome.results]
    json.dumps(outcome.records(), allow_nan=False)
    assert (outcome.folder, list(tmp_path.iterdir())) == (None, [])


def test_what_a_newcomer_needs_stands_at_the_top_and_completion_shows_it() -> None:
    names = {"__version__", "assert_conforms", "check", "run", "RunOutcome", "NotConforming", "cases"}
    assert names <= set(dir(onnxspec))
    assert all(getattr(onnxspec, name) is not None for name in dir(onnxspec))
    assert onnxspec.__version__ == version("onnxspec")
    with pytest.raises(AttributeError, match="has no attribute 'rum'"):
        _ = onnxspec.rum


def test_an_outcome_is_one_line_and_printed_or_in_a_notebook_a_first_screen() -> None:
    outcome = run("onnxruntime", op="LSTM", profile="smoke", fill=False)
    assert len(repr(outcome).splitlines()) == 1
    assert len(repr(outcome)) < 200
    first, conforms, *_ = lines = str(outcome).splitlines()
    assert first.startswith("onnxruntime ")
    assert conforms == f"  Conforms: {outcome.answer.conforms}"
    assert "  It does not support:" in lines
    assert len(lines) < 40
    assert any(line.startswith("    unsupported float64 (") for line in lines)
    html = outcome._repr_html_()
    assert "\n    unsupported " in html
    assert outcome.answer.conforms in html


def test_a_notebook_shows_what_a_runtime_says_as_text() -> None:
    def hostile(model: bytes, inputs: dict[str, np.ndarray]) -> Any:
        raise ValueError("<script>alert(1)</script>")

    html = run(hostile, case=PLAIN)._repr_html_()
    assert "&lt;script&gt;" in html
    assert "<script" not in html


def test_a_folder_is_written_where_one_is_asked_for(tmp_path: Path) -> None:
    outcome = run("onnxruntime", case=[PLAIN, RAGGED], out=tmp_path / "o")
    assert outcome.conforms
    assert [r["case"] for r in read_results(tmp_path / "o")] == [r.case for r in outcome.results]
    with pytest.raises(RecordError):
        run("onnxruntime", case=PLAIN, out=tmp_path / "o")


@needs_cell_output
def test_a_function_is_a_target_and_its_fault_has_a_name() -> None:
    outcome = run(by_onnx, case=[PLAIN, RAGGED])
    assert [(r.case, r.verdict) for r in outcome.results] == [(PLAIN.id, Verdict.PASS), (RAGGED.id, Verdict.WRONG)]
    assert (outcome.target, outcome.conforms) == ("by_onnx", False)
    assert [finding["cases"] for finding in outcome.findings] == [[RAGGED.id]]
    assert outcome.results[1].diagnosis
    assert outcome.unexpected == outcome.results[1:]
    assert outcome.results[1].repeat.startswith('onnxspec.assert_conforms(\'{"op":"RNN"')


@needs_cell_output
def test_a_function_without_a_name_is_diagnosed_as_any_target_and_its_line_can_be_typed() -> None:
    """Experiments find the smallest case and the condition, and the command that repeats it is Python."""
    unnamed = run(lambda model, inputs: by_onnx(model, inputs), case=[PLAIN, RAGGED])
    (finding,) = unnamed.findings
    assert (unnamed.target, finding["conditions"]) == (
        "your function",
        "a row shorter than the sequence and outputs Y_h",
    )
    assert "T2N1I1H1" in finding["smallest"]
    with pytest.raises(onnxspec.NotConforming):
        eval(finding["repeat"], {"onnxspec": onnxspec, "f": by_onnx})


def test_what_a_function_raises_is_a_refusal() -> None:
    def raising(model: bytes, inputs: dict[str, np.ndarray]) -> Any:
        raise NotImplementedError("no such thing")

    # Refusing forbidden models as well is no proof of conformance.
    refusing = [s for s in profile("core", "RNN", 14) if s.illegal.startswith("clip")]
    outcome = run(raising, case=[PLAIN, *refusing])
    assert {r.verdict for r in outcome.results} == {Verdict.UNSUPPORTED, Verdict.PASS}
    result = next(r for r in outcome.results if r.case == PLAIN.id)
    assert result.message == "NotImplementedError: no such thing"
    assert not result.failing
    assert outcome.conforms is None  # nothing was judged


@pytest.mark.parametrize(
    ("error", "accepting", "verdict", "flags"),
    [
        (NameError, False, Verdict.CRASHED, ()),
        (NameError, True, Verdict.CRASHED, ()),
        (IndexError, False, Verdict.UNSUPPORTED, (NO_CLEAN_REFUSAL,)),
        (IndexError, True, Verdict.CRASHED, ()),
        (RuntimeError, True, Verdict.UNSUPPORTED, ()),
    ],
)
def test_a_program_that_breaks_refuses_nothing(
    error: type[Exception], accepting: bool, verdict: Verdict, flags: tuple[str, ...]
) -> None:
    class Broken:
        @staticmethod
        def prepare(model: onnx.ModelProto) -> Any:
            if not accepting:
                raise error("it broke")
            return Broken

        @staticmethod
        def run(inputs: list[np.ndarray]) -> Any:
            raise error("it broke")

    def right_but_there(model: bytes, inputs: dict[str, np.ndarray]) -> Any:
        return by_onnx(model, inputs) if "sequence_lens" not in inputs else Broken.run([])

    outcome = run(Broken, case=PLAIN)
    (result,) = outcome.results
    assert (result.verdict, result.flags) == (verdict, flags)
    assert outcome.conforms is (False if verdict is Verdict.CRASHED else None)
    location = r" \(test_from_python\.py, line \d+, in (prepare|run)\)" if error is not RuntimeError else ""
    assert re.fullmatch(f"{error.__name__}: it broke{location}", result.message)
    mostly = run(right_but_there, case=[PLAIN, RAGGED])
    # One of two selected cases did not run, or failed.
    assert mostly.conforms is (False if error is NameError else None)


def test_what_breaks_off_is_one_finding_for_each_exception_and_says_where() -> None:
    class Broken:
        @staticmethod
        def prepare(model: onnx.ModelProto) -> Any:
            return Broken

        @staticmethod
        def run(inputs: list[np.ndarray]) -> Any:
            raise KeyError("lengths") if len(inputs) > 3 else ZeroDivisionError("batch")

    findings = run(Broken, case=[PLAIN, RAGGED]).findings
    assert {case: f["title"] for f in findings for case in f["cases"]} == {
        PLAIN.id: "crashed (exception), ZeroDivisionError",
        RAGGED.id: "crashed (exception), KeyError (with sequence_lens)",
    }
    assert (
        in_words("crashed (exception), KeyError", "crashed", "exception")
        == "The program raises an internal error, KeyError"
    )


def test_a_right_function_conforms() -> None:
    trial = build_case(PLAIN).trial

    def right(model: bytes, inputs: dict[str, np.ndarray]) -> Any:
        assert model == trial.model
        return [array.astype(np.float32) for array in evaluate(trial.node, inputs).values()]

    assert run(right, case=PLAIN).conforms


def test_what_cannot_be_run_is_said() -> None:
    with pytest.raises(TargetError, match="unknown target 'onnxruntim'"):
        run("onnxruntim")
    with pytest.raises(UnknownName, match="unknown operator 'LSMT'"):
        run(op="LSMT")
    with pytest.raises(TargetUnavailable, match=r"backend:no\.such cannot start: .*No module named 'no'"):
        run("backend:no.such", case=PLAIN)
    with pytest.raises(ValueError, match="out is for named targets"):
        run(by_onnx, case=PLAIN, out="o")
    with pytest.raises(TypeError, match="target is a name"):
        run(3)


@needs_cell_output
def test_the_notebook_runs() -> None:
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        exec(cell, names)
    assert names["outcome"].counts["pass"] > 0
    assert names["half"].counts["wrong"] > 0
    assert all(not cell.get("outputs") for cell in book["cells"])
    assert sum(bool(line.strip()) for cell in cells for line in cell.splitlines()) <= 10


def test_how_many_levels_quantized_outputs_are_off_is_told_by_their_bits() -> None:
    summary = str(onnxspec.run("onnxruntime", profile="quantized", op="RNN-7"))
    assert "levels of 8 bits: exact (" in summary
    assert "levels of 16 bits: exact (" in summary


@needs_cell_output
def test_a_list_of_known_failures_is_an_argument_as_on_the_command_line(tmp_path: Path) -> None:
    none = run("onnx-reference", case=[RAGGED, PLAIN], expected=False, fill=False)
    assert len(none.unexpected) == 1
    assert list(none.counts) == ["pass", "wrong"]
    known = tmp_path / "known.toml"
    by_case = f'cases = ["{none.unexpected[0].case}"]\nfaults = ["lengths.ignored"]'
    entry = f'[[expected]]\nop = "RNN"\n{by_case}\nreason = "tried"\n'
    known.write_text(entry, encoding="utf-8")
    listed = run("onnx-reference", case=RAGGED, expected=known, fill=False)
    assert (listed.unexpected, [result.why for result in listed.results]) == ((), ["tried"])
