"""One table holds the words for verdicts, reasons, flags and kinds of findings; the documents use the same words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from onnxspec.conformance.judging.judgement import FAILING, Verdict
from onnxspec.conformance.judging.vocabulary import (
    FLAGS,
    NO_FAILURE,
    STATES,
    STATUS_WORDS,
    VERDICTS,
    happening,
    outcome_text,
    word,
)
from onnxspec.reference.documents.clauses import STATUSES

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """Return the table below a heading of docs/results.md, as cells by each name in the first column."""
    text = DOCUMENT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {name: [cell.strip() for cell in row] for row in cells for name in re.findall(r"`([^`]+)`", row[0])}


def test_every_verdict_has_its_word_and_stands_in_the_document() -> None:
    assert set(VERDICTS) == {verdict.value for verdict in Verdict} == set(rows("Verdicts"))
    for name, row in rows("Verdicts").items():
        assert word(name).failing == (Verdict(name) in FAILING) == (row[1] == "fails"), name


def test_reasons_and_flags_stand_in_the_document() -> None:
    table = rows("Reasons")
    for name, words in VERDICTS.items():
        for reason in filter(None, words.happens):
            assert reason in table, reason
            assert f"`{name}`" in table[reason][1], (name, reason)
    assert set(FLAGS) <= set(rows("Flags"))


def test_kinds_that_fail_no_case_stand_in_the_document() -> None:
    (kinds,) = re.findall(r"^\| `kind` \|.*those that fail no case: (.*)$", DOCUMENT, re.MULTILINE)
    assert [name for name in re.findall(r"`([a-z-]+)`", kinds) if name not in VERDICTS] == list(NO_FAILURE)


@pytest.mark.parametrize(
    ("verdict", "reason", "words", "outcome"),
    [
        ("wrong", "value", "Wrong values", "wrong (Wrong values)"),
        ("crashed", "run", "The process dies", "crashed (The process dies)"),
        ("crashed", "companion", "The process dies where all outputs are asked for", None),
        ("unsupported", "load", "", "unsupported"),
        ("of tomorrow", "value", "", "of tomorrow"),
    ],
)
def test_what_happens_is_told_by_verdict_and_reason(verdict: str, reason: str, words: str, outcome: str | None) -> None:
    assert happening(verdict, reason) == words
    assert outcome is None or outcome_text(verdict, reason) == outcome


def test_nobody_has_words_of_his_own() -> None:
    phrases = [*FLAGS.values(), *NO_FAILURE.values(), *STATUS_WORDS.values()]
    phrases += [text for entry in VERDICTS.values() for text in (entry.meaning, *entry.happens.values())]
    phrases += [f'{state}"' for state in STATES.values() if " " in state]
    begins = [f'"{phrase.casefold().rstrip(".")}' for phrase in phrases]
    for package in (ROOT / "conformance", ROOT / "reports"):
        for path in package.rglob("*.*"):
            if path.suffix in (".py", ".html", ".toml") and path.name != "vocabulary.py":
                text = path.read_text(encoding="utf-8").casefold()
                assert not [begin for begin in begins if begin in text], path


def test_every_status_of_a_clause_has_its_words() -> None:
    assert set(STATUS_WORDS) == set(STATUSES)
    table = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    for status, words in STATUS_WORDS.items():
        (cell,) = re.findall(rf"^\| `{status}` \| ([^|]*) \|", table, re.MULTILINE)
        assert cell.startswith(words.partition(",")[0]), status


def test_a_verdict_of_another_version_claims_nothing() -> None:
    unknown = word("of tomorrow")
    assert (unknown.verdict, unknown.failing, unknown.has_numbers) == ("of tomorrow", False, False)


def test_what_is_lost_is_as_red_as_what_fails() -> None:
    colours = {name: entry.colour for name, entry in VERDICTS.items()}
    lost = {"unavailable", "not-run", "not-judged"}
    assert {name for name in colours if colours[name] == "red"} == {verdict.value for verdict in FAILING} | lost
    assert (colours["pass"], colours["unsupported"], colours["fallback"]) == ("green", "yellow", "yellow")
