"""What quantizing costs: computed by the references, compared with runtimes and with quantizers of others."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper

from onnxspec.cases import CaseSpec, build_case, case_text, profile
from onnxspec.cases.operators import costs, plans
from onnxspec.cases.operators.extended_lstm import NotQuantizable
from onnxspec.conformance.cli import main

LSTM = CaseSpec("LSTM", 14, direction="bidirectional", bias=True, weights="initializer", T=5, N=2, I=4, H=6)
GRU = CaseSpec("GRU", 22, lengths="ragged", layout=1, T=5, N=3, I=4, H=6)


def of(spec: CaseSpec) -> tuple[Any, Any]:
    trial = build_case(spec).trial
    return trial.node, trial.feeds[-1].inputs


def test_more_bits_cost_less_and_what_cannot_be_gone_is_said() -> None:
    lstm = {road.name: road for road in costs(*of(LSTM))}
    assert list(lstm)[:5] == ["QDQ u8", "QDQ s8", "QDQ u16", "QDQ s16", "DynamicQuantizeLSTM"]
    for name in ("u", "s"):
        assert 0 < 64 * lstm[f"QDQ {name}16"].rms < lstm[f"QDQ {name}8"].rms < 0.05
        assert len(lstm[f"QDQ {name}8"].steps) == LSTM.T
        assert max(lstm[f"QDQ {name}8"].steps) == lstm[f"QDQ {name}8"].largest
    assert lstm["ExtendedLSTM, as documented"].rms < lstm["DynamicQuantizeLSTM"].rms < 0.05
    gru = {road.name: road for road in costs(*of(GRU))}
    assert gru["DynamicQuantizeLSTM"].note == "GRU has no such operator"
    assert gru["DynamicQuantizeLSTM"].steps == ()
    assert "takes LSTM, not GRU" in gru["ExtendedLSTM, as shipped"].note
    assert 0 < gru["QDQ u16"].largest < 1e-3


def test_what_has_no_ranges_is_refused() -> None:
    node, inputs = of(LSTM)
    with pytest.raises(NotQuantizable, match="not finite"):
        costs(node, {**inputs, "X": np.full_like(inputs["X"], np.nan)})
    with pytest.raises(NotQuantizable, match="X is float64: costs are told of float32 nodes"):
        costs(*of(replace(LSTM, type="float64")))
    levels = next(iter(profile("smoke", "DynamicQuantizeLSTM", 1)))
    with pytest.raises(NotQuantizable, match=r"W is u?int8, quantized already: costs"):
        costs(*of(levels))


def test_weights_are_quantized_as_a_real_quantizer_does(tmp_path: Path) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    (tmp_path / "float.onnx").write_bytes(build_case(LSTM).trial.model)
    logging.disable(logging.WARNING)
    try:
        quantization.quantize_dynamic(tmp_path / "float.onnx", tmp_path / "dynamic.onnx")
    finally:
        logging.disable(logging.NOTSET)
    graph = onnx.load(tmp_path / "dynamic.onnx").graph
    theirs = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    ours = plans(*of(LSTM))[-1].inputs
    for name in ("W", "R"):
        assert np.abs(theirs[f"{name}_quantized"].astype(int) - ours[name]).max() <= 1


def run(capsys: Any, monkeypatch: Any, *words: object) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["onnxspec", "quantize", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    return int(ended.value.code or 0), shown.out, shown.err


def test_the_command_on_a_case(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    words = (case_text(LSTM), "--picture", tmp_path / "roads.svg", "--out", tmp_path / "models")
    code, out, _ = run(capsys, monkeypatch, *words)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if " dB" in line] == ["QDQ"] * 4 + [
        "DynamicQuantizeLSTM",
        *["ExtendedLSTM,"] * 2,
    ]
    picture = (tmp_path / "roads.svg").read_text()
    assert picture.count("<polyline") == 7
    written = {file.stem for file in (tmp_path / "models").iterdir()}
    assert written == {"qdq-u8", "qdq-s8", "qdq-u16", "qdq-s16", "extended-lstm"}
    # The model that is written is the one that the cost is of.
    session = ort.InferenceSession(tmp_path / "models" / "qdq-u8.onnx", providers=["CPUExecutionProvider"])
    (plan, *_) = plans(*of(LSTM))
    (given,) = session.get_inputs()
    codec = {i.name: i for i in onnx.load(tmp_path / "models" / "qdq-u8.onnx").graph.initializer}
    levels = session.run(["Y"], {given.name: plan.inputs["X"]})[0]
    scale, zero = (numpy_helper.to_array(codec[f"Y_{part}"]) for part in ("scale", "zero_point"))
    assert np.abs((levels.astype(float) - zero) * scale - plan.Y()).max() <= scale * 1.001


def test_the_command_on_a_model_and_on_nonsense(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    (tmp_path / "float.onnx").write_bytes(build_case(LSTM).trial.model)
    np.savez(tmp_path / "data.npz", X=build_case(LSTM).trial.feeds[0].fed["X"])
    words = [tmp_path / "float.onnx", "--inputs", tmp_path / "data.npz", "--format", "json"]
    code, out, _ = run(capsys, monkeypatch, *words)
    assert code == 0
    (node,) = json.loads(out)
    assert (node["operator"], node["data"]) == ("LSTM-14", "your data")
    expected = costs(*of(LSTM))
    assert [road["largest"] for road in node["roads"]] == pytest.approx([road.largest for road in expected])
    for words, complaint in (
        (["lstm-99"], "unknown case"),
        ([tmp_path / "none.onnx"], "none.onnx"),
        (['{"op":"LSTM","version":14,"type":"float64"}'], "no node that can be quantized"),
        (['{"op":"LSTM","version":14}', "--format", "xml"], "--format is text or json"),
    ):
        code, _, err = run(capsys, monkeypatch, *words)
        assert (code, complaint in err) == (2, True), err
        assert "Traceback" not in err
