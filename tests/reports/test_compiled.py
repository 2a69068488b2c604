"""Compiled templates that are kept."""

import sys
from pathlib import Path

import jinja2
import pytest

from onnxspec.reports.compiled import compiled_templates


def filled(text: str, folder: Path) -> str:
    loader = jinja2.FunctionLoader(lambda name: text)
    return jinja2.Environment(loader=loader, bytecode_cache=compiled_templates(folder)).get_template("t").render(n=7)


def test_a_template_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert filled("{{ n }} cases", tmp_path) == "7 cases"
    (kept,) = tmp_path.iterdir()
    with monkeypatch.context() as patched:
        patched.delattr(jinja2.Environment, "compile")
        assert filled("{{ n }} cases", tmp_path) == "7 cases"
    assert filled("{{ n }} results", tmp_path) == "7 results"  # what has changed is compiled anew
    kept.write_bytes(b"no code")
    assert filled("{{ n }} results", tmp_path) == "7 results"


def test_where_nothing_can_be_kept_it_is_compiled_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert filled("{{ n }} cases", tmp_path / "missing") == "7 cases"
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert filled("{{ n }} cases", tmp_path) == "7 cases"
    assert not [*tmp_path.iterdir()]
