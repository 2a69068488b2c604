"""Names of targets, targets.toml, and the shipped adapters on real runtimes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import ml_dtypes
import numpy as np
import onnxruntime
import pytest

from onnxspec.conformance.cli.display import could_not_start
from onnxspec.conformance.targets.adapters import ADAPTERS, adapter_source
from onnxspec.conformance.targets.adapters import onnxruntime as onnxruntime_adapter
from onnxspec.conformance.targets.target import PROVIDERS, Target, TargetError, parse_target, table_names
from onnxspec.conformance.workers import worker
from onnxspec.conformance.workers.job import Job, Outcome, TargetUnavailable
from onnxspec.conformance.workers.launch import PLACEHOLDERS
from onnxspec.conformance.workers.process import TargetProcess
from onnxspec.reference import Node, evaluate

from ..miniatures import needs_cell_output
from .small_models import HIDDEN, feed, identity, lstm

IMPORTED = {
    "openvino": ("openvino",),
    "tract": ("tract",),
    "iree": ("iree.compiler.api", "iree.compiler.ir", "iree.compiler.extras.onnx_importer", "iree.runtime"),
    "emx-onnx-cgen": ("emx_onnx_cgen", "emx_onnx_cgen.compiler"),
    "opencv": ("cv2",),
    "mnn": ("MNN", "_tools"),
    "ncnn": ("ncnn",),
    "sofie": ("sofie",),
    "litert": ("onnx2tf", "ai_edge_litert.interpreter"),
    "rknn": ("rknn", "rknn.api"),
}


def run(target: Target, *jobs: Job) -> tuple[dict[str, Any], list[Outcome]]:
    with TargetProcess(target) as process:
        return process.start(), list(process.run(jobs))


# Real runtimes


@needs_cell_output
@pytest.mark.parametrize(
    ("name", "element", "tolerance"),
    [
        ("onnxruntime", "float", 1e-5),
        ("onnx-reference", "float", 1e-5),
        ("backend:onnxruntime.backend", "float", 1e-5),
        ("onnx-reference", "bfloat16", 0.05),
    ],
)
def test_a_real_runtime_computes_an_lstm(name: str, element: str, tolerance: float) -> None:
    version, dtype = (14, np.float32) if element == "float" else (22, ml_dtypes.bfloat16)
    model, feeds = lstm(element, version), feed(dtype)
    jobs = (Job("a", model, (feeds,)), Job("b", model, ({"X": feeds["X"]},)))
    description, (ran, refused) = run(parse_target(name), *jobs)
    assert {"runtime", "version", "provider", "device", "python", "platform"} <= set(description)
    assert (ran.status, ran.phase, ran.malformed, ran.changed) == ("ran", "run", "", ())
    must = evaluate(Node("LSTM", version, {"hidden_size": HIDDEN}, ("Y", "Y_h", "Y_c")), feeds)
    for value, right in zip(ran.outputs[0][0], must.values(), strict=True):
        assert (value.dtype, value.shape) == (feeds["X"].dtype, right.shape)
        np.testing.assert_allclose(value.astype(float), right.astype(float), rtol=0, atol=tolerance)
    assert (refused.status, refused.phase) == ("refused", "run")
    assert refused.message


def test_onnxruntime_refuses_what_it_cannot_load() -> None:
    _, (garbage, unknown) = run(
        parse_target("onnxruntime"),
        Job("a", b"no model", ({},)),
        Job("b", lstm("bfloat16", 22), (feed(ml_dtypes.bfloat16),)),
    )
    assert (garbage.status, garbage.phase) == ("refused", "load")
    assert (unknown.status, unknown.phase) == ("refused", "load")


def test_onnxruntime_takes_and_gives_bfloat16_where_it_can() -> None:
    value = np.array([[1, -2, 3], [np.inf, -0.0, 1e-40]], ml_dtypes.bfloat16)
    _, (outcome,) = run(parse_target("onnxruntime"), Job("a", identity("bfloat16"), ({"X": value},)))
    if hasattr(onnxruntime.OrtValue, "ortvalue_from_numpy_with_onnx_type"):
        (array,) = outcome.outputs[0][0]
        assert array.dtype == ml_dtypes.bfloat16
        assert array.tobytes() == value.tobytes()
    else:
        assert (outcome.status, outcome.phase) == ("refused", "load")


def test_onnxruntime_takes_its_options() -> None:
    options = {"threads": 2, "optimize": True, "session_options": {"session.use_env_allocators": True}}
    description, (outcome,) = run(Target("fast", "onnxruntime", options), Job("a", lstm(), (feed(),)))
    assert (description["threads"], description["optimize"]) == (2, True)
    assert description["session_options"] == {"session.use_env_allocators": "1"}
    assert outcome.status == "ran"


@pytest.mark.parametrize(
    ("adapter", "options", "complaint"),
    [
        ("onnxruntime", {"optimize": "false"}, "option 'optimize' must be true or false, is 'false'"),
        ("onnxruntime", {"threads": "two"}, "option 'threads' must be a whole number, is 'two'"),
        ("onnxruntime", {"threads": True}, "option 'threads' must be a whole number, is True"),
        ("onnxruntime", {"custom_op_libraries": "a.so"}, "option 'custom_op_libraries' must be a list, is 'a.so'"),
        ("onnxruntime", {"provider_options": "x"}, "option 'provider_options' must be a table, is 'x'"),
        ("quark", {"threads": "two"}, "option 'threads' must be a whole number, is 'two'"),
        ("quark", {"library": 3}, "option 'library' must be a text, is 3"),
        ("openvino", {"precision": True}, "option 'precision' must be a text, is True"),
        ("openvino", {"config": ["x"]}, r"option 'config' must be a table, is \['x'\]"),
        ("tract", {"runtime": 1}, "option 'runtime' must be a text, is 1"),
        ("iree", {"flags": "x"}, "option 'flags' must be a list, is 'x'"),
        ("emx-onnx-cgen", {"compiler": 3}, "option 'compiler' must be a text, is 3"),
        ("mnn", {"precision": "all"}, "precision 'all'; one of high, normal, low"),
        ("opencv", {"threads": 1}, "unknown option 'threads'; there are none"),
        ("ncnn", {"fp16": 1}, "unknown option 'fp16'; there are none"),
        ("rknn", {"platform": 3588}, "option 'platform' must be a text, is 3588"),
        ("backend", {"module": "onnxruntime.backend", "device": 0}, "option 'device' must be a text, is 0"),
    ],
)
def test_an_option_of_another_type_is_refused_with_the_right_type(
    adapter: str, options: dict[str, Any], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUST_BACKTRACE", "")  # which tract's adapter sets
    for name in IMPORTED.get(adapter, ()):  # options are checked before the runtime is used
        monkeypatch.setitem(sys.modules, name, MagicMock())
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        worker.load_adapter(adapter_source(adapter), options)


LIBRARY = {"custom_op_libraries": ["/none.so"]}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Target("bad", "onnxruntime", {"thread": 2}), r"unknown option 'thread'; known: .*threads"),
        (Target("bad", "onnxruntime", LIBRARY), r"none\.so"),
        ("onnxruntime:NoSuchExecutionProvider", r"has no NoSuchExecutionProvider; it has .*CPUExecutionProvider"),
        ("backend:math", "math has neither"),
    ],
)
def test_a_target_that_is_not_to_be_had_is_unavailable(target: str | Target, message: str) -> None:
    chosen = parse_target(target) if isinstance(target, str) else target
    with TargetProcess(chosen) as process, pytest.raises(TargetUnavailable, match=message):
        process.start()


@pytest.mark.skipif(
    "AzureExecutionProvider" not in onnxruntime.get_available_providers(),
    reason="needs a provider that takes no LSTM",
)
def test_a_provider_that_does_not_take_the_node_fell_back() -> None:
    description, (outcome,) = run(parse_target("onnxruntime:AzureExecutionProvider"), Job("a", lstm(), (feed(),)))
    assert description["provider"] == "AzureExecutionProvider"
    assert (outcome.status, outcome.phase) == ("fell-back", "load")
    assert outcome.outputs == ((),)
    assert "fallback to CPU EP" in outcome.proof


# Backends

ONLY_RUN_MODEL = """
from onnx.backend.base import Backend
class Mine(Backend):
    @classmethod
    def run_model(cls, model, inputs, device='CPU', **kwargs):
        return (inputs[0],)
