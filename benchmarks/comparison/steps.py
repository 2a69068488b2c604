"""Recorded commands of onnxspec, by steps, each in a folder of its own.

``fuzz`` is left out: Hypothesis draws other cases when other modules are loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PROVEN = (("RNN", "float32"), ("LSTM", "float32"), ("GRU", "float32"), ("ExtendedLSTM", ""))
"""Operators and types (all where empty) for which the suite is proved; all of them take a quarter of an hour."""

CHAINED = {"onnxruntime-openvino": ("", "+neg")}
"""Variants of targets: OpenVINO's provider declines every LSTM without a neighbour node."""

NONCE = "4711"
EXPLAINED = ("gru-14.float32.forward.lengths-ragged.T4N3I2H5", "lstm-14.float32.forward.bias.T4N3I2H5.e49129")
WRAPS = ("neg", "cast", "qdq", "layers")
GENERATED = ("LSTM", "GRU", "RNN", "ExtendedLSTM")
STORED = "run"
"""The folder of a run inside that of its step."""


@dataclass(frozen=True)
class Step:
    """Commands that run one after another in the folder ``name``; an argument with a * stands for files there."""

    name: str
    commands: tuple[tuple[str, ...], ...]


def steps(targets: Sequence[str], targets_file: str, proven: Sequence[tuple[str, str]] = PROVEN) -> list[Step]:
    """Return all steps, cheap ones first; later ones may read files of earlier ones."""
    small = [*_texts(), *_small_runs(), *_directories(), _certificate()]
    return [*small, *_targets(targets, targets_file), *_proofs(proven)]


def _texts() -> Iterator[Step]:
    yield Step("clauses", (("clauses",), ("check", "--rules")))
    yield Step(
        "list",
        (
            ("list", "--profile", "core", "--json"),
            ("list", "--profile", "full", "--json"),
            ("list", "--profile", "core", "--features"),
        ),
    )
    explained = [("explain", case) for case in EXPLAINED]
    scripts = [("explain", case, "--emit", "script") for case in EXPLAINED]
    answers = [("explain", case, "--target", "onnx-reference") for case in EXPLAINED]
    yield Step("explain", (*explained, *scripts, *answers))


def _small_runs() -> Iterator[Step]:
    smoke = ("run", "--profile", "smoke", "--out", STORED)
    for wrap in WRAPS:
        yield Step(f"wrap-{wrap}", ((*smoke, "--target", f"onnxruntime+{wrap}"),))
    yield Step("optimized", ((*smoke, "--target", "onnxruntime+optimized"),))
    yield Step("random", (("run", "--random", "200:1", "--out", STORED),))
    yield Step("forms", ((*smoke, "--junit", "junit.xml"),))
    parts = [("run", "--profile", "smoke", "--shard", f"{part}/2", "--out", f"part{part}") for part in (1, 2)]
    yield Step("merge", (*parts, ("merge", "part1", "part2", "--out", STORED)))


def _directories() -> Iterator[Step]:
    for op in GENERATED:
        cases = f"../generate-{op}/cases"
        written = ("generate", "--op", op, "--all", "--out", "cases")
        yield Step(f"generate-{op}", (written,))
        yield Step(f"cases-{op}", (("run", "--case", cases, "--out", STORED),))
        checked = [("check", "--format", form, f"{cases}/*/model.onnx") for form in ("json", "sarif", "text")]
        yield Step(f"check-{op}", tuple(checked))


def _certificate() -> Step:
    named = ("--product", "Example Runtime 2.1", "--vendor", "Example Ltd")
    return Step(
        "certify",
        (
            ("run", "--op", "RNN-7", "--nonce", NONCE, "--out", STORED),
            ("certify", STORED, *named, "--out", "package.zip"),
            ("verify", "package.zip", "--nonce", NONCE),
        ),
    )


def _targets(names: Sequence[str], targets_file: str) -> Iterator[Step]:
    for name in names:
        for lane in CHAINED.get(name, ("",)):
            options = ("--targets-file", targets_file, "--target", name + lane)
            yield Step(f"core-{name}{lane}", (("run", *options, "--out", STORED),))


def _proofs(proven: Sequence[tuple[str, str]]) -> Iterator[Step]:
    for op, number_type in proven:
        chosen = ("--op", op, *(("--type", number_type) if number_type else ()))
        name = f"prove-{op}-{number_type}" if number_type else f"prove-{op}"
        yield Step(name, (("prove", *chosen, "--out", "proof.csv"),))
