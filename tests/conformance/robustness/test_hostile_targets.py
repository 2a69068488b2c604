"""Faults of a runtime, a machine or a person that must not damage a run.

No finished result is lost, every case has exactly one result, and no case is blamed for the fault of another.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import pytest

from onnxspec.cases import CaseSpec, build_case
from onnxspec.conformance.probes.selection import Selection, select

from ..miniatures import Command, Finished, command_line, complaints, naming, read_results
from ..misbehaving import FAULTS, TELL, Fault, gone, processes_with

Inside = Callable[..., Finished]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")

FAULTY = '''
"""Right in all cases, but for those that $FAULTS names by a checksum of the model, with the code that they execute."""

import ctypes, json, os, signal, stat, struct, sys, time, zlib
import numpy as np
import zoo
from onnxspec.reference import FAULTS as KNOWN_FAULTS, run_fault

FAULTS = json.loads(os.environ["FAULTS"])
LAST, EARLIER, PREPARED = {}, {}, [None]
TELL

def spoil(prepared, inputs, outputs):
    if prepared is not PREPARED[0]:
        EARLIER.update(LAST)
        PREPARED[0] = prepared
    LAST.update(outputs)
    if prepared.checksum not in FAULTS:
        return outputs
    name, code = FAULTS[prepared.checksum]
    print("doing:", name)
    names = {**globals(), "prepared": prepared, "inputs": inputs, "outputs": outputs}
    exec(code, names)
    return names["outputs"]

class Backend(zoo.spoiling(spoil)):
    @classmethod
    def prepare(cls, model, device="CPU", **options):
        prepared = super().prepare(model, device)
        prepared.checksum = str(zlib.crc32(model.SerializeToString()))
        return prepared
'''

SWAPS_GATES = "outputs = run_fault(KNOWN_FAULTS['lstm.gates.ifco'], prepared.node, inputs)"
RETURNS_EARLIER = "outputs = {n: np.resize(EARLIER.get(n, a * 2), a.shape).astype(a.dtype) for n, a in outputs.items()}"
STAGED = {
    **FAULTS,
    "returns objects": Fault("outputs = {n: a.astype(object) for n, a in outputs.items()}", "malformed", "object"),
    "swaps gates": Fault(SWAPS_GATES, "wrong"),
    "returns the results of the case before": Fault(RETURNS_EARLIER, "wrong"),
}
"""Faults, with the verdicts of their cases."""


@cache
def specs(count: int) -> list[CaseSpec]:
    """Return cases with all outputs and without empty tensors, all with different models."""
    chosen = select(Selection("full", ops=("LSTM",), versions=(14,), types=("float32",)))
    chosen = [spec for spec in chosen if not spec.illegal]
    usual = [s for s in chosen if s.outputs == ("Y", "Y_h", "Y_c") and s.reruns == "none" and s.T * s.N and s.T < 20]
    usual = [s for s in usual if s.activations is None and s.lengths != "empty" and s.hidden_size]
    usual = [spec for spec in usual if in_zoo(spec)]
    distinct = list({checksum(spec): spec for spec in usual}.values())
    assert len(distinct) >= count
    return distinct[:count]


def in_zoo(spec: CaseSpec) -> bool:
    """Return whether the zoo's backends support a case: one node, constants that cannot be fed, and one run."""
    trial = build_case(spec).trial
    graph = onnx.load_from_string(trial.model).graph
    names = [value.name for value in graph.input], [tensor.name for tensor in graph.initializer]
    fed = {name for feed in trial.feeds for name in feed.fed}
    return len(graph.node) == 1 and {*names[0]} == fed and not fed & {*names[1]} and len(trial.feeds) == 1


def checksum(spec: CaseSpec) -> str:
    return str(zlib.crc32(build_case(spec).trial.model))


def environment_of(kin: Mapping[str, str], folder: Path, faults: Mapping[CaseSpec, str]) -> dict[str, str]:
    """Return an environment with the backend `faulty`, which has a fault of `STAGED` in each of these cases."""
    (folder / "faulty.py").write_text(FAULTY.replace("TELL", TELL), encoding="utf-8")
    codes = {checksum(spec): (name, STAGED[name].code) for spec, name in faults.items()}
    assert len(codes) == len(faults)
    path = os.pathsep.join([str(folder), kin["PYTHONPATH"]])
    return {**kin, "PYTHONPATH": path, "FAULTS": json.dumps(codes), "MARK": str(folder)}


# Faults of a runtime


def test_a_fault_costs_no_other_case_and_says_what_happened(kin: dict[str, str], tmp_path: Path) -> None:
    """Every fault is staged between two right cases of one run."""
    chosen = specs(2 * len(STAGED) + 1)
    faults = dict(zip(chosen[1::2], STAGED, strict=True))
    limits = "time_limit = 3\nmemory_limit = 2_000_000_000"
    (tmp_path / "targets.toml").write_text(f'[faulty]\nadapter = "backend"\n{limits}\noptions.module = "faulty"\n')
    named = naming([spec.id for spec in chosen])  # no smaller case has their checksums
    run = Command(environment_of(kin, tmp_path, faults), tmp_path)
    done = run("run", "--target", "faulty", *named, "--no-extra", "--out", "o")
    assert (done.code, complaints(done.err)) == (1, [])
    assert json.loads((tmp_path / "o" / "run.json").read_text(encoding="utf-8"))["complete"] is True
    assert processes_with(str(tmp_path)) == []
    results = {result["case"]: result for result in read_results(tmp_path / "o")}
    assert Counter(result["case"] for result in read_results(tmp_path / "o")) == {spec.id: 1 for spec in chosen}
    assert {results[spec.id]["verdict"] for spec in chosen[::2]} == {"pass"}
    silent = set()
    for spec, name in faults.items():
        result, fault = results[spec.id], STAGED[name]
        assert result["verdict"] in fault.status.split("|"), name
        assert fault.message in result["message"]
        assert result["message"].isprintable()
        assert len(result["message"]) < 800
        assert len(result["printed"]) <= 2000
        if f"doing: {name}" not in result["printed"]:
            silent.add(name)
        assert name != "prints without end" or "blah" in result["printed"]
    # Of endless output the end is kept; output is lost if a worker can no longer write.
    assert silent <= {"prints without end", "closes all descriptors"}


