"""Models that people deploy, and those that exporters and quantizers make today: found, folded, checked, run, judged.

``tox run -e models`` downloads them; nothing of them is part of this repository.
"""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime.quantization import QuantFormat, quantize_dynamic, quantize_static
from onnxruntime.quantization.calibrate import CalibrationDataReader

from onnxspec.conformance.checking.check import check_model
from onnxspec.conformance.checking.problem import Level
from onnxspec.conformance.extraction.cases import NodeCase, cases_of_model
from onnxspec.conformance.probes.directory import probe_directories
from onnxspec.conformance.probes.stream import tried
from onnxspec.conformance.targets.target import parse_target
from onnxspec.conformance.workers.process import TargetProcess

torch = pytest.importorskip("torch")

WHEELS = Path(os.environ.get("ONNXSPEC_WHEELS", "wheels"))
T, N, I, H = 5, 2, 3, 4


@pytest.fixture(scope="session")
def downloaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By file name, the models of the wheels that tox has downloaded."""
    folder = tmp_path_factory.mktemp("wheels")
    for wheel in WHEELS.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    models = {path.stem: path for path in folder.rglob("*.onnx")}
    assert models, f"no wheel in {WHEELS}"
    return models


def verdicts(model: Path, folder: Path, fed: dict[str, Any] | None = None) -> tuple[list[NodeCase], dict[str, str]]:
    """The nodes of a model, and by case what became of it on onnxruntime."""
    nodes = cases_of_model(model, folder, fed)
    probes = probe_directories([folder])
    assert {probe.id for probe in probes} == {node.case for node in nodes if node.case}
    with TargetProcess(parse_target("onnxruntime")) as process:
        return nodes, {one.probe.id: one.judgement.verdict.value for one in tried(process, probes, "standard")}


def of_one_node(nodes: list[NodeCase]) -> list[NodeCase]:
    """Cases of one node alone: neither of several together nor with what quantizes around it."""
    return [node for node in nodes if node.case and not node.members and "~qdq" not in node.case]


def noise(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32) * np.float32(0.1)


VOICE = {"input": noise(1, 576), "state": noise(2, 1, 128)}
SAMPLED = {**VOICE, "sr": np.array(16000, np.int64)}
# By model: how many recurrent nodes it has, what it is fed, how many of them run with that.
MODELS: dict[str, tuple[int, dict[str, Any], int]] = {
    "silero_vad": (4, SAMPLED, 1),
    "silero_vad_16k_op15": (2, SAMPLED, 1),
    "silero_vad_half": (2, VOICE, 1),
    "silero_vad_16k_sequence": (1, {"input": noise(4, 576), "h": noise(1, 1, 128), "c": noise(1, 1, 128)}, 1),
    "silero_vad_openvino_16k": (1, VOICE, 1),
    "nsnet2-20ms-baseline": (2, {"input": noise(1, 20, 161)}, 2),
    "nsnet2-20ms-48k-baseline": (2, {"input": noise(1, 20, 513)}, 2),
}


def test_there_is_a_model_without_a_recurrent_node(downloaded: dict[str, Path]) -> None:
    assert set(downloaded) == {*MODELS, "silero_vad_op18_ifless"}
    assert check_model(downloaded["silero_vad_op18_ifless"]).nodes == ()


@pytest.mark.parametrize("name", MODELS)
def test_a_deployed_model(downloaded: dict[str, Path], tmp_path: Path, name: str) -> None:
    count, fed, running = MODELS[name]
    result = check_model(downloaded[name])
    assert len(result.nodes) == count
    assert not [problem for problem in result.problems if problem.level is Level.ERROR]
    nodes, drawn = verdicts(downloaded[name], tmp_path / "drawn")
    assert all(node.case for node in nodes)
    assert set(drawn.values()) == {"pass"}
    nodes, flowing = verdicts(downloaded[name], tmp_path / "flowing", fed)
    assert set(flowing.values()) == {"pass"}
    assert len(of_one_node(nodes)) == running


def exported(kind: str, exporter: str, folder: Path, dynamic: bool = False, **options: Any) -> Path:
    module = getattr(torch.nn, kind)(I, H, **options).eval()
    batch = 0 if options.get("batch_first") else 1
    x = torch.randn((N, T, I) if options.get("batch_first") else (T, N, I))
    path = folder / "exported.onnx"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if exporter == "torchscript":
            axes = {"x": {batch: "batch", 1 - batch: "time"}} if dynamic else None
            torch.onnx.export(module, (x,), str(path), dynamo=False, input_names=["x"], dynamic_axes=axes)
        else:
            open_ = torch.export.Dim.AUTO
            shapes = {"input": {0: open_, 1: open_}} if dynamic else None
            torch.onnx.export(module, (x,), str(path), dynamo=True, dynamic_shapes=shapes, external_data=False)
    return path


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(
    "options",
    [{}, {"dynamic": True}, {"bidirectional": True}, {"batch_first": True}, {"num_layers": 2}, {"bias": False}],
    ids=lambda options: "-".join(options) or "plain",
)
def test_what_is_exported_today(tmp_path: Path, exporter: str, kind: str, options: dict[str, Any]) -> None:
    model = exported(kind, exporter, tmp_path, **options)
    result = check_model(model)
    assert not [problem for problem in result.problems if problem.level is Level.ERROR], result.problems
    if not result.nodes:
        assert (exporter, kind) == ("dynamo", "RNN")  # which is taken apart
        return
    nodes, by_case = verdicts(model, tmp_path / "cases")
    assert len(of_one_node(nodes)) == options.get("num_layers", 1)
    assert set(by_case.values()) == {"pass"}


def test_a_projection_is_exported_against_the_document(tmp_path: Path) -> None:
    """initial_c keeps the size that the hidden state has before it is projected."""
    result = check_model(exported("LSTM", "dynamo", tmp_path, proj_size=2))
    assert "lstm.shapes" in {problem.rule for problem in result.problems if problem.level is Level.ERROR}
    assert any("initial_c" in problem.message for problem in result.problems)


class _Noise(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self) -> None:
        self.left = 2

    def get_next(self) -> dict[str, Any] | None:
        self.left -= 1
        return {"input": noise(1, 20, 161)} if self.left >= 0 else None


def test_quantized_models(downloaded: dict[str, Path], tmp_path: Path) -> None:
    plain = downloaded["nsnet2-20ms-baseline"]
    quantize_dynamic(plain, tmp_path / "dynamic.onnx")
    quantize_static(plain, tmp_path / "static.onnx", _Noise(), quant_format=QuantFormat.QDQ)
    for name in ("dynamic", "static"):
        nodes, by_case = verdicts(tmp_path / f"{name}.onnx", tmp_path / name)
        assert len(of_one_node(nodes)) == 2
        assert set(by_case.values()) == {"pass"}
    quantize_dynamic(exported("LSTM", "torchscript", tmp_path), tmp_path / "lstm.onnx", op_types_to_quantize=["LSTM"])
    result = check_model(tmp_path / "lstm.onnx")
    assert [operator for _, operator in result.nodes] == ["com.microsoft::DynamicQuantizeLSTM-1"]
