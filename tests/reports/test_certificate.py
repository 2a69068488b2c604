"""Tests of the certificate's page, whose reader is a manager."""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path

from msgspec.structs import replace

from onnxspec.conformance.certifying.records import (
    ChallengeRecord,
    ExceptionRecord,
    LevelRecord,
    PlacementRecord,
    ReportedRecord,
    RowRecord,
    StatementRecord,
    SuiteRecord,
    WaiverRecord,
)
from onnxspec.conformance.results.records import TargetRecord
from onnxspec.reports.certificate import certificate_html, lines_of, requirements_of
from onnxspec.reports.run import NO_TARGET, read_run

from .conftest import finding, result, sample_info, write_run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROW = RowRecord(
    op="LSTM",
    domain="",
    version=14,
    type="float32",
    status="certified",
    level="sequence",
    fresh=4,
    verdicts={"pass": 9, "unsupported": 1},
    not_rejected=2,
    nondeterministic=1,
    unshown=("layout1", "input-forget"),
    levels=(LevelRecord(level="basic", status="reached", cases=4, passed=4, inconclusive=0.0, against=()),),
    exceptions=(),
)
EXCEPTION = ExceptionRecord(waiver=1, cases=3)
EXCEPTED = replace(ROW, version=22, status="exceptions", exceptions=(EXCEPTION,), unshown=())
DENIED = replace(ROW.levels[0], status="denied", against=("2 of the cases beyond it fail: a, b",))
DECLINED = replace(ROW, type="float64", status="none", level="", verdicts={"unsupported": 10})
FAILING = replace(DECLINED, type="float16", verdicts={"pass": 8, "wrong": 2}, levels=(DENIED,))
STATEMENT = StatementRecord(
    form=2,
    kind="certificate",
    trial_because=(),
    product="<b>Runtime</b> 2.1",
    vendor="Example & Co",
    date="2026-11-22",
    signer="",
    suite=SuiteRecord(onnxspec="0.3.0", sources="a" * 64, cases={"LSTM-14": "b" * 64}),
    target="npu",
    runtime="onnxruntime",
    runtime_version="1.31",
    provider="NpuExecutionProvider",
    accuracy="standard",
    profile="core",
    placement=PlacementRecord(proof="record", provider="NpuExecutionProvider", cases=9),
    challenge=ChallengeRecord(nonce="4711", cases=8),
    fresh_process=16,
    declined=("no hidden_size",),
    reported=(ReportedRecord(what="that no run changed its inputs", cases=9),),
    waivers=(WaiverRecord(reason="known bug", owner="Jo Doe", expires="2027-01-31", clause="lstm.clip", op="LSTM"),),
    rows=(ROW, EXCEPTED, DECLINED, FAILING),
    interpretations={"LSTM": {"empty": "zero"}},
)
PACKAGE = {"name": "onnxruntime", "version": "1.31", "files": 9, "sha256": "c" * 64}
MEASURED = {"system": "Linux", "processor": "a processor", "devices": [], "packages": [PACKAGE], "libraries": []}
DESCRIPTION = {"runtime": "onnxruntime", "version": "1.31", "measured": MEASURED}
TARGET: TargetRecord = {**NO_TARGET, "adapter": "onnxruntime", "description": DESCRIPTION}


def page(statement: StatementRecord = STATEMENT, wrap: str = "") -> str:
    return text_of(certificate_html(statement, {**TARGET, "wrap": wrap}))


