"""Tests of an operator in a distribution of its own: known once that is installed, left out if it is broken."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from . import ROOT, documented
from .several import results

COMMAND = "from onnxspec.conformance.cli.application import main; main()"


def installed(folder: Path, module: str, name: str = "leaky") -> Path:
    """Return a folder with an installed distribution that adds an operator."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[onnxspec.operators]\n{name} = {module}\n")
    return folder


def onnxspec(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_operator_of_the_documentation_is_one(tmp_path: Path) -> None:
    """The files as docs/operators.md shows them are installed: plain onnxspec knows and proves the operator."""
    site = installed(tmp_path / "site", "leaky_operator")
    assert documented(site) == 12
    done = onnxspec(site, "prove", "--op", "Leaky", "--out", str(tmp_path / "proof.csv"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "49 cases catch 3 of 3 faults" in done.stdout
    target = ("--target", "NAME", "--targets-file", str(site / "runtime" / "targets.toml"))
    done = onnxspec(site, "run", "--op", "Leaky", *target, "--out", str(tmp_path / "run"))
    assert "Conforms: yes: all 36 checked cases are correct" in done.stdout, done.stdout + done.stderr


SMOOTH = """
import numpy as np
import onnx


class Adapter:
    def __init__(self, options):
        self.wrong = options.get("wrong", "")

    def describe(self):
        return {"runtime": "smooth", "version": "1"}

    def prepare(self, model):
        graph = onnx.load_model_from_string(model).graph
        self.mode = next((a.s for a in graph.node[0].attribute), b"plain")
        self.held = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
        return self

    def run(self, feeds):
        given = {**self.held, **feeds}
        x, decay = given["input"], given["decay"]
        numbers = np.concatenate([given.get("past", np.zeros_like(x[:, :1])), x], axis=1)
        output = numbers[:, 1:] + decay * numbers[:, :-1]
        last = numbers[:, -1:].copy()
        if self.wrong:
            {"output": output, "last": last}[self.wrong][1, -1] += 1
        return [np.abs(output) if self.mode == b"absolute" else output, last]
"""
TARGETS = """
right = { adapter = "smooth_adapter.py" }
output = { adapter = "smooth_adapter.py", options = { wrong = "output" } }
last = { adapter = "smooth_adapter.py", options = { wrong = "last" } }
"""


def smooth(folder: Path, *changes: tuple[str, str]) -> tuple[Path, tuple[str, str]]:
    """Return a folder with Smooth, as the documentation shows it but for changes, and an option with its targets."""
    site = installed(folder / "site", "smooth_operator", "smooth")
    documented(site, *changes)
    (site / "smooth_adapter.py").write_text(SMOOTH)
    (site / "targets.toml").write_text(TARGETS)
    return site, ("--targets-file", str(site / "targets.toml"))


def test_the_described_operator_of_the_documentation_is_one(tmp_path: Path) -> None:
    site, targets = smooth(tmp_path)
    done = onnxspec(site, "prove", "--op", "Smooth", "--out", str(tmp_path / "proof.csv"))
    assert done.returncode == 0, done.stdout + done.stderr
    caught = re.search(r"cases catch (\d+) of (\d+) faults", done.stdout)
    assert caught is not None
    assert caught[1] == caught[2]
    assert int(caught[1]) >= 15  # two of them are written in the document
    out = ("--out", str(tmp_path / "run"))
    done = onnxspec(site, "run", "--op", "Smooth", "--profile", "smoke", "--target", "right", *targets, *out)
    assert "Conforms: yes" in done.stdout, done.stdout + done.stderr


def test_wrong_elements_are_placed_by_the_axes_of_their_output(tmp_path: Path) -> None:
    """Axes have the names that the form gives them (`last`), or else those of their sizes (`output`)."""
    site, targets = smooth(tmp_path, (", axes=AXES),  # axes: their names in messages", "),"))
    both = ("--target", "output", "--target", "last", *targets)
    case, run = "smooth-1.float32.b2-l4.d34d10", tmp_path / "run"
    done = onnxspec(site, "run", "--case", case, *both, "--out", str(run))
    assert done.returncode == 1, done.stdout + done.stderr
    places = {"output": "output[1, 3] (row 1, length 3)", "last": "last[1, 0] (row 1, position 0)"}
    messages = {target: row["message"] for (target, _), row in results(run).items()}
    assert {target: message.partition(" is ")[0] for target, message in messages.items()} == places
    evidence = [json.loads(path.read_text())["numbers"] for path in run.rglob("evidence.json")]
    assert {numbers["parting"]["place"] for numbers in evidence} == {"output[1, 3]", "last[1, 0]"}
    assert not any("gates" in numbers for numbers in evidence)
    for options, place in ((("--target", "last", *targets), "last[1, 0]"), ((), "output[0, 0]")):
        done = onnxspec(site, "explain", case, *options)
        assert place in done.stdout, done.stdout + done.stderr
        assert "after the last step" not in done.stdout.lower()


def test_an_attribute_may_have_whole_numbers_as_choices(tmp_path: Path) -> None:
    texts = ('"mode": "STRING"', '"mode": "INT"'), ('"mode": "plain"', '"mode": 0'), ('("plain", "absolute")', "(0, 1)")
    uses = ('== "absolute"', "== 1"), ("mode: str", "mode: int"), ('"plain", "absolute")', "0, 1)")
    site, _ = smooth(tmp_path, *texts, *uses, ("mode-absolute", "mode-1"))
    done = onnxspec(site, "list", "--op", "Smooth")
    assert done.returncode == 0, done.stderr
    assert ".illegal-mode.mode-unknown." in done.stdout, done.stderr
    assert ".illegal-mode.mode-negative." in done.stdout
    done = onnxspec(site, "prove", "--op", "Smooth", "--fault", "smooth.mode.1-as-0", "--out", str(tmp_path / "p.csv"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fault_of_an_input_that_there_is_not_is_named_before_all_others(tmp_path: Path) -> None:
    site, _ = smooth(tmp_path, ("with_inputs(c, decay=-c.", "with_inputs(c, dacay=-c."))
    fault = ("--fault", "smooth.decay.negative", "--out", str(tmp_path / "proof.csv"))
    done = onnxspec(site, "prove", "--op", "Smooth", *fault)
    assert done.returncode == 1
    first = done.stderr.splitlines()[0]
    assert "could not run: fault smooth.decay.negative in smooth-1." in first
    assert "Smooth-1 has no input dacay; it has: input, decay, past" in first
    assert "(smooth_operator/__init__.py, line " in first


def test_broken_operators_are_left_out_whole_and_named(tmp_path: Path) -> None:
    """An exception, a violation without a clause, and an unreadable clause table each exclude only their operator."""
    site = installed(tmp_path / "site", "leaky_broken", "broken")
    (site / "leaky_broken.py").write_text("raise RuntimeError('no document\\nat all')\n")
    documented(installed(site, "leaky_operator"), ("attributes.decay", "attribute.decay"))
    documented(
        installed(site, "drippy_operator", "drippy"),
        ("leaky", "drippy"), ("Leaky", "Drippy"), ('id = "drippy.equations"', 'id = "drip.equations"'),
    )  # fmt: skip
    done = onnxspec(site, "clauses")
    assert done.returncode == 0, done.stderr
    broken = "operator 'broken' of broken 1.0 is left out: RuntimeError: no document at all (leaky_broken.py, line 1"
    assert broken in done.stderr
    assert "'leaky' of leaky 1.0 is left out: ValueError: violation 'attribute.decay': there is no cl" in done.stderr
    assert "'drippy' of drippy 1.0 is left out: ClauseError: " in done.stderr
    assert "lstm.equations" in done.stdout
    assert not {"leaky.equations", "drippy.equations", "leaky.attributes"} & set(done.stdout.split())


def test_of_two_that_claim_one_name_the_second_is_refused_in_a_line(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "tests.toy.leaky")
    installed(site, "leaky_too", "waterlogged")
    (site / "leaky_too.py").write_text(
        "from dataclasses import replace\n"
        "from onnxspec.reference import register\n"
        "from tests.toy.leaky import Leaky\n"
        "class Another(Leaky):\n"
        "    document = replace(Leaky.document, former=(('toy.example', 'Leaked'),))\n"
        "register(Another())\n"
    )
    done = onnxspec(site, "list", "--op", "Leaky")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 5
    refused = [line for line in done.stderr.splitlines() if "'waterlogged' of waterlogged 1.0 is left out: " in line]
    assert len(refused) == 1
    assert "toy.example::Leaky" in refused[0]
