"""Run directories made in code: no runtime is needed to see every state that a page can show."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

VERSIONS = (1, 7, 14, 22)
TYPES = ("float16", "float32", "float64")
GROUPS = ("default", "reverse", "ragged", "clip", "peepholes", "input_forget", "layout1", "activations")
CLAUSES = {
    "lstm.clip.gates": {
        "status": "stated",
        "text": "With clip given, the argument of every activation is cut to [-clip, +clip] before it is applied.",
        "source": "LSTM-14, attribute clip",
    },
    "lstm.input_forget.couple": {
        "status": "stated",
        "text": "With input_forget set, the input gate is 1 minus the forget gate.",
        "source": "LSTM-14, attribute input_forget",
    },
    "lstm.length.padding": {
        "status": "convention",
        "text": "Past a sequence's length Y holds zeros.",
        "source": "ONNX backend tests; the document says only potentially padded",
    },
    "lstm.layout.batch_first": {
        "status": "stated",
        "text": "With layout 1 the batch is the first axis of X and Y.",
        "source": "LSTM-14",
    },
}


def result(case: str, **fields: Any) -> dict[str, Any]:
    """One result line, a pass unless told otherwise."""
    row = {
        "case": case,
        "op": "LSTM",
        "domain": "",
        "version": 14,
        "type": "float32",
        "target": "onnxruntime",
        "verdict": "pass",
        "expected": False,
        "clauses": ["lstm.equations.cell"],
        "worst": 0.21,
        "reason": None,
        "where": None,
        "message": "",
        "flags": [],
        "diagnosis": [],
        "seconds": 0.0004,
        "features": ["default"],
        "repeat": f"onnxspec run --target {fields.get('target', 'onnxruntime')} --case {case}",
    }
    return row | fields


def sample_results(target: str = "onnxruntime") -> list[dict[str, Any]]:
    """A run with a pass, a known fault, a new one, a refusal, a broken convention and an unjudged case."""
    rows = []
    for version in VERSIONS:
        for kind in TYPES:
            for number in range(24):
                group = GROUPS[number % len(GROUPS)]
                if group == "layout1" and version < 14:
                    continue
                changed: dict[str, Any] = {"version": version, "type": kind, "target": target, "features": [group]}
                changed["worst"] = 0.02 + 0.011 * number
                if number % 3 == 2:
                    changed["features"] = [group, "reverse"] if group != "reverse" else [group]
                if group == "clip":
                    changed |= {"verdict": "wrong", "expected": True, "worst": 412.5 + number, "reason": "value"}
                    changed |= {
                        "clauses": ["lstm.clip.gates"],
                        "where": {"output": "Y", "index": [1, 0, 2, 4], "step": 1},
                    }
                    changed["message"] = f"Y[1, 0, 2, 4] is 0.3112{number}, the document gives 0.29871 within 1.1e-07"
                elif group == "input_forget" and version == 14 and kind == "float32":
                    changed |= {
                        "verdict": "wrong",
                        "worst": 88.1,
                        "reason": "value",
                        "clauses": ["lstm.input_forget.couple"],
                    }
                    changed |= {
                        "where": {"output": "Y_c", "index": [0, 1, 3], "step": None},
                        "message": "Y_c[0, 1, 3] is 0.5",
                    }
                    changed["diagnosis"] = ["input_forget.keeps_input_gate"]
                elif group == "layout1":
                    changed |= {"verdict": "refused", "worst": None, "clauses": ["lstm.layout.batch_first"]}
                    changed["message"] = "Batchwise recurrent operations (layout == 1) are not supported."
                elif group == "ragged":
                    changed |= {"flags": ["unconventional"], "reason": "padding", "clauses": ["lstm.length.padding"]}
                elif group == "activations" and kind == "float16":
                    changed |= {"verdict": "unjudged", "worst": None, "reason": "unjudged"}
                rows.append(result(f"LSTM-{version}-{kind}-{group}-{number:04d}", **changed))
    return rows


def sample_info(rows: list[dict[str, Any]], target: str = "onnxruntime") -> dict[str, Any]:
    """The run.json that belongs to `sample_results`."""

    def of(wanted: Callable[[dict[str, Any]], bool]) -> list[str]:
        return [row["case"] for row in rows if wanted(row)]

    def finding(title: str, kind: str, clause: str, cases: list[str], **fields: Any) -> dict[str, Any]:
        return {
            "title": title,
            "kind": kind,
            "clauses": [clause],
            "verdict": {"convention": "pass"}.get(kind, kind),
            "types": list(TYPES),
            "versions": ["LSTM-14", "LSTM-22"],
            "cases": cases,
            "smallest": cases[0] if cases else "",
            "expected": False,
            "why": "",
            "message": "",
        } | fields

    findings = [
        finding(
            "clip is applied to the cell state too, not to the gates alone",
            "wrong",
            "lstm.clip.gates",
            of(lambda row: "clip" in row.get("features", ())),
            expected=True,
            why="The CPU kernel clips the new cell state before its activation; the document names the gates only.",
        ),
        finding(
            "input_forget keeps the input gate where the document keeps the forget gate",
            "wrong",
            "lstm.input_forget.couple",
            of(lambda row: row["clauses"] == ["lstm.input_forget.couple"]),
            types=["float32"],
            versions=["LSTM-14"],
        ),
        finding(
            "Y past a sequence's length is not zero",
            "convention",
            "lstm.length.padding",
            of(lambda row: "unconventional" in row["flags"]),
        ),
        finding(
            "layout 1 is not supported",
            "refused",
            "lstm.layout.batch_first",
            of(lambda row: row["verdict"] == "refused"),
        ),
    ]
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    return {
        "schema": 1,
        "onnxspec": "0.1.0",
        "started": "2026-11-20T16:30:00+00:00",
        "seconds": 31.4,
        "complete": True,
        "command": ["onnxspec", "run", "--target", target],
        "profile": "core",
        "selection": {},
        "cases": len(rows),
        "digests": {f"LSTM-{version}": f"{version:02x}" * 32 for version in VERSIONS},
        "environment": {
            "python": "3.11.7",
            "platform": "Linux x86_64",
            "packages": {"onnx": "1.23.2", "numpy": "2.4.6", "onnxruntime": "1.31.1"},
        },
        "targets": [
            {
                "name": target,
                "adapter": "onnxruntime",
                "description": {"version": "1.31.1", "provider": "CPUExecutionProvider"},
                "class": "standard",
                "grade": {"float32": "strict", "float64": "strict"},
                "options": {"graph_optimization": "off", "threads": 1},
                "counts": counts,
                "unexpected": sum(row["verdict"] == "wrong" and not row["expected"] for row in rows),
                "bias": {"float32": {"shift": 0.004, "scale": 0.31, "elements": 51200}},
                "findings": findings,
            }
        ],
        "clauses": CLAUSES,
    }


def write_run(path: Path, rows: list[dict[str, Any]], info: dict[str, Any] | None) -> Path:
    """Write a run directory; no run.json where ``info`` is None."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    if info is not None:
        (path / "run.json").write_text(json.dumps(info), encoding="utf-8")
    return path


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A whole and honest run directory."""
    rows = sample_results()
    return write_run(tmp_path / "run", rows, sample_info(rows))
