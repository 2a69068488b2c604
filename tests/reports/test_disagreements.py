"""The page of document and kernel: there where a run is about it, with scripts of that run and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onnxspec.reports.disagreements import PAGE
from onnxspec.reports.page import write_report

from .conftest import sample_info

RESULT = {
    "case": "extendedlstm-1.float32.x.T1N1I1H1.000000", "op": "ExtendedLSTM", "domain": "com.amd.quark", "version": 1,
    "type": "float32", "target": "quark", "verdict": "pass", "expected": False, "clauses": [], "features": [],
    "worst": 0.1, "reason": None, "where": None, "message": "", "flags": [], "diagnosis": [], "seconds": 0.1,
    "clause": None, "accuracy": "fixed-point", "interpretations": {}, "judged": 2, "elements": 2, "repeat": "",
}  # fmt: skip

ENTRY: dict[str, Any] = {
    "id": "sign-lost",
    "kind": "numbers",
    "clause": "extendedlstm.scales.any",
    "status": "implied",
    "document": "Any scales are legal.",
    "kernel": "The sign <is> lost.",
    "source": ["lstm/cpu/lstm.h:56-65"],
    "when": "Powers of two.",
    "size": "Everything.",
    "foundation": "",
    "where": "the document, line 1",
    "seen": "shown",
    "verdicts": ["wrong"],
    "message": "",
    "repeat": "",
    "cases": 3,
    "units": 28348.7,
    "error": 0.9,
    "smallest": "extendedlstm-1.float32.x.T1N1I1H1.000000",
    "script": "disagreements/sign-lost.py",
}


def report(folder: Path, *entries: Any) -> Path:
    run = folder / "run"
    (run / "disagreements").mkdir(parents=True, exist_ok=True)
    (run / "disagreements" / "sign-lost.py").write_text("print(1)\n")
    (run / "results.jsonl").write_text(json.dumps(RESULT) + "\n")
    info = sample_info([RESULT], "quark")
    info["targets"][0] |= {"findings": [], **({"disagreements": list(entries)} if entries else {})}
    (run / "run.json").write_text(json.dumps(info))
    return write_report([run], folder / "report").parent


def test_the_page_says_what_each_does_and_has_the_script(tmp_path: Path) -> None:
    out = report(tmp_path, ENTRY)
    page = (out / PAGE).read_text()
    assert "Any scales are legal." in page
    assert "The sign &lt;is&gt; lost." in page
    assert "28,349" in page
    assert 'href="disagreements/sign-lost.py"' in page
    assert (out / "disagreements" / "sign-lost.py").read_text() == "print(1)\n"
    assert PAGE in (out / "index.html").read_text()


def test_a_run_about_something_else_has_no_such_page(tmp_path: Path) -> None:
    report(tmp_path, ENTRY)
    out = report(tmp_path)
    assert not (out / PAGE).exists()
    assert PAGE not in (out / "index.html").read_text()


def test_what_is_no_script_of_the_run_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("secret")
    out = report(tmp_path, {**ENTRY, "script": "../secret.py"})
    assert not list(out.glob("**/secret.py"))
    assert "sign-lost" in (out / PAGE).read_text()
