"""The worker and its parent, with an adapter that executes the model of a job."""

from __future__ import annotations

import ast
import io
import os
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.conformance.workers import worker
from onnxspec.conformance.workers.process import TargetProcess

from ..misbehaving import CRASHES, X, adapter, failure_to_start, job, outcomes, statuses


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # with it, Python itself would do what the worker must do
    return adapter(tmp_path)


# Framing


def test_frame_round_trip_in_pieces_of_any_size() -> None:
    values = [X, np.zeros((0, 4), np.int64), np.asfortranarray(X), X.astype(">f4")]
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
        assert [header["a"] for header, _ in frames] == ["ä"] * 3
    for (_, array), value in zip(worker.unpack_arrays(*frames[-1]), values, strict=True):
        assert array.tolist() == value.tolist()
        assert array.shape == value.shape
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


def test_one_line_is_bounded_and_printable() -> None:
    assert worker.one_line("a\n\tb\x00\ud800é") == "a b\\x00\\ud800é"
    assert worker.one_line("x" * 10**7, 20) == "x" * 20 + " ..."
    assert worker.one_line("x" * 20, 20) == "x" * 20


def test_the_worker_is_written_for_the_oldest_interpreter() -> None:
    source = Path(worker.__file__).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 8))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {getattr(node, "module", None) or node.names[0].name for node in imports}
    assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "numpy"}
    before, _, _ = source.partition("import numpy")
    assert "_STATION = take_station()" in before  # threads of modules loaded before it would not survive the fork


# Possible results of a runtime


def test_conforming_adapter_runs_with_one_distinct_result(target: Target) -> None:
    feeds = [{"X": value} for value in (X, X + 1, np.array([[1.5, np.nan, -0.0]], ml_dtypes.bfloat16))]
    (outcome,) = outcomes(target, job("print()", "k", *feeds))
    assert (outcome.key, outcome.status, outcome.phase) == ("k", "ran", "run")
    for feed, ((array,),) in zip(feeds, outcome.outputs, strict=True):
        assert array is not None
        assert (array.dtype, array.tobytes()) == (feed["X"].dtype, feed["X"].tobytes())
    assert (outcome.changed, outcome.malformed, outcome.message, outcome.captured.strip()) == ((), "", "", "")
    assert outcome.seconds > 0


MALFORMED = {
    "outputs = [np.array([object()])]": "output 0",
    "outputs = [[[1], [1, 2]]]": "output 0",
    "outputs = x": "returned ndarray",
    "outputs = None": "returned NoneType",
    "outputs = [None]": "",  # some outputs may be missing
    "outputs = [x.astype('>f4')]": "",
    "outputs = (x,)": "",
}


def test_malformed_outputs_are_reported_and_do_not_end_the_worker(target: Target) -> None:
    seen = {outcome.key: outcome for outcome in outcomes(target, *MALFORMED, "outputs = [x, x]")}
    assert {outcome.status for outcome in seen.values()} == {"ran"}
    for code, defect in MALFORMED.items():
        assert defect in seen[code].malformed
        assert bool(defect) == bool(seen[code].malformed)
    arrays = {code: outcome.outputs[0][0] for code, outcome in seen.items()}
    for code in ("outputs = [np.array([object()])]", "outputs = [[[1], [1, 2]]]", "outputs = [None]"):
        assert arrays[code] == (None,)
    assert arrays["outputs = None"] == ()
    assert len(arrays["outputs = [x, x]"]) == 2
    for code in ("outputs = x", "outputs = [x.astype('>f4')]", "outputs = (x,)"):
        assert np.array_equal(np.asarray(arrays[code][0]), X)


def test_changed_inputs_and_chance_are_seen(target: Target) -> None:
    chance = "session.runs = getattr(session, 'runs', 0) + 1; outputs = [x + session.runs]"
    changing, chancy, good = outcomes(target, "x[0, 0] += 77", chance, "")
    assert changing.changed == ("X",)
    assert X[0, 0] == 0
    assert len(changing.outputs[0]) == 1  # the second run got a fresh copy
    assert len(chancy.outputs[0]) == 2
    assert good.changed == ()


OWN_CLASS = "class Unknown(KeyError):\n    __module__ = 'framework'\nraise Unknown('no such operator here')"
NO_TEXT = "class Text(Exception):\n    def __str__(self):\n        raise ValueError('no text')\nraise Text()"
REFUSALS = {
    "load:raise RuntimeError('not this one')": ("refused", "load", "RuntimeError: not this one", False),
    "raise ValueError('\\x00\\x1b\\ud800' * 1000000)": ("refused", "run", "ValueError: \\x00\\x1b\\ud800", False),
    NO_TEXT: ("refused", "run", "Text: (its text cannot be had: ValueError)", False),
    OWN_CLASS: ("refused", "run", "Unknown: 'no such operator here'", False),
    "load:[][1]": ("refused", "load", "IndexError", True),
    "[][1]": ("refused", "run", "IndexError", True),
    "load:never_written()": ("crashed", "load", "NameError", True),
    "never_written()": ("crashed", "run", "NameError", True),
}
"""Status, phase, beginning of the message, and whether the exception indicates a bug of the program."""