def text_of(html: str) -> str:
    body = re.sub(r"<(style|script|svg).*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_the_page_says_what_is_certified_first_then_what_is_excepted_and_what_is_not() -> None:
    html = certificate_html(STATEMENT, TARGET)
    assert "&lt;b&gt;Runtime&lt;/b&gt; 2.1" in html  # what others wrote is text
    assert "Example &amp; Co" in html
    text = text_of(html)
    assert "Of 4 combinations of operator version and number type, 1 is certified, 1 more with exceptions." in text
    order = ("Certified Level", "With exceptions Level", "Not certified Level", "Not supported", "Statements of")
    assert [text.index(heading) for heading in order] == sorted(text.index(heading) for heading in order)
    for words in (
        "known bug LSTM, lstm.clip; 3 cases; responsible: Jo Doe , until 2027-01-31",
        "sequence LSTM 14 in float32 no passing case has layout 1 and input_forget",
        "sequence, with exceptions LSTM 22 in float32",
        "none LSTM 14 in float16 basic: 2 of the cases beyond it fail",
        "no hidden_size",
        "So none of these ran: LSTM 14 in float64",
        "record of assignment shows that the operator was given to NpuExecutionProvider",
        "that no run changed its inputs (9 cases)",
        "invalid models were accepted",
        "no case above it is wrong. Untested features are not certified.",
        "verify PACKAGE.zip --nonce 4711 confirms it",
        "c" * 64,
    ):
        assert words in text, words
    assert "2 models" not in text


def test_rows_that_are_alike_stand_in_one_line() -> None:
    alike = [replace(ROW, version=version, type=kind) for kind in ("float32", "float16") for version in (7, 14)]
    text = page(replace(STATEMENT, rows=(*alike, replace(ROW, op="GRU", version=7, level="basic"))))
    assert "sequence LSTM 7 and 14 in float32 and float16 no passing case has layout 1 and input_forget" in text
    assert "basic GRU 7 in float32" in text


def test_a_device_of_ones_own_is_put_to_the_same_test() -> None:
    text = page()
    assert "onnxspec run --target onnxruntime --op LSTM --nonce NUMBER --out mine" in text
    options = {"provider": "NpuExecutionProvider", "provider_options": {"soc model": "60"}}
    html = certificate_html(STATEMENT, {**TARGET, "options": options, "wrap": "neg"})
    (table,) = re.findall(r"<pre[^>]*><code>(\[device\].*?)</code></pre>", html, re.DOTALL)
    (target,) = tomllib.loads(unescape(table)).values()
    assert target["adapter"] == "onnxruntime"
    assert target["options"] == options
    assert "--targets-file targets.toml --target device+neg" in html
    own = certificate_html(STATEMENT, {**TARGET, "adapter": "acme_adapter.py"})
    assert 'adapter = "acme_adapter.py"  # the vendor\'s file, beside this one' in unescape(own)
    assert "--target device --op" in own
    assert "Every node was embedded in a larger graph (neg)" in html
    quantized = "Every node was quantized: between DequantizeLinear and QuantizeLinear (qdq-u8)."
    assert (quantized in page(wrap="qdq-u8"), "quantized" in page()) == (True, False)


def test_an_unsigned_package_says_so_and_a_signed_one_how_to_check_it() -> None:
    assert "This package is unsigned" in page()
    assert "--signer" not in page()
    text = page(replace(STATEMENT, signer="ab" * 32))
    assert "onnxspec verify PACKAGE.zip --nonce NUMBER --signer PUB.pem generates every case again" in text
    assert "unsigned" not in text
    assert f"claims to be signed with the key {'ab' * 32}" in text


def test_a_trial_says_that_it_certifies_nothing() -> None:
    rows = tuple(replace(row, status="none", level="") for row in STATEMENT.rows)
    text = page(replace(STATEMENT, kind="trial", trial_because=("profile smoke is below core",), rows=rows))
    assert "This package certifies nothing: profile smoke is below core." in text
    assert "none LSTM 14 and 22 in float32 only a trial, whose cases would reach basic" in text
    assert "Certificate of conformance" not in text
    assert "one kernel for all versions" not in text


def test_a_trial_is_repeated_with_its_own_cases() -> None:
    html = certificate_html(replace(STATEMENT, profile="smoke"), TARGET)
    assert "--op LSTM --profile smoke --nonce NUMBER" in html
    assert "pip install ." in html
    assert "pip install onnxspec" not in html


def test_each_requirement_has_its_result_and_counts_of_cases(tmp_path: Path) -> None:
    statuses = {"lstm.clip": "stated", "lstm.bias": "implied", "lstm.layout": "stated", "lstm.padding": "convention"}
    clauses = {id: {"status": status, "text": f"Text of {id}.", "source": ""} for id, status in statuses.items()}
    rows = [
        result("right", clauses=["lstm.bias", "lstm.padding"]),
        result("wrong", verdict="wrong", clauses=["lstm.bias", "lstm.clip"], clause="lstm.bias"),
        result("dead", verdict="crashed", clauses=["lstm.bias"]),
        result("refused", verdict="unsupported", clauses=["lstm.layout"]),
        result("accepted", verdict="not-rejected", clauses=["lstm.layout"], clause="lstm.layout"),
    ]
    info = sample_info(rows)
    info["clauses"] = clauses
    info["targets"][0]["findings"] = [finding("clip is not applied", "wrong", ["lstm.clip"], ["wrong"])]
    requirements = requirements_of(read_run(write_run(tmp_path / "run", rows, info)))
    assert [(row.id, row.result, row.passed, row.wrong, row.unjudged) for row in requirements["LSTM"]] == [
        ("lstm.clip", "wrong", 0, 1, 0),
        ("lstm.layout", "wrong", 0, 1, 1),
        ("lstm.bias", "pass", 1, 0, 2),
    ]
    text = text_of(certificate_html(STATEMENT, TARGET, requirements))
    assert "LSTM : 3 requirements, 2 wrong, 1 pass" in text
    assert "Text of lstm.clip. lstm.clip wrong 0 1 0" in text


def test_the_terminal_has_the_answer_then_what_is_certified_and_what_is_not() -> None:
    assert [line.partition(":")[0] for line in lines_of(STATEMENT)] == [
        "Of 4 combinations of operator version and number type, 1 is certified, 1 more with exceptions. Of 40 test "
        "cases",
        "exception 1",
        "certified (sequence)",
        "  no passing case has layout 1 and input_forget",
        "with exceptions (sequence)",
        "not certified",
        "  basic",
        "not supported",
    ]