"""
NO_PREPARE = """
def prepare(model, device='CPU', **kwargs):
    raise NotImplementedError('prepare: ' + model.graph.node[0].op_type)
def run_model(model, inputs, device='CPU', **kwargs):
    if model.graph.node[0].op_type == 'LSTM':
        raise NotImplementedError('run_model')
    return [inputs[0]]
"""
BREAKING = """
RUNS = []
def run_model(model, inputs, device='CPU', **kwargs):
    RUNS.append(inputs[0].size)
    if RUNS.count(inputs[0].size) > (inputs[0].size == 6):
        return [][1]
    return [inputs[0]]
"""


@pytest.fixture
def backends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("only_run_model", ONLY_RUN_MODEL), ("no_prepare", NO_PREPARE), ("breaking", BREAKING)):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


ONES = np.ones((2, 3), np.float32)


@pytest.mark.usefixtures("backends")
def test_a_backend_class_and_one_without_prepare_are_driven() -> None:
    for name in ("only_run_model", "no_prepare"):
        jobs = (Job("a", identity("float"), ({"X": ONES},)), Job("b", lstm(), (feed(),)))
        _, outcomes = run(parse_target(f"backend:{name}"), *jobs)
        assert np.array_equal(np.asarray(outcomes[0].outputs[0][0][0]), ONES)
    # If neither way works, the message of `prepare` counts.
    assert (outcomes[1].status, outcomes[1].phase) == ("refused", "load")
    assert outcomes[1].message == "NotImplementedError: prepare: LSTM"


@pytest.mark.usefixtures("backends")
def test_a_backend_without_prepare_refuses_in_phase_load_until_it_has_accepted_a_model() -> None:
    jobs = (Job("k", identity("float"), ({"X": value},)) for value in (ONES[0], ONES))
    _, (first, later) = run(parse_target("backend:breaking"), *jobs)
    assert [(o.status, o.phase) for o in (first, later)] == [("refused", "load"), ("refused", "run")]
    assert first.broke_at == later.broke_at == "breaking.py, line 6, in run_model"


# Names


def test_names_that_are_always_there() -> None:
    assert parse_target("onnxruntime") == Target("onnxruntime", "onnxruntime")
    assert parse_target("onnxruntime:MIGraphXExecutionProvider").options == {"provider": "MIGraphXExecutionProvider"}
    names = set(ADAPTERS) - {"backend"}
    assert {parse_target(name).adapter for name in names} == names
    assert parse_target("backend:a.b_c").options == {"module": "a.b_c"}
    assert set(ADAPTERS) == {"onnxruntime", "onnx-reference", "quark", "backend", *IMPORTED}


SHORT_NAMES = {
    **{"TensorRT": "Tensorrt", "trt": "Tensorrt", "tensort": "Tensorrt", "nv_tensorrt_rtx": "NvTensorRTRTX"},
    **{"onnxruntime-gpu": "CUDA", "gpu": "CUDA", "CUDAExecutionProvider": "CUDA", "vitis_ai": "VitisAI"},
    **{"onnxruntime:openvino": "OpenVINO", "ort-openvino": "OpenVINO", "onnxruntime-openvino": "OpenVINO"},
    **{"npu": "QNN", "vitis": "VitisAI", "directml": "Dml", "onnxruntime:CUDAExecutionProvdr": "CUDA"},
}
"""Names of providers as people write them, without those that have a table in the targets file below."""


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("onnxruntme", "onnxruntime"),
        ("onnx_reference", "onnx-reference"),
        ("onnxruntime:cuda", "onnxruntime:CUDAExecutionProvider"),
        ("onnxruntime:MiGraphExecutionprovidr", "onnxruntime:MIGraphXExecutionProvider"),
        *((short, f"onnxruntime:{name}ExecutionProvider") for short, name in SHORT_NAMES.items()),
        ("backend:", "backend:package.module"),
        ("backend:a..b", "backend:package.module"),
        ("rocn", "rocm"),  # a table of the file
        ("", "onnxruntime"),
    ],
)
def test_an_unknown_name_gives_the_nearest(text: str, near: str, tmp_path: Path) -> None:
    file = tmp_path / "targets.toml"
    file.write_text('[rocm]\nadapter = "onnxruntime"\n')
    with pytest.raises(TargetError) as caught:
        parse_target(text, file)
    assert repr(text) in str(caught.value)
    assert near in str(caught.value).split("nearest: ")[1].split(", ")
    assert "\n" not in str(caught.value)


def test_a_table_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "targets.toml"
    (tmp_path / "mine.py").write_text("class Adapter: ...\n")
    file.write_text(
        '[migraphx]\nadapter = "onnxruntime"\nprovider = "MIGraphXExecutionProvider"\n'
        'options = { optimize = true, provider_options = { migraphx_fp16_enable = "0" } }\n'
        'interpreter = "venv/bin/python"\nenvironment = { HIP_VISIBLE_DEVICES = "0" }\n'
        'time_limit = 120\nmemory_limit = 8_000_000_000\naccuracy = "tf32"\nexpected = "known.toml"\n'
        '[box]\nadapter = "mine.py"\ncommand = ["ssh", "box", "python3", "worker.py"]\n'
        '[plain]\nadapter = "backend"\noptions.module = "a.b"\ninterpreter = "python3.9"\n'
    )
    migraphx = parse_target("migraphx", file)
    assert migraphx == Target(
        "migraphx",
        "onnxruntime",
        {
            "optimize": True,
            "provider_options": {"migraphx_fp16_enable": "0"},
            "provider": "MIGraphXExecutionProvider",
        },
        (str(tmp_path / "venv/bin/python"), "{worker}"),
        {"HIP_VISIBLE_DEVICES": "0"},
        120.0,
        8_000_000_000,
        "tf32",
        str(tmp_path / "known.toml"),
    )
    box = parse_target("box", file)
    assert (box.adapter, box.command) == (str(tmp_path / "mine.py"), ("ssh", "box", "python3", "worker.py"))
    assert adapter_source(box.adapter) == "class Adapter: ...\n"
    assert parse_target("plain", file).command == ("python3.9", "{worker}")
    assert parse_target("onnxruntime", file) == Target("onnxruntime", "onnxruntime")
    assert table_names(file) == ["migraphx", "box", "plain"]


ORT = '[x]\nadapter = "onnxruntime"\n'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1", "[x] Expected `object`, got `int`"),
        ("[x]", "[x] Object missing required field `adapter`"),
        ('[x]\nadapter = "onxruntime"', "[x] adapter: there is no adapter 'onxruntime'; nearest: onnxruntime"),
        ('[x]\nadapter = "none.py"', "[x] adapter: there is no file"),
        ('[x]\nadapter = "latin.py"', "latin.py' is no text in UTF-8"),
        (ORT + "timelimit = 3", "[x] timelimit: unknown key; did you mean 'time_limit'?"),
        (ORT + "time_limit = 0", "[x] time_limit: Expected `float` > 0.0"),
        (ORT + "time_limit = nan", "a number is not finite"),
        (ORT + 'memory_limit = "8G"', "[x] memory_limit: Expected `int | null`"),
        (ORT + 'command = "ssh box"', "[x] command: Expected `array | null`"),
        (ORT + 'command = ["a"]\ninterpreter = "b"', "[x] command: stands beside interpreter"),
        (ORT + 'command = ["ssh", "box", "python3", "-c", "{source}"]', "[x] command"),
        (ORT + "environment = { A = 1 }", "[x] environment[...]: Expected `str`"),
        (ORT + "options = { a = 1979-05-27 }", "[x] options.a: must be"),
        (ORT + 'accuracy = "loose"', "[x] accuracy: there is no class 'loose'; one of strict"),
        ('[x]\nadapter = "onnx-reference"\nprovider = "P"', "[x] provider: adapter 'onnx-reference' has no providers"),
        (ORT + 'provider = "P"\noptions.provider = "Q"', "[x] provider: differs"),
        ("[x", "is not TOML"),
        ('[x]\nadapter = "external"', "[x] command: is missing"),
        ('[x]\nadapter = "external"\ninterpreter = "python3"', "[x] command: is missing"),
        ('[x]\nadapter = "extrenal"\ncommand = ["a"]', "nearest: external"),
        ('[x]\nadapter = "external"\ncommand = ["a"]\noptions.x = inf', "a number is not finite"),
    ],
)
def test_a_wrong_table_names_file_line_and_key(text: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "targets.toml"
    (tmp_path / "latin.py").write_bytes(b"# caf\xe9\n")
    good = '# head\n[y]\nadapter = "onnxruntime"\ntime_limit = 3\n\n'
    whole_file = text in ("x = 1", "[x") or "not finite" in complaint
    file.write_text(text if text == "x = 1" else good + text)
    with pytest.raises(TargetError) as caught:
        parse_target("x", file)
    message = str(caught.value)
    assert complaint in message
    assert message.startswith(str(file) if whole_file else f"{file}:6: [x] ")
    assert "\n" not in message
    if not whole_file:
        assert parse_target("y", file).time_limit == 3


EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "targets").glob("*.toml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_the_shipped_examples_are_right(file: Path) -> None:
    """Every table can be read, sends its worker's code, and has only options that its adapter knows."""
    assert file.read_text(encoding="utf-8").startswith("# ")
    assert table_names(file)
    for name in table_names(file):
        target = parse_target(name, file)
        assert target.adapter == "external" or any(word in "".join(target.command) for word in PLACEHOLDERS)
        if target.adapter == "onnxruntime":
            # A plug-in chooses its own name.
            plugged = "provider_library" in target.options
            assert plugged or target.options.get("provider", "CPUExecutionProvider") in PROVIDERS
            assert set(target.options) <= set(onnxruntime_adapter.OPTION_DEFAULTS)


