"""Mutated targets.toml files and lists of expected failures: they are read, or refused with one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomlkit
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from onnxspec.cases import CaseSpec
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.results.expected.entries import Entry, applying, parse_expected, stale
from onnxspec.conformance.targets.target import TargetError, _Keys, parse_target, table_names
from onnxspec.reference.errors import UserError

few = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

ODD_TEXTS = st.sampled_from(
    [
        *("", " ", "\0", "a\nb\x1b[31m", "~nobody-of-that-name/x", "~nobody-of-that-name/x.py", "x\0.py", "a=b"),
        "\u202e",
        *("9" * 5000 + "-", ">=" + "9" * 5000, ">=1.20, <1.23", "7-14", "-", "[" * 300, "*" * 300, "n" * 5000),
        *("onnxruntime", "external", "backend", "float32", "GRU", "LSTM", "wrong", "strict", "{worker}", "ssh"),
    ]
)
ODD_VALUES = st.recursive(
    ODD_TEXTS
    | st.text(max_size=8)
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.just(10**400)
    | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD_TEXTS | st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


TARGET_KEYS = (*_Keys.__struct_fields__, "nonsense")
GOOD_TARGET = {"adapter": "onnxruntime", "time_limit": 120, "environment": {"A": "0"}}
ENTRY_KEYS = (*Entry.__struct_fields__, "nonsense")
GOOD_ENTRY = {"reason": "so", "op": "LSTM", "versions": [7, "14-"], "runtime": ">=1.20", "cases": ["lstm-*"]}


def tables(keys: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(keys), ODD_VALUES | st.lists(ODD_TEXTS, max_size=2), max_size=3)


def one_line(error: Exception, begin: str = "") -> None:
    assert str(error).startswith(begin)
    assert "\n" not in str(error)


def read_targets(path: Path) -> None:
    """Read a file as every command does, up to the command line that starts a worker."""
    try:
        for name in table_names(path):
            try:
                target = parse_target(name, path)
            except TargetError as error:
                one_line(error)
            else:
                assert target.name == name
                assert 0 < target.time_limit < float("inf")
                assert all("\0" not in word for word in (*target.command, target.expected, target.adapter))
                assert not any("\0" in word for pair in target.environment.items() for word in pair)
                assert all(key and "=" not in key for key in target.environment)
    except TargetError as error:
        one_line(error)


@given(tables(TARGET_KEYS), ODD_TEXTS)
@example({"expected": "~nobody-of-that-name/x"}, "box")
@example({"interpreter": "~nobody-of-that-name/python"}, "box")
@example({"adapter": "~nobody-of-that-name/x.py"}, "box")
@example({"adapter": "x\0.py"}, "box")
@example({"expected": "\0"}, "box")
@example({"command": ["a\0b"]}, "box")
@example({"environment": {"A=B": ""}}, "box")
@example({"environment": {"": "1"}}, "box")
@example({"environment": {"A": "\0"}}, "box")
@example({"time_limit": 10**400}, "box")
@example({"a\nb": 1}, "c\nd")
@few
def test_a_table_of_targets_is_read_or_refused_in_one_line(tmp_path: Path, table: dict[str, Any], name: str) -> None:
    path = tmp_path / "targets.toml"
    path.write_text(tomlkit.dumps({name: {**GOOD_TARGET, **table}}), encoding="utf-8")
    read_targets(path)


PROBE = SpecProbe(CaseSpec("LSTM", 14))


def read_expected(text: str) -> None:
    """Read a list, and use it as a run does."""
    try:
        entries = parse_expected(text, "list.toml")
    except UserError as error:
        one_line(error, "list.toml:")
    else:
        for version in ("1.23.2+gpu", "", "9" * 5000, "v1"):
            stale(applying(entries, {"version": version, "runtime": "r"}), [(PROBE, Judgement(Verdict.PASS))])


@given(tables(ENTRY_KEYS), tables(("adapter", "provider", "program", "runtime", "nonsense")))
@example({"versions": ["9" * 5000 + "-"]}, {})
@example({"runtime": ">=" + "9" * 5000}, {})
@example({}, {"runtime": "<" + "9" * 5000})
@example({"types": ["a\nb"]}, {})
@few
def test_a_list_of_expected_failures_is_read_or_refused_in_one_line(
    entry: dict[str, Any], header: dict[str, Any]
) -> None:
    read_expected(tomlkit.dumps({"target": header, "expected": [GOOD_ENTRY, {**GOOD_ENTRY, **entry}]}))
