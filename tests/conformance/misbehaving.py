"""Targets that do what a job or a test tells them to: the model of a job is Python code that the target executes.

`program` speaks the protocol itself, as docs/worker-protocol.md has it; `adapter` runs in our own worker. Both return
their inputs if the code does nothing else.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.hangs import HangBudget
from onnxspec.conformance.workers.job import Job, Outcome, TargetUnavailable
from onnxspec.conformance.workers.process import TargetProcess

# The program speaks the protocol with only the standard library. The code finds `report`, `lists` and `parts` and may
# change them or send any bytes.
PROGRAM = r"""
import json, os, signal, struct, subprocess, sys, time

wire = os.dup(1)
os.dup2(2, 1)

def read(count):
    data = b""
    while len(data) < count:
        more = os.read(0, count - len(data))
        if not more:
            os._exit(0)
        data += more
    return data

def receive():
    magic, header, body = struct.unpack("<8sIQ", read(20))
    header, body = json.loads(read(header)), read(body)
    sizes, arrays, at = {"bool": 1, "bfloat16": 2}, [], 0
    for element, shape in header["arrays"]:
        size = sizes.get(element) or int(element.lstrip("uintcomplexfloat")) // 8
        for extent in shape:
            size *= extent
        arrays.append((element, shape, body[at:at + size]))
        at += -(-size // 16) * 16
    assert (magic, at) == (b"ONXSPEC1", len(body))
    return header, arrays

def raw(text, body=b"", claims=None):
    put(struct.pack("<8sIQ", b"ONXSPEC1", len(text), len(body) if claims is None else claims) + text + body)

def put(whole):
    while whole:
        whole = whole[os.write(wire, whole):]

def send(header, parts=()):
    header["arrays"] = [[element, shape] for element, shape, _ in parts]
    header["later"] = "a key of a later version"
    sys.stdout.flush()
    raw(json.dumps(header).encode(), b"".join(data + bytes(-len(data) % 16) for _, _, data in parts))

def without_end(header):
    while True:
        send(dict(header))
        time.sleep(0.01)

opening = os.environ.get("OPENING", "")
description = {"runtime": "hostile", "version": "1"}
exec(opening)
send({"type": "hello", "protocol": 1})
start, _ = receive()
exec(os.environ.get("STARTED", ""))
send({"type": "ready", "description": description, "captured": ""})
while True:
    run, arrays = receive()
    send({"type": "began", "jobs": [job["number"] for job in run["jobs"]]})
    for job in run["jobs"]:
        report = {"type": "report", "number": job["number"], "status": "ran", "phase": "run", "seconds": 0.25}
        lists, parts = [], []
        for feed in job["feeds"]:
            lists.append([list(range(len(parts), len(parts) + len(feed)))])
            parts += [arrays[k] for k in feed.values()]
        report["outputs"] = lists
        exec(arrays[job["model"]][2].decode())
        if report is not None:
            send(report, parts)
"""

TELL = '''
def tell(data):
    """Write to the descriptor that carries the protocol, whichever it is."""
    for fd in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, data)
        except OSError:
            pass
'''

# The code finds `x`, `feeds` and `session` and may change `outputs`. What follows "load:" is executed when the model is
# prepared.
ADAPTER = """
import ctypes, os, signal, stat, struct, sys, time
import numpy as np

DESCRIPTION = {"runtime": "told", "version": "1"}
MORE

TELL
class Session:
    def __init__(self, code):
        self.code = code
    def run(self, feeds):
        names = {**globals(), "session": self, "feeds": feeds, "x": feeds["X"], "outputs": [*feeds.values()]}
        exec(self.code, names)
        return names["outputs"]

class Adapter:
    def __init__(self, options):
        pass
    def describe(self):
        return DESCRIPTION
    def prepare(self, model):
        code = bytes(model).decode()
        if code.startswith("load:"):
            exec(code[5:], dict(globals()))
        return Session(code)
"""
"""Source of the adapter; MORE stands for code that is executed when it is loaded."""

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Fault(NamedTuple):
    """Code that ends or blocks a worker, and the expected outcome of its job.

    status
        Of the job; several are possible where the machine ends the process.
    message
        Text that the outcome's message contains.
    """

    code: str
    status: str
    message: str = ""


_SAYS_DIED = """
text = b'{"type":"died","signal":7,"captured":[],"arrays":[]}'
tell(struct.pack("<8sIQ", b"ONXSPEC1", len(text), 0) + text)
time.sleep(1000)"""
_REPORTS_ANOTHER = """
text = b'{"type":"report","number":0,"status":"ran","phase":"run","outputs":[],"seconds":0,"arrays":[]}'
tell(struct.pack("<8sIQ", b"ONXSPEC1", len(text), 0) + text)
time.sleep(1000)"""

CRASHES = {
    "aborts": Fault("print('last words'); os.abort()", "crashed", "SIGABRT"),
    "reads address 0": Fault("ctypes.string_at(0)", "crashed", "SIGSEGV"),
    "divides by zero": Fault("os.kill(os.getpid(), signal.SIGFPE)", "crashed", "SIGFPE"),
    "exits with 0": Fault("os._exit(0)", "crashed", "exit code 0"),
    "calls sys.exit": Fault("sys.exit('enough')", "crashed", "SystemExit: enough"),
    "writes garbage": Fault("tell(b'garbage on the wire'); time.sleep(1000)", "crashed", "garbage on the wire"),
    "reports another job": Fault(_REPORTS_ANOTHER, "crashed", "out of turn"),
    "says that it died": Fault(_SAYS_DIED, "crashed", "$.signal"),
    "kills its watcher": Fault("os.kill(os.getppid(), signal.SIGKILL); time.sleep(1000)", "crashed", "SIGKILL"),
    "closes all descriptors": Fault("os.closerange(3, 100)", "crashed"),
}
HANGS = {
    "loops": Fault("while True: pass", "timed-out", "no answer within"),
    "keeps the interpreter's lock": Fault("ctypes.PyDLL(None).sleep(1000)", "timed-out", "no answer within"),
    "prints without end": Fault("while True: os.write(1, b'blah ' * 100000)", "timed-out|crashed"),
}
FAULTS = {**CRASHES, **HANGS}
"""What a runtime may do to its worker, by name. Other tests stage all of them with the real command."""


def program(folder: Path, opening: str = "", **options: Any) -> Target:
    """Return the program as a target; `opening` is executed before its first message."""
    path = folder / "hostile.py"
    path.write_text(PROGRAM, encoding="utf-8")
    environment = {"OPENING": opening, "MARK": str(folder)}
    command = (sys.executable, "-I", "-S", str(path))
    return Target("hostile", "external", command=command, environment=environment, **options)


def adapter(folder: Path, more: str = "", environment: Mapping[str, str] = {}, **options: Any) -> Target:
    """Return the adapter as a target; `more` is executed when it is loaded."""
    path = folder / "told.py"
    path.write_text(ADAPTER.replace("TELL", TELL).replace("MORE", more), encoding="utf-8")
    environment = {"MARK": str(folder), **environment}
    return Target("told", str(path), environment=environment, **{"time_limit": 20.0, **options})


def targets_file(folder: Path, name: str, opening: str = "", **keys: object) -> Path:
    """Write a targets.toml with the program as its only target, and return its path."""
    target = program(folder, opening)
    lines = [f"[{json.dumps(name)}]", 'adapter = "external"', f"command = {json.dumps(target.command)}"]
    lines.append(f"environment = {{ OPENING = {json.dumps(opening)}, MARK = {json.dumps(str(folder))} }}")
    lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    (folder / "targets.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "targets.toml"


def job(code: str = "", key: str = "", *feeds: dict[str, Any]) -> Job:
    """Return a job whose model is Python code."""
    return Job(key or code or "good", code.encode(), feeds or ({"X": X},))


def outcomes(target: Target, *jobs: Job | str, hangs: HangBudget | None = None) -> list[Outcome]:
    """Return the outcomes of jobs, or of code, on a target that is started for them."""
    with TargetProcess(target, hangs=hangs) as process:
        process.start()
        return list(process.run(job(each) if isinstance(each, str) else each for each in jobs))


def statuses(target: Target, *jobs: Job | str, hangs: HangBudget | None = None) -> list[str]:
    return [outcome.status for outcome in outcomes(target, *jobs, hangs=hangs)]


def failure_to_start(target: Target) -> TargetUnavailable:
    """Return the error with which a target does not start; its message is one line."""
    with TargetProcess(target) as process, pytest.raises(TargetUnavailable) as caught:
        process.start()
    assert str(caught.value).isprintable()
    return caught.value


def processes_with(mark: str) -> list[int]:
    """Return the ids of running processes with a text in their command or environment; none without /proc."""
    ids = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            if command and mark.encode() in command + b"\0" + (process / "environ").read_bytes():
                ids.append(int(process.name))
        except OSError:
            continue
    return ids


def running(pid: int) -> bool:
    """Return whether a process has not ended; nobody may have reaped one that has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(mark: str, seconds: float = 60.0) -> bool:
    """Return whether all processes with the mark end soon; a machine under any load ends them in a minute."""
    deadline = time.monotonic() + seconds
    while processes_with(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
