"""A run's page from its HTML and its data, without a browser, and its size for large runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from onnxspec.conformance.judging.judgement import FAILING, Verdict
from onnxspec.conformance.judging.vocabulary import STATES
from onnxspec.conformance.results.sections import sections_of
from onnxspec.conformance.results.summary import summary_of
from onnxspec.reports.matrix import STATE_TONES, tone_of
from onnxspec.reports.page import write_report

from .conftest import Page, cases, finding, report, result, run_of, sample_info, sample_results, write_run

DOCUMENT = "https://onnx.ai/onnx/operators/onnx__LSTM.html"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Return the page of the sample, made once."""
    folder = tmp_path_factory.mktemp("sample")
    made, messages = report(folder / "report", run_of(folder / "run", sample_results()))
    assert messages == []
    return made


def test_a_stranger_reads_what_was_tested_and_what_does_not_hold(page: Page) -> None:
    answer = page.text("answer")
    assert "onnxruntime 1.31.1 on LSTM" in answer
    assert "Conforms no: 39 of 240 checked cases fail" in " ".join(answer.replace("Conforms", "Conforms ").split())
    assert "39 failures, 3 of them not on the list" in answer
    assert "AcceptsLSTM; float16, float32, float64; versions 1 to 22" in answer
    assert "Refuseslayout 1" in answer
    assert answer.index("What is wrong") < answer.index("Refuses") < answer.index("Values checked")
    assert "input_forget keeps the input gate" in answer
    assert "new, 3 cases, LSTM, float32" in answer
    assert "Clip is applied to the cell state too" in answer
    assert "12 inconclusive" in answer


def test_matrix_cells_tell_verdicts_by_text_and_lead_to_their_results(page: Page) -> None:
    cells = {attrs["title"]: attrs for attrs in page.all("a") if attrs.get("title")}
    clip = next(
        attrs for title, attrs in cells.items() if title and title.startswith("LSTM-14, clip, onnxruntime: 9 wrong")
    )
    assert clip["href"] == "#results?target=0&op=LSTM-14&group=clip&verdict=failing"
    partly = next(attrs for title, attrs in cells.items() if title and title.startswith("LSTM-14, activations,"))
    assert (clip["class"], partly["class"]) == ("cell tone-known", "cell tone-part")
    # A result counts in each of its features.
    counts = "4 wrong, 3 unsupported, 1 inconclusive, 22 pass (3 of the failures are known)"
    assert f"LSTM-14, reverse, onnxruntime: {counts}" in cells
    matrix = page.text("matrix")
    for words in (
        "9 known of 9",
        "3 wrong of 9",
        "In no case that was accepted: layout 1.",
        "9 pass 9 unconventional",
        "6 pass 3 inconclusive",
    ):
        assert words in matrix
    heads = [attrs.get("scope") for attrs in page.all("th")]
    assert heads
    assert all(heads)


def test_a_cell_in_which_nothing_was_judged_says_so(page_of: Callable[..., Page]) -> None:
    rows = [result("a", verdict="inconclusive"), result("b", verdict="not-run")]
    assert "none judged" in page_of(rows).text("matrix")


def test_chosen_cases_that_all_fail_have_no_heading_of_other_results(page_of: Callable[..., Page]) -> None:
    chosen = {"selection": {**sample_info([])["selection"], "case": ["a"]}}
    assert "Other results" not in page_of([result("a", verdict="crashed")], [], **chosen).whole
    some = [result("a", verdict="crashed"), result("b", verdict="inconclusive")]
    assert "Other results" in page_of(some, [], **chosen).whole


def test_a_type_that_is_refused_as_a_whole_is_not_in_the_matrix(page_of: Callable[..., Page]) -> None:
    page = page_of([result("a"), result("b", type="float16", verdict="unsupported")])
    assert "LSTM-14, default, onnxruntime: 1 pass" in {attrs.get("title") for attrs in page.all("a")}


