"""Tests of the reports to upstream projects: an issue with a script, and a node test that onnx runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from onnxspec.cases import CaseSpec
from onnxspec.cases.portable import case_text
from onnxspec.cases.specs.features import illegal_cases
from onnxspec.conformance.cli.application import app

from ..conformance.miniatures import command_line

RAGGED = CaseSpec("GRU", 14, T=3, N=2, I=2, H=2, lengths="ragged", linear_before_reset=1, outputs=("Y", "Y_h"))
SHORT = CaseSpec("GRU", 14, T=3, N=2, I=2, H=2, lengths="ragged", linear_before_reset=1, outputs=("", "Y_h"))
BFLOAT16 = CaseSpec("LSTM", 22, type="bfloat16", T=2, N=2, I=2, H=2, outputs=("Y", "Y_h", "Y_c"))
TWO_RUNS = CaseSpec("RNN", 14, T=3, N=2, I=2, H=2, reruns="data", outputs=("Y", "Y_h"))
FORBIDDEN = next(s for s in illegal_cases("GRU", 14) if s.illegal == "layout.two")

COLLECTED = """
import runpy, sys
import numpy as np
import onnx
from onnx.backend.test.case import node
import onnxruntime

runpy.run_path(sys.argv[1])
(case,) = node._NodeTestCases[-1:]
onnx.checker.check_model(case.model, full_check=True)
((inputs, outputs),) = case.data_sets
if sys.argv[2] == "run":
    session = onnxruntime.InferenceSession(case.model.SerializeToString())
    got = session.run(None, dict(zip([value.name for value in session.get_inputs()], inputs)))
    for one, must in zip(got, outputs, strict=True):
        np.testing.assert_allclose(one, must, rtol=case.rtol, atol=case.atol)
print(case.name, [str(array.dtype) for array in outputs])
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a run of each case on onnx's evaluator, which ignores lengths and clip, and accepts a forbidden model."""
    places = {}
    for spec in (RAGGED, FORBIDDEN):
        places[spec.id] = tmp_path_factory.mktemp("upstream") / "run"
        words = ["run", "--target", "onnx-reference", "--case", case_text(spec), "--no-extra"]
        done = CliRunner().invoke(app, [*words, "--out", str(places[spec.id])])
        assert done.exit_code in (0, 1), done.output
    return places


def asked(folder: Path, *more: str) -> str:
    done = CliRunner().invoke(app, ["report", str(folder), *more])
    assert done.exit_code == 0, done.output
    return done.stdout


