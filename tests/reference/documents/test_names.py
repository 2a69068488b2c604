"""Tests of names of operators, tables that extend another operator's, and loading on demand."""

import subprocess
import sys
from pathlib import Path

import pytest

from onnxspec.reference import (
    ClauseError,
    Node,
    OperatorVersion,
    UnknownOperator,
    clauses_of,
    operator_names,
    operator_of,
    versions_of,
)
from onnxspec.reference.documents import Document, clauses, operators
from onnxspec.reference.documents.clauses import parse_clauses
from onnxspec.reference.documents.operators import MISSING, await_document, declare, document_of
from onnxspec.reference.operators import MODULES

DOMAIN = "com.example"
EXTENDING = """
extends = "lstm"
version = 14
without = ["layout"]

[[clause]]
id = "{prefix}.clip"
text = "There is another clip."
status = "stated"
source = "Attribute clip"
"""


def version(op_type: str) -> OperatorVersion:
    return OperatorVersion(
        DOMAIN, op_type, 1, {"clip": "FLOAT"}, {}, ("X",), frozenset({"X"}), ("Y",), frozenset(), ("float32",)
    )


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    operators.load_documents()  # modules that are loaded declare their documents once
    for table in ("_DOCUMENTS", "_NAMES", "_KEYS", "_AWAITED"):
        monkeypatch.setattr(operators, table, dict(getattr(operators, table)))
    for cached in (operators.versions_of, operators.operator_version, clauses._table, clauses._chosen, clauses.base_of):
        cached.cache_clear()


def document(op_type: str, folder: Path, text: str = EXTENDING) -> Document:
    folder.mkdir(exist_ok=True)
    (folder / "clauses.toml").write_text(text)
    return declare(Document(op_type, DOMAIN, folder / "clauses.toml", {1: version(op_type)}))


def test_a_name_is_one_operators_in_each_domain(tmp_path: Path) -> None:
    declared = document("LSTM", tmp_path)
    assert declared.name == "com.example::LSTM"
    assert declared.prefix == "com.example.lstm"
    assert declared.name in operator_names()
    assert document_of("LSTM").domain == ""
    assert document_of("LSTM", DOMAIN) == document_of("com.example::LSTM") == declared
    assert Node("LSTM", 1, {"clip": 1.0}, domain=DOMAIN).operator.name == "com.example::LSTM-1"
    with pytest.raises(ValueError, match=r"the name is that of com\.example::LSTM"):
        declare(Document("lstm", DOMAIN, declared.clauses, {1: version("lstm")}))
    with pytest.raises(UnknownOperator):
        document_of("LSTM", "elsewhere")


def test_an_operator_is_known_before_its_document_is_loaded(tmp_path: Path) -> None:
    loaded = []

    def load() -> None:
        loaded.append("Later")
        if len(loaded) == 1:  # as of a module, which is imported once
            document("Later", tmp_path)

    await_document((DOMAIN, "Later"), (1,), load)
    assert "Later" in operator_names(DOMAIN)
    assert versions_of("Later") == (1,)
    assert not loaded
    with pytest.raises(ValueError, match=r"the name is that of com\.example::Later"):
        declare(Document("Later", DOMAIN, tmp_path, {1: version("Later"), 2: version("Later")}))
    assert document_of("Later").versions == {1: version("Later")}


def test_a_table_that_extends_another_one_lists_what_differs(tmp_path: Path) -> None:
    declared = document("Other", tmp_path, EXTENDING.format(prefix="other"))
    inherited = {clause.id.partition(".")[2]: clause for clause in clauses_of(declared.name)}
    base = {clause.id.partition(".")[2]: clause for clause in clauses_of("LSTM", 14)}
    assert set(base) - set(inherited) == {"layout"}
    assert inherited["clip"].text == "There is another clip."
    assert inherited["gates.order"].text == base["gates.order"].text
    assert inherited["gates.order"].source.startswith("As LSTM-14: ")
    assert all(clause.versions == (1,) for clause in inherited.values())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('extends = "mood"', "prefix of a known operator's clauses, not 'mood'"),
        ('extends = "lstm"\nversion = 2', "version is one of LSTM: 1, 7, 14, 22, not 2"),
        ('extends = "lstm"\nwithout = ["mood"]', "LSTM-22 has no such clause"),
        ('extends = "lstm"\nwithout = "clip"', "Expected `array`, got `str`"),
        ('without = ["clip"]', "extends another one"),
    ],
)
def test_what_cannot_be_extended_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    document("Other", tmp_path)
    with pytest.raises(ClauseError, match=f"^table: .*{complaint}"):
        parse_clauses(text, "Other", "table")


# The table of operators: each is loaded when it is first asked for.


def printed(code: str) -> str:
    """Return the output of Python code in a process of its own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_table_says_the_versions_of_documents() -> None:
    for title in MODULES:
        domain, _, op_type = title.rpartition("::")
        if op_type in MISSING:  # the installed onnx has no schema of it
            continue
        declared = document_of(op_type, domain)
        assert declared.title == title
        assert (None if declared.versions is None else [*declared.versions]) == ([1] if domain else None)
        assert operator_of(op_type, domain).document == declared


def test_an_operator_loads_no_other() -> None:
    code = "from onnxspec.reference import OPERATORS, operator_of; operator_of('LSTM'); print(*OPERATORS)"
    assert printed(code) == "('', 'LSTM') ('', 'GRU') ('', 'RNN')"


def test_a_question_is_known_before_the_documents_that_ask_it_are_loaded() -> None:
    code = "from onnxspec.reference import Interpretations; print(Interpretations(input_range='step'))"
    assert printed(code) == "Interpretations(input_range='step')"