def test_findings_stand_in_their_sections(page: Page) -> None:
    order = [attrs["id"] for attrs in page.all("h3") if str(attrs.get("id")).startswith("findings-")]
    assert order == ["findings-new", "findings-known", "findings-aside", "findings-unsupported"]
    new, known = page.text("finding-1"), page.text("finding-2")
    assert "input_forget keeps the input gate" in new
    assert "With input_forget set, the input gate is 1 minus the forget gate." in new
    assert "stated" in new
    assert "3 cases" in new
    assert "onnxspec run --target onnxruntime --case LSTM-14-float32-input_forget-0005" in new
    assert "Y_c[0, 1, 3]" in new
    assert "wrong, known" in known
    assert "The CPU kernel clips the new cell state" in known
    assert "convention" in page.text("finding-3")
    assert page.text("finding-4") == "Layout 1 is not supported"


def test_a_failure_that_no_finding_names_is_a_finding_all_the_same(page_of: Callable[..., Page]) -> None:
    rows = [result("seen", verdict="wrong"), result("hidden", verdict="crashed", message="signal 11")]
    page = page_of(rows, [{"title": "one", "kind": "wrong", "verdict": "wrong", "cases": ["seen"]}])
    assert "Results that are crashed and that no finding names" in page.text("finding-2")
    assert "signal 11" in page.text("finding-2")
    assert "finding-3" not in page.texts


def test_the_table_has_every_result(page: Page) -> None:
    rows = sample_results()
    data = page.data
    assert cases(page) == [row["case"] for row in rows]
    found: dict[int, list[dict[str, Any]]] = {}
    for row, got in zip(rows, data["rows"], strict=True):
        assert got[1:6] == [0, f"LSTM-{row['version']}", row["type"], row["verdict"], row["expected"]]
        groups, clauses, command, message = (data["shared"][number] for number in got[6:10])
        assert [groups, clauses, message] == [row["features"], row["clauses"], row["message"]]
        assert command.replace("{}", row["case"]) == row["repeat"]
        assert got[10] == pytest.approx(row["seconds"] * 1000)
        assert got[11] == (None if row["worst"] is None else pytest.approx(row["worst"], rel=5e-3))
        place = row["where"] or {}
        inside = ", ".join(map(str, place.get("index", [])))
        step = "" if place.get("step") is None else f", step {place['step']}"
        assert got[12] == (f"{place['output']}[{inside}]{step}" if place else "")
        assert got[13] == [*filter(None, [row["reason"]]), *row["flags"], *row["diagnosis"]]
        for number in got[14]:
            found.setdefault(number, []).append(row)
    assert {row["clauses"][0] for row in found[1]} == {"lstm.input_forget.couple"}
    assert len(found[1]) == 3


def test_commands_that_differ_from_the_usual_are_kept(page_of: Callable[..., Page]) -> None:
    rows = [result("a", repeat="sh again.sh a --twice"), result("b"), result("c", repeat="")]
    page = page_of(rows)
    kept = [page.data["shared"][row[8]].replace("{}", row[0]) for row in page.data["rows"]]
    assert kept[0].endswith("--twice")
    assert kept[1:] == [f"onnxspec run --target onnxruntime --case {case}" for case in "bc"]


def test_without_feature_groups_the_clauses_give_them(page_of: Callable[..., Page]) -> None:
    rows = [result("a", clauses=["lstm.clip.gates", "lstm.clip.h", "lstm.state.last"], features=[])]
    page = page_of(rows)
    assert page.data["shared"][0] == ["clip", "state"]
    assert "clip" in page.text("matrix")


