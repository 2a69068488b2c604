"""The certificate's page: what a manager reads."""

from __future__ import annotations

import re
from html import unescape

from msgspec.structs import replace

from onnxspec.conformance.certifying import (
    ChallengeRecord,
    ExceptionRecord,
    MeasuredRecord,
    PackageRecord,
    PlacementRecord,
    ReportedRecord,
    RowRecord,
    StatementRecord,
    SuiteRecord,
    WaiverRecord,
)
from onnxspec.reports import certificate_of, render_certificate

ROW = RowRecord(
    op="LSTM",
    domain="",
    version=14,
    type="float32",
    accuracy="standard",
    status="certified",
    level="sequence",
    cases=10,
    fresh=4,
    verdicts={"pass": 9, "unsupported": 1},
    failing=0,
    not_rejected=2,
    nondeterministic=1,
    lacks=("layout1",),
    levels=(),
    exceptions=(),
)
EXCEPTED = replace(
    ROW, version=22, status="exceptions", failing=3, exceptions=(ExceptionRecord(waiver=1, cases=3),), lacks=()
)
DECLINED = replace(ROW, type="float64", status="none", level="", verdicts={"unsupported": 10})
FAILING = replace(ROW, type="float16", status="none", level="", failing=2, verdicts={"pass": 8, "wrong": 2})
STATEMENT = StatementRecord(
    form=2,
    kind="certificate",
    trial_because=(),
    product="<b>Runtime</b> 2.1",
    vendor="Example & Co",
    date="2026-11-22",
    signer="",
    target="npu",
    runtime="onnxruntime",
    runtime_version="1.31",
    provider="NpuExecutionProvider",
    accuracy="standard",
    profile="core",
    placement=PlacementRecord(proof="record", provider="NpuExecutionProvider", cases=9),
    challenge=ChallengeRecord(nonce="4711", cases=8),
    fresh_process=16,
    reported=(ReportedRecord(what="that no run changed its inputs", cases=9),),
    waivers=(WaiverRecord(reason="known bug", owner="Jo Doe", expires="2027-01-31", clause="lstm.clip", op="LSTM"),),
    rows=(ROW, EXCEPTED, DECLINED, FAILING),
    interpretations={"LSTM": {"empty": "zero"}},
    coverage=("LSTM: 99.1% of pairs of features, 96.0% of triples",),
    findings=(),
)
SUITE = SuiteRecord(
    onnxspec="0.3.0", sources="a" * 64, profile="core", nonce="4711", profiles={}, cases={"LSTM-14": "b" * 64}
)
MEASURED = MeasuredRecord(
    description={"runtime": "onnxruntime", "version": "1.31"},
    adapter="onnxruntime",
    options={},
    wrap="",
    measured=True,
    system="Linux",
    packages=(PackageRecord(name="onnxruntime", version="1.31", files=9, sha256="c" * 64),),
)


def page(statement: StatementRecord = STATEMENT) -> str:
    html = render_certificate(certificate_of(statement, SUITE, MEASURED))
    body = re.sub(r"<(style|script|svg).*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_the_page_says_what_is_certified_what_not_and_what_is_excepted_first() -> None:
    text = page()
    assert "Of 4 combinations of operator version and number type, 1 is certified, 1 more with exceptions." in text
    assert text.index("Exceptions") < text.index("Certified Operator")
    assert "known bug LSTM, lstm.clip; 3 cases; answered for by Jo Doe , until 2027-01-31" in text
    assert "LSTM 14 in float32 sequence does not support batch-first layout; cases fail in version 22" in text
    assert "LSTM 22 in float32 sequence, with exceptions" in text
    assert "LSTM 14 in float16 not certified 2 cases fail" in text
    assert "LSTM: 14 in float64" in text
    assert "record of assignment shows that the operator was given to NpuExecutionProvider" in text
    assert "The number 4711 asked for 8 cases" in text
    assert "2 models" not in text
    assert "models that the documents forbid were run" in text
    assert "c" * 64 in text


def test_a_trial_says_that_it_certifies_nothing() -> None:
    rows = tuple(replace(row, status="none", level="") for row in STATEMENT.rows)
    text = page(replace(STATEMENT, kind="trial", trial_because=("profile smoke is below core",), rows=rows))
    assert "This package certifies nothing: profile smoke is below core." in text
    assert "Certificate of conformance" not in text


def test_who_chose_the_nonce_must_be_confirmed_by_who_has_asked_for_it() -> None:
    text = page()
    assert "given from outside" not in text
    assert "verify PACKAGE.zip --nonce 4711 confirms it" in text


def test_what_others_wrote_is_text() -> None:
    html = render_certificate(certificate_of(STATEMENT, SUITE, MEASURED))
    assert "<b>Runtime" not in html
    assert "&lt;b&gt;Runtime&lt;/b&gt; 2.1" in html
    assert "Example &amp; Co" in html
