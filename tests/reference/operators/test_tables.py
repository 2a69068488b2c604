"""Tests of the table of operators: each is loaded when it is first asked for."""

from __future__ import annotations

import subprocess
import sys

from onnxspec.reference import document_of, operator_of
from onnxspec.reference.documents.operators import MISSING
from onnxspec.reference.operators import MODULES


def printed(code: str) -> str:
    """Return the output of Python code in a process of its own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_table_says_the_versions_of_documents() -> None:
    for title in MODULES:
        domain, _, op_type = title.rpartition("::")
        if op_type in MISSING:  # the installed onnx has no schema of it
            continue
        document = document_of(op_type, domain)
        assert document.title == title
        assert (None if document.versions is None else [*document.versions]) == ([1] if domain else None)
        assert operator_of(op_type, domain).document == document


def test_an_operator_loads_no_other() -> None:
    code = "from onnxspec.reference import OPERATORS, operator_of; operator_of('LSTM'); print(*OPERATORS)"
    assert printed(code) == "('', 'LSTM') ('', 'GRU') ('', 'RNN')"


def test_a_question_is_known_before_the_documents_that_ask_it_are_loaded() -> None:
    code = "from onnxspec.reference import Interpretations; print(Interpretations(input_range='step'))"
    assert printed(code) == "Interpretations(input_range='step')"
