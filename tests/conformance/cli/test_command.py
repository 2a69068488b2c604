"""Output of commands for people: foreign text in it forges no line and fills no screen."""

from __future__ import annotations

import pytest

from onnxspec.conformance.cli.terminal import LINE, say


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