def test_several_runs_stand_side_by_side(sample: Path, tmp_path: Path) -> None:
    second = run_of(tmp_path / "second", sample_results("onnx-reference"), target="onnx-reference")
    page, messages = report(tmp_path / "report", sample, second)
    assert messages == []
    assert page.data["targets"] == ["onnxruntime", "onnx-reference"]
    assert "onnxruntime 1.31.1 and onnx-reference 1.31.1 on LSTM" in page.text("title")
    features = [attrs for attrs in page.all("th") if attrs.get("scope") == "rowgroup"]
    assert {attrs["rowspan"] for attrs in features} == {"2"}
    assert len(page.all("article")) == 2 + 3  # the same failure of both is one finding
    assert page.text("finding-1").count("3 cases") == 2


def test_the_same_target_in_two_runs_is_named_by_run(sample: Path, tmp_path: Path) -> None:
    page, _ = report(tmp_path / "report", sample, run_of(tmp_path / "later", [result("a")]))
    assert page.data["targets"] == ["onnxruntime in run", "onnxruntime in later"]


def test_runs_of_other_cases_are_said_not_to_compare(sample: Path, tmp_path: Path) -> None:
    smoke = run_of(tmp_path / "smoke", [result("a")], profile="smoke")
    changed = run_of(tmp_path / "changed", [result("a")], digests={"LSTM-14": "0" * 64})
    _, messages = report(tmp_path / "report", sample, smoke, changed)
    assert messages == [
        "smoke: profile smoke, but run has core; their counts do not compare.",
        "changed: its cases for LSTM-14 are not those of run; their counts do not compare.",
    ]


def test_environment_and_digests_are_there(page: Page) -> None:
    text = page.text("environment")
    for words in ("packages.onnx", "1.23.2", "CPUExecutionProvider", "LSTM-14", "0e" * 32, "31.4 s", "core"):
        assert words in text


def test_nothing_is_fetched_and_only_this_script_may_run(page: Page) -> None:
    assert DOCUMENT in {attrs.get("href") for attrs in page.all("a")}
    for tag, attrs in page.elements:
        for name in ("src", "href", "action", "data", "srcset"):
            if value := attrs.get(name):
                linked = (tag, name, value) == ("a", "href", DOCUMENT)  # where nothing is fetched before a click
                assert linked or value.startswith(("#", "data:,", "findings/")), value
        assert not any(name.startswith("on") or name == "style" for name in attrs)
    assert "@import" not in page.source
    assert "url(" not in page.source
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_structure_for_screen_readers(page: Page) -> None:
    assert page.open == []
    assert page.all("html")[0]["lang"] == "en"
    assert [len(page.all(tag)) for tag in ("main", "h1", "nav", "title")] == [1, 1, 1, 1]
    ids = [attrs["id"] for _, attrs in page.elements if attrs.get("id")]
    assert len(ids) == len(set(ids))
    for _, attrs in page.elements:
        for name in (attrs.get("aria-labelledby") or "").split():
            assert name in ids
    anchors = {str(attrs["href"])[1:] for attrs in page.all("a") if re.fullmatch("#[^?]*", str(attrs["href"]))}
    assert anchors <= set(ids)
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_report_is_the_same_for_the_same_run(sample: Path, tmp_path: Path) -> None:
    first = write_report([sample], tmp_path / "one").read_bytes()
    assert write_report([sample], tmp_path / "two").read_bytes() == first
    folders = (tmp_path / "one", tmp_path / "two")
    one, two = ({p.relative_to(d): p.read_bytes() for p in d.rglob("*") if p.is_file()} for d in folders)
    assert one == two
    assert len(one) == 1 + 4 + 1  # the page, the findings, and the file that marks their folder


