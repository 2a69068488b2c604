"""Tests of operators whose schemas ONNX registers: they are used, or reported missing in one line."""

from __future__ import annotations

import pytest

from onnxspec.conformance.probes.naming import UnknownName
from onnxspec.reference import UnknownOperator, document_of, operator_version
from onnxspec.reference.documents.operators import MISSING, has_schema


def test_an_operator_that_the_installed_onnx_lacks_is_missing_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not has_schema("OfTomorrow")
    try:
        with pytest.raises(UnknownOperator, match=r"onnx \S+ has no schema of OfTomorrow: install a newer one"):
            document_of("OfTomorrow")
    finally:
        del MISSING["OfTomorrow"]


def test_a_schema_says_types_kinds_and_defaults() -> None:
    version = pytest.importorskip("onnxspec.reference") and operator_version("LSTM", 22)
    assert dict(version.kinds) == {"T1": ("int32",)}
    assert version.kind_of("sequence_lens") == "T1"
    assert version.kind_of("X") == "T"


def test_a_command_that_names_a_missing_operator_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "onnx 1.0 has no schema of OfTomorrow: install a newer one"
    monkeypatch.setitem(MISSING, "OfTomorrow", sentence)
    assert str(UnknownName("operator", "OfTomorrow", ["LSTM"])) == f"unknown operator 'OfTomorrow'; {sentence}"
