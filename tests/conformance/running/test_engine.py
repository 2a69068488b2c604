"""The run as a whole, against faulty backends, any number of processes, and everything that ends a run too early."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from onnxspec.cases import CaseSpec, features_of
from onnxspec.conformance.diagnosis.findings import findings_of
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.conformance.running.conclusion import final_findings
from onnxspec.conformance.workers.pool import Pool

from ..miniatures import HEEDING, Command, Inside, command_line, complaints, naming, pick, posix, read_results


def bidirectional(spec: CaseSpec) -> bool:
    return spec.direction == "bidirectional"


def plain(spec: CaseSpec) -> bool:
    return spec.direction == "forward" and spec.clip is None and 0 not in (spec.T, spec.N) and spec.data == "dense"


def two_sets(spec: CaseSpec) -> bool:
    """Return whether the two directions have different activations."""
    return spec.activations is not None and spec.activations[:3] != spec.activations[3:]


# One case for each fault of some backend, and one-step cases.
KINDS = {
    "plain": lambda s: plain(s) and s.reruns == "none" and "Y" in s.outputs,
    "two ways": lambda s: bidirectional(s) and two_sets(s) and s.lengths == "absent",
    "ragged": lambda s: s.lengths == "ragged" and s.data == "dense" and "Y" in s.outputs,
    "no Y": lambda s: plain(s) and "Y" not in s.outputs and s.lengths == "absent",
    "rerun": lambda s: plain(s) and s.reruns == "data" and s.lengths == "absent",
    "clip": lambda s: s.clip == 0.5 and s.direction == "forward",
    "numerics": lambda s: s.data == "numerics",
}
TARGETS = (
    *("conforming", "lengths_ignored", "gates_swapped", "backward_as_forward", "padding_repeated", "modifying"),
    *("jittery", "aborting", "refusing", "broken"),
)
ALWAYS_WRONG = ("unstable", "wrong_type", "nonfinite", "enormous")
"""Backends that are wrong in every case without a known fault: each costs a search through all faults."""


class Zoo:
    """Results of cases on backends, by backend and kind of case; output and exit code are those of `TARGETS`."""

    def __init__(self, folder: Path, kin: Mapping[str, str]) -> None:
        self.targets: dict[str, dict[str, Any]] = {}
        self.results: dict[str, dict[str, dict[str, Any]]] = {}
        self._run(folder / "wrong", kin, ALWAYS_WRONG, ("plain", "rerun"))
        self._run(folder / "some", kin, TARGETS, tuple(KINDS))

    def _run(
        self, folder: Path, kin: Mapping[str, str], backends: Sequence[str], kinds: Sequence[str]
    ) -> tuple[int, str]:
        kind_of = {pick(1, KINDS[kind])[0]: kind for kind in kinds}
        assert len(kind_of) == len(kinds)
        named = [word for name in backends for word in ("--target", f"backend:{name}")]
        arguments = command_line("run", *named, *naming(list(kind_of)), "--no-extra", "--out", folder)
        done = subprocess.run(arguments, env=kin, capture_output=True, text=True, check=False, timeout=590)
        assert complaints(done.stderr) == []
        description = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        assert description["complete"] is True
        assert sum(description["counts"].values()) == len(backends) * len(kinds)
        self.targets |= {target["name"].removeprefix("backend:"): target for target in description["targets"]}
        for result in read_results(folder):
            of_backend = self.results.setdefault(result["target"].removeprefix("backend:"), {})
            of_backend[kind_of[result["case"]]] = result
        assert all(set(self.results[name]) == set(kinds) for name in backends)
        self.code, self.out = done.returncode, done.stdout


@pytest.fixture(scope="module")
def zoo(kin: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    return Zoo(tmp_path_factory.mktemp("zoo"), kin)


# Verdicts on backends


@pytest.mark.parametrize(
    ("name", "kinds", "expected"),
    [
        ("conforming", set(), {}),
        ("lengths_ignored", {"ragged"}, {"verdict": "wrong", "reason": "value"}),
        ("gates_swapped", {*KINDS}, {"verdict": "wrong", "reason": "value"}),
        ("backward_as_forward", {"two ways"}, {"verdict": "wrong", "reason": "value"}),
        ("padding_repeated", set(), {}),
        ("modifying", {*KINDS}, {"verdict": "input-modified"}),
        ("jittery", set(), {}),
        ("aborting", {"two ways", "ragged"}, {"verdict": "crashed"}),
        ("refusing", {"clip"}, {"verdict": "unsupported"}),
        ("broken", {*KINDS}, {"verdict": "unavailable"}),
        ("unstable", {"plain", "rerun"}, {"verdict": "unstable"}),
        ("wrong_type", {"plain", "rerun"}, {"verdict": "malformed", "reason": "type"}),
        ("nonfinite", {"plain", "rerun"}, {"verdict": "wrong", "reason": "nonfinite", "worst": None}),
        ("enormous", {"plain", "rerun"}, {"verdict": "wrong", "reason": "value"}),
    ],
)
def test_a_fault_has_its_verdict_where_it_shows_and_other_cases_pass(
    zoo: Zoo, name: str, kinds: set[str], expected: dict[str, Any]
) -> None:
    results = zoo.results[name]
    assert {kind for kind, result in results.items() if result["verdict"] != "pass"} == kinds
    for kind in kinds:
        assert expected.items() <= results[kind].items()
    for result in results.values() if expected.get("reason") == "value" else ():
        if result["verdict"] == "wrong":
            assert result["clause"] in result["clauses"]
            assert result["worst"] > (1e30 if name == "enormous" else 4)
            assert set(result["where"]) == {"output", "index", "step"}
            assert result["expected"] is False


def test_a_conforming_backend_has_no_finding(zoo: Zoo) -> None:
    target = zoo.targets["conforming"]
    assert target["grade"] == {"float32": "strict"}
    assert target["findings"] == []
    assert target["bias"]["float32"]["biased"] is False
    assert target["unexpected"] == 0
    assert not any(result["flags"] for result in zoo.results["conforming"].values())


def test_padding_that_is_not_zero_breaks_a_convention_only(zoo: Zoo) -> None:
    result = zoo.results["padding_repeated"]["ragged"]
    assert (result["reason"], result["flags"], result["where"]["output"]) == ("padding", ["unconventional"], "Y")
    (finding,) = zoo.targets["padding_repeated"]["findings"]
    assert (finding["kind"], finding["clauses"]) == ("convention", ["lstm.padding.zero"])


def test_runs_that_differ_within_the_radius_pass_with_a_flag(zoo: Zoo) -> None:
    flagged = sum("nondeterministic" in result["flags"] for result in zoo.results["jittery"].values())
    assert flagged
    assert f"repeated runs of the same data differ, within what is allowed, in {flagged} case" in zoo.out


def test_a_message_says_what_the_runtime_did(zoo: Zoo) -> None:
    assert "X" in zoo.results["modifying"]["plain"]["message"]
    assert "SIGABRT" in zoo.results["aborting"]["two ways"]["message"]
    assert len(zoo.results["refusing"]["clip"]["message"]) < 600
    assert zoo.targets["refusing"]["unexpected"] == 0
    assert zoo.code == 3
    (line,) = [line for line in zoo.out.splitlines() if "libdevice" in line]
    assert "could not start: ImportError: libdevice.so.7: cannot open shared object file" in line


def test_numbers_that_overflow_a_mean_do_not_end_the_run(onnxspec: Command, tmp_path: Path) -> None:
    case = naming(pick(1, KINDS["numerics"], types=("float64",)))
    done = onnxspec("run", "--target", "backend:enormous", *case, "--no-extra", "--out", "o")
    assert (done.code, done.err) == (1, "")
    (result,) = read_results(tmp_path / "o")
    assert (result["verdict"], result["error_sums"]) == ("wrong", [])


# Missing targets


def test_once_the_target_is_there_resume_runs_what_it_missed(inside: Inside, kin_folder: Path, tmp_path: Path) -> None:
    arguments = ["run", "--target", "backend:late", *naming(pick(2, plain)), "--out", "o"]
    missing = inside(*arguments)
    assert missing.code == 3
    assert "No module named 'late'" in missing.out
    assert [r["verdict"] for r in read_results(tmp_path / "o")] == ["unavailable"] * 2
    late = kin_folder / "late.py"
    late.write_text("import zoo\nBackend = zoo.Conforming\n")
    again = inside(*arguments, "--resume")
    late.unlink()
    assert (again.code, again.err) == (0, "")
    assert [r["verdict"] for r in read_results(tmp_path / "o")] == ["pass"] * 2


def test_a_target_that_does_not_start_again_is_no_success(onnxspec: Command, tmp_path: Path) -> None:
    cases = [*pick(1, plain), *pick(1, KINDS["two ways"]), *pick(1, KINDS["clip"])]
    once = {"ONCE": str(tmp_path / "once")}
    done = onnxspec("run", "--target", "backend:no_more", *naming(cases), "--out", "o", environment=once)
    assert done.code == 3
    assert "the licence has expired" in done.out
    assert [r["verdict"] for r in read_results(tmp_path / "o")] == ["pass", "crashed", "unavailable"]


def test_an_output_that_may_be_left_out_is_right_through_a_worker(inside: Inside, tmp_path: Path) -> None:
    open_one = naming(pick(1, lambda s: "Y-unannounced" in features_of(s), profile="full", versions=(1,)))
    assert inside("run", "--target", "backend:sequence_left_out", *open_one, "--out", "o").code == 0
    (result,) = read_results(tmp_path / "o")
    assert (result["verdict"], result["message"]) == ("pass", "")
    assert result["judged"] > 0


# Runs that end too early


def one_run(spec: CaseSpec) -> bool:
    """Return whether a case is one model with one repeated run: then the gate closes after four cases."""
    whole = spec.outputs == ("Y", "Y_h", "Y_c") and spec.reruns == "none" and 0 not in (spec.T, spec.N)
    return whole and spec.data == "dense" and not spec.illegal


LONG = ["run", "--target", "backend:gated", *naming(pick(12, one_run))]


@pytest.fixture(scope="module")
def whole(kin: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the results of the long run without interruption."""
    folder = tmp_path_factory.mktemp("whole") / "o"
    subprocess.run(command_line(*LONG, "--out", folder), env=kin, check=True, capture_output=True, timeout=590)
    return timeless(read_results(folder))