# Faults of the run itself

DYING = {
    "before the folder is made": "import onnxspec.conformance.cli.execution as m; m.RunWriter = die",
    "before anything is described": "import onnxspec.conformance.results.writer as m; m.RunWriter.describe = die",
    "while run.json is replaced": """
import pathlib
replace = pathlib.Path.replace
pathlib.Path.replace = lambda self, to: die() if self.name == 'run.json.new' else replace(self, to)""",
    "while the target starts": "import onnxspec.conformance.workers.process as m; m.WorkerProcess.await_ready = die",
    "before the first line": "import onnxspec.conformance.results.writer as m; m.RunWriter.append = die",
    "in the middle of a line": """
import onnxspec.conformance.results.recorded as m
write, count = m.os.write, [0]
class Os:
    def __getattr__(self, name):
        return getattr(os, name)
    def write(self, descriptor, data):
        count[0] += 1
        if count[0] < 4:
            return write(descriptor, data)
        write(descriptor, data[:len(data) // 2])
        die()
m.os = Os()""",
    "between two results": """
import onnxspec.conformance.results.writer as m
append, count = m.RunWriter.append, [0]
def dying(self, *lines):
    append(self, *lines)
    count[0] += 1
    if count[0] == 3:
        die()
m.RunWriter.append = dying""",
    "while results are explained": "import onnxspec.conformance.diagnosis.explainer as m; m.explained = die",
    "while a result is updated": "import onnxspec.conformance.results.lines as m; m.update_of = die",
    "while evidence is written": "import onnxspec.conformance.showing.evidence as m; m.evidence_of = die",
    "while run.json is written at the end": """
import onnxspec.conformance.results.writer as m
describe = m.RunWriter.describe
m.RunWriter.describe = lambda self, content: die() if content['complete'] else describe(self, content)""",
    "while the report is written": "import onnxspec.reports.page as m; m.report_on = die",
}
"""Points at which a run is killed, in the order in which it comes by, each with the code that kills it there."""

DIE = "import os, signal\ndef die(*arguments, **options): os.kill(os.getpid(), signal.SIGKILL)\n"


def timeless(folder: Path) -> list[dict[str, Any]]:
    """Return the results without times, and without addresses in the output of a dying process."""
    return [{**result, "seconds": 0, "printed": result["printed"][:10]} for result in read_results(folder)]


def test_a_run_killed_anywhere_goes_on_without_loss_or_repetition(kin: dict[str, str], tmp_path: Path) -> None:
    """Each attempt goes on with the run until the next point. The third case is wrong and the fifth crashes."""
    chosen = specs(9)
    environment = environment_of(kin, tmp_path, {chosen[2]: "swaps gates", chosen[4]: "aborts"})
    named = ["run", "--target", "backend:faulty", *naming([spec.id for spec in chosen])]
    run, journal = Command(environment, tmp_path), tmp_path / "o" / "results.jsonl"
    finished: dict[str, float] = {}
    for point, code in {**DYING, "": ""}.items():
        command = command_line(*named, "--out", "o", "--resume")
        command[2] = f"{DIE}{code}\n{command[2].replace('; ', chr(10))}"
        warned = "" if finished else "nothing to go on with"  # the run was killed before it stored anything
        if journal.exists() and not (b"\n" + journal.read_bytes()).endswith(b"\n"):
            warned = "ends in an incomplete line"
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=590)
        assert done.returncode == (-signal.SIGKILL if point else 1), (point, done.stderr)
        assert all(warned and warned in line for line in complaints(done.stderr)), (point, done.stderr)
        took = {r["case"]: r["seconds"] for r in read_results(tmp_path / "o")} if journal.exists() else {}
        assert finished.items() <= took.items(), f"lost or run again after the run was killed {point}"
        finished = took
        assert gone(f"MARK={tmp_path}\0")
    assert not list((tmp_path / "o").rglob("*.new"))
    run(*named, "--out", "undisturbed")
    assert timeless(tmp_path / "o") == timeless(tmp_path / "undisturbed")


def test_an_older_run_is_not_harmed_by_a_run_that_cannot_start(inside: Inside, tmp_path: Path) -> None:
    case = naming([specs(1)[0].id])
    assert inside("run", "--target", "backend:conforming", *case, "--out", "o").code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "o").rglob("*") if path.is_file()}
    assert inside("run", "--target", "backend:conforming", *case, "--out", "o").code == 2
    assert inside("run", "--target", "nothing", *case, "--out", "o").code == 2
    assert {path: path.read_bytes() for path in (tmp_path / "o").rglob("*") if path.is_file()} == before
