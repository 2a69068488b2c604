"""Commands end with the codes of docs/exit-codes.md; a command that cannot be carried out is answered in one line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxspec.conformance.cli.application import COMMANDS

from ..checking.nodes import model_of, one_node
from ..miniatures import Inside

TABLE = Path(__file__).parents[3] / "docs" / "exit-codes.md"
WRONG = (
    '{"op":"GRU","version":14,"T":3,"N":2,"I":2,"H":2,"lengths":"ragged","linear_before_reset":1,"outputs":["Y","Y_h"]}'
)
REFERENCE = ("--target", "onnx-reference", "--expected", "none", "--no-extra")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Return the files of a folder: models, arrays, and two folders, one with somebody's work and one with a run."""
    onnx.save(one_node("LSTM", 14), tmp_path / "right.onnx")
    onnx.save(one_node("LSTM", 14, direction="sideways"), tmp_path / "invalid.onnx")
    onnx.save(model_of([helper.make_node("Neg", ["X"], ["Y"])], {"X": (1,)}, {}), tmp_path / "plain.onnx")
    np.savez(tmp_path / "data.npz", X=np.zeros(1, np.float32))
    for name, content in (("held/thesis.tex", "years"), ("old/results.jsonl", "no JSON")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(content)
    return sorted(tmp_path.rglob("*"))


def named(value: object) -> str:
    """Return the id of a command in a table: its words, of which none is long."""
    return " ".join(word[:24] for word in value) if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, ("run", "--case", WRONG, "--out", "right")),
        (1, ("run", "--case", WRONG, *REFERENCE, "--out", "wrong")),
        (3, ("run", "--case", WRONG, "--target", "backend:nowhere", "--out", "o")),
        (0, ("run", "right.onnx", "--out", "o")),
        (0, ("explain", WRONG)),
        (2, ("explain", "lstm-14.float32.")),
        (3, ("explain", WRONG, "--target", "backend:nowhere")),
        (3, ("fuzz", "--target", "backend:nowhere", "--examples", "1")),
        (0, ("check", "right.onnx")),
        (1, ("check", "invalid.onnx")),
        (2, ("check", "nowhere.onnx")),
        (0, ("list", "--profile", "smoke", "--op", "RNN-14")),
        (0, ("clauses", "RNN")),
        (0, ("generate", "--out", "cases", "--case", WRONG, "--all")),
        (1, ("generate", "--out", "cases", "--op", "GRU-14", "--type", "float32", "--case", "*illegal-outputs*")),
    ],
    ids=named,
)
def test_a_command_ends_with_its_code(inside: Inside, files: list[Path], code: int, words: tuple[str, ...]) -> None:
    done = inside(*words)
    assert done.code == code, done.err
    if code == 3 or "nowhere" in " ".join(words):
        assert "nowhere" in done.err + done.out