def test_two_targets_of_one_run_are_counted_apart(tmp_path: Path) -> None:
    rows = [result("a"), result("b"), result("a", target="other", verdict="wrong", features=["clip"])]
    info = sample_info(rows)
    info["targets"][0]["findings"] = []
    info["targets"].append({"name": "other", "findings": [{"title": "t", "kind": "wrong", "cases": ["a"]}]})
    page, _ = report(tmp_path / "report", write_run(tmp_path / "run", rows, info))
    answer = page.text("answer")
    assert "yes: all 2 checked cases are correct" in answer
    assert "no: 1 of 1 checked case fails" in answer
    assert [row[-1] for row in page.data["rows"]] == [[], [], [1]]
    titles = {str(attrs["title"]) for attrs in page.all("a") if attrs.get("title")}
    assert {"LSTM-14, clip, other: 1 wrong", "LSTM-14, default, onnxruntime: 2 pass"} <= titles
    assert not any("clip, onnxruntime" in title for title in titles)


def test_a_models_nodes_head_the_page_by_their_paths(tmp_path: Path) -> None:
    rows = [result("enc.LSTM"), result("dec.LSTM", verdict="unsupported")]
    info = sample_info(rows)
    info["selection"] |= {"directories": ["run/cases"]}
    run = write_run(tmp_path / "run", rows, info)
    nodes = [
        {"node": "/enc/LSTM", "operator": "LSTM-14", "case": "enc.LSTM", "data": "your data, one run"},
        {"node": "/dec/LSTM", "operator": "LSTM-14", "case": "dec.LSTM", "data": "your data, one run"},
        {"node": "/loop/<img src=x>", "operator": "GRU-14", "why": "is illegal: no W"},
    ]
    (run / "cases").mkdir()
    (run / "cases" / "nodes.json").write_text(json.dumps(nodes), encoding="utf-8")
    page, _ = report(tmp_path / "report", run)
    answer = page.text("answer")
    assert "Nodes of the model" in answer
    told = ["/enc/LSTM", "pass", "/dec/LSTM", "unsupported", "/loop/", "not run: is illegal: no W"]
    assert sorted(told, key=answer.index) == told
    assert not page.all("img")
    for foreign in ("[", '[{"node": 1}]', '[{"node": 1, "operator": []}]', "{}", "3"):
        (run / "cases" / "nodes.json").write_text(foreign, encoding="utf-8")
        page, _ = report(tmp_path / "report", run)
        assert "Nodes of the model" not in page.text("answer")


def test_long_messages_are_cut_to_the_budget(tmp_path: Path) -> None:
    rows = [result(f"c{number}", verdict="crashed", message=f"{number} " + "x" * 3000) for number in range(5000)]
    page = write_report([write_run(tmp_path / "run", rows, None)], tmp_path / "report", warn=lambda line: None)
    assert page.stat().st_size <= 4_000_000


def test_refusals_with_one_message_are_one_line(page_of: Callable[..., Page]) -> None:
    rows = [result("right")]
    findings = []
    for name in ("Relu", "Elu", "Softplus"):
        rows.append(result(name, verdict="unsupported", message=f"Unknown activation function '{name}'."))
        refusal = finding(f"refuses {name}", "unsupported", [], [name], conditions=name, types=["float32"])
        refusal["message"] = rows[-1]["message"]
        findings.append(refusal)
    page = page_of(rows, findings)
    (section,) = (s for s in sections_of(summary_of([], findings), findings, []) if "not support" in s.heading)
    assert [(item.text, item.extent) for item in section.items] == [
        ("Relu, Elu, Softplus", " (3 cases, LSTM, float32)")
    ]
    text = page.text("findings")
    assert text.count("Unknown activation function") == 1
    assert "Relu, Elu, Softplus 3 cases" in text
    assert [page.text(f"finding-{number}") for number in (1, 2, 3)] == ["Relu", "Elu", "Softplus"]


def test_what_fails_is_drawn_as_a_failure_and_nothing_else_is() -> None:
    assert {verdict for verdict in Verdict if tone_of(verdict.value) == "fail"} == FAILING
    assert [tone_of(verdict) for verdict in ("pass", "fallback", "of tomorrow")] == ["pass", "unsupported", "quiet"]
    assert set(STATE_TONES) == set(STATES)
