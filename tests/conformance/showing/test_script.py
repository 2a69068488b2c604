"""Scripts for users without onnxspec, run in a separate process as those users would run them."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from onnxspec.cases import Case, CaseSpec, build_case, profile
from onnxspec.cases.specs.graphs import GRAPHS
from onnxspec.cases.specs.wrapping import WRAPS, wrap
from onnxspec.conformance.cli.application import app
from onnxspec.conformance.showing.script.script import script_of
from onnxspec.conformance.showing.script.statements import ratios
from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.reference import Interpretations, evaluate, expect

from ..miniatures import Finished, needs_cell_output

PLAIN = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, outputs=("Y", "Y_h", "Y_c"), weights="initializer")
REFERENCE = parse_target("onnx-reference")

# An adapter that returns the contents of a file.
CANNED = """
import os
import numpy as np
class Adapter:
    def __init__(self, options): ...
    def prepare(self, model):
        return self
    def run(self, feeds):
        with np.load(os.environ["CANNED"]) as held:
            return [held[name] for name in held.files]
"""
ADAPTER = """
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
class Adapter:
    def __init__(self, options):
        assert options == {"level": 3}
    def prepare(self, model):
        self.evaluator = ReferenceEvaluator(onnx.load_model_from_string(model))
        return self
    def run(self, feeds):
        return self.evaluator.run(None, feeds)
"""


def _run(tmp_path: Path, spec: CaseSpec, target: Target | None = None, **environment: str) -> Finished:
    path = tmp_path / "reproduce.py"
    path.write_text(_script(build_case(spec), target), encoding="utf-8")
    return _finished(path, **environment)


def _finished(path: Path, **environment: str) -> Finished:
    """Run a script outside the tree, so that nothing of this project can be imported by chance."""
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=path.parent,
        timeout=590,
        env={**os.environ, **environment},
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def _script(case: Case, target: Target | None = None) -> str:
    text = script_of(case, target)
    assert text is not None
    return text


def _names(text: str) -> dict[str, Any]:
    """Run a script for onnx's reference evaluator in this process and return its global names."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit, TypeError, ValueError):
        exec(compile(text, "script", "exec"), names)
    return names


def _judged(tmp_path: Path, spec: CaseSpec, outputs: dict[str, np.ndarray], text: str = CANNED) -> Finished:
    """Run the script of a target that returns these outputs."""
    np.savez(tmp_path / "outputs.npz", **outputs)  # type: ignore[arg-type] # stubs of newer NumPy
    (tmp_path / "canned.py").write_text(text, encoding="utf-8")
    target = Target("canned", str(tmp_path / "canned.py"))
    return _run(tmp_path, spec, target, CANNED=str(tmp_path / "outputs.npz"))


def _expected(case: Case, interpretations: Interpretations | None = None) -> dict[str, np.ndarray]:
    trial = case.trial
    dtype = trial.feeds[-1].inputs["X"].dtype
    return {name: v.astype(dtype) for name, v in evaluate(trial.node, trial.feeds[-1].inputs, interpretations).items()}


@pytest.mark.parametrize(
    ("change", "code", "texts"),
    [
        ({"direction": "bidirectional", "bias": True, "initial": "all", "lengths": "ragged"}, 0,
         ["run 1, Y[", "|error|/bound 0.", ": inside\n"]),
        # What onnxruntime leaves unwritten shows every time.
        ({"T": 0, "initial": "all"}, 1, ["Y_c[0, 0, 0]: got nan, expected 0, error bound 0, |error|/bound inf",
                                         "worst |error|/bound: inf: outside\n"]),
        # A session is run with other data before.
        ({"reruns": "sizes", "dimensions": "symbolic"}, 0, ["run 1, Y[", "run 2, Y[", ": inside\n"]),
    ],
)  # fmt: skip
def test_results_of_onnxruntime(tmp_path: Path, change: dict[str, Any], code: int, texts: list[str]) -> None:
    done = _run(tmp_path, replace(PLAIN, **change))
    assert done.code == code, done.err
    assert [text for text in texts if text not in done.out] == []
    assert done.out.endswith(texts[-1])


def test_a_crash_of_onnxruntime_is_a_crash_of_the_script(tmp_path: Path) -> None:
    done = _run(tmp_path, replace(PLAIN, N=0))
    assert done.code not in (0, 1)
    assert "Traceback" not in done.err


