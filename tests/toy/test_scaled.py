"""Tests of an operator without steps, whose outputs have axes of their own, which reports name."""

from __future__ import annotations

import json
from pathlib import Path

from .several import commands
from .test_toy import results

_ADAPTER = """
import numpy as np
import onnx

class Adapter:
    def __init__(self, options): self.broken = options.get("broken", "")
    def describe(self): return {"runtime": "scaled", "version": "1"}
    def prepare(self, model):
        self.names = [output.name for output in onnx.load_model_from_string(model).graph.output]
        return self
    def run(self, feeds):
        input, gain = feeds["input"], feeds["gain"]
        output = input * gain[:, np.newaxis]
        total = output.sum(axis=2)
        if self.broken == "output":
            output[1, 2] = input[1, 2]
        if self.broken == "total":
            total[:, 1] += 1
        return [{"output": output, "total": total}[name] for name in self.names]
"""


def test_wrong_results_are_placed_by_the_axes_of_their_output(tmp_path: Path) -> None:
    (tmp_path / "scaled.py").write_text(_ADAPTER)
    tables = [f'[{name}]\nadapter = "scaled.py"\noptions = {{ broken = "{name}" }}\n' for name in ("output", "total")]
    (tmp_path / "targets.toml").write_text("\n".join([*tables, '[right]\nadapter = "scaled.py"\n']))
    targets = ("--targets-file", tmp_path / "targets.toml")
    every = [word for name in ("right", "output", "total") for word in ("--target", name)]
    run = ("run", "--op", "Scaled", *targets, *every, "--out", tmp_path / "run")
    explain = ("explain", "scaled-1.float32.b2-c3-l4.b642af", "--target")
    ran, *explained = commands(
        "tests.toy.several", run, *((*explain, name, *targets) for name in ("output", "total")), (*explain[:2],)
    )
    assert ran["code"] == 1, ran["printed"]
    rows = results(tmp_path / "run")
    message = {key: str(row.get("message", "")) for key, row in rows.items()}
    verdicts = {target: {row["verdict"] for key, row in rows.items() if key[0] == target} for target, _ in rows}
    assert verdicts["right"] == {"pass"}
    assert verdicts["output"] == {"wrong"}
    of_output = next(text for (target, case), text in message.items() if target == "output" and "l4.no-total" in case)
    assert of_output.startswith("output[1, 2, 0] (row 1, channel 2, position 0) is ")
    of_total = next(text for (target, case), text in message.items() if target == "total" and "l4.b642af" in case)
    assert of_total.startswith("total[0, 1] (row 0, channels 1) is ")
    for answer, place in zip(explained, ("output[1, 2, 0]", "total[0, 1]", "output[0, 0, 0]"), strict=True):
        assert answer["code"] == 0, answer["printed"]
        assert place in answer["printed"]
        assert "after the last step" not in answer["printed"].lower()
    evidence = [json.loads(path.read_text()) for path in (tmp_path / "run").rglob("evidence.json")]
    assert {each["numbers"]["parting"]["place"] for each in evidence} == {"output[1, 2, 0]", "total[0, 1]"}
    assert all("gates" not in each["numbers"] for each in evidence)