def test_bugs_of_a_program_are_distinguished_from_refusals(target: Target) -> None:
    for outcome in outcomes(target, *REFUSALS):
        status, phase, message, breaks = REFUSALS[outcome.key]
        assert (outcome.status, outcome.phase) == (status, phase)
        assert outcome.message.startswith(message)
        assert outcome.message.isprintable()
        assert len(outcome.message) < 600
        assert outcome.broke_at == ("<string>, line 1, in <module>" if breaks else "")


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


def test_an_exception_that_the_adapter_raises_is_a_refusal() -> None:
    source = (
        "class Adapter:\n"
        "    def __init__(self, options): pass\n"
        "    def describe(self): return {'runtime': 'r', 'version': '1'}\n"
        "    def prepare(self, model): return self\n"
        "    def run(self, feeds):\n"
        "        STATEMENT\n"
    )
    for statement, broke in {**OWN_WORDS, **NUMPYS_WORDS}.items():
        loaded = worker.load_adapter(source.replace("STATEMENT", statement), {})
        report, _ = worker.run_job(loaded, b"", [{"X": ("float32", X)}], 2)
        assert (report["status"], report["phase"], "broke_at" in report) == ("refused", "run", broke), statement
        worker._LOADED.clear()


PRINTING = """
os.write(1, b"\\xff\\x00 raw ONXSPEC1 \\x1b[31m")
print("from Python")
ctypes.CDLL(None).puts(b"from C")
os.write(2, b"to stderr")
"""


def test_printed_text_belongs_to_its_job(target: Target) -> None:
    before, chatty, much, after = outcomes(target, "", PRINTING, "print('first ' + 'x' * 1000000 + ' last')", "")
    for text in ("\\xff\\x00 raw ONXSPEC1 \\x1b[31m", "from Python", "from C", "to stderr"):
        assert text in chatty.captured
    assert len(much.captured) < 5000
    assert much.captured.startswith("first x")
    assert much.captured.rstrip().endswith(" last")
    assert before.captured == after.captured == ""
    assert {before.status, chatty.status, much.status, after.status} == {"ran"}


# Reasons for the end of a worker; tests/conformance/robustness stages more with the real command

ENDS = {
    "in run": CRASHES["aborts"].code,
    "in load": "load:os.abort()",
    "in teardown": "Session.__del__ = lambda self: os.abort(); session = None",
}


def test_the_job_that_ends_the_worker_is_blamed_and_the_rest_go_on(target: Target) -> None:
    jobs = [job(code, key) for key, code in ENDS.items()]
    jobs = [*jobs, *(sent for number, end in enumerate(jobs) for sent in (job("", "good", {"X": X + number}), end))]
    ended = outcomes(target, *jobs)
    assert [outcome.key for outcome in ended] == [sent.key for sent in jobs]
    for sent, outcome in zip(jobs, ended, strict=True):
        if sent.key == "good":
            assert outcome.status == "ran"
            assert np.array_equal(np.asarray(outcome.outputs[0][0][0]), sent.feeds[0]["X"])
        else:
            assert (outcome.status, outcome.signal) == ("crashed", "SIGABRT"), outcome
            assert "SIGABRT" in outcome.message
    assert "last words" in ended[0].captured


