"""Tests of an operator whose name another domain has: every command tells the two apart."""

from __future__ import annotations

from pathlib import Path

from .several import commands
from .test_toy import results, targets

__all__ = ["targets"]  # the fixture

OP = ("--op", "toy.example::LSTM")


def test_every_command_tells_it_from_the_other_domains(targets: Path, tmp_path: Path) -> None:
    of = ("--targets-file", targets)
    words: dict[str, tuple[str | Path, ...]] = {
        "list": ("list", *OP),
        "run": ("run", *OP, "--target", "right", "--target", "wrong", *of, "--out", tmp_path / "run",
                "--junit", tmp_path / "junit.xml"),
        "right": ("run", *OP, "--target", "right", *of, "--record",
                  "--out", tmp_path / "right"),
        "certify": ("certify", tmp_path / "right", "--out", tmp_path / "p.zip", "--product", "toy", "--vendor", "no"),
        "generate": ("generate", "--out", tmp_path / "cases", *OP, "--all"),
        "prove": ("prove", *OP, "--out", tmp_path / "proof.csv", "--fault", "leaky.start.one"),
        "explain": ("explain", "toy.example.lstm-1.float32.b2-i3-n1-s7.", "--target", "wrong", *of),
        "clauses": ("clauses", "toy.example::LSTM"),
        "other": ("list", "--op", "LSTM-22", "--profile", "smoke"),
    }  # fmt: skip
    done = dict(zip(words, commands("tests.toy.several", *words.values()), strict=True))
    assert {name: one["code"] for name, one in done.items()} == dict.fromkeys(words, 0) | dict.fromkeys(
        ("run", "right", "certify"), 1
    ), done
    ids = done["list"]["printed"].split()[:5]
    assert all(id.startswith("toy.example.lstm-1.float32.b2") for id in ids)
    rows = results(tmp_path / "run")
    wrong = {tuple(row["diagnosis"]) for row in rows.values() if row["verdict"] == "wrong"}  # type: ignore[arg-type]
    assert wrong == {("leaky.start.one",)}
    assert {case for _, case in rows} == set(ids)
    assert "Starts from one" in done["run"]["printed"]
    assert "not certified: toy.example::LSTM 1 in float32" in done["certify"]["printed"]
    assert "signal" in done["explain"]["printed"]
    assert "toy.example.lstm.equations" in done["clauses"]["printed"]
    assert "toy.example" not in done["other"]["printed"]
    assert not [path for path in tmp_path.rglob("*") if ":" in path.name]
