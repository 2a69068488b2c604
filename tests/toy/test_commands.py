"""Tests of the work that a new operator takes: a module or two, and every command knows it.

Leaky is that of docs/operators.md. The name of toy.example::LSTM is also one of another domain.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from .several import commands, results

_LEAKY = """
import numpy as np
import onnx

class Adapter:
    def __init__(self, options):
        self.start, self.kept = float(options.get("start", 0.0)), options.get("kept", "float32")
        self.absent = [] if options.get("strict") else [np.float32(1)]
    def describe(self): return {"runtime": "leaky", "version": "1"}
    def prepare(self, model):
        node = onnx.load_model_from_string(model).graph.node[0]
        (self.decay,) = [np.float32(a.f) for a in node.attribute] or self.absent
        return self
    def run(self, feeds):
        (X,) = feeds.values()
        Y, y = np.zeros((X.shape[0], 1, *X.shape[1:]), np.float32), np.full(X.shape[1:], self.start, np.float32)
        for t in range(len(X)):
            y = Y[t, 0] = (self.decay * y + X[t]).astype(self.kept).astype(np.float32)
        return [Y]
"""
"""A runtime of Leaky. Options set where it starts, in which type it keeps its state, and whether decay is required."""

_TARGETS = """
right = { adapter = "leaky.py" }
strict = { adapter = "leaky.py", options = { strict = true } }
wrong = { adapter = "leaky.py", options = { start = 1.0 } }
half = { adapter = "leaky.py", accuracy = "f16-storage", options = { kept = "float16" } }
"""


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return options with a file of targets."""
    folder = tmp_path_factory.mktemp("toy")
    for name, text in {"leaky.py": _LEAKY, "targets.toml": _TARGETS}.items():
        (folder / name).write_text(text)
    return "--targets-file", folder / "targets.toml"


def of(*names: str) -> list[str]:
    return [word for name in names for word in ("--target", name)]


def done_by(failing: tuple[str, ...], several: dict[str, tuple[str | Path, ...]]) -> dict[str, str]:
    """Return what commands print, by their names; those of `failing` end with 1."""
    done = dict(zip(several, commands("tests.toy.several", *several.values()), strict=True))
    assert {name: answer["code"] for name, answer in done.items()} == dict.fromkeys(several, 0) | dict.fromkeys(
        failing, 1
    ), done
    return {name: answer["printed"] for name, answer in done.items()}


def test_it_is_listed_run_judged_diagnosed_and_reported(targets: Any, tmp_path: Path) -> None:
    out, cases = tmp_path / "run", tmp_path / "cases"
    case = "leaky-1.float32.b2-i3-n1-s7."
    printed = done_by(
        ("run", "directories"),
        {
            "list": ("list", "--op", "Leaky"),
            "clauses": ("clauses", "Leaky"),
            "run": ("run", "--op", "Leaky", *of("right", "wrong", "half"), *targets, "--out", out),
            "explain": ("explain", case, "--target", "wrong", *targets),
            "script": ("explain", case, "--emit", "script"),
            "generate": ("generate", "--out", cases, "--op", "Leaky", "--all"),
            "directories": ("run", "--case", cases, *of("right", "wrong"), *targets, "--out", tmp_path / "again"),
        },
    )
    ids = [line for line in printed["list"].split() if line.startswith("leaky-1.")]
    assert len(ids) == 5
    assert "leaky.equations" in printed["clauses"]
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
    assert "leaky.start.one: Starts from one" in printed["explain"]
    assert "kept" in printed["explain"]
    ast.parse(printed["script"])
    assert len(json.loads((cases / "manifest.json").read_text())["cases"]) == 4
    verdicts = {(target, row["domain"]): row["verdict"] for (target, _), row in results(tmp_path / "again").items()}
    assert verdicts == {("right", "toy.example"): "pass", ("wrong", "toy.example"): "wrong"}


def test_every_command_tells_it_from_the_other_domains(targets: Any, tmp_path: Path) -> None:
    op = ("--op", "toy.example::LSTM")
    printed = done_by(
        ("run", "right", "certify"),
        {
            "list": ("list", *op),
            "run": ("run", *op, *of("right", "wrong"), *targets, "--out", tmp_path / "run",
                    "--junit", tmp_path / "junit.xml"),
            "right": ("run", *op, *of("right"), *targets, "--record", "--out", tmp_path / "right"),
            "certify": ("certify", tmp_path / "right", "--out", tmp_path / "p.zip", "--product", "toy",
                        "--vendor", "no"),
            "generate": ("generate", "--out", tmp_path / "cases", *op, "--all"),
            "prove": ("prove", *op, "--out", tmp_path / "proof.csv", "--fault", "leaky.start.one"),
            "explain": ("explain", "toy.example.lstm-1.float32.b2-i3-n1-s7.", "--target", "wrong", *targets),
            "clauses": ("clauses", "toy.example::LSTM"),
            "other": ("list", "--op", "LSTM-22", "--profile", "smoke"),
        },
    )  # fmt: skip
    ids = printed["list"].split()[:5]
    assert all(id.startswith("toy.example.lstm-1.float32.b2") for id in ids)
    rows = results(tmp_path / "run")
    assert {tuple(row["diagnosis"]) for row in rows.values() if row["verdict"] == "wrong"} == {("leaky.start.one",)}
    assert {case for _, case in rows} == set(ids)
    assert "Starts from one" in printed["run"]
    assert "not certified: toy.example::LSTM 1 in float32" in printed["certify"]
    assert "signal" in printed["explain"]
    assert "toy.example.lstm.equations" in printed["clauses"]
    assert "toy.example" not in printed["other"]
    assert not [path for path in tmp_path.rglob("*") if ":" in path.name]


def test_its_models_are_checked_searched_and_certified(targets: Any, tmp_path: Path) -> None:
    op, case = ("--op", "Leaky"), "leaky-1.float32.b2-i3-n1-s7.b0fc75"
    model = tmp_path / "cases" / f"test_{case}" / "model.onnx"
    run, package = tmp_path / "run", tmp_path / "package.zip"
    printed = done_by(
        ("model", "fuzz"),
        {
            "run": ("run", *op, *of("strict"), *targets, "--record", "--out", run, "--nonce", "abc"),
            "generate": ("generate", "--out", tmp_path / "cases", "--case", case, "--all"),
            "check": ("check", model),
            "model": ("run", model, *of("right", "wrong"), *targets, "--out", tmp_path / "model"),
            "fuzz": ("fuzz", *op, *of("wrong"), *targets, "--examples", "8:1", "--out", tmp_path / "fuzz"),
            "certify": ("certify", run, "--out", package, "--product", "toy", "--vendor", "nobody"),
            "verify": ("verify", package),
        },
    )
    assert len(results(run)) > 60  # those of the nonce included
    assert "1 recurrent node: nothing wrong" in printed["check"]
    verdicts = {target: row["verdict"] for (target, _), row in results(tmp_path / "model").items()}
    assert verdicts == {"right": "pass", "wrong": "wrong"}
    assert "Starts from one" in printed["fuzz"]
    assert "certified (complete): Leaky 1 in float32" in printed["certify"]