def python(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_an_issue_says_what_a_maintainer_needs_and_shows_it(folders: dict[str, Path], tmp_path: Path) -> None:
    text = asked(folders[RAGGED.id], "--issue", RAGGED.id)
    assert text.startswith("# GRU-14: ")
    assert "sequence" in text.splitlines()[0]
    headings = ["Environment", "Expected and got", "What the document says", "To reproduce"]
    assert re.findall("^## (.*)$", text, re.MULTILINE) == headings
    assert re.search(r"^- runtime: onnx-reference\n- version: \d", text, re.MULTILINE)
    assert re.search(r"\| `Y(_h)?\[\d[\d, ]*\]` \| -?0\.\d+ \| \d\.\d+e-\d+ \| -?0\.\d+ \|", text)
    assert "`gru.lengths`" in text
    (script,) = re.findall("```python\n(.*?)\n```", text, re.DOTALL)
    assert "onnxspec" not in re.sub('producer_name="onnxspec"', "", script)
    (tmp_path / "reproduce.py").write_text(script, encoding="utf-8")
    done = python(tmp_path / "reproduce.py")
    assert done.returncode == 1, done.stderr


@pytest.mark.parametrize(
    ("spec", "how", "name", "types"),
    [
        (SHORT, "run", "test_gru_seq_length_linear_before_reset_no_y", ["float32"]),
        (TWO_RUNS, "run", "test_rnn_after_other_data", ["float32"] * 2),
        (BFLOAT16, "check", "test_lstm_bfloat16", ["bfloat16"] * 3),
        (CaseSpec("GRU", 14, T=2, N=2, I=2, H=2, layout=1), "check", "test_gru_batchwise", ["float32"]),
    ],
)
def test_a_node_test_is_collected_by_onnx_and_right_runtimes_pass_it(
    tmp_path: Path, spec: CaseSpec, how: str, name: str, types: list[str]
) -> None:
    done = CliRunner().invoke(app, ["explain", case_text(spec), "--emit", "node-test"])
    assert done.exit_code == 0, done.output
    path = tmp_path / "gru_lengths.py"
    path.write_text(done.stdout, encoding="utf-8")
    (tmp_path / "collect.py").write_text(COLLECTED, encoding="utf-8")
    ran = python(tmp_path / "collect.py", path, how)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split(" ")[0] == name
    assert ran.stdout.strip().endswith(str(types))
    assert f"class {spec.op}(Base):" in done.stdout
    assert ("# A row of sequence_lens L has L steps" in done.stdout) == (spec is SHORT)
    assert ("which a node test cannot say" in " ".join(done.stdout.replace("#", "").split())) == (spec is TWO_RUNS)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (RAGGED, "rests on questions that the document leaves open: gru.padding.zero"),
        (FORBIDDEN, "cannot say that it must not run"),
    ],
)
def test_a_node_test_pins_no_convention(spec: CaseSpec, why: str) -> None:
    done = CliRunner().invoke(app, ["explain", case_text(spec), "--emit", "node-test"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert why in " ".join(done.stderr.split())


def test_what_cannot_be_told_or_is_not_there_is_said_in_a_line(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = folders[FORBIDDEN.id]
    forbidden = asked(folder, "--issue", "silently accepts an invalid layout")
    assert "runs a model that the document of GRU-14 forbids" in forbidden
    assert "What it returns" not in forbidden  # nobody reads that
    there = tmp_path / "there.md"
    there.write_text("mine")
    for more, complaint in (
        (("--issue", "77"), "there is no finding '77'; give the number of one: 1 "),
        (("--issue", "1", "--out", str(there)), "File exists"),
    ):
        done = CliRunner().invoke(app, ["report", str(folder), *more])
        assert (done.exit_code, done.stdout) == (2, "")
        assert complaint in " ".join(done.stderr.split())
    assert there.read_text() == "mine"


MIXED_UP = """
import onnx
from onnx.reference import ReferenceEvaluator

class Adapter:
    def __init__(self, options): ...
    def describe(self): return {"runtime": "mixed-up", "version": "1"}
    def prepare(self, model):
        model = onnx.load_model_from_string(model)
        first, *_, second = model.graph.node
        if second.name == "second":
            second.input[2] = first.input[2]
        self.evaluator = ReferenceEvaluator(model)
        return self
    def run(self, feeds):
        return self.evaluator.run(None, dict(feeds))
"""


def test_an_issue_about_the_second_of_two_nodes_says_so(tmp_path: Path) -> None:
    """The target computes the second node with the recurrence weights of the first."""
    (tmp_path / "mixed_up.py").write_text(MIXED_UP)
    case = case_text(CaseSpec("RNN", 14, T=2, N=1, I=2, H=2, outputs=("Y", "Y_h")))
    (tmp_path / "targets.toml").write_text('[mixed-up]\nadapter = "mixed_up.py"\n')
    target = ("--targets-file", "targets.toml", "--target", "mixed-up+chain")
    words = command_line("run", *target, "--case", case, "--no-extra", "--out", "run")
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    text = asked(tmp_path / "run", "--issue", "1")
    assert "this is about the one named `second`, with inputs" in text
    assert "1 case of RNN-14 in float32 shows it." in text
    assert "```python" not in text
    (page,) = (tmp_path / "run/report/findings").glob("*.html")
    assert "Inputs and values are those of node <b>second</b>" in page.read_text(encoding="utf-8")
