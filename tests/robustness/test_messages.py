"""Messages of workers are untrusted: whatever they contain, only the current job fails."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxspec.conformance.workers import worker
from onnxspec.conformance.workers.job import Job
from onnxspec.conformance.workers.messages import Report, message_of, outcome_of
from onnxspec.conformance.workers.process import TargetProcess

from ..conformance.misbehaving import X, failure_to_start, job, outcomes, program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")

# Values that a key of a report may not have.
WRONG_VALUES = {
    "seconds": ["'long'", "None", "float('nan')", "float('inf')", "-1"],
    "outputs": ["[]", "[[], []]", "[[]]", "7", "[[0]]", "[[['Y']]]", "[[[-1]]]", "[[[7]]]"],
    "status": ["'fine'", "'timed-out'"],
    "phase": ["3"],
    "captured": ["['x']"],
    "message": ["1"],
    "malformed": ["{'a': 1}"],
    "proof": ["True"],
    "changed": ["'X'", "['W' * 100000]"],
    "returned": ["[[0]]", "[[0, 1]]", "[[0, 0], [0, 0]]"],
    "number": ["str(report['number'])", "2**80", "0", "report['number'] + 1"],
    "type": ["'rumour'"],
}
# Each entry is Python that the program executes: it changes the report, or sends bytes.
NONSENSE = {
    **{f"{key} is {value}": f"report[{key!r}] = {value}" for key, values in WRONG_VALUES.items() for value in values},
    "more results than runs": "report['outputs'] = [[[0]] * 100000]",
    "more outputs than there can be": "report['outputs'] = [[[0] * 100000]]",
    "a shape of 2**70": "parts = [('float32', [2**70], b'')]",
    "a shape of (0, 2**62)": "parts = [('float32', [0, 2**62, 2**62], b'')]",
    "a negative shape": "parts = [('float32', [-6], parts[0][2])]",
    "a hundred dimensions": "parts = [('float32', [1] * 100, b'1234')]",
    "an element type of its own": "parts = [('float128', [1], bytes(16))]",
    "more bytes than the table": "parts = [('float32', [1], parts[0][2])]",
    "fewer bytes than the table": "parts = [('float32', [600], parts[0][2])]",
    "more bytes than a case may return": "parts = [('float32', [1 << 20], bytes(4 << 20))]",
    "no phase": "del report['phase']",
    "no type": "del report['type']",
    "a list": "raw(b'[]'); time.sleep(99)",
    "no JSON": "raw(b'{'); time.sleep(99)",
    "JSON nested 200,000 deep": "raw(b'[' * 200000 + b']' * 200000); time.sleep(99)",
    "a key nested 200,000 deep": "raw(b'{\"a\":' * 200000 + b'1' + b'}' * 200000); time.sleep(99)",
    "no UTF-8": 'raw(b\'{"type": "\\xff"}\'); time.sleep(99)',
    "a number of a million digits": "raw(b'{\"type\":\"report\",\"number\":' + b'1' * 1000000 + b'}'); time.sleep(99)",
    "a key twice": 'raw(b\'{"type":"report","type":"began","jobs":[]}\'); time.sleep(99)',
    "an empty header": "raw(b''); time.sleep(99)",
    "another greeting": "send({'type': 'hello', 'protocol': 1})",
    "ready again": "send({'type': 'ready', 'description': {}, 'captured': ''})",
    "unavailable now": "send({'type': 'unavailable', 'message': 'no more'})",
    "died of a number": "send({'type': 'died', 'signal': 7})",
    "began with a text": "send({'type': 'began', 'jobs': 'all'})",
    "64 GiB are to come": "raw(b'{}', b'', 1 << 36); time.sleep(99)",
    "a header of 4 GiB is to come": "put(struct.pack('<8sIQ', b'ONXSPEC1', 2**32 - 1, 0)); time.sleep(99)",
    "2**64 - 1 bytes are to come": "raw(b'{}', b'', 2**64 - 1); time.sleep(99)",
    "bytes between frames": "put(b'\\x1b[2Jlet me see'); time.sleep(99)",
    "100 MB between frames": "put(b'x' * 100000000)",
}
LONG = {
    "malformed": "report['malformed'] = '\\x1b[31m' + 'm' * 1000000",
    "message": "report.update(status='refused', outputs=[[]], message='no\\n1000 pass ' * 100000)",
    "proof": "report['proof'] = '\\u202e' + 'p' * 1000000",
    "captured": "report['captured'] = '\\x9b2J\\ud800' + 'c' * 1000000",
}


def test_messages_cost_the_job_under_way_and_their_texts_are_cut_and_made_printable(tmp_path: Path) -> None:
    """The limit of bytes is that on a program; the bundled worker enforces its own in the same way."""
    hostile = {**NONSENSE, **LONG}
    jobs = [sent for name, code in hostile.items() for sent in (job(key=f"before {name}"), job(code, name))]
    ended = {outcome.key: outcome for outcome in outcomes(program(tmp_path, output_limit=1 << 20), *jobs, job())}
    assert list(ended) == [*(sent.key for sent in jobs), "good"]
    assert {name: ended[name].status for name in NONSENSE} == dict.fromkeys(NONSENSE, "crashed")
    for name in NONSENSE:
        message = ended[name].message
        assert message.startswith(("the worker sent", "the process died of 7")), (name, message)
        assert message.isprintable()
        assert len(message) < 600
    assert "more than the" in ended["more bytes than a case may return"].message
    assert all("what was returned" in ended[name].message for name in NONSENSE if name.startswith("returned"))
    for name in LONG:
        text = getattr(ended.pop(name), name)
        assert text.replace("\n", "" if name == "captured" else "\n").isprintable()
        assert 100 < len(text) < 9000
    others = [outcome for key, outcome in ended.items() if key not in NONSENSE]
    assert {(outcome.status, outcome.again) for outcome in others} == {("ran", "")}
    assert all(np.array_equal(np.asarray(outcome.outputs[0][0][0]), X) for outcome in others)


DESCRIPTIONS = {
    "send({'type': 'hello', 'protocol': 2}); time.sleep(60)": "speaks another protocol",
    "description = 7": "makes no sense",
    "description = {'runtime': 7}": "whose runtime is no text",
    "description = {'version': ['1']}": "whose version is no text",
    "description = {'a': float('nan')}": "NaN",
    "description = {'a': 'x' * 10000000}": "header is to have",
    "description = {'a': 'x' * 1000000}": "more than the",
    "description = {'a': 2**70}": "64 bits",
    "description = eval('[' * 90 + ']' * 90)": "makes no sense",
    "put(b'\\x1b[2J' * 100000)": "no frame in the first",
    "sys.exit('\\x1b[2Jno licence')": "no licence",
    "os.abort()": "SIGABRT",
}


def test_a_program_that_does_not_start_sensibly_is_unavailable(tmp_path: Path) -> None:
    for opening, message in DESCRIPTIONS.items():
        complaint = str(failure_to_start(program(tmp_path, opening)))
        assert message in complaint
        assert len(complaint) < 1000


def test_a_description_is_made_printable(tmp_path: Path) -> None:
    opening = "description = {'runtime': '\\x1b[2J', 'version': '1\\n2', 'a': ['\\u202e', {'\\x07': 1.5}]}"
    with TargetProcess(program(tmp_path, opening)) as process:
        described = process.start()
    assert described == {"runtime": "\\x1b[2J", "version": "1 2", "a": ["\\u202e", {"\\x07": 1.5}]}


# The same without programs, with random data.

REPORT: dict[str, Any] = {
    "type": "report", "number": 1, "status": "ran", "phase": "run", "seconds": 0.5, "outputs": [[[0]]],
    "changed": ["X"], "malformed": "", "message": "", "captured": "", "proof": "", "arrays": [["float32", [2, 3]]],
}  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*REPORT]), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([*REPORT]), VALUES, st.binary(max_size=40) | st.just(X.tobytes() + bytes(8)))
@settings(max_examples=400, deadline=None)
def test_a_report_with_another_value_is_an_outcome_or_an_error_of_protocol(key: str, value: Any, body: bytes) -> None:
    header = json.dumps({**REPORT, key: value}).encode()
    _understood(header, body)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_report_with_other_bytes_is_an_outcome_or_an_error_of_protocol(data: st.DataObject) -> None:
    header = bytearray(json.dumps(REPORT).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(header) - 1))
        header[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    _understood(bytes(header), X.tobytes() + bytes(8))


def _understood(header: bytes, body: bytes) -> None:
    refusal = ""
    try:
        message = message_of(header)
        if isinstance(message, Report):
            made = outcome_of(Job("k", b"", ({"X": X},)), 2, message, body)
            assert len(made.outputs) == 1
            assert made.message.isprintable()
            assert made.malformed.isprintable()
            assert np.isfinite(made.seconds)
    except worker.ProtocolError as error:
        refusal = str(error)
    assert refusal.isprintable()


@given(st.binary(max_size=64), st.integers(1, 70))
@settings(max_examples=300, deadline=None)
def test_a_stream_of_any_bytes_gives_frames_or_an_error_of_protocol(data: bytes, size: int) -> None:
    whole = b"".join(worker.pack_frame({"n": 1})) + data
    reader = worker.FrameReader(1 << 12, 1 << 12)
    frames = []
    try:
        for at in range(0, len(whole), size):
            reader.feed(whole[at : at + size])
            while (frame := reader.next_raw()) is not None:
                frames.append(frame)
    except worker.ProtocolError:
        pass
    assert frames or size > len(whole)
