"""`onnxspec compare` as a user types it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnxspec.conformance.cli.application import main

DATA = Path(__file__).with_name("data")


def compare(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr("sys.argv", ["onnxspec", "compare", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.fixture
def archives(tmp_path: Path) -> tuple[Path, Path]:
    with np.load(DATA / "gru.npz") as archive:
        np.savez(tmp_path / "in.npz", x=archive["in.x"])
        np.savez(tmp_path / "out.npz", output=archive["out.output"])
    return tmp_path / "in.npz", tmp_path / "out.npz"


def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], archives: tuple[Path, Path], tmp_path: Path
) -> None:
    inputs, outputs = archives
    assert compare(monkeypatch, DATA / "gru.onnx", inputs, outputs) == 0
    assert capsys.readouterr().out.startswith("the model computes these results\n")
    np.savez(tmp_path / "other.npz", output=np.zeros((3, 6, 3), np.float32))
    assert compare(monkeypatch, DATA / "gru.onnx", inputs, tmp_path / "other.npz") == 1
    assert capsys.readouterr().out.startswith("the model computes other numbers")
    assert compare(monkeypatch, DATA / "gru.onnx", outputs, outputs) == 2
    assert capsys.readouterr().err == "onnxspec: the model has no input output; it has x\n"
    (tmp_path / "broken.npz").write_bytes(b"PK")
    assert compare(monkeypatch, DATA / "gru.onnx", tmp_path / "broken.npz", outputs) == 2
