"""The worker and its parent, with a miniature backend that fails on demand.

The backend returns its input unless the model's producer name asks for a fault.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.conformance.workers import worker
from onnxspec.conformance.workers.job import Job, Outcome, TargetUnavailable
from onnxspec.conformance.workers.messages import Report, message_of, outcome_of
from onnxspec.conformance.workers.process import TargetProcess

MINIATURE = '''
import ctypes, os, signal, stat, struct, sys, time
import numpy as np

RUNS = [0]

def protocol_descriptors():
    for fd in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                yield fd
        except OSError:
            pass

def tell(data):
    """Write to the descriptor that carries the protocol, whichever it is."""
    for fd in protocol_descriptors():
        try:
            os.write(fd, data)
        except OSError:
            pass

class Text(Exception):
    def __str__(self):
        raise ValueError("no text")

class Unknown(KeyError):
    """A class of the framework's own, with which it refuses."""

class Prepared:
    def __init__(self, fault):
        self.fault = fault
    def __del__(self):
        if self.fault == "die in teardown":
            os.abort()
    def run(self, inputs):
        fault, x = self.fault, inputs[0]
        RUNS[0] += 1
        if fault == "abort":
            print("last words", flush=False)
            os.abort()
        if fault == "segv":
            ctypes.string_at(0)
        if fault == "fpe":
            os.kill(os.getpid(), signal.SIGFPE)
        if fault == "exit 0":
            os._exit(0)
        if fault == "sys.exit":
            sys.exit("enough")
        if fault == "loop":
            while True:
                pass
        if fault == "print":
            os.write(1, b"\\xff\\x00 raw ONXSPEC1 \\x1b[31m")
            print("from Python")
            ctypes.CDLL(None).puts(b"from C")
            os.write(2, b"to stderr")
        if fault == "print much":
            print("first " + "x" * 1000000 + " last")
        if fault == "garbage":
            tell(b"garbage on the wire")
            time.sleep(60)
        if fault == "report of another job":
            text = (b'{"type":"report","number":0,"status":"ran","phase":"run",'
                    b'"outputs":[],"seconds":0,"arrays":[]}')
            tell(struct.pack("<8sIQ", b"ONXSPEC1", len(text), 0) + text)
            time.sleep(60)
        if fault == "binary text":
            raise ValueError("\\x00\\x1b\\ud800" * 1000000)
        if fault == "no text":
            raise Text()
        if fault == "name in run":
            return never_written(x)
        if fault == "index in run":
            return [[]][1]
        if fault == "own class in run":
            raise Unknown("no such operator here")
        if fault == "change input":
            x[0, 0] += 77
        if fault == "chance":
            return (x + RUNS[0],)
        if fault == "two outputs":
            return (x, x)
        if fault == "none":
            return [None]
        if fault == "objects":
            return [np.array([object()])]
        if fault == "ragged":
            return [[[1], [1, 2]]]
        if fault == "bare array":
            return x
        if fault == "nothing":
            return None
        if fault == "mapping":
            return {"Y": x}
        if fault == "big-endian":
            return [x.astype(">f4")]
        if fault == "hog":
            return [np.zeros(1 << 32, np.uint8)]
        return (x,)

def prepare(model, device="CPU", **kwargs):
    if model.producer_name == "refuse":
        raise RuntimeError("not this one")
    if model.producer_name == "name in load":
        return never_written(model)
    if model.producer_name == "index in load":
        return [[]][1]
    if model.producer_name == "die in load":
        os.abort()
    return Prepared(model.producer_name)

def supports_device(device):
    return device == "CPU"
