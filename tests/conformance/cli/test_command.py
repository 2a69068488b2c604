"""Options and output that commands share; foreign text in output forges no line and fills no screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxspec.conformance.cli.command import targets_of
from onnxspec.conformance.cli.terminal import LINE, say
from onnxspec.conformance.targets.target import TargetError


def test_foreign_text_stays_in_the_line_that_it_is_part_of(capsys: pytest.CaptureFixture[str]) -> None:
    say("  NEW    a\n1000 pass\x1b[2J\u202e", "       " + "n" * 100_000, "")
    first, second, third, rest = capsys.readouterr().out.split("\n")
    assert first == "  NEW a 1000 pass\\x1b[2J\\u202e"
    assert len(second) < LINE + 20
    assert second.endswith(" ...")
    assert third == rest == ""


def test_what_is_a_readable_line_is_said_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["", "  gone   clip [red] :smile:  two blanks", "/" + "folder/" * 100, "n" * LINE]
    say(*lines)
    assert capsys.readouterr().out == "".join(f"{line}\n" for line in lines)


def test_wildcards_name_tables_of_a_targets_file(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text("".join(f"[{name}]\nadapter = 'onnxruntime'\n" for name in ("board-1", "desk", "board-2")))
    assert [target.name for target in targets_of(["board-*", "board-1"], file)] == ["board-1", "board-2"]
    assert len(targets_of(["*"], file)) == 3
    with pytest.raises(TargetError, match=r"unknown target 'rack-\*'"):
        targets_of(["rack-*"], file)
