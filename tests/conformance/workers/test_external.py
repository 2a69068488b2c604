"""External programs as targets: documented byte examples, a worker written from them alone, and the JavaScript
worker."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxspec.cases import CaseSpec
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import tried
from onnxspec.conformance.running.adapter_kit import AdapterContract
from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.conformance.workers import worker
from onnxspec.conformance.workers.job import Job
from onnxspec.conformance.workers.process import TargetProcess

from ..misbehaving import PROGRAM, X, failure_to_start, job, outcomes, statuses
from ..runtimes import missing
from ..targets.small_models import identity

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "worker-protocol.md"
WEB = ROOT / "examples" / "onnxruntime-web"

TELLING = """
description.update({key: value for key, value in start.items() if key not in ("type", "arrays")}, folder=os.getcwd())
if "colour" in start["options"]:
    send({"type": "unavailable", "message": "unknown option 'colour'", "captured": ""})
    sys.exit(0)
"""
"""Code of the program after the first message to it."""


@pytest.fixture
def fake(tmp_path: Path) -> Target:
    (tmp_path / "fake.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "targets.toml").write_text(
        f'[fake]\nadapter = "external"\ncommand = [{json.dumps(sys.executable)}, "-IS", "fake.py"]\n'
        f'options.threads = 2\nenvironment = {{ SEEN = "yes", STARTED = {json.dumps(TELLING)} }}\n'
        "time_limit = 5\nmemory_limit = 4_000_000_000\n"
    )
    return parse_target("fake", tmp_path / "targets.toml")


# The documentation


def noted_blocks() -> list[list[tuple[bytes, str]]]:
    """Return the frames in the documentation: lines of bytes, each with its note."""
    text = DOCUMENT.read_text(encoding="utf-8")
    texts = re.findall(r"^```hex\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [[(bytes.fromhex(line[:47]), line[49:]) for line in block.splitlines()] for block in texts]


def blocks() -> list[bytes]:
    return [b"".join(data for data, _ in block) for block in noted_blocks()]


def test_the_documents_notes_are_right() -> None:
    """The notes beside the bytes give texts and lengths."""
    for data, note in (line for block in noted_blocks() for line in block):
        if match := re.fullmatch(r"(?:header|body): (\d+) bytes", note):
            assert int.from_bytes(data, "little") == int(match[1])
        elif note.startswith("magic: "):
            assert data == note[7:].encode() == worker.MAGIC
        elif note and not note.startswith(("array ", "to a multiple")):
            assert data.decode() == note.replace("·", " ")


def test_the_documents_frames_are_those_of_the_code() -> None:
    frames = blocks()
    types = []
    for raw in frames:
        reader = worker.FrameReader()
        reader.feed(raw)
        frame = reader.next()
        assert frame is not None
        header, body = frame
        payload = worker.Payload()
        for element, array in worker.unpack_arrays(header, body):
            payload.add(worker.Tensor(element, array.shape, array.tobytes()))
        types.append(header["type"])
        del header["arrays"]
        assert b"".join(worker.pack_frame(header, payload)) == raw
    assert types == ["hello", "start", "ready", "run", "began", "report"]


def test_the_documented_exchange_happens_byte_by_byte(tmp_path: Path) -> None:
    """A program that sends the documented bytes receives the documented answers, byte by byte."""
    hello, start, ready, run_, began, report = blocks()
    (tmp_path / "player.py").write_text(
        textwrap.dedent(f"""\
        import os, sys
        def hear(must):
            got = b""
            while len(got) < len(must):
                got += os.read(0, len(must) - len(got))
            if got != must:
                sys.exit("heard " + repr(got))
        os.write(1, {hello!r})
        hear({start!r})
        os.write(1, {ready!r})
        hear({run_!r})
        os.write(1, {began + report!r})
        sys.exit("then heard " + repr(more) if (more := os.read(0, 1)) else 0)
        """)
    )
    target = Target("player", "external", command=(sys.executable, str(tmp_path / "player.py")))
    value = np.array([1.5, -2], ml_dtypes.bfloat16)
    reader = worker.FrameReader()
    reader.feed(run_)
    frame = reader.next()
    assert frame is not None
    model = worker.unpack_arrays(*frame)[0][1].tobytes()
    with TargetProcess(target) as process:
        assert process.start() == {"runtime": "echo", "version": "1"}
        (outcome,) = process.run([Job("a", model, ({"X": value},))])
    assert outcome.status == "ran", outcome.message
    (array,) = outcome.outputs[0][0]
    assert array is not None
    assert array.dtype == value.dtype
    assert array.tobytes() == value.tobytes()
    # The bytes are a model that returns its input.
    with TargetProcess(parse_target("onnx-reference")) as process:
        process.start()
        (again,) = process.run([Job("a", model, ({"X": value},))])
    assert again.status == "ran", again.message


# A program written from the documentation


def test_a_program_receives_the_settings_of_its_table(fake: Target, tmp_path: Path) -> None:
    with TargetProcess(fake) as process:
        description = process.start()
    assert Path(description.pop("folder")) == tmp_path
    environment = description.pop("environment")
    assert (environment.keys(), environment["SEEN"]) == ({"SEEN", "STARTED"}, "yes")
    assert description == {
        **{"runtime": "hostile", "version": "1", "adapter": "", "options": {"threads": 2}, "repeats": 2},
        **{"time_limit": 5.0, "memory_limit": 4_000_000_000, "output_limit": 256 << 20},
    }


def test_arrays_of_every_type_and_shape_go_there_and_back(fake: Target) -> None:
    values: list[Any] = [
        X,
        np.array(3.5, np.float16),
        np.zeros((0, 4), np.int64),
        np.array([True, False]),
        np.array([1.5, np.nan, -0.0], ml_dtypes.bfloat16),
        np.arange(4, dtype=np.int32)[::2],
        np.array([1 + 2j], np.complex64),
        *(np.array([0, 200]).astype(dtype) for dtype in ("i1", "u1", "i2", "u2", "u4", "u8", "f8")),
    ]
    feed = {f"in {number}": value for number, value in enumerate(values)}
    (outcome,) = outcomes(fake, job("", "", feed, {"X": X}))
    assert (outcome.status, outcome.phase, outcome.seconds) == ("ran", "run", 0.25)
    (first,), (second,) = outcome.outputs
    for got, must in zip((*first, *second), (*values, X), strict=True):
        assert got is not None
        assert got.dtype == must.dtype
        assert got.shape == must.shape
        assert got.tobytes() == must.tobytes()


def test_reports_of_a_program_become_outcomes(fake: Target) -> None:
    orders = [
        "report.update(status='refused', phase='load', message='not this one'); lists[:], parts = [[]], []",
        "report.update(status='fell-back', message='ran on the CPU', proof='node 1: CPU')",
        "lists[0][0].append(None); report['malformed'] = 'output 1 is a text'",
        "lists[0].append([0, 0]); report['returned'] = [[0, 1]]",
        "report.update(changed=['X'], returned=[[0, 0]])",
        "report['captured'] = 'so to speak'",
        "",
    ]
    refused, fell, no_array, chance, changed, printed, good = outcomes(fake, *orders)
    assert (refused.status, refused.phase, refused.message) == ("refused", "load", "not this one")
    assert refused.outputs == ((),)
    assert (fell.status, fell.message, fell.proof) == ("fell-back", "ran on the CPU", "node 1: CPU")
    assert no_array.outputs[0][0][1] is None
    assert no_array.malformed == "output 1 is a text"
    assert (len(chance.outputs[0]), chance.returned) == (2, ((0, 1),))
    assert (changed.changed, changed.returned) == (("X",), ((0, 0),))
    assert printed.captured == "so to speak"
    assert good.status == "ran"


def test_it_may_greet_and_refuse_to_start(fake: Target) -> None:
    assert statuses(replace(fake, environment={"OPENING": "os.write(wire, b'Welcome!\\n')"}), "") == ["ran"]
    assert "unknown option 'colour'" in str(failure_to_start(replace(fake, options={"colour": 1})))
    missing = str(failure_to_start(replace(fake, command=("no-such-program",))))
    assert "cannot start 'no-such-program': No such file" in missing


# In JavaScript


@pytest.fixture(scope="module")
def node() -> None:
    path = shutil.which("node")
    if path is None:
        missing("there is no node on PATH")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    if int((re.match(r"v(\d+)", version) or [0, "0"])[1]) < 18:
        missing(f"node is {version.strip()}, and 18 is the oldest for protocol.mjs")


@pytest.fixture(scope="module")
def web(node: None) -> Target:
    if not (WEB / "node_modules" / "onnxruntime-web").is_dir():
        missing("onnxruntime-web is not installed: npm ci --prefix examples/onnxruntime-web")
    return parse_target("onnxruntime-web", WEB / "targets.toml")


SCRIPTED = """
import fs from "node:fs";
import { serve } from "PROTOCOL";
await serve(async (options) => {
  if (options.fail) throw new Error("no such device");
  return {
    describe: () => ({ runtime: "scripted", version: "1" }),
    prepare: async (model) => {
      const words = Buffer.from(model).toString();
      if (words === "refuse") throw new Error("not this one");
      return {
        run: async (feeds) => {
          if (words === "raw") fs.writeSync(1, "raw ONXSPEC1 on descriptor 1\\n");
          if (words === "print") { console.log("to stdout"); console.error("to stderr"); }
          if (words === "trap") {
            console.log("last words");
            new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(
              [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 8, 1, 0, 10, 5, 1, 3, 0, 0, 11])));
          }
          if (words === "exit") process.exit(3);
          if (words === "loop") for (;;);
          if (words === "change") Object.values(feeds)[0].data[0] += 1;
          return Object.values(feeds);
        },
      };
    },
  };
});
"""


@pytest.fixture
def scripted(node: None, tmp_path: Path) -> Target:
    text = SCRIPTED.replace("PROTOCOL", (WEB / "protocol.mjs").as_uri())
    (tmp_path / "scripted.mjs").write_text(text, encoding="utf-8")
    return Target("js", "external", command=("node", "scripted.mjs"), time_limit=10.0, folder=str(tmp_path))


def test_the_protocol_in_javascript(scripted: Target) -> None:
    half = np.array([[1.5, np.nan]], ml_dtypes.bfloat16)
    feeds = {"a": X, "b": half, "c": np.zeros((3, 0), np.int64), "d": np.array(True)}
    good, refused, raw, printed, changed, after = outcomes(
        scripted, job("", "", feeds, {"a": X + 1}), "refuse", "raw", "print", "change", ""
    )
    for got, must in zip(good.outputs[0][0], feeds.values(), strict=True):
        assert got is not None
        assert (got.dtype, got.shape, got.tobytes()) == (must.dtype, must.shape, must.tobytes())
    assert (refused.status, refused.phase, refused.message) == ("refused", "load", "Error: not this one")
    assert raw.status == printed.status == "ran"
    assert "raw ONXSPEC1 on descriptor 1" in raw.captured
    assert "to stdout" in printed.captured
    assert "to stderr" in printed.captured
    assert changed.changed == ("X",)
    assert (after.status, after.captured) == ("ran", "")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [("trap", "crashed", "SIGABRT"), ("exit", "crashed", "exit code 3"), ("loop", "timed-out", "no answer within 2 s")],
)
def test_a_fault_in_javascript_costs_one_job(scripted: Target, words: str, status: str, message: str) -> None:
    before, ended, after = outcomes(replace(scripted, time_limit=2.0), "", words, "")
    assert (before.status, ended.status, after.status) == ("ran", status, "ran")
    assert message in ended.message
    assert words != "trap" or "last words" in ended.captured


def test_javascript_that_cannot_load_its_runtime_says_so(scripted: Target) -> None:
    assert "Error: no such device" in str(failure_to_start(replace(scripted, options={"fail": True})))


@pytest.mark.usefixtures("web")
class TestOnnxruntimeWeb(AdapterContract):
    target = "onnxruntime-web"
    targets_file = WEB / "targets.toml"


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"direction": "bidirectional", "lengths": "ragged", "peepholes": True, "clip": 0.5}, Verdict.PASS),
        ({"type": "float16"}, Verdict.PASS),
        ({"type": "float64"}, Verdict.UNSUPPORTED),
        ({"type": "bfloat16", "version": 22}, Verdict.UNSUPPORTED),
        ({"N": 0}, Verdict.CRASHED),
    ],
    ids=str,
)
def test_verdicts_of_an_lstm_in_onnxruntime_web(web: Target, change: dict[str, Any], verdict: Verdict) -> None:
    spec = replace(CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, initial="all"), **change)
    with TargetProcess(web) as process:
        description = process.start()
        (case_run,) = tried(process, [SpecProbe(spec)], web.accuracy)
    assert (description["runtime"], description["provider"]) == ("onnxruntime-web", "wasm")
    assert case_run.judgement.verdict is verdict, case_run.judgement.message


def test_onnxruntime_web_says_that_it_has_no_bfloat16(web: Target) -> None:
    value = np.ones((2, 3), ml_dtypes.bfloat16)
    (outcome,) = outcomes(web, Job("a", identity("bfloat16"), ({"X": value},)))
    assert outcome.status == "refused"
    assert outcome.message == "Error: unsupported data type: 16"
