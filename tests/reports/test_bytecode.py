"""Compiled templates are kept from one command to the next, and a report is as good without."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from jinja2 import Environment, FunctionLoader

from onnxspec.reports.bytecode import kept_bytecode

SETTINGS = {"trim_blocks": True}


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


class Compiled(Environment):
    """Counts what is compiled."""

    count = 0

    def compile(self, *given, **options):
        self.count += 1
        return super().compile(*given, **options)


def rendered(text: str = "{{ 1 + 1 }}", settings: dict[str, bool] = SETTINGS) -> tuple[str, int]:
    environment = Compiled(loader=FunctionLoader(lambda name: text), bytecode_cache=kept_bytecode(settings), **settings)
    return environment.get_template("page").render(), environment.count


def test_what_was_compiled_is_not_compiled_again():
    assert rendered() == ("2", 1)
    assert rendered() == ("2", 0)


def test_another_text_or_another_setting_is():
    rendered()
    assert rendered("{{ 1 + 2 }}") == ("3", 1)
    assert rendered(settings={"trim_blocks": False}) == ("2", 1)


def test_what_was_kept_and_is_damaged_is_compiled_again(temporary: Path):
    rendered()
    (kept,) = temporary.rglob("*.cache")
    kept.write_bytes(kept.read_bytes()[:-20])
    assert rendered() == ("2", 1)


def test_a_full_disk_costs_nothing_but_time(monkeypatch: pytest.MonkeyPatch):
    def full(*given, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    assert rendered() == ("2", 1)
    assert rendered() == ("2", 1)


@pytest.mark.skipif(os.name == "nt", reason="Jinja looks at owners on POSIX only")
def test_a_folder_that_others_made_is_not_used(temporary: Path):
    (temporary / "elsewhere").mkdir()
    (temporary / f"_jinja2-cache-{os.getuid()}").symlink_to(temporary / "elsewhere")
    assert kept_bytecode(SETTINGS) is None
    assert rendered() == ("2", 1)
