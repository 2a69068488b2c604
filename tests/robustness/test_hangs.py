"""Time limits: one case has a bounded time whatever the target sends, and all hangs share a budget."""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxspec.conformance.workers.hangs import HangBudget
from onnxspec.conformance.workers.job import Job
from onnxspec.conformance.workers.process import TargetProcess

from ..conformance.miniatures import Command, complaints, read_results
from ..conformance.misbehaving import job, outcomes, program, statuses

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")

ENDLESS = {
    "nothing": "time.sleep(1000)",
    "began": "without_end({'type': 'began', 'jobs': []})",
    "began, much at once": "while True: send({'type': 'began', 'jobs': list(range(100000))})",
    "a header, byte by byte": "put(struct.pack('<8sIQ', b'ONXSPEC1', 9999, 0))\nwhile 1: put(b'{'); time.sleep(0.05)",
    "a body, byte by byte": "raw(b'{}', b'', 100000)\nwhile True: put(b'x'); time.sleep(0.05)",
    "output": "while True: print('x' * 100000)",
}


def test_nothing_that_is_sent_gives_a_case_more_time(tmp_path: Path) -> None:
    jobs = [sent for name, code in ENDLESS.items() for sent in (job(key="good"), job(code, name))]
    ended = outcomes(program(tmp_path, time_limit=2.0), *jobs, job(key="good"), hangs=HangBudget(100))
    assert {o.key: o.status for o in ended} == {"good": "ran", **dict.fromkeys(ENDLESS, "timed-out")}
    assert sum(outcome.key == "good" for outcome in ended) == len(ENDLESS) + 1


def test_time_in_which_this_process_is_stopped_does_not_count(tmp_path: Path) -> None:
    """The process is stopped (Ctrl-Z) for longer than a case's time limit while an answer is on its way."""
    code = os.fork()
    if code == 0:
        status = 1
        try:
            slow = ["time.sleep(1)"] * 3
            ended = statuses(program(tmp_path, f"open({str(tmp_path / 'started')!r}, 'w')", time_limit=3.0), *slow)
            status = int(ended != ["ran"] * 3)
        finally:
            os._exit(status)
    while not (tmp_path / "started").exists():
        time.sleep(0.05)
    time.sleep(1.0)
    os.kill(code, signal.SIGSTOP)
    time.sleep(5)
    os.kill(code, signal.SIGCONT)
    assert os.waitpid(code, 0)[1] == 0


def test_a_caller_that_lets_answers_lie_does_not_make_them_late(tmp_path: Path) -> None:
    """More answers wait than the caller's side reads ahead, for longer than a case's time limit."""
    large = job("parts = [('float32', [1 << 20], bytes(4 << 20))]")
    with TargetProcess(program(tmp_path, time_limit=3.0)) as process:
        stream = process.run([large] * 16)
        ended = [next(stream)]
        time.sleep(4.5)
        assert [outcome.status for outcome in [*ended, *stream]] == ["ran"] * 16


# The budget


def traited(words: str, *traits: str) -> Job:
    return replace(job(words, " ".join(traits)), traits=frozenset(traits))


HANG = "time.sleep(1000)"


def test_cases_that_share_traits_with_hung_ones_are_not_run_once_the_budget_is_spent(tmp_path: Path) -> None:
    jobs = [traited("", "a", "c"), traited(HANG, "a", "b"), traited("", "a"), traited(HANG, "b", "c")]
    jobs += [traited("", "c", "d"), *(traited(HANG, "b", str(k)) for k in range(150)), traited("", "d")]
    budget, target = HangBudget(2), program(tmp_path, time_limit=2.0)
    ended = outcomes(target, *jobs, hangs=budget)
    assert [outcome.key for outcome in ended] == [sent.key for sent in jobs]
    expected = ["ran", "timed-out", "ran", "timed-out", "ran", *["not-run"] * 150, "ran"]
    assert [outcome.status for outcome in ended] == expected
    assert ended[5].message == "not run: 2 cases have hung, those with: b; the budget is 2"
    # Another process of the same run uses the same budget.
    assert statuses(target, traited(HANG, "b"), traited("", "a"), hangs=budget) == ["not-run", "ran"]


def test_two_traits_together_can_cause_hangs(tmp_path: Path) -> None:
    jobs = [traited("", "a"), traited("", "b"), *[traited(HANG, "a", "b")] * 4, traited("", "a", "c")]
    expected = ["ran", "ran", "timed-out", "timed-out", "not-run", "not-run", "ran"]
    assert statuses(program(tmp_path, time_limit=2.0), *jobs, hangs=HangBudget(2)) == expected


TRAITS = st.frozensets(st.sampled_from("abcdef"), max_size=4)


@given(st.lists(st.tuples(TRAITS, st.booleans()), max_size=30), st.integers(1, 5))
@settings(max_examples=200, deadline=None)
def test_the_budget_bounds_hangs_and_never_refuses_cases_that_share_nothing(
    course: list[tuple[frozenset[str], bool]], hangs: int
) -> None:
    budget = HangBudget(hangs)
    hung: list[frozenset[str]] = []
    for traits, hangs_on_it in course:
        refused = budget.refuses(traits)
        if refused:
            assert len(hung) >= 2 * hangs or any(traits & other for other in hung)
        elif hangs_on_it:
            budget.hung(traits)
            hung.append(traits)
        else:
            budget.worked(traits)
        assert len(hung) <= 2 * hangs


HANGING = """
def spoil(prepared, inputs, outputs):
    if inputs["X"].shape[0] == 1 and not os.environ.get("HEALED"):
        time.sleep(1000)
    return outputs
"""


@pytest.fixture
def hanging(kin_folder: Path, tmp_path: Path) -> list[str]:
    """Return the arguments of a run with a backend that hangs on every case with one step."""
    head = "import os, time\nimport numpy as np\nimport zoo\n"
    (kin_folder / "hanging.py").write_text(f"{head}{HANGING}\nBackend = zoo.spoiling(spoil)\n", encoding="utf-8")
    text = '[hanging]\nadapter = "backend"\ntime_limit = 2\noptions.module = "hanging"\n'
    (tmp_path / "targets.toml").write_text(text, encoding="utf-8")
    narrow = ["--profile", "core", "--op", "GRU-14", "--type", "float32"]
    return ["run", "--target", "hanging", *narrow, "--out", "o"]


def test_a_run_with_hangs_ends_and_is_gone_on_with(onnxspec: Command, hanging: list[str], tmp_path: Path) -> None:
    done = onnxspec(*hanging)
    assert (done.code, complaints(done.err)) == (1, [])
    results = read_results(tmp_path / "o")
    verdicts = {r["case"]: r["verdict"] for r in results}
    assert len(verdicts) == len(results)
    counts = {verdict: [*verdicts.values()].count(verdict) for verdict in verdicts.values()}
    assert 10 <= counts["timed-out"] <= 20
    assert counts["not-run"] >= 3
    assert counts["pass"] > 30
    first = next(line for line in done.out.splitlines() if line.startswith("hanging"))
    assert f"{counts['not-run']} not-run" in first
    assert re.search(rf"not run +{counts['not-run']} cases", done.out)
    onnxspec.environment["HEALED"] = "yes"
    again = onnxspec(*hanging, "--resume")
    assert again.code == 1, again.err  # cases that hung already have a verdict
    after = {r["case"]: r["verdict"] for r in read_results(tmp_path / "o")}
    assert {case for case, verdict in after.items() if verdict != "pass"} == {
        case for case, verdict in verdicts.items() if verdict not in ("pass", "not-run")
    }
    assert after.keys() == verdicts.keys()