@needs_cell_output
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
def test_types(tmp_path: Path, kind: str) -> None:
    if kind == "bfloat16" and onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16).itemsize != 2:
        pytest.skip("onnx before 1.19 has no NumPy type for bfloat16")
    spec = replace(PLAIN, version=22, type=kind, T=1, bias=True, initial="all")
    done = _run(tmp_path, spec, REFERENCE)
    assert (done.code, done.out.rstrip()[-6:]) == (0, "inside"), done.err
    done = _run(tmp_path, replace(spec, clip=0.125), REFERENCE)  # the evaluator ignores clip
    assert done.code == 1, done.err
    assert done.out.rstrip().endswith("outside")


@needs_cell_output
@pytest.mark.parametrize("version", [1, 7, 14, 22])
def test_model_and_inputs_are_the_case_s_own_bytes(version: int) -> None:
    nan: dict[str, Any] = {"T": 8, "data": "nan-padding", "lengths": "ragged", "weights": "input"}
    changes = [{"dimensions": "symbolic"}, {"T": 0}, nan] if version == 14 else []
    for spec in [*profile("smoke", "LSTM", version), *(replace(PLAIN, **change) for change in changes)]:
        case = build_case(spec)
        names = _names(_script(case, REFERENCE))
        assert names["model"].SerializeToString(deterministic=True) == case.trial.model, spec.id
        assert len(names["FEEDS"]) == len(case.trial.feeds)
        for feed, written in zip(case.trial.feeds, names["FEEDS"], strict=True):
            assert list(written) == list(feed.fed)
            for name, array in feed.fed.items():
                np.testing.assert_array_equal(written[name].astype(np.float64), array.astype(np.float64))
                assert written[name].dtype.name == array.dtype.name.replace("bfloat16", "float32")


@needs_cell_output
@pytest.mark.parametrize("spec", [PLAIN, CaseSpec("LSTM", 14), replace(PLAIN, type="bfloat16", version=22)])
def test_expected_numbers_are_the_reference_s(spec: CaseSpec) -> None:
    case = build_case(spec)
    inputs = case.trial.feeds[0].inputs
    ((run,),) = _names(_script(case, REFERENCE))["EXPECTED"].values()
    for e in expect(case.trial.node, inputs, {}):
        value, radius = run[e.output]
        np.testing.assert_array_equal(value, e.number.value)
        assert (radius >= e.number.radius).all()
        assert (radius <= e.number.radius * 1.02).all()


def test_padding_is_only_convention_and_demands_nothing(tmp_path: Path) -> None:
    case = build_case(replace(PLAIN, lengths="short"))
    outputs = _expected(case)
    outputs["Y"][3] = 7
    assert _judged(tmp_path, case.spec, outputs).code == 0
    outputs["Y"][2] = 7
    assert _judged(tmp_path, case.spec, outputs).code == 1


@pytest.mark.parametrize("gate", ["input", "forget"])
@pytest.mark.parametrize("clip", ["clipped", "unclipped"])
def test_every_interpretation_is_accepted(tmp_path: Path, gate: str, clip: str) -> None:
    case = build_case(replace(PLAIN, clip=0.125, input_forget=1, initial="all"))
    done = _judged(tmp_path, case.spec, _expected(case, Interpretations(coupled_gate=gate, cell_output_clip=clip)))
    assert done.code == 0, done.out + done.err
    assert f"cell_output_clip {clip}, coupled_gate {gate}:" in done.out


@pytest.mark.parametrize("form", ["shape", "type", "nan"])
def test_outputs_of_another_form(tmp_path: Path, form: str) -> None:
    case = build_case(PLAIN)
    outputs = _expected(case)
    if form == "nan":
        outputs["Y"][0, 0, 0, 0] = np.nan
    else:
        outputs["Y"] = outputs["Y"][:-1] if form == "shape" else outputs["Y"].astype(np.float64)
    done = _judged(tmp_path, case.spec, outputs)
    assert done.code == 1
    assert {"shape": "must be float32 (4, 1, 3, 5)", "type": "is float64", "nan": "got nan"}[form] in done.out


@pytest.mark.parametrize("off", [0, 1])
def test_an_adapter_may_return_the_bits_of_bfloat16_with_a_named_field(tmp_path: Path, off: int) -> None:
    case = build_case(replace(PLAIN, type="bfloat16", version=22, T=1))
    bits = {name: (array + array.dtype.type(off)).view(np.uint16) for name, array in _expected(case).items()}
    text = CANNED.replace("held[name] for", 'held[name].view([("bfloat16", np.uint16)]) for')
    done = _judged(tmp_path, case.spec, bits, text)
    assert (done.code, "is void" in done.out) == (off, False), done.out + done.err


