"""Tests of errata: the installed onnx registers each of them, and each corrects a statement of its document."""

from __future__ import annotations

import onnx.defs
import onnx.helper
import pytest

from onnxspec.reference import CELLS as OPERATORS
from onnxspec.reference import operator_version, versions_of
from onnxspec.reference.documents.interpretations import ERRATA, Default, Erratum, corrected

ENTRIES = [(erratum, version) for erratum in ERRATA for version in erratum.versions]
ALL = [(op, version) for op in OPERATORS for version in versions_of(op)]


def registered(op: str, version: int, attribute: str) -> Default | None:
    default = onnx.defs.get_schema(op, version, "").attributes[attribute].default_value
    value = onnx.helper.get_attribute_value(default)
    if isinstance(value, list):
        return tuple(v.decode() for v in value)
    return value.decode() if isinstance(value, bytes) else value  # type: ignore[no-any-return]


@pytest.mark.parametrize(("erratum", "version"), ENTRIES, ids=lambda e: e.op_type if isinstance(e, Erratum) else str(e))
def test_each_entry_is_what_onnx_registers(erratum: Erratum, version: int) -> None:
    assert registered(erratum.op_type, version, erratum.attribute) == erratum.registered
    assert erratum.meant != erratum.registered


@pytest.mark.parametrize(("erratum", "version"), ENTRIES, ids=lambda e: e.op_type if isinstance(e, Erratum) else str(e))
def test_each_document_says_otherwise(erratum: Erratum, version: int) -> None:
    says = onnx.defs.get_schema(erratum.op_type, version, "").attributes[erratum.attribute].description
    excerpts = {"direction": "Must be one of forward (default)", "activations": "One (or two if bidirectional)"}
    assert excerpts[erratum.attribute] in says


@pytest.mark.parametrize(("op", "version"), ALL)
def test_defaults_are_those_of_the_documents(op: str, version: int) -> None:
    defaults: dict[str, Default] = {"direction": "forward"}
    if version < 7:
        defaults["output_sequence"] = 0
    if version >= 14:
        defaults["layout"] = 0
    if op == "LSTM":
        defaults["input_forget"] = 0
    if op == "GRU" and version > 1:
        defaults["linear_before_reset"] = 0
    assert operator_version(op, version).defaults == defaults


@pytest.mark.parametrize(("op", "version"), ALL)
def test_only_version_1_of_gru_demands_an_output(op: str, version: int) -> None:
    assert operator_version(op, version).required_outputs == ({"Y_h"} if (op, version) == ("GRU", 1) else set())


def test_what_onnx_has_mended_is_not_corrected() -> None:
    assert corrected("GRU", 1, "direction", "foward") == "forward"
    assert corrected("GRU", 1, "direction", "reverse") == "reverse"
    assert corrected("GRU", 3, "direction", "foward") == "foward"
    assert corrected("LSTM", 1, "direction", "foward") == "foward"
    assert corrected("RNN", 7, "activations", ("Tanh", "Tanh")) is None
    assert corrected("RNN", 7, "activations", ("Tanh",)) == ("Tanh",)