def test_a_batch_that_was_sent_late_is_not_late(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is not replaced if the caller takes longer for a batch than a job's time limit."""
    monkeypatch.setattr("onnxspec.conformance.workers.process.BATCH_JOBS", 4)
    code = "outputs = [np.array([os.getpid()])]"
    pids = set()
    with TargetProcess(replace(target, time_limit=2.0)) as process:
        for outcome in process.run([job(code) for _ in range(12)]):
            assert outcome.status == "ran"
            pids.add(int(np.asarray(outcome.outputs[0][0][0])[0]))
            time.sleep(0.6)
    assert len(pids) == 1


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the size of the loaded runtime")
def test_a_job_that_takes_too_much_memory_crashes_alone(target: Target) -> None:
    hog, good = outcomes(replace(target, memory_limit=1 << 30), "outputs = [np.zeros(1 << 32, np.uint8)]", "")
    assert (hog.status, good.status) == ("crashed", "ran")
    assert "MemoryError" in hog.message


def test_many_and_large_jobs_pass_without_deadlock(target: Target) -> None:
    sizes = [1_500_000 if number % 40 == 7 else 10 for number in range(200)]
    jobs = (job("", str(number), {"X": np.full((1, size), number, np.float32)}) for number, size in enumerate(sizes))
    keys = []
    for outcome in outcomes(target, *jobs):
        value = outcome.outputs[0][0][0]
        assert value is not None
        assert value[0, -1] == int(outcome.key)
        keys.append(outcome.key)
    assert keys == [str(number) for number in range(200)]


def test_jobs_are_read_ahead_by_two_batches_only(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxspec.conformance.workers.process.BATCH_JOBS", 4)
    jobs = iter([job()] * 100)
    with TargetProcess(target) as process:
        stream = process.run(jobs)
        next(stream)
        assert len(list(jobs)) == 100 - 8
        stream.close()  # a caller that stops early
        assert [outcome.status for outcome in process.run([job()])] == ["ran"]


# Reasons why a worker cannot start

TRACE = "Error: Cannot find module 'x.mjs'\\n    at load (loader:12)\\n\\nNode.js v20"
COMMANDS = {
    ("/nowhere/python", "{worker}"): "cannot start '/nowhere/python'",
    (sys.executable, "-c", "import sys; sys.exit('no such machine')"): "itself with exit code 1: no such machine",
    (sys.executable, "-c", f'import sys; sys.exit("{TRACE}")'): "exit code 1: Error: Cannot find module 'x.mjs'",
    (sys.executable, "{stdinn}"): "the command has {stdinn}, which stands for nothing: there are {worker}, {source},",
    (sys.executable, "-c", "print('x' * 100000)"): "no frame in the first",
}


def test_a_worker_that_cannot_start_says_why(tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    for command, message in COMMANDS.items():
        assert message in str(failure_to_start(replace(target, command=command)))
    broken = adapter(tmp_path, "raise OSError('libdevice.so: cannot open\\nshared object')")
    assert "OSError: libdevice.so: cannot open shared object" in str(failure_to_start(broken))
    (tmp_path / "homeless.py").write_text("def prepare(model): pass\ndef supports_device(device): return False\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    homeless = parse_target("backend:homeless")
    assert "homeless does not support device CPU" in str(failure_to_start(homeless))
    # The target's environment is added to the caller's.
    lost = replace(homeless, environment={"PYTHONPATH": os.devnull})
    assert "No module named 'homeless'" in str(failure_to_start(lost))


def test_if_no_worker_starts_any_more_the_rest_is_unavailable(target: Target) -> None:
    code = f"open({target.adapter!r}, 'w').write('raise RuntimeError(\"gone\")'); os.abort()"
    ended = outcomes(target, "", code, "", "")
    assert [outcome.status for outcome in ended] == ["ran", "crashed", "unavailable", "unavailable"]
    assert "gone" in ended[3].message


def test_the_worker_runs_from_its_source_and_its_folder_is_not_importable(tmp_path: Path) -> None:
    names = ("targets", "process", "worker")
    spy = adapter(tmp_path, f"from importlib.util import find_spec\nassert not any(map(find_spec, {names}))")
    for command in ((sys.executable, "{worker}"), (sys.executable, "-c", "{source}")):
        assert statuses(replace(spy, command=command), "") == ["ran"]


def test_a_worker_that_is_sent_to_an_interpreter_does_the_same(target: Target) -> None:
    """The command passes through two shells, each of which splits it into words."""
    inner = f"cd / && {shlex.quote(sys.executable)} {{stdin}}"
    for command in ((sys.executable, "{stdin}"), ("sh", "-c", f"sh -c {shlex.quote(inner)}")):
        sent = replace(target, command=command, time_limit=3.0)
        printed, aborted, good, exited, looped, last = outcomes(
            sent, "ctypes.CDLL(None).puts(b'from C')", CRASHES["aborts"].code, "", "os._exit(0)", "while True: pass", ""
        )
        assert "from C" in printed.captured
        assert (aborted.signal, "last words" in aborted.captured, good.status) == ("SIGABRT", True, "ran")
        assert "exit code 0" in exited.message
        assert (looped.status, last.status) == ("timed-out", "ran")


def test_the_environment_is_there_although_the_command_passes_nothing_on(tmp_path: Path) -> None:
    command = ("env", "-i", sys.executable, "{worker}")
    seeing = adapter(tmp_path, "assert os.environ['SEEN'] == 'yes'", command=command, environment={"SEEN": "yes"})
    assert statuses(seeing, "") == ["ran"]
