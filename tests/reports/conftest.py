"""Run directories built in code, and pages as their text and elements: tests need no runtime and no browser."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from onnxspec.conformance.results.records import Bias, Finding
from onnxspec.reports.page import write_report
from onnxspec.reports.run import NO_RUN, NO_TARGET, empty

VERSIONS = (1, 7, 14, 22)
TYPES = ("float16", "float32", "float64")
GROUPS = ("default", "reverse", "ragged", "clip", "peepholes", "input_forget", "layout 1", "activations")
NEW_CASE, KNOWN_CASE = "LSTM-14-float32-input_forget-0005", "LSTM-1-float16-clip-0003"
"""Smallest cases of the first two findings of the sample."""

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
    """Return one result line, a pass by default."""
    row = {
        "record": "result",
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
        "clause": None,
        "accuracy": "standard",
        "interpretations": {},
        "judged": 24,
        "elements": 24,
    }
    return row | fields


def sample_results(target: str = "onnxruntime") -> list[dict[str, Any]]:
    """Return the results of a run with each kind of result.

    They are a pass, a known fault, a new one, a refusal, a broken convention and an inconclusive case.
    """
    rows = []
    for version in VERSIONS:
        for dtype in TYPES:
            for number in range(24):
                group = GROUPS[number % len(GROUPS)]
                if group == "layout 1" and version < 14:
                    continue
                changed: dict[str, Any] = {"version": version, "type": dtype, "target": target, "features": [group]}
                changed["worst"] = 0.02 + 0.011 * number
                if number % 3 == 2 and group != "reverse":
                    changed["features"] = [group, "reverse"]
                if group == "clip":
                    changed |= {"verdict": "wrong", "expected": True, "worst": 412.5 + number, "reason": "value"}
                    changed |= {"where": {"output": "Y", "index": [1, 0, 2, 4], "step": 1}}
                    changed |= {"clauses": ["lstm.clip.gates"]}
                    changed["message"] = f"Y[1, 0, 2, 4] is 0.3112{number}, the document gives 0.29871 within 1.1e-07"
                elif group == "input_forget" and version == 14 and dtype == "float32":
                    changed |= {"verdict": "wrong", "worst": 88.1, "reason": "value", "message": "Y_c[0, 1, 3] is 0.5"}
                    changed |= {"where": {"output": "Y_c", "index": [0, 1, 3], "step": None}}
                    changed |= {"clauses": ["lstm.input_forget.couple"]}
                    changed |= {"diagnosis": ["input_forget.keeps_input_gate"]}
                elif group == "layout 1":
                    changed |= {"verdict": "unsupported", "worst": None, "clauses": ["lstm.layout.batch_first"]}
                    changed["message"] = "Batchwise recurrent operations (layout == 1) are not supported."
                elif group == "ragged":
                    changed |= {"flags": ["unconventional"], "reason": "padding", "clauses": ["lstm.length.padding"]}
                elif group == "activations" and dtype == "float16":
                    changed |= {"verdict": "inconclusive", "worst": None, "reason": "inconclusive"}
                rows.append(result(f"LSTM-{version}-{dtype}-{group}-{number:04d}", **changed))
    return rows


def finding(title: str, kind: str, clauses: list[str], cases: list[str], **fields: Any) -> dict[str, Any]:
    """Return a finding with all its keys."""
    return {
        **empty(Finding),
        "title": title,
        "what": title,
        "kind": kind,
        "clauses": clauses,
        "verdict": {"convention": "pass"}.get(kind, kind),
        "types": list(TYPES),
        "versions": [14, 22],
        "operators": ["LSTM"],
        "searched": True,
        "tried": True,
        "repeat": f"onnxspec run --target onnxruntime --case {cases[0]}" if cases else "",
        "cases": cases,
        "smallest": cases[0] if cases else "",
    } | fields


def sample_info(rows: list[dict[str, Any]], target: str = "onnxruntime") -> dict[str, Any]:
    """Return the run.json that belongs to `sample_results`."""

    def of(wanted: Callable[[dict[str, Any]], bool]) -> list[str]:
        return [row["case"] for row in rows if wanted(row)]

    findings = [
        finding(
            "clip is applied to the cell state too, not to the gates alone",
            "wrong",
            ["lstm.clip.gates"],
            of(lambda row: "clip" in row.get("features", ())),
            expected=True,
            why="The CPU kernel clips the new cell state before its activation; the document names the gates only.",
        ),
        finding(
            "input_forget keeps the input gate where the document keeps the forget gate",
            "wrong",
            ["lstm.input_forget.couple"],
            of(lambda row: row["clauses"] == ["lstm.input_forget.couple"]),
            types=["float32"],
            versions=[14],
        ),
        finding(
            "Y past a sequence's length is not zero",
            "convention",
            ["lstm.length.padding"],
            of(lambda row: "unconventional" in row["flags"]),
        ),
        finding(
            "layout 1 is not supported",
            "unsupported",
            ["lstm.layout.batch_first"],
            of(lambda row: row["verdict"] == "unsupported"),
            conditions="layout 1",
        ),
    ]
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    entry = {
        **NO_TARGET,
        "name": target,
        "adapter": "onnxruntime",
        "description": {"version": "1.31.1", "provider": "CPUExecutionProvider"},
        "class": "standard",
        "grade": {"float32": "strict", "float64": "strict"},
        "options": {"graph_optimization": "off", "threads": 1},
        "counts": counts,
        "unexpected": sum(row["verdict"] == "wrong" and not row["expected"] for row in rows),
        "bias": {"float32": {**empty(Bias), "shift": 0.004, "scale": 0.31, "error": 0.1, "elements": 51200}},
        "findings": findings,
        "seconds": 31.0,
    }
    return copy.deepcopy(
        {
            **NO_RUN,
            "onnxspec": "0.1.0",
            "started": "2026-11-20T16:30:00+00:00",
            "seconds": 31.4,
            "complete": True,
            "command": ["onnxspec", "run", "--target", target],
            "profile": "core",
            "counts": counts,
            "cases": len(rows),
            "digests": {f"LSTM-{version}": f"{version:02x}" * 32 for version in VERSIONS},
            "environment": {
                "python": "3.11.7",
                "platform": "Linux x86_64",
                "machine": "x86_64",
                "processors": 2,
                "packages": {"onnx": "1.23.2", "numpy": "2.4.6", "onnxruntime": "1.31.1"},
            },
            "targets": [entry],
            "clauses": CLAUSES,
        }
    )


HOSTILE = (
    "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\"'&amp;{{7*7}}{% raw %}"
    "\u202egnp\ud800\x00\u2028\n"
)


def write_run(path: Path, rows: list[dict[str, Any]], info: dict[str, Any] | None) -> Path:
    """Write a run directory, without run.json if ``info`` is None."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    if info is not None:
        (path / "run.json").write_text(json.dumps(info), encoding="utf-8")
    return path


