"""Tests of an operator in a distribution of its own: known once that is installed, left out if it is broken."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from . import ROOT, documented

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
    assert "26 cases catch 3 of 3 faults" in done.stdout
    target = ("--target", "NAME", "--targets-file", str(site / "runtime" / "targets.toml"))
    done = onnxspec(site, "run", "--op", "Leaky", *target, "--out", str(tmp_path / "run"))
    assert "Conforms: yes: all 19 checked cases are correct" in done.stdout, done.stdout + done.stderr


RIGHT = """
import numpy as np
import onnx


class Adapter:
    def __init__(self, options): ...

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
        return [np.abs(output) if self.mode == b"absolute" else output, numbers[:, -1:]]
"""


def test_the_described_operator_of_the_documentation_is_one(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "smooth_operator", "smooth")
    documented(site)
    done = onnxspec(site, "prove", "--op", "Smooth", "--out", str(tmp_path / "proof.csv"))
    assert done.returncode == 0, done.stdout + done.stderr
    caught = re.search(r"cases catch (\d+) of (\d+) faults", done.stdout)
    assert caught is not None
    assert caught[1] == caught[2]
    assert int(caught[1]) >= 15  # two of them are written in the document
    (site / "smooth_adapter.py").write_text(RIGHT)
    (site / "targets.toml").write_text('[right]\nadapter = "smooth_adapter.py"\n')
    target = ("--target", "right", "--targets-file", str(site / "targets.toml"))
    done = onnxspec(site, "run", "--op", "Smooth", "--profile", "smoke", *target, "--out", str(tmp_path / "run"))
    assert "Conforms: yes" in done.stdout, done.stdout + done.stderr


def test_an_attribute_may_have_whole_numbers_as_choices(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "smooth_operator", "smooth")
    texts = ('"mode": "STRING"', '"mode": "INT"'), ('"mode": "plain"', '"mode": 0'), ('("plain", "absolute")', "(0, 1)")
    uses = ('== "absolute"', "== 1"), ("mode: str", "mode: int"), ('"plain", "absolute")', "0, 1)")
    documented(site, *texts, *uses, ("mode-absolute", "mode-1"))
    done = onnxspec(site, "list", "--op", "Smooth")
    assert done.returncode == 0, done.stderr
    assert ".illegal-mode.mode-unknown." in done.stdout, done.stderr
    assert ".illegal-mode.mode-negative." in done.stdout
    done = onnxspec(site, "prove", "--op", "Smooth", "--fault", "smooth.mode.1-as-0", "--out", str(tmp_path / "p.csv"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fault_of_an_input_that_there_is_not_is_named_before_all_others(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "smooth_operator", "smooth")
    documented(site, ("with_inputs(c, decay=-c.", "with_inputs(c, dacay=-c."))
    fault = ("--fault", "smooth.decay.negative", "--out", str(tmp_path / "proof.csv"))
    done = onnxspec(site, "prove", "--op", "Smooth", *fault)
    assert done.returncode == 1
    first = done.stderr.splitlines()[0]
    assert "could not run: fault smooth.decay.negative in smooth-1." in first
    assert "Smooth-1 has no input dacay; it has: input, decay, past" in first
    assert "(smooth_operator/__init__.py, line " in first


def test_a_broken_one_is_left_out_and_named(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "leaky_broken")
    (site / "leaky_broken.py").write_text("raise RuntimeError('no document\\nat all')\n")
    done = onnxspec(site, "list", "--op", "RNN", "--profile", "smoke")
    assert done.returncode == 0, done.stderr
    assert (
        "operator 'leaky' of leaky 1.0 is left out: RuntimeError: no document at all (leaky_broken.py, line 1"
        in done.stderr
    )
    assert "rnn-14.float32" in done.stdout


def test_what_does_not_go_together_is_left_out_whole(tmp_path: Path) -> None:
    """A violation without a clause, and a clause table that cannot be read, each exclude only their operator."""
    site = tmp_path / "site"
    documented(installed(site, "leaky_operator"), ("attributes.decay", "attribute.decay"))
    documented(
        installed(site, "drippy_operator", "drippy"),
        ("leaky", "drippy"), ("Leaky", "Drippy"), ('id = "drippy.equations"', 'id = "drip.equations"'),
    )  # fmt: skip
    done = onnxspec(site, "clauses")
    assert done.returncode == 0, done.stderr
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
