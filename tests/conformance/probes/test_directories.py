"""Generated test-case directories in other tools, and directories of other tools in onnxspec."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test import cmd_tools, loader, runner
from onnx.backend.test.case import node
from onnx.reference import ReferenceEvaluator
from onnxruntime.backend.backend import OnnxRuntimeBackend as OrtBackend

from onnxspec.cases import CaseSpec, build_case
from onnxspec.cases.directories.directory import write_directory
from onnxspec.cases.directories.manifest import data_sets_of
from onnxspec.conformance.probes.directory import probe_directories

from ..miniatures import Inside, read_results
from ..miniatures import run_command as command

Results = dict[str, dict[str, Any]]
NOT_ROOT = pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs POSIX and a user that is not root")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two generated trees: ``fair`` (LSTM-14 of core) and ``all`` (smoke with unfair cases)."""
    folder = tmp_path_factory.mktemp("directories")
    command("generate", "--out", folder / "fair", "--op", "LSTM-14")
    command("generate", "--out", folder / "all", "--profile", "smoke", "--all")
    return folder


@pytest.fixture(scope="module")
def with_bias(work: Path) -> Path:
    """Return a directory of LSTM-14 that targets pass."""
    return next((work / "fair").glob("test_lstm-14.float32.forward.bias.*"))


def results_of(folder: Path) -> Results:
    return {result["case"]: result for result in read_results(folder)}


@pytest.fixture(scope="module")
def runs(work: Path) -> dict[tuple[str, str], Results]:
    """Return results by (tree, or ``cases of`` a tree, target)."""
    results = {}
    fair = json.loads((work / "fair" / "manifest.json").read_text())["cases"]  # some are in no profile
    for target in ("onnxruntime", "onnx-reference"):
        for name, options in {
            "fair": ("--case", work / "fair"),
            "all": ("--case", work / "all"),
            "cases of fair": [word for case in fair for word in ("--case", json.dumps(case["spec"]))],
            "cases of all": ("--profile", "smoke"),
        }.items():
            out = work / f"{name}-{target}"
            assert command("run", *options, "--target", target, "--no-extra", "--out", out) == 0
            results[name, target] = results_of(out)
    return results


# The same cases, the same results


@pytest.mark.long
@pytest.mark.parametrize("target", ["onnxruntime", "onnx-reference"])
@pytest.mark.parametrize("tree", ["fair", "all"])
def test_a_run_over_directories_agrees_with_a_run_of_the_cases(
    tree: str, target: str, runs: dict[tuple[str, str], Results]
) -> None:
    theirs, ours = runs[tree, target], runs[f"cases of {tree}", target]
    assert len(theirs) > 40
    assert {f"test_{case}" for case in ours} >= set(theirs)
    always = ("op", "domain", "version", "type", "target", "verdict", "reason", "expected", "why")
    of_numbers = ("clause", "where", "accuracy", "judged", "elements", "interpretations", "worst")
    for case, result in theirs.items():
        expected = ours[case.removeprefix("test_")]
        ran = result["verdict"] not in ("crashed", "unsupported")
        compared = always + of_numbers if ran else always
        assert {key: result[key] for key in compared} == {key: expected[key] for key in compared}, case
        assert [flag for flag in result["flags"] if flag != "differs-from-given"] == expected["flags"], case
        assert set(result["clauses"]) >= set(expected["clauses"])


@pytest.mark.long
def test_results_of_directories_say_how_to_repeat_them(work: Path, runs: dict[tuple[str, str], Results]) -> None:
    for case, result in runs["fair", "onnxruntime"].items():
        assert result["repeat"] == f"onnxspec run --case {work / 'fair' / case} --target onnxruntime"
        assert result["features"] is not None
    description = json.loads((work / "fair-onnxruntime" / "run.json").read_text())
    assert description["profile"] == "directories"
    assert description["selection"]["directories"] == [str(work / "fair")]
    assert list(description["digests"]) == ["directories"]
    assert description["complete"] is True
    assert (work / "fair-onnxruntime" / "report" / "index.html").is_file()


