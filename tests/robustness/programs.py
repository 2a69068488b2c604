"""Target programs written from docs/worker-protocol.md, which send what a job or a test tells them to."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.job import Job

# The program speaks the protocol with only the standard library, and returns its inputs. It executes the "model" of a
# job as Python code, which finds `report`, `lists` and `parts` and may change them or send any bytes.
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

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def program(folder: Path, opening: str = "", **options: Any) -> Target:
    """Return the program as a target; `opening` is executed before its first message."""
    path = folder / "hostile.py"
    path.write_text(PROGRAM, encoding="utf-8")
    environment = {"OPENING": opening, "MARK": str(folder)}
    command = (sys.executable, "-I", "-S", str(path))
    return Target("hostile", "external", command=command, environment=environment, **options)


def job(words: str = "", key: str = "", *feeds: dict[str, Any]) -> Job:
    """Return a job whose model is Python code for the program."""
    return Job(key or words or "good", words.encode(), feeds or ({"X": X},))


def model(shape: Sequence[int | str] | None = (2, 3), producer: str = "") -> onnx.ModelProto:
    """Return a model that returns its input."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("X", "Y")]
    graph = helper.make_graph([helper.make_node("Identity", ["X"], ["Y"])], "g", values[:1], values[1:])
    made: onnx.ModelProto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 14)], producer_name=producer
    )
    return made


def targets_file(folder: Path, name: str, opening: str = "", **keys: object) -> Path:
    """Write a targets.toml with the program as its only target, and return its path."""
    path = folder / "hostile.py"
    path.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-I", "-S", str(path)]
    lines = [f"[{json.dumps(name)}]", 'adapter = "external"', f"command = {json.dumps(command)}"]
    lines.append(f"environment = {{ OPENING = {json.dumps(opening)}, MARK = {json.dumps(str(folder))} }}")
    lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    (folder / "targets.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "targets.toml"
