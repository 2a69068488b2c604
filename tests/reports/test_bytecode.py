"""Compiled templates are kept from one command to the next, and a report is as good without."""

from __future__ import annotations

import tempfile
from importlib import metadata
from pathlib import Path

import pytest
from jinja2 import Environment, FunctionLoader

from onnxspec.reports import kept_bytecode

SETTINGS = {"trim_blocks": True}


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches"


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


def test_another_jinja_compiles_again(monkeypatch: pytest.MonkeyPatch):
    """What one version writes may call what another does not have."""
    rendered()
    monkeypatch.setattr(metadata, "version", lambda package: "3.0")
    assert rendered() == ("2", 1)


def test_what_was_kept_and_is_damaged_is_compiled_again(caches: Path):
    rendered()
    (kept,) = caches.rglob("*.cache")
    whole = kept.read_bytes()
    for length in range(0, len(whole), 7):
        kept.write_bytes(whole[:length])
        assert rendered() == ("2", 1), length


def test_a_full_disk_costs_nothing_but_time(monkeypatch: pytest.MonkeyPatch):
    def full(*given, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    assert rendered() == ("2", 1)
    assert rendered() == ("2", 1)


def test_without_a_folder_for_caches_there_is_none(caches: Path):
    caches.write_text("no folder")
    assert kept_bytecode(SETTINGS) is None
    assert rendered() == ("2", 1)


def test_nothing_is_kept_for_somebody_without_a_home(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XDG_CACHE_HOME")

    def nobody(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", nobody)
    assert kept_bytecode(SETTINGS) is None