# ONNX's own loader and runner


class Prepared(BackendRep):  # type: ignore[misc]
    def __init__(self, model: onnx.ModelProto) -> None:
        self._evaluator = ReferenceEvaluator(model)

    def run(self, inputs: Any, **options: Any) -> Any:
        return self._evaluator.run(None, dict(zip(self._evaluator.input_names, inputs, strict=True)))


class ReferenceBackend(Backend):  # type: ignore[misc]
    """onnx.reference as a backend."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **options: Any) -> BackendRep:
        return Prepared(model)


def run_by_onnx(tree: Path, backend: type[Backend], left_out: set[str], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the names of the cases that pass with the loader and runner of onnx.backend.test."""

    def load(kind: str) -> list[Any]:
        # The runner requests all kinds that ship with onnx; it gets our cases as one of those kinds.
        return loader.load_model_tests(str(tree.parent), tree.name) if kind == "simple" else []

    monkeypatch.setattr(runner, "load_model_tests", load)
    suite = runner.Runner(backend, __name__)
    for name in left_out:
        suite.exclude(f"^{name.replace('.', '[.]')}_cpu$")
    result = unittest.TestResult()
    suite.test_suite.run(result)
    not_passed = (*result.failures, *result.errors, *result.skipped)
    names = {test.id().rpartition("OnnxBackendSimpleModelTest.")[2] for test, _ in not_passed}
    return {path.name for path in tree.iterdir() if path.is_dir() and f"{path.name}_cpu" not in names}