def timeless(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**result, "seconds": 0} for result in results]


class UnderWay:
    """Long run that has four results and waits."""

    def __init__(self, kin: Mapping[str, str], folder: Path, prelude: str = "", **options: Any) -> None:
        self.out = folder / "my results"
        self._gate = folder / "gate"
        command = command_line(*LONG, "--out", self.out)
        command[2] = (prelude or HEEDING) + command[2]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        self.process = subprocess.Popen(command, env={**kin, "GATE": str(self._gate)}, cwd=folder, **options)

    def __enter__(self) -> UnderWay:
        deadline = time.monotonic() + 590
        journal = self.out / "results.jsonl"
        while (
            not journal.exists() or re.subn(rb'^{"record":"result".*\n', b"", journal.read_bytes(), flags=re.M)[1] < 4
        ):
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return self

    def __exit__(self, *error: object) -> None:
        self.open()
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def open(self) -> None:
        """Let the run continue."""
        self._gate.touch()


def go_on(command: Inside, complaint: str) -> int:
    """Run the command that a message suggests."""
    arguments = shlex.split(complaint.split("go on with: ")[1])
    assert arguments[0] == "onnxspec"
    return command(*arguments[1:]).code


@posix
# The signal of a closed terminal has its own tests below.
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", pytest.param("SIGHUP", marks=pytest.mark.long)])
def test_an_interrupted_run_keeps_what_it_has_and_doing_as_told_completes_it(
    inside: Inside, kin: dict[str, str], tmp_path: Path, whole: list[dict[str, Any]], name: str
) -> None:
    with UnderWay(kin, tmp_path) as run:
        run.process.send_signal(getattr(signal, name))
        out, err = (text.decode() for text in run.process.communicate(timeout=590))
    assert (run.process.returncode, out.strip()) == (130, "")
    (line,) = err.splitlines()
    assert "interrupted" in line
    assert str(run.out) in line
    assert timeless(read_results(run.out)) == whole[:4]
    description = json.loads((run.out / "run.json").read_text(encoding="utf-8"))
    assert (description["complete"], description["counts"]) == (False, {"pass": 4})
    assert go_on(inside, line) == 0
    assert timeless(read_results(run.out)) == whole


