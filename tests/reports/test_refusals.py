"""Tests of refusals: those with the same message share a line."""

from __future__ import annotations

from pathlib import Path

from onnxspec.conformance.results.sections import sections_of
from onnxspec.conformance.results.summary import summary_of

from .conftest import finding, result, sample_info, write_run
from .test_report import report


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