def test_y_may_be_missing_only_where_that_is_open(tmp_path: Path) -> None:
    spec = replace(PLAIN, version=1)
    case = build_case(spec)
    outputs = {name: array for name, array in _expected(case).items() if name != "Y"}
    text = CANNED.replace("return [held", "return [None] + [held")
    assert _judged(tmp_path, spec, outputs, text).code == 0
    done = _judged(tmp_path, replace(spec, output_sequence=1), outputs, text)
    assert done.code == 1
    assert "Y is missing" in done.out


@pytest.mark.parametrize("target", [Target("npu", "backend", {"module": "computing"}),
                                    Target("program", "external", {}, ("node", "worker.mjs"))])  # fmt: skip
def test_programs_and_backend_modules_have_no_script(target: Target) -> None:
    assert script_of(build_case(PLAIN), target) is None


def test_for_a_target_without_a_script_there_is_the_command_that_writes_the_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    id = next(spec.id for spec in profile("core", "LSTM", 14) if spec.id.startswith("lstm-14.float32.forward."))
    said = CliRunner().invoke(app, ["explain", id, "--emit", "script", "--target", "backend:some.module"])
    assert (said.exit_code, said.stdout) == (2, "")
    command = shlex.split(" ".join(said.stderr.split()).partition("onnxspec generate ")[2])
    assert CliRunner().invoke(app, ["generate", *command]).exit_code == 0
    (folder,) = [path.parent for path in tmp_path.rglob("model.onnx")]
    assert {path.name for path in folder.iterdir()} == {"model.onnx", "test_data_set_0"}


@needs_cell_output
def test_an_adapter_of_the_user_s_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(ADAPTER, encoding="utf-8")
    target = Target("mine", str(path), {"level": 3})
    done = _run(tmp_path, PLAIN, target)
    assert done.code == 0, done.err
    path.write_text("import no_such_runtime", encoding="utf-8")
    done = _run(tmp_path, PLAIN, target)
    assert done.code == 2
    assert "not tried" in done.err
    assert "No module named 'no_such_runtime'" in done.err


@pytest.mark.parametrize("forbidden", [False, True])
def test_a_script_that_cannot_start_is_no_failure_and_no_refusal(tmp_path: Path, forbidden: bool) -> None:
    spec = next(s for s in profile("core", "LSTM", 14) if bool(s.illegal) == forbidden)
    path = tmp_path / "mine.py"
    target = Target("mine", str(path))
    path.write_text("class Adapter:\n    def __init__(self, options):\n        raise OSError('no device')", "utf-8")
    done = _run(tmp_path, spec, target)
    assert (done.code, done.out, "cannot start: OSError: no device" in done.err) == (2, "", True)
    path.unlink()
    done = _run(tmp_path, spec, target)
    assert (done.code, done.out, str(path) in done.err) == (2, "", True)


@needs_cell_output
def test_a_script_finds_the_adapter_and_modules_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script runs in another folder than that from which the adapter's path was given."""
    folder = tmp_path / "adapters"
    folder.mkdir()
    (folder / "mine.py").write_text(f"import helper_beside\n{ADAPTER}", encoding="utf-8")
    (folder / "helper_beside.py").write_text("", encoding="utf-8")
    monkeypatch.chdir(folder)
    done = _run(tmp_path, PLAIN, Target("mine", "mine.py", {"level": 3}))
    assert done.code == 0, done.err


def test_options_of_onnxruntime_are_in_the_script(tmp_path: Path) -> None:
    options = {"threads": 2, "optimize": True, "session_options": {"session.set_denormal_as_zero": True}}
    target = Target("ort", "onnxruntime", options)
    text = _script(build_case(PLAIN), target)
    assert "intra_op_num_threads = options.inter_op_num_threads = 2" in text
    assert "ORT_ENABLE_ALL" in text
    assert "{'session.set_denormal_as_zero': '1'}" in text
    assert _run(tmp_path, PLAIN, target).code == 0
    device = Target("gpu", "onnxruntime", {"provider": "CUDAExecutionProvider", "provider_options": {"device_id": 1}})
    text = _script(build_case(PLAIN), device)
    assert """providers=[("CUDAExecutionProvider", {'device_id': '1'})]""" in text
    assert "'session.disable_cpu_ep_fallback': '1'" in text