@posix
def test_a_closed_terminal_ends_a_run_of_its_own_and_loses_nothing(
    inside: Inside, kin: dict[str, str], tmp_path: Path, whole: list[dict[str, Any]]
) -> None:
    pty, fcntl, termios = (pytest.importorskip(name) for name in ("pty", "fcntl", "termios"))
    master, slave = pty.openpty()
    ends = {"stdin": slave, "stdout": slave, "stderr": slave, "start_new_session": True}
    with UnderWay(kin, tmp_path, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **ends) as run:
        os.close(slave)
        os.close(master)
        assert run.process.wait(20) == 130
    assert timeless(read_results(run.out)) == whole[:4]
    assert inside(*LONG, "--out", run.out, "--resume").code == 0
    assert timeless(read_results(run.out)) == whole


@posix
def test_a_run_under_nohup_goes_on_when_its_terminal_is_closed(
    kin: dict[str, str], tmp_path: Path, whole: list[dict[str, Any]]
) -> None:
    """It ignores the signal, and loses its output; the terminal is not its own."""
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
    with UnderWay(kin, tmp_path, ignoring, stdout=slave, stderr=slave, start_new_session=True) as run:
        os.close(slave)
        os.close(master)
        run.process.send_signal(signal.SIGHUP)
        run.open()
        assert run.process.wait(30) == 0
    assert timeless(read_results(run.out)) == whole
    assert (run.out / "report" / "index.html").exists()


