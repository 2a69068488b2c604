"""Tests of the work that a new operator takes: one folder on each side, and every command knows it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from . import ROOT

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


def command(*words: str | Path, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.toy", *map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


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
    ids = command("list", "--op", "Leaky").split()
    assert len(ids) == 5
    assert "leaky.equations" in command("clauses", "Leaky")
    out = tmp_path / "run"
    three = ("--target", "right", "--target", "wrong", "--target", "half", "--targets-file", targets)
    command("run", "--op", "Leaky", *three, "--out", out, code=1)
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
    shown = command("explain", ids[2], "--target", "wrong", "--targets-file", targets)
    assert "leaky.start.one: Starts from one" in shown
    assert "kept" in shown
    ast.parse(command("explain", ids[2], "--emit", "script"))


def test_its_nodes_are_checked_and_taken_out_of_models(targets: Path, tmp_path: Path) -> None:
    command("generate", "--out", tmp_path / "cases", "--op", "Leaky", "--all")
    model = sorted((tmp_path / "cases").glob("*/model.onnx"))[0]
    assert "1 recurrent node: nothing wrong" in command("check", model)
    both = ("--target", "right", "--target", "wrong", "--targets-file", targets)
    printed = command("run", model, *both, "--out", tmp_path / "run", code=1)
    assert "toy.example::Leaky-1" in printed
    assert {target: row["verdict"] for (target, _), row in results(tmp_path / "run").items()} == {
        "right": "pass",
        "wrong": "wrong",
    }


@pytest.mark.long
def test_it_is_searched(targets: Path, tmp_path: Path) -> None:
    words = ("--op", "Leaky", "--targets-file", targets, "--examples", "6", "--seed", "1")
    assert "6 pass" in command("fuzz", *words, "--target", "right", "--out", tmp_path / "right")
    printed = command("fuzz", *words, "--target", "wrong", "--out", tmp_path / "wrong", code=1)
    assert "Starts from one" in printed
    assert "onsistent with" not in printed


def test_it_is_proved(tmp_path: Path) -> None:
    printed = command("prove", "--op", "Leaky", "--out", tmp_path / "proof.csv", code=1)
    # One forbidden model kills a fault that accepts it, where two are required; all other faults are killed.
    assert "5 cases catch 2 of 3 faults" in printed
    rows = (tmp_path / "proof.csv").read_text().splitlines()[1:]
    assert {row.split(",")[0]: int(row.split(",")[5]) >= 1 for row in rows} == dict.fromkeys(
        ("leaky.start.one", "leaky.decay.ignored", "leaky.accepts.decay"), True
    )


def test_its_directories_are_generated_and_run(targets: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "cases", tmp_path / "run"
    command("generate", "--out", folder, "--op", "Leaky", "--all")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert len(manifest["cases"]) == 4
    both = ("--target", "right", "--target", "wrong", "--targets-file", targets)
    command("run", "--case", folder, *both, "--out", out, code=1)
    verdicts = {(target, row["domain"]): row["verdict"] for (target, _), row in results(out).items()}
    assert verdicts == {("right", "toy.example"): "pass", ("wrong", "toy.example"): "wrong"}