FEW = ("--profile", "smoke", "--op", "LSTM-14", "--type", "float32")
IMPOSSIBLE: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("run", "--target", "onnxruntim"), ("'onnxruntim'", "onnxruntime")),
    (
        ("run", "--target", "onnxruntime:CUDAExecutionProvder"),
        ("CUDAExecutionProvder", "onnxruntime:CUDAExecutionProvider"),
    ),
    (("run", "--target", "backend:a b;c"), ("'backend:a b;c'", "backend:package.module")),
    (("run", "--target", "\u2603[bold]\x1b"), ("\u2603[bold]\\x1b", "onnxruntime")),
    (("run", "--target", ""), ("''", "onnxruntime")),
    (("run", "--target", "onnx-reference+optimized"), ("has no lane +optimized",)),
    (("run", "--targets-file", "nowhere.toml"), ("nowhere.toml",)),
    (("run", "--profile", "cor"), ("'cor'", "core")),
    (("run", "--op", "LTSM"), ("'LTSM'", "LSTM")),
    (("run", "--op", "lstm"), ("'lstm'", "LSTM")),
    (("run", "--op", "LSTM-15"), ("'15'", "14")),
    (("run", "--op", "LSTM-fourteen"), ("'LSTM-fourteen'", "LSTM")),
    (("run", "--op", "LSTM-7", "--op", "GRU-14"), ("LSTM-7, GRU-14", "run them one after another")),
    (("run", "--op", "LSTM-7", "--op", "GRU"), ("LSTM-7, GRU", "run them one after another")),
    (("run", "--random", "0"), ("'0'", "N:SEED")),
    (("run", "--random", "ten"), ("'ten'", "N:SEED")),
    (("run", "--type", "fp32"), ("'fp32'", "float32")),
    (("run", "--type", "Float64"), ("'Float64'", "float64")),
    (("run", "--type", "bfloat16", "--op", "LSTM-14"), ("'LSTM-14:bfloat16'", "LSTM-22:bfloat16")),
    (("run", *FEW, "--require", "LSTM-22:bfloat16"), ("'LSTM-22:bfloat16'", "LSTM-14:float32")),
    (("run", *FEW, "--require", "LSTM14:float32"), ("'LSTM14:float32'", "LSTM-14:float32")),
    (
        ("run", "--profile", "smoke", "--target", "onnxruntime", "--target", "quark", "--type", "float16"),
        ("about ExtendedLSTM, which quark is for",),
    ),
    (("run", "--case", "nothing"), ("unknown case 'nothing'",)),
    (("run", "--case", WRONG, "--shard", "2/2"), ("fewer cases than shards",)),
    (("run", "--case", WRONG, "--shard", "8"), ("like 2/8",)),
    (("run", "--case", WRONG, "--out", "old"), ("already holds a run",)),
    (("run", "--case", WRONG, "--junit", "none/file"), ("there is no such folder",)),
    (("run", "--case", WRONG, "--out", "/proc/nowhere"), ("cannot keep results", "/proc/nowhere")),
    (("run", "--case", WRONG, "--out", "data.npz/below"), ("cannot keep results", "data.npz/below")),
    (("run", "--case", WRONG, "--out", "n" * 300), ("cannot keep results", "n" * 200)),
    (("run", "--resume"), ("--resume", "--out")),
    (("run", "--taget", "onnxruntime"), ("--taget", "--target")),
    (("run", "--out"), ("--out",)),
    (("run", "plain.onnx", "--out", "o"), ("onnxspec: plain.onnx has no recurrent node",)),
    (("run", "data.npz", "--out", "o"), ("onnxspec: data.npz is no ONNX model",)),
    (
        ("run", "right.onnx", "--inputs", "right.onnx", "--out", "o"),
        ("onnxspec: right.onnx holds no arrays of numbers",),
    ),
    (("run", "right.onnx", "--inputs", "none.npz", "--out", "o"), ("onnxspec: none.npz cannot be read",)),
    (("run", "right.onnx", "--profile", "core"), ("onnxspec: MODEL runs in place of a profile",)),
    (("run", "right.onnx", "--case", "."), ("onnxspec: MODEL and --case name",)),
    (("run", "nowhere.onnx", "--out", "o"), ("onnxspec: nowhere.onnx does not exist",)),
    (("run", "."), ("onnxspec: . is a folder: --case ./ runs",)),
    (("run", "--keep", "kept"), ("onnxspec: --inputs and --keep belong to a model",)),
    (("merge", "nowhere", "--out", "m"), ("nowhere: no such directory",)),
    (("merge", "."), ("--out",)),
    (("report", "nowhere"), ("--out",)),
    (("report", "nowhere", "--out", "o"), ("no run could be read, so there is nothing to report",)),
    (("site", "nowhere"), ("--out",)),
    (("site", "nowhere", "--out", "pages"), ("nowhere: no such directory",)),
    (("diff", "nowhere", "nowhere"), ("nowhere: no such directory",)),
    (("explain", "nothing"), ("unknown case 'nothing'",)),
    (("explain", "./nowhere"), ("nowhere",)),
    (("certify", "nowhere", "--product", "p", "--vendor", "v", "--out", "p.zip"), ("nowhere",)),
    (("verify", "nowhere.zip"), ("nowhere.zip",)),
    (("prove", "--op", "nothing"), ("unknown operator 'nothing'",)),
    (("fuzz", "--target", "nothing"), ("unknown target 'nothing'",)),
    (("fuzz", "--examples", "0"), ("N:SEED; not '0'",)),
    (("fuzz", "--op", "GRU", "--examples", "4:1", "--out", "old"), ("already holds a run",)),
    (
        ("fuzz", "--op", "GRU-14", "--type", "bfloat16"),
        ("unknown combination 'GRU-14:bfloat16'; nearest: GRU-22:bfloat16",),
    ),
    (("check",), ("no model is given",)),
    (("check", "right.onnx", "--format", "xml"), ("'xml'",)),
    (("check", "right.onnx", "--measured", "none"), ("none",)),
    (("list", "--op", "nothing"), ("unknown operator 'nothing'",)),
    (("list", "--op", "LSTM-13"), ("; a model of opset 13 holds LSTM-7",)),
    (("list", "--op", "GRU-4"), ("; a model of opset 4 holds GRU-3",)),
    (("list", "--nothing"), ("--nothing",)),
    (("clauses", "GRU-2"), ("unknown operator 'GRU-2'; nearest: GRU-22, GRU-7, GRU-3",)),
    (("targets", "--targets-file", "nowhere.toml"), ("nowhere.toml",)),
    (("generate",), ("--out",)),
    (("generate", "--out", "held", "--case", WRONG), ("held",)),
]


@pytest.mark.parametrize(("words", "texts"), IMPOSSIBLE, ids=named)
def test_what_cannot_be_done_is_answered_in_one_line_and_changes_nothing(
    inside: Inside, tmp_path: Path, files: list[Path], words: tuple[str, ...], texts: tuple[str, ...]
) -> None:
    done = inside(*words)
    (line,) = [line for line in done.err.splitlines() if not line.startswith(("random cases", "warning: "))]
    assert (done.code, done.out) == (2, "")
    assert [text for text in texts if text not in line] == []
    assert sorted(tmp_path.rglob("*")) == files


def test_every_command_is_in_the_table() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    listed = {name.split()[0] for row in rows for name in re.findall("`([^`]*)`", row)}
    assert listed == set(COMMANDS)