@posix
def test_a_file_that_may_not_grow_ends_the_run_with_whole_lines(
    inside: Inside, kin: dict[str, str], tmp_path: Path, whole: list[dict[str, Any]]
) -> None:
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, resource.RLIM_INFINITY)); "
    command = command_line(*LONG, "--out", "o")
    command[2] = limited + command[2]
    done = subprocess.run(command, env=kin, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=590)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "File too large" in line
    kept = (tmp_path / "o" / "results.jsonl").read_bytes()
    assert 0 < len(kept) <= 12_000
    assert kept.endswith(b"\n")
    assert go_on(inside, line) == 0
    assert timeless(read_results(tmp_path / "o")) == whole


# Resuming another run than the one in the folder


def test_resume_takes_an_added_target_and_refuses_another_one(inside: Inside, tmp_path: Path) -> None:
    cases = naming(pick(2, plain))
    conforming = ["run", "--target", "backend:conforming", *cases, "--out", "o"]
    assert inside(*conforming).code == 0
    first = read_results(tmp_path / "o")
    other = ["run", "--target", "backend:jittery", *cases, "--out", "o", "--resume"]
    assert "backend:conforming" in inside(*other).complaint
    assert read_results(tmp_path / "o") == first
    assert inside(*other, "--target", "backend:conforming").code == 0
    results = read_results(tmp_path / "o")
    assert results[:2] == first
    assert [r["target"] for r in results[2:]] == ["backend:jittery"] * 2


def test_resume_refuses_a_folder_with_an_unknown_clause(inside: Inside, tmp_path: Path) -> None:
    arguments = ["run", "--target", "backend:lengths_ignored", *naming(pick(1, KINDS["ragged"])), "--no-extra"]
    assert inside(*arguments, "--out", "o").code == 1
    journal = tmp_path / "o" / "results.jsonl"
    edited = re.sub(r'"clause":"[a-z.-]+"', '"clause":"lstm.nothing"', journal.read_text(encoding="utf-8"))
    journal.write_text(edited, encoding="utf-8")
    assert "names an unknown clause, lstm.nothing" in inside(*arguments, "--out", "o", "--resume").complaint


