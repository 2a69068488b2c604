"""pytest against a backend: its items and their texts, which agree with the command's results."""

from __future__ import annotations

import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import pytest

from onnxspec.cases import features_of, operator_versions, profile
from onnxspec.conformance.extraction.cases import cases_of_model
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.selection import Selection, select
from onnxspec.conformance.pytest_plugin.assertion import (
    RunningTarget,  # noqa: F401 - loaded once, here: NumPy cannot be loaded again in the runs below
)
from onnxspec.conformance.pytest_plugin.items import Group, item_group
from onnxspec.conformance.results.writer import RunWriter
from onnxspec.conformance.running.engine import execute
from onnxspec.conformance.running.run import Plan
from onnxspec.conformance.targets.target import parse_target
from onnxspec.reference import operator_of

from ..checking.nodes import one_node
from ..miniatures import command_line, needs_cell_output

pytest_plugins = "pytester"

EXAMPLE = Path(__file__).parents[3] / "examples" / "runtime-repository"
SUITE = ("--pyargs", "onnxspec.conformance")
# Eight cases that the example's small runtime supports, and many that it refuses.
FEW = ("--onnxspec-op", "LSTM-14", "--onnxspec-type", "float32")
FAULTS = {
    "faulty": ("i, o, f, g = np.split", "i, f, o, g = np.split"),
    "crashing": ("    size = R.shape[-1]\n", "    import os\n    size = R.shape[-1]\n    os.abort()\n"),
    "late": (
        "h = sigmoid(o) * np.tanh(c)",
        "h = sigmoid(o) * np.tanh(c) * X.dtype.type(0.5 if len(steps) == 2 else 1)",
    ),
}


