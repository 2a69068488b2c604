"""Tests of a richer invented operator: directions, a mask, functions, a second output, a base and a question."""

from __future__ import annotations

from pathlib import Path

import pytest

from .several import commands
from .test_toy import results

# A runtime of MaskedLeaky, which runs whole graphs. Options set its handling of masked steps, and a mistake.
_ADAPTER = """
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

def operator(mistake, masked):
    class MaskedLeaky(OpRun):
        op_domain = "toy.example"
        def _run(self, X, mask=None, decay=None, direction="forward", function="Identity"):
            if direction not in ("forward", "reverse", "bidirectional") or function not in ("Identity", "Relu"):
                raise ValueError("no such direction, or function")
            ways = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}[direction]
            whole = np.ones(X.shape[:2], np.int32)
            given = whole if mask is None else mask
            Y = np.zeros((len(X), len(ways), *X.shape[1:]), np.float32)
            for d, way in enumerate(ways):
                y, step = np.zeros(X.shape[1:], np.float32), 1 if mistake == "direction" else way
                mask = whole if mistake == "mask" and way == -1 else given
                for t in range(len(X))[::step]:
                    after = np.float32(decay) * y + X[t]
                    after = np.maximum(after, 0) if function == "Relu" else after
                    y = Y[t, d] = np.where(mask[t][:, None] != 0, after, y if masked == "kept" else 0)
            last = np.stack([Y[-1 if way == 1 or mistake == "direction" else 0, d] for d, way in enumerate(ways)])
            return Y, last
    return MaskedLeaky

class Adapter:
    def __init__(self, options): self.op = operator(options.get("mistake", ""), options.get("masked", "kept"))
    def describe(self): return {"runtime": "masked", "version": "1"}
    def prepare(self, model):
        proto = onnx.load_model_from_string(model)
        node = [n for n in proto.graph.node if n.op_type == "MaskedLeaky"][0]
        words = {a.name: a.s.decode() for a in node.attribute if a.s}
        if words.get("direction", "forward") not in ("forward", "reverse", "bidirectional"):
            raise RuntimeError("no such direction")
        if words.get("function", "Identity") not in ("Identity", "Relu"):
            raise RuntimeError("no such function")
        return Session(ReferenceEvaluator(proto, new_ops=[self.op]))

class Session:
    def __init__(self, evaluator): self.evaluator = evaluator
    def run(self, feeds): return self.evaluator.run(None, dict(feeds))
"""
OF = ("--op", "MaskedLeaky")


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("masked")
    (folder / "masked.py").write_text(_ADAPTER)
    options = {"kept": "{}", "reset": '{ masked = "reset" }', "wrong": '{ mistake = "direction" }'}
    options["half"] = '{ mistake = "mask" }'
    tables = [f'[{name}]\nadapter = "masked.py"\noptions = {value}\n' for name, value in options.items()]
    (folder / "targets.toml").write_text("\n".join(tables))
    return folder / "targets.toml"


def test_every_command_knows_it(targets: Path, tmp_path: Path) -> None:
    of = ("--targets-file", targets)
    every = [word for name in ("kept", "reset", "wrong", "half") for word in ("--target", name)]
    case = "maskedleaky-1.float32.b3-i2-n2-s3.no-mask.decay-0.75.direction-bidirectional.function-relu.793630"
    model = tmp_path / "cases" / f"test_{case}" / "model.onnx"
    lane, package = tmp_path / "lane", tmp_path / "package.zip"
    arguments: dict[str, tuple[str | Path, ...]] = {
        "run": ("run", *OF, *every, *of, "--out", tmp_path / "run"),
        "lane": ("run", *OF, "--target", "kept+neg", *of, "--out", lane, "--nonce", "abc"),
        "generate": ("generate", "--out", tmp_path / "cases", "--case", case, "--all"),
        "check": ("check", model),
        "model": ("run", model, "--target", "kept", "--target", "wrong", *of, "--out", tmp_path / "model"),
        "fuzz": ("fuzz", *OF, "--target", "wrong", *of, "--examples", "8", "--seed", "1", "--out", tmp_path / "fuzz"),
        "prove": ("prove", *OF, "--out", tmp_path / "proof.csv"),
        "certify": ("certify", lane, "--out", package, "--product", "toy", "--vendor", "nobody"),
        "verify": ("verify", package),
    }
    done = dict(zip(arguments, commands("tests.toy.several", *arguments.values()), strict=True))
    assert {name: outcome["code"] for name, outcome in done.items()} == dict.fromkeys(arguments, 0) | dict.fromkeys(
        ("run", "model", "fuzz"), 1
    ), [outcome["printed"] for outcome in done.values()]
    rows = results(tmp_path / "run")
    wrong = {
        (target, *row["diagnosis"])  # type: ignore[misc]
        for (target, _), row in rows.items()
        if row["verdict"] != "pass"
    }
    assert wrong == {("wrong", "maskedleaky.reverse.forward"), ("half", "maskedleaky.mask.ignored@reverse")}
    answers = {target: row["interpretations"] for (target, _), row in rows.items() if row["interpretations"]}
    assert answers["kept"] == {"masked_steps": "kept"}
    assert answers["reset"] == {"masked_steps": "reset"}
    assert len(results(lane)) > 12  # those of the nonce included
    assert "1 recurrent node: nothing wrong" in done["check"]["printed"]
    assert {target: row["verdict"] for (target, _), row in results(tmp_path / "model").items()} == {
        "kept": "pass",
        "wrong": "wrong",
    }
    assert "Goes forward in the reverse direction" in done["fuzz"]["printed"]
    assert "14 cases catch 6 of 6 faults" in done["prove"]["printed"]
    assert "certified (complete): MaskedLeaky 1 in float32" in done["certify"]["printed"]