@pytest.mark.long
@pytest.mark.parametrize(
    ("backend", "target"),
    [(OrtBackend, "onnxruntime"), (ReferenceBackend, "onnx-reference")],
)
def test_what_passes_here_passes_with_the_runner_of_onnx(
    backend: type[Backend],
    target: str,
    work: Path,
    runs: dict[tuple[str, str], Results],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = runs["fair", target]
    by_verdict = {v: {c for c, r in results.items() if r["verdict"] == v} for v in ("pass", "wrong", "crashed")}
    # That runner works in this very process, so crashing cases are excluded.
    passed = run_by_onnx(work / "fair", backend, by_verdict["crashed"], monkeypatch)
    assert len(by_verdict["pass"]) >= (20 if target == "onnxruntime" else 2)
    assert by_verdict["pass"] <= passed
    # No refused case passes there. A case that is wrong by less than a thousandth may pass.
    assert passed <= by_verdict["pass"] | by_verdict["wrong"]


def test_the_runner_of_onnx_sees_what_is_wrong(
    with_bias: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for copy in ("test_whole", "test_spoilt"):
        shutil.copytree(with_bias, tmp_path / "tree" / copy)
    spoil(tmp_path / "tree" / "test_spoilt", lambda a: (a * 1.01).astype(a.dtype))
    assert run_by_onnx(tmp_path / "tree", OrtBackend, set(), monkeypatch) == {"test_whole"}


# A consumer that knows only the format


def plain_loader(folder: Path) -> Iterator[tuple[Path, list[NDArray[Any]], list[NDArray[Any]]]]:
    """Yield the model file, inputs and outputs of every data set, read by onnx alone."""
    for case in sorted(p for p in folder.iterdir() if p.is_dir()):
        for data_set in sorted(case.glob("test_data_set_*")):
            arrays: dict[str, list[NDArray[Any]]] = {"input": [], "output": []}
            for kind, tensors in arrays.items():
                while (path := data_set / f"{kind}_{len(tensors)}.pb").exists():
                    tensor = onnx.load_tensor(str(path))
                    array = numpy_helper.to_array(tensor)
                    if tensor.data_type == TensorProto.BFLOAT16:
                        array = array.astype(ml_dtypes.bfloat16)
                    tensors.append(array)
            yield case / "model.onnx", arrays["input"], arrays["output"]


def test_every_type_and_option_is_as_the_model_says(work: Path) -> None:
    """Types and shapes of all tensors are those of the graph, by position, in unfair cases too."""
    seen = set()
    for path, inputs, outputs in plain_loader(work / "all"):
        graph = onnx.load(str(path)).graph
        onnx.checker.check_model(str(path))
        for values, arrays in ((graph.input, inputs), (graph.output, outputs)):
            assert len(values) == len(arrays)
            for value, array in zip(values, arrays, strict=True):
                tensor_type = value.type.tensor_type
                name = {TensorProto.BFLOAT16: "bfloat16"}.get(tensor_type.elem_type)
                assert array.dtype.name == (name or helper.tensor_dtype_to_np_dtype(tensor_type.elem_type).name)
                extents = [d.dim_value for d in tensor_type.shape.dim]
                assert all(want in (0, got) for want, got in zip(extents, array.shape, strict=True))
                seen.add(array.dtype.name)
        if graph.initializer:
            assert not {t.name for t in graph.initializer} & {v.name for v in graph.input}
            seen.add("initializers")
        if len(graph.output) < 3:
            seen.add("optional outputs")
    assert seen >= {"float16", "bfloat16", "float32", "float64", "int32", "initializers", "optional outputs"}


# ONNX's own directories, written by its own tool


@pytest.fixture(scope="module")
def onnx_cases(work: Path) -> Path:
    """Return a folder of some node cases of onnx.

    They are the shipped ones; a newer onnx ships none, and its own tool writes them.
    """
    wanted = ("test_lstm_", "test_add", "test_relu", "test_gru_defaults", "test_sequence_insert_at_back", "test_xor2d")
    shipped = Path(loader.DATA_DIR) / "node"
    for folder in shipped.glob("test_*"):
        if folder.name.startswith(wanted):
            shutil.copytree(folder, work / "onnx" / "node" / folder.name)
    if not shipped.is_dir():
        # Importing a module creates its cases; loading all of them takes seconds.
        for module in ("lstm", "add", "relu", "gru", "sequenceinsert", "xor"):
            importlib.import_module(f"onnx.backend.test.case.node.{module}")
        cases = [case for case in node._NodeTestCases if case.name.startswith(wanted)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cmd_tools.model_test, "collect_testcases", lambda: cases)
            cmd_tools.generate_data(argparse.Namespace(output=str(work / "onnx")))
    return work / "onnx"


def test_the_cases_of_onnx(onnx_cases: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("run", "--case", onnx_cases, "--out", work / "onnx-run") == 0
    results = results_of(work / "onnx-run")
    lstm = {case: r for case, r in results.items() if case.startswith("node.test_lstm_")}
    # A sequence is not a tensor; that directory is reported, and the others are run.
    assert "skipped: test_sequence_insert_at_back: input sequence of the model is no tensor" in capsys.readouterr().err
    assert len(lstm) == len(list((onnx_cases / "node").glob("test_lstm_*"))) >= 4
    for case, result in lstm.items():
        # onnxruntime does not support layout 1, and older versions do not support onnx's newest opset.
        refused = case == "node.test_lstm_batchwise" or "ValidateOpset" in result["message"]
        assert result["verdict"] == ("unsupported" if refused else "pass"), case
        assert (result["op"], result["type"]) == ("LSTM", "float32")
        assert result["version"] in (14, 22)
        assert "lstm.equations" in result["clauses"]
        assert refused or (result["accuracy"] == "standard" and 0 < result["worst"] < 1)
    others = {case: r for case, r in results.items() if case not in lstm}
    assert {"node.test_add", "node.test_relu", "node.test_xor2d", "node.test_gru_defaults"} <= set(others)
    add = others["node.test_add"]
    assert (add["op"], add["version"], add["type"], add["clauses"]) == ("test_add", 14, "float32", [])
    assert (add["verdict"], add["reason"], add["accuracy"]) == ("pass", None, None)
    assert others["node.test_xor2d"]["type"] == "bool"
    assert {r["verdict"] for r in others.values()} <= {"pass", "unsupported"}


def spoil(folder: Path, change: Callable[[NDArray[Any]], NDArray[Any]], name: str = "output_0.pb") -> None:
    path = folder / "test_data_set_0" / name
    tensor = onnx.load_tensor(str(path))
    path.write_bytes(numpy_helper.from_array(change(numpy_helper.to_array(tensor)), tensor.name).SerializeToString())


def test_other_models_are_judged_by_the_outputs_given(
    onnx_cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "cases"
    changes: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
        "within": lambda a: (a * (1 + 9e-4)).astype(a.dtype),
        "beyond": lambda a: (a * (1 + 2e-3)).astype(a.dtype),
        "wider": lambda a: (a * (1 + 2e-3)).astype(a.dtype),
        "nan": lambda a: np.where(np.arange(a.size).reshape(a.shape) == 7, np.float32(np.nan), a),
        "shape": lambda a: a[:-1],
        "type": lambda a: a.astype(np.float64),
        "none": lambda a: a,
    }
    for name, change in changes.items():
        shutil.copytree(onnx_cases / "node" / "test_add", cases / name)
        spoil(cases / name, change)
    (cases / "wider" / "data.json").write_text('{"rtol": 0.01}')
    (cases / "none" / "test_data_set_0" / "output_0.pb").unlink()

    assert command("run", "--case", tmp_path / "cases", "--no-extra", "--out", tmp_path / "run") == 1
    results = results_of(tmp_path / "run")
    verdicts = {case: (r["verdict"], r["reason"]) for case, r in results.items()}
    assert verdicts == {
        "beyond": ("wrong", "value"),
        "nan": ("wrong", "value"),
        "none": ("inconclusive", "inconclusive"),
        "shape": ("malformed", "shape"),
        "type": ("malformed", "type"),
        "wider": ("pass", None),
        "within": ("pass", None),
    }
    assert results["nan"]["where"] == {"output": "sum", "index": [0, 1, 2], "step": None}
    assert results["beyond"]["worst"] == pytest.approx(2, rel=0.01)
    assert "the given output is" in results["beyond"]["message"]
    assert "NEW" in capsys.readouterr().out


def test_a_recurrent_model_is_judged_by_our_radius_and_not_by_the_outputs_given(
    with_bias: Path, tmp_path: Path, kin_folder: Path, kin: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given outputs may be wrong, and a tolerance of 1e-3 hides a fault: 2e-4 is more than float32's rounding."""
    for copy in ("whole", "spoilt"):
        shutil.copytree(with_bias, tmp_path / "cases" / copy)
    spoil(tmp_path / "cases" / "spoilt", lambda a: a + np.float32(0.5))
    (kin_folder / "slightly.py").write_text(
        "import numpy as np, zoo\n"
        "def spoil(prepared, inputs, outputs):\n"
        "    return {n: a * np.float32(1 + 2e-4) for n, a in outputs.items()}\n"
        "Backend = zoo.spoiling(spoil)\n"
    )
    monkeypatch.setenv("PYTHONPATH", kin["PYTHONPATH"])
    run = ("run", "--case", tmp_path / "cases", "--no-extra", "--out")
    assert command(*run, tmp_path / "right") == 0
    assert command(*run, tmp_path / "off", "--target", "backend:slightly", "--target", "backend:conforming") == 1
    right, off = results_of(tmp_path / "right"), read_results(tmp_path / "off")
    assert {case: (r["verdict"], r["flags"]) for case, r in right.items()} == {
        "whole": ("pass", []),
        "spoilt": ("pass", ["differs-from-given"]),
    }
    verdicts = {(r["target"], r["case"]): r["verdict"] for r in off}
    assert verdicts["backend:conforming", "whole"] == verdicts["backend:conforming", "spoilt"] == "pass"
    assert verdicts["backend:slightly", "whole"] in ("wrong", "inaccurate")


def test_a_node_that_its_document_does_not_allow_is_judged_by_the_outputs_given(work: Path, tmp_path: Path) -> None:
    """sequence_lens is beyond the sequence: the specification does not define the result, the directory does."""
    name = next(p.name for p in (work / "all").glob("test_lstm-14.float32.*lengths*"))
    folder = tmp_path / "cases" / "long"
    shutil.copytree(work / "all" / name, folder)
    graph = onnx.load(str(folder / "model.onnx")).graph
    position = [v.name for v in graph.input].index("sequence_lens")
    spoil(folder, lambda a: a + np.int32(99), f"input_{position}.pb")
    command("run", "--case", folder, "--out", tmp_path / "run")
    (result,) = read_results(tmp_path / "run")
    assert (result["case"], result["op"], result["clauses"]) == ("long", "case", [])


# Bad input


def test_directories_that_cannot_be_used_take_a_line_each_and_the_rest_goes_on(
    with_bias: Path, tmp_path: Path, inside: Inside
) -> None:
    """tests/cases/directories has everything that makes a directory unusable."""
    tree = tmp_path / "tree"
    for copy in ("good", "cut", "half"):
        shutil.copytree(with_bias, tree / copy)
    for path in (tree / "cut" / "test_data_set_0" / "input_0.pb", tree / "half" / "model.onnx"):
        path.write_bytes(path.read_bytes()[:-5])
    (tree / "nothing").mkdir()
    done = inside("run", "--case", "./tree", "--out", "run")
    assert done.code == 0
    lines = done.err.splitlines()
    expected = [
        ("cut/test_data_set_0/input_0.pb", "cut off"),
        ("half/model.onnx", "cut off"),
        ("nothing", "no test case"),
    ]
    assert len(lines) == len(expected)
    for line, (start, reason) in zip(sorted(lines), expected, strict=True):
        assert line.startswith(f"skipped: {start}")
        assert reason in line
    assert [r["case"] for r in read_results(tmp_path / "run")] == ["good"]
    skipped = json.loads((tmp_path / "run" / "run.json").read_text())["skipped"]
    assert [f"skipped: {line}" for line in skipped] == lines


def test_what_cannot_be_asked_for(work: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "empty").mkdir()
    fair = work / "fair"
    for arguments, complaint in {
        ("--case", "./nowhere"): "nowhere is no folder",
        ("--case", fair, "--profile", "smoke"): "leave --profile out",
        ("--case", fair, "--op", "LSTN"): "unknown operator 'LSTN' among the directories; nearest: LSTM",
        ("--case", fair, "--type", "float17"): "unknown type 'float17' among the directories; nearest: float16",
        ("--case", fair, "--op", "LSTM-15"): "unknown operator version '15' among the directories",
        ("--case", f"{fair}/test_lstm-15*"): "test_lstm-15* is no folder",
        ("--case", "./empty"): "onnxspec: no test case that can be run in ./empty",
    }.items():
        done = inside("run", *arguments)
        assert done.code == 2, arguments
        assert complaint in done.err.splitlines()[-1]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("layout", [0, 1])
def test_the_run_with_all_outputs_of_a_directory_passes_the_checker(layout: int, tmp_path: Path) -> None:
    """Backends that prepare models as ONNX's base class does call it."""
    case = build_case(CaseSpec("LSTM", 14, layout=layout, outputs=("", "Y_h", "")))
    write_directory(tmp_path / "case", case.trial.model, data_sets_of(case.trial))
    (probe,) = probe_directories([tmp_path])
    trials = probe.prepare().trials
    assert [trial.node.outputs for trial in trials] == [("Y_h",), ("Y", "Y_h", "Y_c")]
    for trial in trials:
        onnx.checker.check_model(onnx.load_model_from_string(trial.model), full_check=True)


def test_directories_are_narrowed_like_cases(work: Path, inside: Inside, tmp_path: Path) -> None:
    fair = work / "fair"
    done = inside("run", "--case", fair, "--type", "float16", "--op", "LSTM-14", "--out", "half")
    assert done.code == 0, done.err
    assert {r["type"] for r in read_results(tmp_path / "half")} == {"float16"}
    done = inside("run", "--case", f"{fair}/*peepholes*", "--require", "LSTM-14:float32", "--out", "pattern")
    assert all("peepholes" in r["case"] for r in read_results(tmp_path / "pattern"))


def test_directories_of_the_same_name_are_told_apart(with_bias: Path, inside: Inside, tmp_path: Path) -> None:
    for root in ("one", "other"):
        shutil.copytree(with_bias, tmp_path / root / "test_it")
    assert inside("run", "--case", "./one", "--case", "./other", "--out", "run").code == 0
    assert [r["case"] for r in read_results(tmp_path / "run")] == ["test_it", "test_it-2"]


def test_a_run_over_directories_goes_on_only_over_the_same_bytes(work: Path, inside: Inside, tmp_path: Path) -> None:
    names = [p.name for p in sorted((work / "fair").glob("test_lstm-14.float32.forward.*"))[:3]]
    for name in names:
        shutil.copytree(work / "fair" / name, tmp_path / "tree" / name)
    run = ("run", "--case", "./tree", "--out", "run")
    inside(*run)
    whole = (tmp_path / "run" / "results.jsonl").read_bytes()
    (tmp_path / "run" / "results.jsonl").write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    assert inside(*run, "--resume").code in (0, 1)
    assert {r["case"] for r in read_results(tmp_path / "run")} == set(names)
    spoil(tmp_path / "tree" / names[-1], lambda a: a + 1)
    done = inside(*run, "--resume")
    assert done.code == 2
    assert "another digests" in done.complaint


# generate


def test_generating(inside: Inside, tmp_path: Path) -> None:
    chosen = ("--type", "float32", "--op", "LSTM-14", "--case", "*forward.bias*")
    done = inside("generate", "--out", "tree", *chosen)
    assert done.code == 0, done.err
    manifest = json.loads((tmp_path / "tree" / "manifest.json").read_text())
    assert manifest["made"]["command"] == (
        "onnxspec generate --out DIR --profile core --op LSTM-14 --type float32 --case '*forward.bias*'"
    )
    written, left_out = len(manifest["cases"]), len(manifest["left_out"])
    assert written
    assert left_out
    assert done.out.splitlines()[0].startswith(f"{written} case")
    assert f"{left_out} case" in done.out


def test_generating_nothing_counts_the_reasons(inside: Inside) -> None:
    done = inside("generate", "--out", "tree", "--op", "GRU-14", "--type", "float32", "--case", "*illegal-outputs*")
    assert done.code == 1
    assert done.out.splitlines()[0] == "0 cases in tree"
    assert re.search(r"^  +\d+  the document forbids the model", done.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("folder", "op", "complaint"),
    [
        ("new", "LSTN", "unknown operator"),
        ("full", "LSTM", "already holds something: give a new or empty folder"),
        ("file", "LSTM", "file"),
        pytest.param("locked/new", "LSTM", "Permission denied", marks=NOT_ROOT),
    ],
)
def test_generating_badly(inside: Inside, tmp_path: Path, folder: str, op: str, complaint: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    (tmp_path / "locked").mkdir(mode=0o500)
    done = inside("generate", "--out", folder, "--op", op)
    assert done.code == 2
    assert complaint in done.complaint
    assert not (tmp_path / "new").exists()
