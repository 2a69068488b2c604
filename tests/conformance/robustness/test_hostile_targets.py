"""Faults of a runtime, a machine or a person that must not damage a run.

No finished result is lost, every case has exactly one result, and no case is blamed for the fault of another.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
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

Inside = Callable[..., Finished]
Undisturbed = Callable[..., list[Any]]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")

FAULTY = '''
"""Right in all cases, but for those that $FAULTS names by a checksum of the model."""

import ctypes, json, os, signal, stat, struct, sys, time, zlib
import numpy as np
import zoo
from onnxspec.reference import FAULTS as KNOWN_FAULTS, run_fault

FAULTS = json.loads(os.environ["FAULTS"])
LAST, EARLIER, PREPARED = {}, {}, [None]

def tell(data):
    """Write to the descriptor that carries the protocol, whichever it is."""
    for fd in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, data)
        except OSError:
            pass

def spoil(prepared, inputs, outputs):
    fault = FAULTS.get(prepared.checksum)
    if prepared is not PREPARED[0]:
        EARLIER.update(LAST)
        PREPARED[0] = prepared
    LAST.update(outputs)
    if fault is None:
        return outputs
    print("doing:", fault)
    if fault == "abort":
        os.abort()
    if fault == "loop":
        while True:
            pass
    if fault == "stuck with the interpreter's lock":
        ctypes.PyDLL(None).sleep(1000)
    if fault == "output without end":
        while True:
            os.write(1, b"blah " * 100000)
    if fault == "a frame that says it died":
        text = b'{"type":"died","signal":7,"captured":[],"arrays":[]}'
        tell(struct.pack("<8sIQ", b"ONXSPEC1", len(text), 0) + text)
        time.sleep(1000)
    if fault == "closes all descriptors":
        os.closerange(3, 100)
        return outputs
    if fault == "kills who watches it":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)
    if fault == "object arrays":
        return {n: a.astype(object) for n, a in outputs.items()}
    if fault == "gates in another order":
        return run_fault(KNOWN_FAULTS["lstm.gates.ifco"], prepared.node, inputs)
    if fault == "results of the case before":
        return {n: np.resize(EARLIER.get(n, a * 2), a.shape).astype(a.dtype) for n, a in outputs.items()}
    raise AssertionError(fault)

class Backend(zoo.spoiling(spoil)):
    @classmethod
    def prepare(cls, model, device="CPU", **options):
        prepared = super().prepare(model, device)
        prepared.checksum = str(zlib.crc32(model.SerializeToString()))
        return prepared
'''

# Verdict, and text that the message must contain. If the machine ends the process, one of several forms is possible.
# Other faults of a runtime have their outcomes in workers/test_worker.py and tests/robustness/test_messages.py.
FAULTS: dict[str, tuple[str, str]] = {
    "abort": ("crashed", "SIGABRT"),
    "loop": ("timed-out", "no answer within 4 s"),
    "stuck with the interpreter's lock": ("timed-out", "no answer within 4 s"),
    "output without end": ("timed-out|crashed", ""),
    "a frame that says it died": ("crashed", ""),
    "closes all descriptors": ("crashed", ""),
    "kills who watches it": ("crashed", "SIGKILL"),
    "object arrays": ("malformed", "object"),
    "gates in another order": ("wrong", ""),
    "results of the case before": ("wrong", ""),
}


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


@pytest.fixture(scope="module")
def backends(tmp_path_factory: pytest.TempPathFactory, kin: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which `faulty` can be imported, beside all of the kin."""
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "faulty.py").write_text(FAULTY, encoding="utf-8")
    return {**kin, "PYTHONPATH": os.pathsep.join([str(folder), kin["PYTHONPATH"]]), "FAULTS": "{}"}


# Faults of a runtime


