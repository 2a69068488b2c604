"""Tests of refusals: those with the same message share a line, and messages are cut to the part that differs."""

from __future__ import annotations

from pathlib import Path

from onnxspec.conformance.results.sections import sections_of
from onnxspec.conformance.results.summary import summary_of
from onnxspec.conformance.results.support import shortened_messages
from onnxspec.reports.matrix import matrix
from onnxspec.reports.run import read_run
from onnxspec.reports.subject import subjects_of

from .conftest import finding, result, sample_info, write_run
from .test_report import report


def test_long_messages_are_cut_to_the_part_that_differs() -> None:
    start = f"Fail: Exception during initialization of the node in {'/long/path' * 12}:"
    assert shortened_messages([f"{start} clip > 0 was false", f"{start} layout == 0 was false", "no kernel"]) == [
        "\N{HORIZONTAL ELLIPSIS} clip > 0 was false",
        "\N{HORIZONTAL ELLIPSIS} layout == 0 was false",
        "no kernel",
    ]
    short = ["NotImplemented: there is no kernel for GRU(22)", "NotImplemented: there is no kernel for RNN(22)"]
    assert shortened_messages(short) == short


def test_refusals_with_one_message_are_one_line(tmp_path: Path) -> None:
    rows = [result("right")]
    findings = []
    for name in ("Relu", "Elu", "Softplus"):
        rows.append(result(name, verdict="unsupported", message=f"Unknown activation function '{name}'."))
        refusal = finding(f"refuses {name}", "unsupported", [], [name], conditions=name, types=["float32"])
        refusal["message"] = rows[-1]["message"]
        findings.append(refusal)
    info = sample_info(rows)
    info["targets"][0]["findings"] = findings
    page, _ = report(tmp_path / "report", write_run(tmp_path / "run", rows, info))
    (section,) = (s for s in sections_of(summary_of([], findings), findings, []) if "not support" in s.heading)
    assert [(item.text, item.extent) for item in section.items] == [
        ("Relu, Elu, Softplus", " (3 cases, LSTM, float32)")
    ]
    text = page.text("findings")
    assert text.count("Unknown activation function") == 1
    assert "Relu, Elu, Softplus 3 cases" in text
    assert [page.text(f"finding-{number}") for number in (1, 2, 3)] == ["Relu", "Elu", "Softplus"]


def test_the_matrix_calls_refused_only_what_a_finding_names_as_the_condition(tmp_path: Path) -> None:
    rows = [
        result("right"),
        result("layout", features=["layout 1", "exactly representable data"], verdict="unsupported"),
        result("old", version=1, features=["default"], verdict="unsupported"),
        result("other", version=3, features=["default"], verdict="unsupported"),
    ]
    info = sample_info(rows)
    info["targets"][0]["findings"] = [
        finding("refuses layout 1", "unsupported", [], ["layout"], conditions="layout 1"),
        finding("refuses version 1", "unsupported", [], ["old"], conditions="version 1"),
        finding("refuses version 3 (with a reservation)", "unsupported", [], ["other"], conditions="version 3 (...)"),
    ]
    run = write_run(tmp_path / "run", rows, info)
    (table,) = matrix(subjects_of([read_run(run)]))
    assert table.refused == ("LSTM-1", "layout 1")
    assert table.absent == ("LSTM-3", "exactly representable data")
    page, _ = report(tmp_path / "report", run)
    assert "Refused: LSTM-1, layout 1." in page.text("matrix")
    assert "In no case that was accepted: LSTM-3, exactly representable data." in page.text("matrix")
