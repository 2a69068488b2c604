"""Tests of the pages of findings: their content, their omissions, and corrupt run directories."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from onnxspec.reports.evidence import Tile
from onnxspec.reports.finding_page import times_words
from onnxspec.reports.findings import in_words
from onnxspec.reports.page import write_report

from .conftest import KNOWN_CASE, NEW_CASE, Page, add_evidence, editing, exhibit, pages, result, run_of


def test_a_finding_is_told_from_its_clause_to_its_files(shown: Path, tmp_path: Path) -> None:
    page = pages(tmp_path / "report", shown)[0]
    whole = " ".join(page.whole.split())
    for words in (
        "input_forget keeps the input gate where the document keeps the forget gate",
        "With input_forget set, the input gate is 1 minus the forget gate.",
        "stated: the document says so",
        "It is not on the list of known failures, so it fails the run.",
        NEW_CASE,
        "Y, Y_h, Y_c = LSTM <hidden_size: int = 3> (X, W, R)",
        "LSTM-14 in a model of opset 14; outputs requested: Y, Y_h, Y_c.",
        "The session runs other data first, X of shape 4 \u00d7 2 \u00d7 5.",
        "-1 to 1, 2 not finite",
        "Leaves out clip.",
        "a warning of the runtime",
        "First wrong value at step 2 (reverse direction, row 1):",
        "Y[2, 0, 1, 0] is 0.51, expected 0.5 \u00b1 1e-07: 250 times the error bound.",
        "unit 0. Padding values other than zero (allowed): 2.",
        f"onnxspec run --target onnxruntime --case {NEW_CASE}",
        "3 cases in the table of results",
    ):
        assert words in whole, words
    assert page.open == []


@pytest.mark.parametrize(("element", "same"), [("Y[2, 0, 1, 0]", True), ("Y_h[0, 0, 1]", False)])
def test_numbers_of_another_run_than_the_message_are_said_to_be(shown: Path, element: str, same: bool) -> None:
    """The evidence of an unstable case may be of a later run."""
    with editing(shown) as info:
        info["targets"][0]["findings"][1]["message"] = f"{element} is 0.6, must be 0.5"
    text = " ".join(pages(shown / "report", shown)[0].whole.split())
    assert f"{element} is 0.6, must be 0.5" in text
    other = "of another run of this case, which had this message: Y[2, 0, 1, 0] is 0.51, must be 0.5"
    assert (other in text) is not same


def test_levels_are_told_as_levels(sample: Path, tmp_path: Path) -> None:
    content = exhibit(NEW_CASE, codecs={"X": "uint8, scale 0.5, zero point 3", "Y": "uint8, scale 0.25, zero point 9"})
    content["numbers"]["parting"] |= {"must": 149.0, "within": 1.45, "got": 159.0, "ratio": 6.9, "levels": True}
    add_evidence(sample, {NEW_CASE: content})
    text = " ".join(pages(tmp_path / "report", sample)[0].whole.split())
    for words in (
        "Y[2, 0, 1, 0] is level 159, expected 148 to 150: 9 levels off.",
        "Levels",
        "scale 0.5, zero point 3",
        "Of the outputs Y is uint8, scale 0.25, zero point 9.",
        "one level off is 2.2",
    ):
        assert words in text, words
    # The same case has an output without levels: its values are shown as numbers.
    assert re.search(r"Y_h\[0, 1, 0\]\s*0.5\s*1e-07\s*0.51", text)


def test_its_pictures_are_tables_with_words(shown: Path, tmp_path: Path) -> None:
    page = pages(tmp_path / "report", shown)[0]
    tiles = [
        attrs
        for attrs in page.all("td")
        if str(attrs.get("class")).split()[0] in ("b0", "b1", "b2", "b3", "b4", "none")
    ]
    assert len(tiles) == 4 * 3 + 4 * 2  # units and rows over steps
    assert all(attrs["title"] for attrs in tiles)
    assert sum(attrs["class"] == "b3" for attrs in tiles) == 2
    assert sum(attrs["class"] == "b4 past" and attrs["title"] == "padding, not zero" for attrs in tiles) == 2
    assert sum(attrs["class"] == "none" for attrs in tiles) == 1  # an element that is not judged
    assert not any("style" in attrs or any(name.startswith("on") for name in attrs) for _, attrs in page.elements)


def test_its_files_travel_with_the_report(shown: Path, tmp_path: Path) -> None:
    out = tmp_path / "report"
    page = pages(out, shown)[0]
    shutil.rmtree(shown)
    links = [str(attrs["href"]) for attrs in page.all("a") if "download" in attrs]
    names = ["script.py", "model.onnx", "test_data_set_0/input_0.pb", "evidence.json"]
    assert links == [f"files/01-1/{name}" for name in names]
    assert all((out / "findings" / link).is_file() for link in links)


def test_the_first_page_leads_to_every_finding_and_back(shown: Path, tmp_path: Path) -> None:
    out = tmp_path / "report"
    opened = pages(out, shown)
    first = Page(out / "index.html")
    links = {str(a["href"]) for a in first.all("a") if str(a["href"]).startswith("findings/")}
    assert links == {f"findings/{path.name}" for path in (out / "findings").glob("*.html")}
    ids = {str(attrs.get("id")) for _, attrs in first.elements}
    for number, page in enumerate(opened, 1):
        back = [str(attrs["href"]) for attrs in page.all("a")]
        assert f"../index.html#finding-{number}" in back
        assert f"finding-{number}" in ids
        for link in back:
            assert (
                link.startswith(("#", "../index.html", "files/", "https://onnx.ai/"))
                or (out / "findings" / link).is_file()
            ), link


def test_without_evidence_the_page_says_so_and_a_crash_shows_what_the_runtime_said(
    sample: Path, tmp_path: Path
) -> None:
    add_evidence(sample, {}, missing={NEW_CASE: "OSError: no room"})
    first, second, *_ = pages(tmp_path / "report", sample)
    assert "The run has no evidence of this case: OSError: no room. The command above shows them." in first.whole
    assert "The run has no evidence of this case, so its values cannot be shown here." in second.whole
    process = {"status": "crashed", "phase": "", "signal": "SIGABRT", "captured": "terminate called"}
    content = {name: value for name, value in exhibit(NEW_CASE, process=process).items() if name != "numbers"}
    add_evidence(sample, {NEW_CASE: content})
    text = " ".join(pages(tmp_path / "report", sample)[0].whole.split())
    for words in (
        "Its process was ended by SIGABRT.",
        "terminate called",
        "No output came back, so there are no values to compare.",
    ):
        assert words in text


def test_a_larger_case_stands_beside_a_tiny_one(sample: Path, tmp_path: Path) -> None:
    add_evidence(sample, {c: exhibit(c) for c in (NEW_CASE, KNOWN_CASE)}, larger={NEW_CASE: KNOWN_CASE})
    page = pages(tmp_path / "report", sample)[0]
    assert "Larger case, which shows the pattern" in page.whole
    assert KNOWN_CASE in page.whole
    ids = [str(attrs["id"]) for _, attrs in page.elements if attrs.get("id")]
    assert len(ids) == len(set(ids))


def test_the_same_finding_on_two_targets_has_one_page(shown: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    shutil.copytree(shown, second)
    opened = pages(tmp_path / "report", shown, second)
    assert len(opened) == 4
    assert "Smallest case on onnxruntime in run" in opened[0].whole
    assert "Smallest case on onnxruntime in second" in opened[0].whole
    assert (tmp_path / "report" / "findings" / "files" / "01-2" / "script.py").is_file()


def test_findings_of_an_earlier_report_go_but_nothing_else(shown: Path, tmp_path: Path) -> None:
    out = tmp_path / "report"
    pages(out, shown)
    assert pages(out, run_of(tmp_path / "clean", [result("a")], [])) == []
    (tmp_path / "mine" / "findings").mkdir(parents=True)
    (tmp_path / "mine" / "findings" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError):
        write_report([shown], tmp_path / "mine")
    assert (tmp_path / "mine" / "findings" / "thesis.txt").read_text() == "years of work"


@pytest.mark.long
@pytest.mark.parametrize("value", [None, "x", [[[1]]], [{"a": {}}], ["inf", "nan"]], ids=repr)
def test_any_value_in_any_field_of_evidence_is_survived(sample: Path, tmp_path: Path, value: Any) -> None:
    whole = exhibit(NEW_CASE)
    spoiled = [whole | {name: value} for name in whole if name != "schema"]
    spoiled += [whole | {"numbers": whole["numbers"] | {name: value}} for name in whole["numbers"]]
    for part in ("gates", "plane", "rows", "parting"):
        inner = whole["numbers"][part]
        spoiled += [whole | {"numbers": whole["numbers"] | {part: inner | {name: value}}} for name in inner]
    gates = whole["numbers"]["gates"]
    for name in gates["lines"][0]:
        lines = [gates["lines"][0] | {name: value}, *gates["lines"][1:]]
        spoiled.append(whole | {"numbers": whole["numbers"] | {"gates": gates | {"lines": lines}}})
    add_evidence(sample, {NEW_CASE: whole})
    place = sample / "evidence" / "t0" / "0" / "evidence.json"
    for content in spoiled:
        place.write_text(json.dumps(content), encoding="utf-8")
        assert len(pages(tmp_path / "report", sample)) == 4


def test_nothing_outside_the_run_is_read(sample: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "evidence.json").write_text(json.dumps(exhibit(NEW_CASE)), encoding="utf-8")
    (tmp_path / "secret").write_text("a secret")
    add_evidence(sample, {KNOWN_CASE: exhibit(KNOWN_CASE)})
    folder = sample / "evidence" / "t0" / "0"
    (folder / "script.py").unlink()
    (folder / "script.py").symlink_to(tmp_path / "secret")
    (folder / "page.html").write_text("<script>alert(1)</script>")
    (folder / "test_data_set_1").symlink_to(tmp_path, target_is_directory=True)
    (sample / "linked").symlink_to(outside, target_is_directory=True)
    for folder_name in ("../outside", str(outside), "linked", "", "..", ".", "evidence/t0/nothing"):
        with editing(sample) as info:
            info["targets"][0]["evidence"]["folders"][NEW_CASE] = folder_name
        first, second, *_ = pages(tmp_path / "report", sample)
        assert "has no evidence" in first.whole, folder_name
        assert "Expected and reported values" in second.whole
    files = {p.name for p in (tmp_path / "report" / "findings" / "files").rglob("*") if p.is_file()}
    assert files == {"model.onnx", "input_0.pb", "evidence.json"}


def test_an_exhibit_that_is_too_large_or_of_another_form_is_left_alone(sample: Path, tmp_path: Path) -> None:
    add_evidence(sample, {NEW_CASE: exhibit(NEW_CASE, schema=2)})
    path = sample / "evidence" / "t0" / "0" / "evidence.json"
    for content in (None, "{", "[]", "[" * 100_000):
        if content is not None:
            path.write_text(content)
        assert "has no evidence" in pages(tmp_path / "report", sample)[0].whole
    os.truncate(path, 9 << 20)
    assert "has no evidence" in pages(tmp_path / "report", sample)[0].whole


def test_titles_for_people() -> None:
    assert in_words("wrong (value) with short row", "wrong", "value") == "Wrong values with short row"
    assert in_words("crashed with no rows", "crashed", "") == "The process dies with no rows"
    assert in_words("refuses float64", "unsupported", "load") == "Refuses float64"
    assert in_words("refuses, saying: no way", "unsupported", "load") == "Refuses, saying: no way"
    assert in_words("wrong turns", "wrong", "value") == "Wrong turns"
    placed = "wrong (value), only in the last unit (with 2 units or more)"
    assert in_words(placed, "wrong", "value") == "Wrong values, only in the last unit (with 2 units or more)"
    assert in_words("input_forget is kept", "wrong", "value") == "input_forget is kept"
    title = "Values past a sequence's length that break a convention"
    assert in_words("breaks a convention (padding)", "pass", "padding") == title


def test_ratios_in_few_characters() -> None:
    tiles = [Tile(ratio, padding=False) for ratio in (None, 0.0, 0.01, 0.51, 1.0, 1.04, 250.4, 3.2e5, float("inf"))]
    assert [tile.text for tile in tiles] == ["", "0", "<.1", "0.51", "1", "1", "250", "3.2e5", "\u221e"]
    assert [tile.band for tile in tiles] == ["none", "b0", "b0", "b1", "b1", "b2", "b3", "b4", "b4"]
    words = [times_words(v) for v in (250.0, 12345.0, 2e9, float("nan"))]
    bound = "times the error bound"
    assert words == [
        f"250 {bound}",
        f"12,000 {bound}",
        f"more than a billion {bound}",
        "more than any error bound allows",
    ]