def run_of(
    path: Path,
    rows: list[dict[str, Any]],
    findings: list[dict[str, Any]] | None = None,
    target: str = "onnxruntime",
    **changed: Any,
) -> Path:
    """Write a run directory with the sample's run.json, and with these findings and keys in place of its own."""
    info = sample_info(rows, target) | changed
    if findings is not None:
        info["targets"][0]["findings"] = findings
    return write_run(path, rows, info)


@contextmanager
def editing(run: Path) -> Iterator[dict[str, Any]]:
    """Yield the content of run.json, and write it back."""
    path = run / "run.json"
    info = json.loads(path.read_text(encoding="utf-8"))
    yield info
    path.write_text(json.dumps(info), encoding="utf-8")


def _element(must: float | None, within: float | None, got: float, ratio: Any, **more: Any) -> dict[str, Any]:
    return {"must": must, "within": within, "got": got, "ratio": ratio, **more}


def exhibit(case: str, **changed: Any) -> dict[str, Any]:
    """Return an evidence.json: two rows of four steps and three units, which diverge at step 2 of row 1, unit 0."""
    steps = {"steps": [0, 1, 2, 3], "of_steps": 4}
    ratio: list[list[Any]] = [[0.1, 0.2, 0.0], [0.3, 0.4, None], [250.0, 0.2, 0.1], [8.0, "inf", 0.9]]
    lines = [
        _element(0.25 * step, 1e-7, 0.25 * step + (0.01 if step > 1 else 0), ratio[step][0])
        | {"step": step, "position": 3 - step, "padding": step == 3}
        | {"values": dict.fromkeys("iofcCH", None if step == 3 else 0.1 * step - 0.1)}
        for step in range(4)
    ]
    parting = _element(0.5, 1e-7, 0.51, 250.0, output="Y", place="Y[2, 0, 1, 0]", clause="lstm.equations")
    plane = {"positions": [3, 2, 1, 0], "units": [0, 1, 2], "of_units": 3, "length": 3, "ratio": ratio}
    rows = {"names": ["0", "1"], "of_rows": 2, "lengths": [4, 3], "here": 1}
    x = {"name": "X", "given": "graph input", "type": "float32", "shape": [4, 2, 2], "values": [0.5], "nonfinite": 2}
    whole = {
        "schema": 1,
        "case": case,
        "operator": "LSTM-14",
        "message": "Y[2, 0, 1, 0] is 0.51, must be 0.5",
        "class": "standard",
        "interpretations": {"clip-at-zero": "off"},
        "diagnosis": [{"id": "lstm.clip.missing", "text": "Leaves out clip."}],
        "process": {"status": "ran", "phase": "", "signal": None, "captured": "a warning of the runtime"},
        "node": "Y, Y_h, Y_c = LSTM <hidden_size: int = 3> (X, W, R)",
        "opset": 14,
        "asked": ["Y", "Y_h", "Y_c"],
        "inputs": [x | {"low": -1.0, "high": 1.0}, {"name": "B", "given": "absent"}],
        "runs_before": [[4, 2, 5]],
        "numbers": {
            "title": "",
            "from_reported": True,
            "direction": "reverse",
            "row": 1,
            "unit": 0,
            "parting": parting | {"step": 2, "where": "step 2, forward, row 1"},
            "gates": {"names": list("iofcCH"), "of_steps": 4, "lines": lines},
            "plane": plane | steps,
            "rows": rows | steps | {"ratio": [[0.1, 0.2, 0.3, 0.4], [0.2, 0.4, 250.0, "inf"]]},
            "states": [
                _element(0.5, 1e-7, 0.51, 250.0, name="Y_h", place="Y_h[0, 1, 0]"),
                _element(None, None, 0.1, None, name="Y_c", place="Y_c[0, 1, 0]"),
            ],
        },
    }
    return whole | changed