def test_resume_refuses_a_runtime_that_has_changed(onnxspec: Command, tmp_path: Path) -> None:
    module = tmp_path / "changing.py"
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), onnxspec.environment["PYTHONPATH"]])}
    arguments = ["run", "--target", "backend:changing", *naming(pick(2, plain)), "--out", "o"]
    module.write_text("import zoo\n__version__ = '1.0'\nBackend = zoo.Conforming\n")
    assert onnxspec(*arguments, environment=environment).code == 0
    journal = tmp_path / "o" / "results.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:3]))
    module.write_text("import zoo\n__version__ = '2.0-other'\nBackend = zoo.Conforming\n")
    done = onnxspec(*arguments, "--resume", environment=environment)
    assert done.code == 2
    assert "1.0" in done.complaint
    assert "2.0-other" in done.complaint
    assert len(read_results(tmp_path / "o")) == 1


# Runs shared by several processes

_OF_TIME = {"seconds", "target_seconds", "started", "finished", "time", "command"}


def _but_for_time(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _but_for_time(item) for name, item in value.items() if name not in _OF_TIME}
    return [_but_for_time(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("target", ["lengths_ignored", pytest.param("gates_swapped", marks=pytest.mark.long)])
def test_a_run_is_the_same_for_any_number_of_jobs(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    shared: set[str] = set()
    share = Pool._shared

    def noted(pool: Pool, work: Callable[[Any], Any], source: Iterator[Any], *more: Any) -> Iterable[Any]:
        shared.add(work.__name__)
        return share(pool, work, source, *more)

    monkeypatch.setitem(Pool.__init__.__kwdefaults__, "alone", 4)  # type: ignore[index]
    monkeypatch.setattr(Pool, "_shared", noted)
    cases = naming(pick(48, lambda spec: spec.lengths != "absent" and spec.T * spec.N * spec.H < 200))
    runs = []
    for jobs in (1, 2, 4):
        folder = tmp_path / f"jobs-{jobs}"
        shared.clear()
        done = inside("run", "--target", f"backend:{target}", *cases, "--jobs", jobs, "--out", folder)
        assert done.code == 1
        assert bool(shared) == (jobs > 1)
        lines = [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]
        described = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        runs.append(_but_for_time([read_results(folder), lines, described]))
    assert runs[0] == runs[1] == runs[2]
    results, _, described = runs[0]
    assert any(result["diagnosis"] for result in results)
    assert any(finding["foretold"] for finding in described["targets"][0]["findings"])


# The end of a run: findings, results and summary count the same failures

LISTED, NEW = "lengths.ignored", "activations.backward-as-forward"
PROBES = [SpecProbe(CaseSpec("LSTM", 14, seed=number)) for number in range(5)]
BY_ID = {probe.id: probe for probe in PROBES}


def failing(number: int, why: str | None, *faults: str) -> Result:
    judgement = Judgement(Verdict.WRONG, reason="value")
    result = result_of(PROBES[number], "target", judgement, 0.0, why, "onnxspec explain")
    return structs.replace(result, diagnosis=faults)


def test_findings_count_what_is_new_in_the_final_results() -> None:
    """An experiment names a listed fault after the findings were made."""
    before = [failing(number, None, LISTED) for number in range(4)]
    after = [failing(number, "accepted", LISTED) for number in range(4)]
    (finding,) = final_findings(findings_of(before, BY_ID), after)
    assert (finding["new"], finding["expected"], finding["why"]) == (0, True, "accepted")
    after[3] = failing(3, None, LISTED)
    (finding,) = final_findings(findings_of(before, BY_ID), after)
    assert (finding["new"], finding["expected"]) == (1, False)


def test_the_new_cause_comes_first_and_its_cases_are_distinct() -> None:
    results = [failing(number, "accepted", LISTED) for number in range(3)]
    results += [failing(3, None, LISTED, NEW), failing(4, None, NEW)]
    findings = findings_of(results, BY_ID)
    for finding in findings:
        finding["cases"] = finding["cases"] * 2
    final = final_findings(findings, results)
    assert [(finding["fault"], finding["new"]) for finding in final] == [(NEW, 2), (LISTED, 1)]
    assert final[0]["cases"] == [results[3].case, results[4].case]
