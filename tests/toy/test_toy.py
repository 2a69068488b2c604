"""Tests of the work that a new operator takes: one folder on each side, and every command knows it."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from .several import commands

# A runtime of Leaky. Its options set where it starts, and the type in which it keeps its state.
_ADAPTER = """
import numpy as np
import onnx

class Adapter:
    def __init__(self, options):
        self.start, self.kept = float(options.get("start", 0.0)), options.get("kept", "float32")
    def describe(self): return {"runtime": "leaky", "version": "1"}
    def prepare(self, model):
        node = onnx.load_model_from_string(model).graph.node[0]
        (self.decay,) = [np.float32(a.f) for a in node.attribute] or [np.float32(1)]
        return self
    def run(self, feeds):
        (X,) = feeds.values()
        Y, y = np.zeros((X.shape[0], 1, *X.shape[1:]), np.float32), np.full(X.shape[1:], self.start, np.float32)
        for t in range(len(X)):
            y = Y[t, 0] = (self.decay * y + X[t]).astype(self.kept).astype(np.float32)
        return [Y]
"""


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leaky")
    (folder / "leaky.py").write_text(_ADAPTER)
    path = folder / "targets.toml"
    path.write_text(
        '[right]\nadapter = "leaky.py"\n\n[wrong]\nadapter = "leaky.py"\noptions = { start = 1.0 }\n\n'
        '[half]\nadapter = "leaky.py"\naccuracy = "f16-storage"\noptions = { kept = "float16" }\n'
    )
    return path


def results(folder: Path) -> dict[tuple[str, str], dict[str, object]]:
    read: dict[tuple[str, str], dict[str, object]] = {}
    for row in map(json.loads, (folder / "results.jsonl").read_text().splitlines()):
        if row["record"] in ("result", "update"):
            read.setdefault((row["target"], row["case"]), {}).update(row)
    return read


def test_it_is_listed_run_judged_diagnosed_and_reported(targets: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    three = ("--target", "right", "--target", "wrong", "--target", "half", "--targets-file", targets)
    case = "leaky-1.float32.b2-i3-n1-s7."
    done = commands(
        "tests.toy.several",
        ("list", "--op", "Leaky"),
        ("clauses", "Leaky"),
        ("run", "--op", "Leaky", *three, "--out", out),
        ("explain", case, "--target", "wrong", "--targets-file", targets),
        ("explain", case, "--emit", "script"),
    )
    assert [one["code"] for one in done] == [0, 0, 1, 0, 0]
    listed, clauses, _, shown, script = (one["printed"] for one in done)
    ids = [line for line in listed.split() if line.startswith("leaky-1.")]
    assert len(ids) == 5
    assert "leaky.equations" in clauses
    rows = results(out)
    forbidden = next(id for id in ids if "illegal" in id)
    for (target, case), row in rows.items():
        assert (row["domain"], row["op"], row["version"]) == ("toy.example", "Leaky", 1)
        if case == forbidden:
            assert (row["verdict"], row["diagnosis"]) == ("not-rejected", ["leaky.accepts.decay"])
        elif target in ("right", "half"):  # one is right by the class that it declares
            assert (row["verdict"], row["diagnosis"]) == ("pass", [])
        else:
            assert (row["verdict"], row["diagnosis"]) == ("wrong", ["leaky.start.one"])
            assert row["clause"] == "leaky.equations"
    assert len(rows) == 15
    (_, wrong, _) = json.loads((out / "run.json").read_text())["targets"]
    (finding,) = [f for f in wrong["findings"] if f["fault"] == "leaky.start.one"]
    assert finding["foretold"] >= 5  # a name of its own predicts as any other does
    assert '"Starts from one"' in (out / "report" / "index.html").read_text(encoding="utf-8")
    assert "leaky.start.one: Starts from one" in shown
    assert "kept" in shown
    ast.parse(script)


def test_its_directories_are_generated_and_run(targets: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "cases", tmp_path / "run"
    both = ("--target", "right", "--target", "wrong", "--targets-file", targets)
    done = commands(
        "tests.toy.several",
        ("generate", "--out", folder, "--op", "Leaky", "--all"),
        ("run", "--case", folder, *both, "--out", out),
    )
    assert [one["code"] for one in done] == [0, 1]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert len(manifest["cases"]) == 4
    verdicts = {(target, row["domain"]): row["verdict"] for (target, _), row in results(out).items()}
    assert verdicts == {("right", "toy.example"): "pass", ("wrong", "toy.example"): "wrong"}