def test_how_the_target_is_started_is_said() -> None:
    command = ("docker", "exec", "-i", "a b", "python3", "{worker}")
    target = replace(parse_target("onnxruntime"), command=command, environment={"DEVICE": "0\n1"})
    text = _script(build_case(PLAIN), target)
    assert "# The target is started with: 'DEVICE=0 1' docker exec -i 'a b' python3\n" in text
    ast.parse(text)


def _imports(text: str) -> set[str]:
    names: set[str] = set()
    for statement in ast.walk(ast.parse(text)):
        if isinstance(statement, ast.Import):
            names |= {alias.name.split(".")[0] for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            names.add(str(statement.module).split(".")[0])
    return names


@pytest.mark.parametrize("target", ["onnxruntime", "onnx-reference", "openvino", "tract", "own"])
def test_scripts_are_short_stand_alone_and_pass_the_linter(tmp_path: Path, target: str) -> None:
    chosen = Target("own", "/some/own.py", {"a": 1}) if target == "own" else parse_target(target)
    for version in (1, 14, 22):
        for number, spec in enumerate(profile("smoke", "LSTM", version)):
            text = _script(build_case(spec), chosen)
            assert version == 1 or len(text.splitlines()) <= 220, spec.id
            assert _imports(text) - set(sys.stdlib_module_names) <= {"numpy", "onnx", "onnxruntime"}
            (tmp_path / f"case_{version}_{number}.py").write_text(text, encoding="utf-8")
    if importlib.util.find_spec("ruff") is not None:
        rules = "E,F,W,I,B,UP,C4,SIM,RUF"
        command = [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length=120", f"--select={rules}", "."]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stdout


def test_ratios() -> None:
    value = np.array([1.0, 1.0, 0.0, 60000.0, 60000.0, 60000.0, 1.0, 1.0, 2.0])
    radius = np.array([0.5, 0.5, 0.0, 9000.0, 9000.0, 100.0, np.inf, 0.5, 0.0])
    got = np.array([1.25, 3.0, 0.0, np.inf, -np.inf, np.inf, np.nan, np.nan, 2.5])
    assert ratios(got, value, radius, 65504.0).tolist() == [0.5, 4.0, 0, 0, np.inf, np.inf, -1, np.inf, np.inf]


BEHIND = CaseSpec(
    *("LSTM", 14, "float32"), T=4, N=3, I=2, H=3, direction="bidirectional", bias=True, initial="all",
    lengths="ragged", outputs=("Y", "Y_h", "Y_c"),
)  # fmt: skip


def _exit_code(script: str) -> int:
    """Return the exit code of a script for a runtime of this process."""
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as ended:
        exec(compile(script, "script", "exec"), {"__name__": "__main__"})
    return int(ended.value.code or 0)


@pytest.mark.parametrize("name", WRAPS)
def test_the_script_of_a_lane_runs_its_graph_if_it_has_one_node(name: str) -> None:
    case = wrap(build_case(BEHIND), name)
    script = script_of(case, parse_target("onnxruntime"))
    assert (script is None) == (name in GRAPHS)
    if script is not None:
        assert _exit_code(script) == 0
        feeds = "{k: {**v, 'X': v['X'] * v['X'].dtype.type(2) + v['X'].dtype.type(1)} for k, v in enumerate(FEEDS)}"
        assert _exit_code(script.replace("\noptions = ", f"\nFEEDS = {feeds}\noptions = ")) == 1
        assert _names(script)["model"].graph == onnx.load_model_from_string(case.trial.model).graph


def test_the_script_of_a_quantized_case_works_on_levels(tmp_path: Path) -> None:
    """It passes on a right runtime and fails where a zero point is lost."""
    spec = CaseSpec(
        *("GRU", 14, "float32"), T=3, N=2, I=2, H=3, bias=True, outputs=("Y", "Y_h"), weights="initializer",
        quantization="u16", weight_type="s8", channels="rows", bias_type="product",
    )  # fmt: skip
    text = _script(build_case(spec))
    assert 'domain="com.microsoft"' in text
    swap = 'next(t for t in graph.initializer if t.name == "X_zero_point").raw_data = bytes(2)'
    wrong = text.replace("model = helper.make_model(", f"{swap}\nmodel = helper.make_model(")
    for code, script in enumerate((text, wrong)):
        path = tmp_path / "script.py"
        path.write_text(script)
        done = _finished(path)
        assert done.code == code, done.out + done.err