@pytest.fixture(autouse=True)
def only_what_takes_part(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable Hypothesis's plugin: the runs below do not use it, and it would take longer to load than they run."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a folder with the example's runtime, variants with a fault, and an ini-file with their path."""
    text = (EXAMPLE / "tiny_runtime.py").read_text()
    pytester.path.joinpath("tiny_runtime.py").write_text(text)
    for name, (right, wrong) in FAULTS.items():
        assert right in text
        pytester.path.joinpath(f"{name}.py").write_text(text.replace(right, wrong))
    pytester.makeini("[pytest]\npythonpath = .\n")
    return pytester


def of(target: str, *options: str) -> tuple[str, ...]:
    """Return the arguments of pytest that run the suite on a target."""
    return (*SUITE, "--onnxspec-target", target, *options)


def verdicts(file: Path) -> dict[str, str]:
    """Return the verdict of each case in a JUnit file."""
    by_case: dict[str, str] = {}
    for testcase in ET.parse(file).iter("testcase"):
        properties = [(p.attrib["name"], p.attrib["value"]) for p in testcase.iter("property")]
        for position, (name, value) in enumerate(properties):
            if name == "case":
                assert [n for n, _ in properties[position : position + 4]] == ["case", "verdict", "clause", "ratio"]
                assert value not in by_case, "a case ran twice"
                by_case[value] = properties[position + 1][1]
    return by_case


# pytest and the command report the same about a target.


@pytest.mark.parametrize("target", ["onnxruntime", "backend:faulty"])
def test_pytest_and_the_command_agree_case_for_case(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    project.runpytest_inprocess(*of(target, "--onnxspec-profile", "smoke", "--junitxml", "junit.xml"))
    monkeypatch.setenv("PYTHONPATH", str(project.path))
    chosen = Selection("smoke")
    with RunWriter(project.path / "run") as journal:
        run = execute(Plan(chosen, tuple(map(SpecProbe, select(chosen))), (parse_target(target),)), journal)
    by_command = {result.case: result.verdict.value for result in run.targets[0].results}
    assert verdicts(project.path / "junit.xml") == by_command
    assert len(Counter(by_command.values())) > 1


def test_an_error_in_an_operators_own_code_is_no_pass_and_no_failure_of_the_target(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds for a shipped operator too; no list of known failures excuses it."""

    def raising(*_: Any, **__: Any) -> Any:
        raise LookupError("no such\ngate")

    monkeypatch.setattr(type(operator_of("LSTM")), "expecting_each", raising)
    args = (*SUITE, *FEW, "--onnxspec-profile", "smoke", "--onnxspec-target", "onnxruntime", "-k", "plain or initial")
    result = project.runpytest_inprocess(*args, "--junitxml", "junit.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    became = verdicts(project.path / "junit.xml")
    assert became
    assert set(became.values()) == {"not-judged"}
    result.stdout.fnmatch_lines(["*cases are not judged: lstm-14.float32.*"])
    result.stdout.fnmatch_lines(["*not judged: the suite's fault or the operator's: LookupError: no such gate (*"])


def test_every_case_is_in_one_item_by_its_most_special_feature(pytester: pytest.Pytester) -> None:
    specs = [spec for op, version in operator_versions() for spec in profile("core", op, version)]
    items, _ = pytester.inline_genitems(*SUITE, "--onnxspec-profile", "core")
    groups = [item for item in items if isinstance(item, Group)]
    assert Counter(spec.id for item in groups for spec in item.probes) == Counter(spec.id for spec in specs)
    assert len(items) < len(specs) / 2
    for spec in profile("core", "LSTM", 14):
        group = item_group(SpecProbe(spec))
        assert group == "plain" or group in features_of(spec)
        if spec.clip is not None and spec.data == "dense" and spec.reruns == "none" and "Y" in spec.outputs:
            assert group in ("clip", "input-forget", "layout1")
    for item in groups:
        kinds = {(spec.op, spec.version, spec.type, item_group(spec)) for spec in item.probes}
        assert len(kinds) == 1
        assert item.name == "-".join(map(str, *kinds))


# Outcomes of an item


def test_a_failure_says_what_a_person_needs_and_its_command_repeats_it(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess(*of("backend:late"), *FEW, "-vk", "float32-bias")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "wrong (value): Y[[]2, 0, 0, 0[]] (step 2, forward, row 0) is *, must be *, error bound * (*equations)*",
            "  bound     largest error / error bound: *e*, by class standard; * of * elements judged",
            "  clause    lstm.equations (stated, Equations): *",
            "  node      LSTM-14(X[[]*[]], W[[]*[]], R[[]*[]], B[[]*[]]) -> Y, Y_h, Y_c, float32; hidden_size=*",
            f"  repeat    PYTHONPATH={project.path} onnxspec explain lstm-14.float32.*bias* --target backend:late",
        ]
    )
    words = next(line for line in result.stdout.lines if line.startswith("  repeat")).split()[3:]
    environment = {**os.environ, "PYTHONPATH": str(project.path)}
    done = subprocess.run(command_line(*words), env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "First difference" in done.stdout


@needs_cell_output
def test_new_failures_are_told_once_a_cause_at_the_end(project: pytest.Pytester) -> None:
    few = [*of("onnx-reference"), "--onnxspec-op", "GRU-14", "--onnxspec-type", "float32"]
    result = project.runpytest_inprocess(*few, "--onnxspec-profile", "smoke", "--onnxspec-expected", "none", "-q")
    lines = result.stdout.lines
    end = lines[next(k for k, line in enumerate(lines) if "new failures by cause" in line) :]
    assert sum("lengths.ignored" in line for line in end) == 1
    (cause,) = [k for k, line in enumerate(end) if line.startswith("  Ignores sequence_lens (lengths.ignored): ")]
    assert end[cause + 1].startswith("      wrong (value): Y")
    assert end[cause + 2].startswith("      onnxspec explain gru-14.float32.")
    failed = result.parseoutcomes()["failed"]
    assert len(lines) < 12 + 5 * failed


def test_what_is_expected_xfails_and_what_no_longer_happens_fails(project: pytest.Pytester) -> None:
    project.path.joinpath("known.toml").write_text(
        '[[expected]]\nop = "LSTM"\nreason = "gates are swapped"\n'
        'versions = [14]\ntypes = ["float32"]\nfeatures = ["bias"]\nverdicts = ["wrong"]\n'
    )
    few = [*SUITE, *FEW, "--onnxspec-expected", "known.toml", "-k", "float32-bias or expected-failures"]
    wrong = project.runpytest_inprocess(*few, "--onnxspec-target", "backend:faulty", "-rx")
    wrong.assert_outcomes(xfailed=1, passed=1)
    wrong.stdout.fnmatch_lines(["XFAIL onnxspec.conformance::*cases fail as expected: gates are swapped"])
    right = project.runpytest_inprocess(*few, "--onnxspec-target", "onnxruntime")
    right.assert_outcomes(failed=1, passed=1)
    right.stdout.fnmatch_lines(["*onnxruntime: expected-failures*", "expected failures that no*", "  LSTM: gates are*"])


FLOAT32 = [s for s in profile("core", "LSTM", 14) if s.type == "float32"]
# Most cases with activations are right; the known failure is about the wrong one, which is not selected.
RIGHT_ACTIVATIONS = next(s.id for s in FLOAT32 if item_group(SpecProbe(s)) == "activations")
DENSE = next(s.id for s in FLOAT32 if s.data == "dense" and not s.layout)
SMOKE = ("--onnxspec-profile", "smoke")
KNOWN = ("--onnxspec-case", "*.T4N0I*")
ABORTS = ["crashed: the process died of SIGABRT", "  signal    the worker ended by SIGABRT"]
SESSIONS: dict[str, tuple[tuple[str, ...], int, dict[str, int], list[str]]] = {
    "every case is refused": (
        of("backend:tiny_runtime", *FEW, "-k", "clip", "-rs"),
        1,
        {"skipped": 1},
        ["*nothing was judged: every case was*", "SKIPPED*unsupported: NotImplementedError: *"],
    ),
    "an operator of another domain": (
        of("onnxruntime", "--onnxspec-op", "ExtendedLSTM", *SMOKE),
        1,
        {},
        ["onnxruntime *: 20 cases: 20 unsupported", "*nothing was judged*"],
    ),
    "an expectation is not stale for want of cases": (
        of("onnxruntime", "--onnxspec-case", RIGHT_ACTIVATIONS), 0, {"passed": 1}, [],
    ),
    "a known failure": (of("onnxruntime", *FEW, *KNOWN), 0, {"xfailed": 1}, []),
    "a known failure without the list": (
        of("onnxruntime", *FEW, *KNOWN, "--onnxspec-expected", "none", "-v"),
        1,
        {"failed": 1},
        ["crashed: the process died of SIGABRT", "  clauses   lstm.*", "  signal *"],
    ),
    "a runtime that aborts": (of("backend:crashing", *SMOKE, "-k", "float32", "-v"), 1, {}, ABORTS),
    "several targets": (
        of("onnxruntime", "--onnxspec-target", "backend:faulty", *SMOKE, "-k", "LSTM-14-float32"),
        1,
        {},
        ["onnxruntime [0-9]*: * cases:*", "backend:faulty: * cases:*wrong*"],
    ),
    "a lane": (of("onnxruntime+neg", "--onnxspec-case", DENSE), 0, {"passed": 1}, []),
    "optimized models": (of("onnxruntime+optimized", "--onnxspec-case", DENSE), 0, {"passed": 1}, []),
} | {  # what cannot be carried out is one line
    " ".join(options): ((*SUITE, *options), 2, {"errors": 1}, [f"onnxspec: {message}"])
    for options, message in (
        (("--onnxspec-target", "onnxruntim"), "unknown target 'onnxruntim'; nearest: onnxruntime*"),
        (("--onnxspec-type", "flot32"), "unknown type 'flot32'; nearest: float32*"),
        (("--onnxspec-op", "LSTM-8"), "unknown operator version '8'*"),
        (("--onnxspec-profile", "cor"), "unknown profile 'cor'; nearest: core*"),
        (("--onnxspec-expected", "absent.toml"), "*absent.toml: cannot be read: No such file or directory"),
    )
}  # fmt: skip
"""Arguments, exit code, outcomes, and lines of the output."""


@pytest.mark.parametrize("name", SESSIONS)
def test_the_outcomes_of_a_session(project: pytest.Pytester, name: str) -> None:
    arguments, code, outcomes, lines = SESSIONS[name]
    result = project.runpytest_inprocess(*arguments, "--junitxml", "junit.xml")
    assert result.ret == code
    if outcomes:
        result.assert_outcomes(**outcomes)
    result.stdout.fnmatch_lines(lines)
    if name == "a runtime that aborts":  # costs its cases and not the run
        assert set(verdicts(project.path / "junit.xml").values()) == {"crashed", "unsupported"}


# Bad input


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_target_that_cannot_start_is_one_error(project: pytest.Pytester, workers: tuple[str, ...]) -> None:
    few = [*SUITE, *FEW, "--onnxspec-profile", "smoke", "--onnxspec-target", "backend:nowhere"]
    result = project.runpytest_subprocess(*few, *workers)
    outcomes = result.parseoutcomes()
    assert 1 <= outcomes.pop("errors") <= (2 if workers else 1)  # each worker starts its own process
    assert set(outcomes) == {"skipped"}
    result.stdout.fnmatch_lines(
        [
            "the target backend:nowhere cannot start: ModuleNotFoundError: No module named 'nowhere'",
            "It runs in a process of its own*pythonpath*",
        ]
    )
    assert "Traceback" not in result.stdout.str()


def test_the_suite_without_a_target_is_a_usage_error(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(*SUITE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: onnxspec.conformance: which runtime? Give --onnxspec-target*"])


def test_a_session_that_asks_for_nothing_loads_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing_is_loaded():
            loaded = {name for name in sys.modules if name.startswith("onnxspec.")}
            assert {name.rpartition(".")[2] for name in loaded} == {
                "conformance", "pytest_plugin", "plugin", "options"
            }
            assert not {"onnx", "numpy", "onnxruntime", "jinja2", "rich.console"} & set(sys.modules)
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


# pytest's own ways of selecting and running


def test_only_what_is_selected_runs(project: pytest.Pytester) -> None:
    project.runpytest_inprocess(*of("onnxruntime", *FEW, "-k", "clip", "--junitxml", "junit.xml"))
    few = Selection("core", ("LSTM",), (14,), ("float32",))
    chosen = [s.id for s in select(few) if item_group(SpecProbe(s)) == "clip"]
    assert sorted(verdicts(project.path / "junit.xml")) == sorted(chosen)


def test_exit_at_the_first_failure_and_last_failed(project: pytest.Pytester) -> None:
    few = [*of("backend:faulty"), *FEW, "-k", "float32-plain or float32-bias"]
    whole = project.runpytest_inprocess(*few)
    first = project.runpytest_inprocess(*few, "-x", "--junitxml", "junit.xml")
    assert first.parseoutcomes()["failed"] == 1 < whole.parseoutcomes()["failed"]
    assert list(verdicts(project.path / "junit.xml").values())[-1] == "wrong"
    project.runpytest_inprocess(*few)
    again = project.runpytest_inprocess(*few, "--lf")
    assert again.parseoutcomes()["failed"] == whole.parseoutcomes()["failed"]
    assert "skipped" not in again.parseoutcomes()


@pytest.mark.long
def test_xdist_gives_the_same_verdicts(project: pytest.Pytester) -> None:
    few = of("onnxruntime", *SMOKE)
    alone = project.runpytest_inprocess(*few, "--junitxml", "alone.xml")
    spread = project.runpytest_subprocess(*few, "--junitxml", "spread.xml", "-n", "2")
    assert verdicts(project.path / "spread.xml") == verdicts(project.path / "alone.xml")
    outcomes = [{**run.parseoutcomes(), "warnings": 0} for run in (spread, alone)]  # a busy machine may add one
    assert outcomes[0] == outcomes[1]
    spread.stdout.fnmatch_lines(["onnxruntime [0-9]*: * cases: *pass*"])


def test_ini_values_stand_for_options(project: pytest.Pytester) -> None:
    project.makeini(
        """
        [pytest]
        addopts = --strict-config
        onnxspec_target = onnxruntime
        onnxspec_op = LSTM-14 LSTM-22
        onnxspec_type = float32
        onnxspec_expected = none
        """
    )
    items, _ = project.inline_genitems(*SUITE)
    assert {(spec.version, spec.type) for item in items if isinstance(item, Group) for spec in item.probes} == {
        (14, "float32"),
        (22, "float32"),
    }
    items, _ = project.inline_genitems(*SUITE, "--onnxspec-op", "LSTM-7")
    assert {spec.version for item in items if isinstance(item, Group) for spec in item.probes} == {7}


# One thing at a time


def test_a_test_of_ones_own_asks_for_one_thing(project: pytest.Pytester) -> None:
    shutil.copy(EXAMPLE / "tests" / "test_kernel.py", project.path)
    options = ("--onnxspec-target", "backend:tiny_runtime", "--onnxspec-target", "backend:late")
    result = project.runpytest_inprocess("test_kernel.py", *options)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E *NotConforming: wrong (value): Y[[]2, 0, * (step 2, *"])


@pytest.mark.long
def test_the_example_repository_passes(pytester: pytest.Pytester) -> None:
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    outcomes = result.parseoutcomes()
    assert result.ret == 0
    assert outcomes["passed"] > 10
    assert outcomes["xfailed"] == 2
    result.stdout.fnmatch_lines(
        ["tests/test_kernel.py ..*", "onnxspec.conformance *", "backend:tiny_runtime: * cases:*"]
    )


def test_the_nodes_of_a_model_are_items(project: pytest.Pytester) -> None:
    onnx.save(one_node("LSTM", 14), project.path / "model.onnx")
    assert any(node.case for node in cases_of_model(project.path / "model.onnx", project.path / "nodes"))
    run = project.runpytest_inprocess(*SUITE, "--onnxspec-case", "./nodes", "--onnxspec-target", "onnxruntime", "-v")
    run.assert_outcomes(passed=1)
    run.stdout.fnmatch_lines(["*onnxruntime::LSTM-14-float32-*"])