def test_there_is_an_example_for_every_configuration_of_amd() -> None:
    targets = [parse_target(name, file) for file in EXAMPLES for name in table_names(file)]
    providers = {target.options.get("provider") for target in targets}
    assert {f"{name}ExecutionProvider" for name in ("ROCM", "MIGraphX", "VitisAI")} <= providers


def test_a_missing_targets_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be read: No such file"):
        parse_target("x", tmp_path / "none.toml")


BESIDE = """
import numpy as np
from helper_beside import VERSION

class Adapter:
    def __init__(self, options): ...
    def describe(self):
        return {"runtime": "beside", "version": VERSION}
"""


def test_an_adapter_file_may_import_a_module_beside_it(tmp_path: Path) -> None:
    (tmp_path / "own_adapter.py").write_text(BESIDE)
    (tmp_path / "helper_beside.py").write_text("VERSION = '7'")
    (tmp_path / "json.py").write_text("raise ImportError('it hides the standard library')")
    with TargetProcess(Target("own", str(tmp_path / "own_adapter.py"))) as process:
        assert process.start()["version"] == "7"


def test_a_package_is_suggested_only_if_the_adapter_declares_one(tmp_path: Path) -> None:
    reason = "ModuleNotFoundError: No module named 'helper_beside'"
    adapter = tmp_path / "own_adapter.py"
    adapter.write_text(BESIDE)
    target = Target("own", str(adapter))
    assert could_not_start(target, reason) == f"could not start: {reason}"
    adapter.write_text(f'"""Adapter. Package: own-runtime."""\n{BESIDE}')
    assert could_not_start(target, reason).endswith("; 'onnxspec targets' says what installs it")