def add_evidence(run: Path, exhibits: dict[str, dict[str, Any]], target: int = 0, **more: Any) -> None:
    """Add evidence to a run directory: exhibits by case, and files like those of the harness."""
    folders = {}
    for number, (case, content) in enumerate(exhibits.items()):
        folder = run / "evidence" / f"t{target}" / str(number)
        (folder / "test_data_set_0").mkdir(parents=True)
        (folder / "evidence.json").write_text(json.dumps(content), encoding="utf-8")
        (folder / "script.py").write_text("print('again')\n", encoding="utf-8")
        (folder / "model.onnx").write_bytes(b"model")
        (folder / "test_data_set_0" / "input_0.pb").write_bytes(b"X")
        folders[case] = folder.relative_to(run).as_posix()
    with editing(run) as info:
        info["targets"][target]["evidence"] = {"folders": folders, "larger": {}, "missing": {}} | more


@pytest.fixture
def shown(sample: Path) -> Path:
    """Return a run directory with evidence for its first two findings."""
    add_evidence(sample, {case: exhibit(case) for case in (NEW_CASE, KNOWN_CASE)})
    return sample


def hostile_run(path: Path, text: str) -> Path:
    """Write a run with evidence, with a text wherever a runtime or a folder may say something."""

    def spoiled(value: Any) -> Any:
        if isinstance(value, dict):
            key = text.replace("\ud800", "")  # no record has half a character in a key
            more = {} if "i" in value else {key: text}  # a gate's number is no text
            return {key: spoiled(inner) for key, inner in value.items()} | more
        if isinstance(value, list):
            texts = all(isinstance(inner, str) for inner in value)
            return [spoiled(inner) for inner in value] + [text] * texts
        return text if isinstance(value, str) and value != "inf" else value

    rows = [
        result(text, op=text, domain=text, type=text, target=text, clauses=[text], reason=text),
        result(text + "b", target=text, verdict="wrong", message=text, flags=[text], diagnosis=[text], features=[text]),
        result("c", target=text, verdict="wrong", where={"output": text, "index": [1], "step": 1}, repeat=text),
    ]
    info = sample_info(rows, text)
    info |= {"profile": text, "command": [text], "digests": {text: text}, "onnxspec": text}
    info["selection"] |= {"op": [text]}
    info["environment"] |= {"python": text, "packages": {text: text}}
    info["clauses"] = {text: {"status": text, "text": text, "source": text}}
    target = info["targets"][0]
    target |= {"description": {"version": text, text: [text]}, "class": text, "grade": {text: text}, "adapter": text}
    words = dict.fromkeys(("title", "kind", "verdict", "why", "message"), text) | {"smallest": "c"}
    target["findings"] = [finding(text, text, [text], [text, "c"]) | words | {"types": [text]}]
    run = write_run(path, rows, info)
    add_evidence(run, {"c": spoiled(exhibit("c")) | {"schema": 1}})
    return run


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Return a complete and conforming run directory."""
    return run_of(tmp_path / "run", sample_results())


VOID = {"meta", "link", "br", "hr", "img", "input", "col", "use", "path", "circle", "rect", "polyline"}


class Page(HTMLParser):
    """Text of each section, elements and data of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.source = path.read_text(encoding="utf-8")
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[tuple[str, str]] = []
        self.texts: dict[str, str] = {}
        self.whole = ""
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("id") or ""))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop()[0] == tag, f"</{tag}> closes another element"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        for _, name in self.open:
            if name:
                self.texts[name] = self.texts.get(name, "") + data
        if not any(tag in ("script", "style") for tag, _ in self.open):
            self.whole += data

    def text(self, name: str) -> str:
        return " ".join(self.texts[name].split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def data(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.texts["data"])
        return loaded


def cases(page: Page) -> list[str]:
    """Return the cases of the rows that the page's script reads."""
    return [row[0] for row in page.data["rows"]]


def report(out: Path, *runs: Path) -> tuple[Page, list[str]]:
    messages: list[str] = []
    return Page(write_report(runs, out, warn=messages.append)), messages


def pages(out: Path, *runs: Path) -> list[Page]:
    """Return the pages of the findings, in order."""
    write_report(runs, out)
    return [Page(path) for path in sorted((out / "findings").glob("*.html"))]


@pytest.fixture
def page_of(tmp_path: Path) -> Callable[..., Page]:
    """Return a function that writes a run with some results, and returns its page."""

    def make(rows: list[dict[str, Any]], findings: list[dict[str, Any]] | None = None, **changed: Any) -> Page:
        return report(tmp_path / "report", run_of(tmp_path / "run", rows, findings, **changed))[0]

    return make
