"""The table of docs/exit-codes.md: commands end with the documented codes."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest

from onnxspec.conformance.cli.application import COMMANDS

from ..checking.nodes import one_node
from ..miniatures import Inside

TABLE = Path(__file__).parents[3] / "docs" / "exit-codes.md"
WRONG = (
    '{"op":"GRU","version":14,"T":3,"N":2,"I":2,"H":2,"lengths":"ragged","linear_before_reset":1,"outputs":["Y","Y_h"]}'
)
REFERENCE = ("--target", "onnx-reference", "--expected", "none", "--no-extra")
RUN = ("run", "--case", WRONG, *REFERENCE, "--out", "wrong")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, ("run", "--case", WRONG, "--out", "right")),
        (1, RUN),
        (2, ("run", "--case", "nothing")),
        (2, ("run", "--out", "held", "--case", WRONG)),
        (3, ("run", "--case", WRONG, "--target", "backend:nowhere", "--out", "o")),
        (0, ("run", "right.onnx", "--out", "o")),
        (2, ("run", "nowhere.onnx")),
        (2, ("merge", "nowhere", "--out", "m")),
        (2, ("report", "nowhere", "--out", "page")),
        (2, ("report", "--out", "page")),
        (2, ("diff", "nowhere", "nowhere")),
        (2, ("site", "nowhere", "--out", "pages")),
        (0, ("explain", WRONG)),
        (2, ("explain", "nothing")),
        (2, ("explain", "./nowhere")),
        (3, ("explain", WRONG, "--target", "backend:nowhere")),
        (2, ("certify", "nowhere", "--product", "p", "--vendor", "v", "--out", "p.zip")),
        (2, ("verify", "nowhere.zip")),
        (2, ("prove", "--op", "nothing")),
        (2, ("fuzz", "--target", "nothing")),
        (2, ("fuzz", "--examples", "0")),
        (3, ("fuzz", "--target", "backend:nowhere", "--examples", "1")),
        (0, ("check", "right.onnx")),
        (1, ("check", "invalid.onnx")),
        (2, ("check", "nowhere.onnx")),
        (2, ("check",)),
        (2, ("check", "right.onnx", "--format", "xml")),
        (0, ("list", "--profile", "smoke", "--op", "RNN-14")),
        (2, ("list", "--op", "nothing")),
        (0, ("clauses", "RNN")),
        (2, ("clauses", "nothing")),
        (2, ("targets", "--targets-file", "nowhere.toml")),
        (0, ("generate", "--out", "cases", "--case", WRONG, "--all")),
        (1, ("generate", "--out", "cases", "--op", "GRU-14", "--type", "float32", "--case", "*illegal-outputs*")),
        (2, ("generate", "--out", "held", "--case", WRONG)),
        (2, ("list", "--nothing")),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else str(value),
)
def test_a_command_ends_with_its_code(inside: Inside, tmp_path: Path, code: int, words: tuple[str, ...]) -> None:
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "thesis.tex").write_text("years")
    onnx.save(one_node("LSTM", 14), tmp_path / "right.onnx")
    onnx.save(one_node("LSTM", 14, direction="sideways"), tmp_path / "invalid.onnx")
    done = inside(*words)
    assert done.code == code, done.err
    if code == 2:
        assert "Traceback" not in done.err
        assert done.err or done.out


def test_every_command_is_in_the_table() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    listed = {name.split()[0] for row in rows for name in re.findall("`([^`]*)`", row)}
    assert listed == set(COMMANDS)