'''

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def model(fault: str = "", element: int = TensorProto.FLOAT) -> bytes:
    """Return a serialized model with one input X and one output Y, of any shape."""
    graph = helper.make_graph(
        [helper.make_node("Identity", ["X"], ["Y"])],
        "g",
        [helper.make_tensor_value_info("X", element, None)],
        [helper.make_tensor_value_info("Y", element, None)],
    )
    made: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], producer_name=fault)
    serialized: bytes = made.SerializeToString()
    return serialized


def job(fault: str = "", value: np.ndarray = X) -> Job:
    return Job(fault or "good", model(fault), ({"X": value},))


@pytest.fixture
def miniature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    (tmp_path / "miniature.py").write_text(MINIATURE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # with it, Python itself would do what the worker must do
    return replace(parse_target("backend:miniature"), time_limit=20.0)


@pytest.fixture
def process(miniature: Target) -> Iterator[TargetProcess]:
    with TargetProcess(miniature) as running:
        running.start()
        yield running


def only(outcomes: Iterator[Outcome]) -> Outcome:
    (outcome,) = outcomes
    return outcome


# Framing


def test_frame_round_trip_in_pieces_of_any_size() -> None:
    values: list[Any] = [
        X,
        np.array(3.5, np.float16),
        np.zeros((0, 4), np.int64),
        np.array([True, False]),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([1.5, -2], ml_dtypes.bfloat16),
        X.astype(">f4"),
    ]
    payload = worker.Payload()
    for value in values:
        payload.add(worker.tensor_of(value))
    raw = b"".join(worker.pack_frame({"a": "ä"}, payload))
    for size in (1, 7, len(raw), 3 * len(raw)):
        reader = worker.FrameReader()
        stream = io.BytesIO(raw * 3)
        frames = []
        while piece := stream.read(size):
            reader.feed(piece)
            while (frame := reader.next()) is not None:
                frames.append(frame)
        assert len(frames) == 3
    header, body = frames[-1]
    assert header["a"] == "ä"
    arrays = worker.unpack_arrays(header, body)
    assert [element for element, _ in arrays] == [
        "float32",
        "float16",
        "int64",
        "bool",
        "float64",
        "bfloat16",
        "float32",
    ]
    for (element, array), value in zip(arrays, values, strict=True):
        seen = array.view(ml_dtypes.bfloat16) if element == "bfloat16" else array
        assert seen.shape == value.shape
        assert np.array_equal(seen, value)
        assert array.ctypes.data % array.itemsize == 0


def test_text_before_the_first_frame_is_a_greeting_and_after_it_an_error() -> None:
    raw = b"".join(worker.pack_frame({"n": 1}))
    reader = worker.FrameReader()
    for piece in (b"Welcome to the machine\nONXS", b"PE" + raw[:5], raw[5:]):
        reader.feed(piece)
        frame = reader.next()
    assert frame == ({"n": 1, "arrays": []}, b"")
    assert reader.greeting == b"Welcome to the machine\nONXSPE"
    reader.feed(b"oops")
    with pytest.raises(worker.ProtocolError, match="oops"):
        reader.next()


@pytest.mark.parametrize(
    "arrays", [[["float32", [3]]], [], [["float32", [-1]]], [["object", [2]]], [["float32", ["a"]]], 5]
)
def test_a_table_that_does_not_fit_the_body_is_an_error(arrays: object) -> None:
    with pytest.raises(worker.ProtocolError):
        worker.unpack_arrays({"arrays": arrays}, bytes(32))


def test_one_line_is_bounded_and_printable() -> None:
    assert worker.one_line("a\n\tb\x00\ud800é") == "a b\\x00\\ud800é"
    assert worker.one_line("x" * 10**7, 20) == "x" * 20 + " ..."
    assert worker.one_line("x" * 20, 20) == "x" * 20


def test_the_worker_is_written_for_the_oldest_interpreter() -> None:
    source = Path(worker.__file__).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 8))
    before, _, _ = source.partition("import numpy")
    assert "_STATION = take_station()" in before  # threads of modules loaded before it would not survive the fork


# Possible results of a runtime


def test_conforming_backend_runs_with_one_distinct_result(process: TargetProcess) -> None:
    outcome = only(process.run([Job("k", model(), ({"X": X}, {"X": X + 1}))]))
    assert (outcome.key, outcome.status, outcome.phase) == ("k", "ran", "run")
    assert [len(distinct) for distinct in outcome.outputs] == [1, 1]
    for expected, distinct in zip((X, X + 1), outcome.outputs, strict=True):
        value = distinct[0][0]
        assert value is not None
        assert value.dtype == np.float32
        assert np.array_equal(value, expected)
    assert (outcome.changed, outcome.malformed, outcome.message, outcome.captured) == ((), "", "", "")
    assert outcome.seconds > 0


def test_bfloat16_goes_in_and_out(process: TargetProcess) -> None:
    value = np.array([[1.5, np.nan, -0.0]], ml_dtypes.bfloat16)
    (array,) = only(process.run([job(value=value)])).outputs[0][0]
    assert array is not None
    assert array.dtype == ml_dtypes.bfloat16
    assert array.tobytes() == value.tobytes()


def test_faults_of_form_are_told_and_do_not_end_the_worker(process: TargetProcess) -> None:
    faults = ["two outputs", "none", "objects", "ragged", "bare array", "nothing", "mapping", "big-endian", "good"]
    seen = {outcome.key: outcome for outcome in process.run(job(fault) for fault in faults)}
    assert {outcome.status for outcome in seen.values()} == {"ran"}
    assert len(seen["two outputs"].outputs[0][0]) == 2
    for fault in ("objects", "ragged"):
        assert seen[fault].outputs == (((None,),),)
        assert "output 0" in seen[fault].malformed
    assert (seen["none"].outputs, seen["none"].malformed) == ((((None,),),), "")  # some outputs may be missing
    assert seen["bare array"].malformed.startswith("returned ndarray")
    assert seen["nothing"].outputs == (((),),)
    assert seen["nothing"].malformed.startswith("returned NoneType")
    for fault in ("mapping", "big-endian", "good"):
        assert seen[fault].malformed == ""
        assert np.array_equal(np.asarray(seen[fault].outputs[0][0][0]), X)


def test_changed_inputs_and_chance_are_seen(process: TargetProcess) -> None:
    changing, chance, good = process.run([job("change input"), job("chance"), job()])
    assert changing.changed == ("X",)
    assert X[0, 0] == 0
    assert len(changing.outputs[0]) == 1  # the second run got a fresh copy
    assert len(chance.outputs[0]) == 2
    assert good.changed == ()


def test_refusals_keep_phase_and_a_bounded_message(process: TargetProcess) -> None:
    load, binary, silent = process.run([job("refuse"), job("binary text"), job("no text")])
    assert (load.status, load.phase, load.message) == ("refused", "load", "RuntimeError: not this one")
    assert (binary.status, binary.phase) == ("refused", "run")
    assert binary.message.startswith("ValueError: \\x00\\x1b\\ud800")
    assert binary.message.isprintable()
    assert len(binary.message) < 600
    assert (silent.status, silent.message) == ("refused", "Text: (its text cannot be had: ValueError)")


def test_a_program_that_breaks_is_told_from_one_that_refuses(process: TargetProcess) -> None:
    faults = ("name in load", "name in run", "index in load", "index in run", "own class in run", "refuse")
    outcomes = list(process.run([*map(job, faults), job()]))
    assert [(o.status, o.phase) for o in outcomes] == [
        ("crashed", "load"),
        ("crashed", "run"),
        ("refused", "load"),
        ("refused", "run"),
        ("refused", "run"),
        ("refused", "load"),
        ("ran", "run"),
    ]
    assert [bool(o.broke_at) for o in outcomes] == [True, True, True, True, False, False, False]
    assert re.fullmatch(r"miniature\.py, line \d+, in run", outcomes[3].broke_at)


def test_what_a_backend_without_prepare_raises_first_is_said_before_it_has_accepted_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sole.py").write_text(
        "RUNS = []\n"
        "def run_model(model, inputs, device='CPU', **kwargs):\n"
        "    RUNS.append(model.producer_name)\n"
        "    if RUNS.count(model.producer_name) > (model.producer_name == 'later'):\n"
        "        return [][1]\n"
        "    return [inputs[0]]\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with TargetProcess(parse_target("backend:sole")) as sole:
        sole.start()
        first, later = sole.run([job("first"), job("later")])
    assert [(o.status, o.phase, bool(o.broke_at)) for o in (first, later)] == [
        ("refused", "load", True),
        ("refused", "run", True),
    ]


OWN_WORDS = {
    "raise TypeError('no bfloat16')": False,
    "raise ValueError('shapes (3,) and (4,) not aligned: 3 (dim 0) != 4 (dim 0)')": False,
    "int('no number')": False,
    "return [][1]": True,
}
NUMPYS_WORDS = {
    f"import numpy as np; {statement}": True
    for statement in (
        "np.zeros(3) + np.zeros(4)",
        "np.zeros(3)[:] = np.zeros(4)",
        "np.dot(np.zeros((2, 3)), np.zeros((4, 5)))",
        "np.zeros((2, 3)) @ np.zeros((4, 5))",
        "bool(np.zeros(2))",
        "np.stack([])",
        "np.concatenate([])",
        "np.concatenate([np.zeros(2), np.zeros((2, 2))])",
        "np.array([[1], [1, 2]])",
        "np.zeros(3).reshape(2, 2)",
        "np.split(np.zeros(3), 2)",
        "np.zeros(2).sum(axis=3)",
        "a, b = np.zeros(3)",
    )
}


def test_what_an_adapter_raises_itself_is_its_word(miniature: Target) -> None:
    source = (
        "class Adapter:\n"
        "    def __init__(self, options): pass\n"
        "    def describe(self): return {'runtime': 'r', 'version': '1'}\n"
        "    def prepare(self, model): return self\n"
        "    def run(self, feeds):\n"
        "        STATEMENT\n"
    )
    model_bytes, feed = model(), {"X": ("float32", X)}
    for statement, broke in {**OWN_WORDS, **NUMPYS_WORDS}.items():
        adapter = worker.load_adapter(source.replace("STATEMENT", statement), {})
        report, _ = worker.run_job(adapter, model_bytes, [feed], 2)
        assert (report["status"], report["phase"], "broke_at" in report) == ("refused", "run", broke), statement
        worker._LOADED.clear()


def test_what_is_printed_stays_with_its_job(process: TargetProcess) -> None:
    before, chatty, much, after = process.run([job(), job("print"), job("print much"), job()])
    for text in ("\\xff\\x00 raw ONXSPEC1 \\x1b[31m", "from Python", "from C", "to stderr"):
        assert text in chatty.captured
    assert len(much.captured) < 5000
    assert much.captured.startswith("first x")
    assert much.captured.rstrip().endswith(" last")
    assert before.captured == after.captured == ""
    assert {before.status, chatty.status, much.status, after.status} == {"ran"}


# Reasons for the end of a worker


@pytest.mark.parametrize(
    ("fault", "status", "name", "text"),
    [
        ("abort", "crashed", "SIGABRT", "SIGABRT"),
        ("segv", "crashed", "SIGSEGV", "SIGSEGV"),
        ("fpe", "crashed", "SIGFPE", "SIGFPE"),
        ("die in load", "crashed", "SIGABRT", "SIGABRT"),
        ("die in teardown", "crashed", "SIGABRT", "SIGABRT"),
        ("exit 0", "crashed", None, "exit code 0"),
        ("garbage", "crashed", None, "garbage on the wire"),
        ("report of another job", "crashed", None, "out of turn"),
        ("sys.exit", "crashed", None, "SystemExit: enough"),
    ],
)
def test_one_job_is_blamed_and_the_rest_go_on(
    process: TargetProcess, fault: str, status: str, name: str | None, text: str
) -> None:
    values = [X + number for number in range(5)]
    jobs = [job("" if number != 2 else fault, value) for number, value in enumerate(values)]
    outcomes = list(process.run(jobs))
    assert [outcome.status for outcome in outcomes] == ["ran", "ran", status, "ran", "ran"]
    for number in (0, 1, 3, 4):
        assert np.array_equal(np.asarray(outcomes[number].outputs[0][0][0]), values[number])
    assert outcomes[2].key == fault
    assert outcomes[2].signal == name
    assert text in outcomes[2].message
    if fault == "abort":
        assert "last words" in outcomes[2].captured


def test_a_batch_that_was_sent_late_is_not_late(miniature: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is not replaced if the caller takes longer for a batch than a job's time limit."""
    monkeypatch.setattr("onnxspec.conformance.workers.process.BATCH_JOBS", 4)
    with TargetProcess(replace(miniature, time_limit=3.0)) as process:
        process.start()
        first = process._worker
        for outcome in process.run([job() for _ in range(12)]):
            assert outcome.status == "ran"
            time.sleep(1)
        assert process._worker is first


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the size of the loaded runtime")
def test_a_job_that_takes_too_much_memory_crashes_alone(miniature: Target) -> None:
    with TargetProcess(replace(miniature, memory_limit=1 << 30)) as process:
        hog, good = process.run([job("hog"), job()])
    assert (hog.status, good.status) == ("crashed", "ran")
    assert "MemoryError" in hog.message


def test_crashes_in_a_row_lose_nothing(process: TargetProcess) -> None:
    faults = ["abort", "abort", "exit 0", "", "abort", "abort", ""]
    outcomes = list(process.run(job(fault) for fault in faults))
    assert [outcome.status for outcome in outcomes] == ["ran" if fault == "" else "crashed" for fault in faults]


def test_many_and_large_jobs_pass_without_deadlock(process: TargetProcess) -> None:
    def jobs() -> Iterator[Job]:
        for number in range(200):
            size = 1_500_000 if number % 40 == 7 else 10
            yield Job(str(number), model(), ({"X": np.full((1, size), number, np.float32)},))

    keys = []
    for outcome in process.run(jobs()):
        value = outcome.outputs[0][0][0]
        assert value is not None
        assert value[0, -1] == int(outcome.key)
        keys.append(outcome.key)
    assert keys == [str(number) for number in range(200)]


def test_jobs_are_read_ahead_by_two_batches_only(miniature: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxspec.conformance.workers.process.BATCH_JOBS", 4)
    taken = []

    def jobs() -> Iterator[Job]:
        for number in range(100):
            taken.append(number)
            yield job()

    with TargetProcess(miniature) as process:
        stream = process.run(jobs())
        next(stream)
        assert len(taken) == 8
        stream.close()  # a caller that stops early
        assert [outcome.status for outcome in process.run([job()])] == ["ran"]


# Reasons why a worker cannot start


def test_a_worker_that_cannot_start_says_why(miniature: Target, tmp_path: Path) -> None:
    def failure(target: Target) -> str:
        with TargetProcess(target) as process, pytest.raises(TargetUnavailable) as caught:
            process.start()
        assert "\n" not in str(caught.value)
        return str(caught.value)

    (tmp_path / "broken.py").write_text("raise OSError('libdevice.so: cannot open\\nshared object')\n")
    (tmp_path / "homeless.py").write_text(MINIATURE.replace('device == "CPU"', "False"))
    assert "OSError: libdevice.so: cannot open shared object" in failure(parse_target("backend:broken"))
    assert "homeless does not support device CPU" in failure(parse_target("backend:homeless"))
    assert "cannot start '/nowhere/python'" in failure(replace(miniature, command=("/nowhere/python", "{worker}")))
    ends = (sys.executable, "-c", "import sys; sys.exit('no such machine')")
    assert failure(replace(miniature, command=ends)).endswith("itself with exit code 1: no such machine")
    trace = "Error: Cannot find module 'x.mjs'\\n    at load (loader:12)\\n\\nNode.js v20"
    ends = (sys.executable, "-c", f'import sys; sys.exit("{trace}")')
    assert failure(replace(miniature, command=ends)).endswith("exit code 1: Error: Cannot find module 'x.mjs'")
    misspelt = failure(replace(miniature, command=(sys.executable, "{stdinn}")))
    assert misspelt == "the command has {stdinn}, which stands for nothing: there are {worker}, {source}, {stdin}"
    talks = (sys.executable, "-c", "print('x' * 100000)")
    assert "no frame in the first" in failure(replace(miniature, command=talks))


def test_if_no_worker_starts_any_more_the_rest_is_unavailable(process: TargetProcess, tmp_path: Path) -> None:
    def jobs() -> Iterator[Job]:
        yield job()
        (tmp_path / "miniature.py").write_text("raise RuntimeError('gone')")
        yield from (job("abort"), job(), job())

    outcomes = list(process.run(jobs()))
    assert [outcome.status for outcome in outcomes] == ["ran", "crashed", "unavailable", "unavailable"]
    assert "gone" in outcomes[3].message


def test_the_worker_runs_from_its_source_and_its_folder_is_not_importable(miniature: Target, tmp_path: Path) -> None:
    spy = MINIATURE.replace('device == "CPU"', 'not any(map(find_spec, ("targets", "process", "worker")))')
    (tmp_path / "spy.py").write_text("from importlib.util import find_spec\n" + spy)
    for command in ((sys.executable, "{worker}"), (sys.executable, "-c", "{source}")):
        with TargetProcess(replace(parse_target("backend:spy"), command=command)) as process:
            assert process.start()["runtime"] == "spy"
            assert only(process.run([job()])).status == "ran"


def test_the_target_s_environment_is_added_to_the_caller_s(miniature: Target) -> None:
    target = replace(miniature, environment={"PYTHONPATH": os.devnull})
    with TargetProcess(target) as process, pytest.raises(TargetUnavailable, match="miniature"):
        process.start()


def test_a_worker_that_is_sent_to_an_interpreter_does_the_same(miniature: Target, tmp_path: Path) -> None:
    """The command passes through two shells, each of which splits it into words."""
    inner = f"cd / && {shlex.quote(sys.executable)} {{stdin}}"
    for command in ((sys.executable, "{stdin}"), ("sh", "-c", f"sh -c {shlex.quote(inner)}")):
        with TargetProcess(replace(miniature, command=command)) as process:
            assert process.start()["runtime"] == "miniature"
            faults = ["print", "abort", "", "exit 0"]
            outcomes = {outcome.key: outcome for outcome in process.run(job(fault) for fault in faults)}
        assert "from C" in outcomes["print"].captured
        assert (outcomes["abort"].signal, outcomes["good"].status) == ("SIGABRT", "ran")
        assert "last words" in outcomes["abort"].captured
        assert "exit code 0" in outcomes["exit 0"].message
        with TargetProcess(replace(miniature, command=command, time_limit=3.0)) as process:
            process.start()
            assert [outcome.status for outcome in process.run([job("loop"), job()])] == ["timed-out", "ran"]


def test_the_environment_is_there_although_the_command_passes_nothing_on(miniature: Target, tmp_path: Path) -> None:
    (tmp_path / "seeing.py").write_text(f"import os\nassert os.environ['SEEN'] == 'yes'\n{MINIATURE}")
    command = ("env", "-i", f"PYTHONPATH={tmp_path}", sys.executable, "{worker}")
    target = replace(parse_target("backend:seeing"), command=command, environment={"SEEN": "yes"})
    with TargetProcess(target) as process:
        assert process.start()["runtime"] == "seeing"


@pytest.mark.parametrize(
    ("returned", "fits"),
    [([[0, 1]], True), (None, True), ([[0, 0]], False), ([[0]], False), ([[0, 2]], False), ([[0, 1], [0, 1]], False)],
)
def test_what_each_repeat_returned_names_the_results_that_there_are(
    returned: list[list[int]] | None, fits: bool
) -> None:
    """One feed was run twice with two results; a program need not report which repeat returned which."""
    report: dict[str, Any] = {"type": "report", "number": 1, "status": "ran", "phase": "run", "seconds": 0.1}
    report |= {"outputs": [[[None], []]], **({} if returned is None else {"returned": returned})}
    message = message_of(json.dumps(report).encode())
    assert isinstance(message, Report)
    job = Job("k", b"", ({},))
    if fits:
        assert outcome_of(job, 2, message, b"").returned == tuple(map(tuple, returned or ()))
    else:
        with pytest.raises(worker.ProtocolError, match="what was returned"):
            outcome_of(job, 2, message, b"")