@pytest.fixture(scope="module")
def staged(backends: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Run every fault, each between two right cases; return the folder and the fault of each case."""
    chosen = specs(2 * len(FAULTS) + 1)
    fault_of = dict(zip((spec.id for spec in chosen[1::2]), FAULTS, strict=True))
    by_checksum = {checksum(spec): fault_of[spec.id] for spec in chosen if spec.id in fault_of}
    assert len(by_checksum) == len(FAULTS)
    folder = tmp_path_factory.mktemp("staged")
    limits = "time_limit = 4\nmemory_limit = 2_000_000_000"
    (folder / "targets.toml").write_text(f'[faulty]\nadapter = "backend"\n{limits}\noptions.module = "faulty"\n')
    named = naming([spec.id for spec in chosen])  # no smaller case has their checksums
    arguments = command_line("run", "--target", "faulty", *named, "--no-extra", "--out", "o")
    environment = {**backends, "FAULTS": json.dumps(by_checksum), "MARK": str(folder)}
    done = subprocess.run(arguments, env=environment, cwd=folder, capture_output=True, text=True, timeout=590)
    assert (done.returncode, complaints(done.stderr)) == (1, [])
    return folder, fault_of


def test_every_case_has_one_result_and_no_fault_costs_another_case(staged: tuple[Path, dict[str, str]]) -> None:
    folder, fault_of = staged
    results = read_results(folder / "o")
    assert Counter(result["case"] for result in results) == {spec.id: 1 for spec in specs(2 * len(FAULTS) + 1)}
    assert {r["verdict"] for r in results if r["case"] not in fault_of} == {"pass"}
    assert json.loads((folder / "o" / "run.json").read_text(encoding="utf-8"))["complete"] is True


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_its_verdict_and_says_what_happened(staged: tuple[Path, dict[str, str]], fault: str) -> None:
    folder, fault_of = staged
    (result,) = (r for r in read_results(folder / "o") if fault_of.get(r["case"]) == fault)
    verdicts, message = FAULTS[fault]
    assert result["verdict"] in verdicts.split("|")
    assert message in result["message"]
    assert result["message"].isprintable()
    assert len(result["message"]) < 800


def test_what_the_runtime_printed_before_it_died_is_kept(staged: tuple[Path, dict[str, str]]) -> None:
    folder, fault_of = staged
    results = {fault_of[r["case"]]: r for r in read_results(folder / "o") if r["case"] in fault_of}
    silent = {fault for fault, result in results.items() if f"doing: {fault}" not in result["printed"]}
    # Of endless output the end is kept; output is lost if a worker can no longer write.
    assert silent <= {"output without end", "closes all descriptors"}
    assert "blah" in results["output without end"]["printed"]
    assert max(len(result["printed"]) for result in results.values()) <= 2000


def test_nothing_is_left_running(staged: tuple[Path, dict[str, str]]) -> None:
    assert running_for(staged[0]) == []


def running_for(mark: Path) -> list[int]:
    """Return the ids of processes that were started with the mark; needs /proc."""
    ids = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"MARK={mark}\0".encode() in (process / "environ").read_bytes() and (process / "cmdline").read_bytes():
                ids.append(int(process.name))
        except OSError:
            continue
    return ids


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
    if count[0] == 7:
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
"""Points at which a run is killed, each with the code that kills it there."""

DIE = "import os, signal\ndef die(*arguments, **options): os.kill(os.getpid(), signal.SIGKILL)\n"

NINE = ["run", "--target", "backend:faulty", *naming([spec.id for spec in specs(9)])]
SHRINKING = "while evidence is written"
"""The point at which smallest cases are known too; the other points skip them, since they take the most time."""


def of_nine(point: str) -> list[str]:
    return NINE if point == SHRINKING else [*NINE, "--no-extra"]


@pytest.fixture(scope="module")
def nine(backends: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], Undisturbed]:
    """Return an environment, and a function for the results of an undisturbed run of nine cases.

    The third case is wrong and the fifth crashes.
    """
    chosen = specs(9)
    faults = {checksum(chosen[2]): "gates in another order", checksum(chosen[4]): "abort"}
    environment = {**backends, "FAULTS": json.dumps(faults)}

    @cache
    def undisturbed(*command: str) -> list[Any]:
        folder = tmp_path_factory.mktemp("nine")
        arguments = command_line(*command, "--out", "o")
        subprocess.run(arguments, env=environment, cwd=folder, capture_output=True, timeout=590)
        return timeless(folder / "o")

    return environment, undisturbed


def timeless(folder: Path) -> list[dict[str, Any]]:
    """Return the results without times, and without addresses in the output of a dying process."""
    return [{**result, "seconds": 0, "printed": result["printed"][:10]} for result in read_results(folder)]


@pytest.mark.parametrize("point", DYING)
def test_a_run_killed_anywhere_goes_on_without_loss_or_repetition(
    nine: tuple[dict[str, str], Undisturbed],
    tmp_path: Path,
    point: str,
) -> None:
    environment, undisturbed = nine
    command = command_line(*of_nine(point), "--out", tmp_path / "o")
    command[2] = f"{DIE}{DYING[point]}\n{command[2].replace('; ', chr(10))}"
    died = subprocess.run(
        command, env={**environment, "MARK": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True, timeout=590
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    journal = tmp_path / "o" / "results.jsonl"
    finished = read_results(tmp_path / "o") if journal.exists() else []
    cut = journal.exists() and not (b"\n" + journal.read_bytes()).endswith(b"\n")
    again = Command(environment, tmp_path)(*of_nine(point), "--out", tmp_path / "o", "--resume")
    warned = "nothing to go on with" in again.err and not finished  # the run was killed before it stored anything
    warned |= cut and "ends in an incomplete line" in again.err
    assert (again.code, "" if warned else again.err) == (1, "")
    assert timeless(tmp_path / "o") == undisturbed(*of_nine(point))
    took = {result["case"]: result["seconds"] for result in read_results(tmp_path / "o")}
    for result in finished:
        assert took[result["case"]] == result["seconds"], "run again"
    assert not list((tmp_path / "o").rglob("*.new"))
    deadline = time.monotonic() + 590
    while running_for(tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("fault", ["loop", "stuck with the interpreter's lock", "output without end"])
def test_a_stuck_worker_does_not_outlive_a_run_that_is_killed(
    backends: dict[str, str], tmp_path: Path, fault: str
) -> None:
    (spec,) = specs(1)
    environment = {**backends, "FAULTS": json.dumps({checksum(spec): fault}), "MARK": str(tmp_path)}
    command = command_line("run", "--target", "backend:faulty", "--case", spec.id, "--out", "o")
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL) as run:
        deadline = time.monotonic() + 590
        while len(running_for(tmp_path)) < 3:  # the run, the watcher, the worker
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.5)
        run.kill()
    killed = time.monotonic()
    while running_for(tmp_path):
        assert time.monotonic() - killed < 590
        time.sleep(0.02)


def test_an_older_run_is_not_harmed_by_a_run_that_cannot_start(inside: Inside, tmp_path: Path) -> None:
    case = naming([specs(1)[0].id])
    assert inside("run", "--target", "backend:conforming", *case, "--out", "o").code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "o").rglob("*") if path.is_file()}
    assert inside("run", "--target", "backend:conforming", *case, "--out", "o").code == 2
    assert inside("run", "--target", "nothing", *case, "--out", "o").code == 2
    assert {path: path.read_bytes() for path in (tmp_path / "o").rglob("*") if path.is_file()} == before


if sys.platform != "linux":  # these tests need /proc
    del test_nothing_is_left_running, test_a_stuck_worker_does_not_outlive_a_run_that_is_killed
