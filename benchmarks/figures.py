"""Figures: costs that users notice, as processor time or as a ratio, each with a goal."""

from __future__ import annotations

import atexit
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import command_seconds, each_in_turn, onnxspec


@dataclass(frozen=True)
class Figure:
    """One row of the table.

    measure
        Return the value; called several times, and the median counts.
    goal
        The maximum, or the minimum with ``least``; None without a goal.
    long
        Takes minutes: only with ``--long``.
    """

    name: str
    unit: str
    goal: float | None
    measure: Callable[[], float]
    least: bool = False
    long: bool = False

    def missed(self, value: float) -> bool:
        """Return whether a value misses the goal."""
        return self.goal is not None and (value < self.goal if self.least else value > self.goal)


FIGURES: list[Figure] = []


def figure(name: str, unit: str, goal: float | None, *, least: bool = False, long: bool = False) -> Any:
    """Return a decorator that registers a function which measures once."""

    def register(measure: Callable[[], float]) -> Callable[[], float]:
        FIGURES.append(Figure(name, unit, goal, measure, least, long))
        return measure

    return register


PLAIN = "lstm-14.float32.forward.T4N3I2H5.d456c0"  # passes everywhere; its id is kept stable


@figure("onnxspec --help", "s", 0.2)
def help_shown() -> float:
    return _command("--help")


@figure("run of one case on onnxruntime", "s", 0.7)
def one_case() -> float:
    return _command("run", "--case", PLAIN, "--out", "run")


@figure("unknown --case", "s", 1.0)
def unknown_case() -> float:
    return _command("run", "--case", "lstm-14.float32.nothing-like-it", codes=(2,))


@figure("core on onnxruntime, a result", "ms", 4.0)
def core() -> float:
    return 1000 * _run_of("core")


@figure("core on onnxruntime by two processes over one, CPU", "x", 1.15)
def core_shared() -> float:
    return _run_of("core", jobs=2) / _run_of("core")


@figure("full on onnxruntime over core, a result", "x", 1.0, long=True)
def full_over_core() -> float:
    return _run_of("full") / _run_of("core")


@figure("certify of full, recorded", "s", 35.0, long=True)
def certified() -> float:
    return _packed().seconds


@figure("verify of that package", "s", 35.0, long=True)
def verified() -> float:
    with tempfile.TemporaryDirectory() as folder:
        return command_seconds(onnxspec("verify", str(_packed().package), "--jobs", "1"), Path(folder))


@figure("full listed", "s", None)
def full_listed() -> float:
    return _command("list", "--profile", "full")


@figure("a target's crash, six in a row, what forks its workers included", "ms", 20.0)
def crash() -> float:
    return _crash(_DYING + "FORKS = True\n", 6)


@figure("each further crash", "ms", 20.0)
def further_crash() -> float:
    source = _DYING + "FORKS = True\n"
    return (16 * _crash(source, 16) - 4 * _crash(source, 4)) / 12


@figure("a target's crash, workers started anew", "ms", None)
def crash_started() -> float:
    return _crash(_DYING, 6)


def _crash(source: str, crashes: int) -> float:
    """Return the milliseconds per crash, for a number of crashes in a row."""
    from onnxspec.conformance.targets.target import Target
    from onnxspec.conformance.workers.job import Job
    from onnxspec.conformance.workers.process import TargetProcess

    with tempfile.TemporaryDirectory() as folder:
        adapter = Path(folder) / "dying.py"
        adapter.write_text(source, encoding="utf-8")
        target = Target("dying", str(adapter))

        def spent(models: list[bytes]) -> float:
            import resource

            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            start = time.process_time()
            with TargetProcess(target) as process:
                process.start()
                list(
                    process.run(
                        [Job(str(k), model, ({"X": np.zeros(1, np.float32)},)) for k, model in enumerate(models)]
                    )
                )
            took = time.process_time() - start
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return took + after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        passing = [b"fine"] * 8
        return 1000 * (spent([b"die", *passing] * crashes) - spent([b"fine", *passing] * crashes)) / crashes


_DYING = """
import os
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime
class Session:
    proof = ""
    def __init__(self, model): self.model = model
    def run(self, feeds):
        if bytes(self.model) == b"die": os.abort()
        return [feeds["X"]]
class Adapter:
    def __init__(self, options): pass
    def describe(self): return {"runtime": "dying", "version": onnxruntime.__version__}
    def prepare(self, model): return Session(model)
"""


@figure("judging a passing tiny case, alone", "ms", 0.6)
def judging_tiny() -> float:
    judge = judging(_tiny())
    judge()
    return 1000 * each_in_turn(200, judge)[0]


@figure("judging a passing tiny case among a hundred that return other numbers, each", "ms", 0.1)
def judging_stacked() -> float:
    from onnxspec.cases import build_case
    from onnxspec.conformance.judging.verdict import judge_each

    trials = build_case(_tiny()).trials
    outcomes = [_conforming(trials, off=1e-9 * number) for number in range(100)]
    assert all(judgement.verdict.value == "pass" for judgement in judge_each(trials, outcomes))
    return 10 * each_in_turn(20, lambda: judge_each(trials, outcomes))[0]


def _attention(**fields: Any) -> float:
    """Return the seconds of judging a case of LinearAttention; building its runs is not counted."""
    from onnxspec.cases.operators.linear_attention.family import LINEAR_ATTENTION_FAMILY
    from onnxspec.cases.operators.linear_attention.spec import LinearAttentionSpec

    judge = judging(LINEAR_ATTENTION_FAMILY.settled(LinearAttentionSpec(**fields)))
    judge()
    return each_in_turn(3, judge)[0]


@figure("judging LinearAttention: 2 heads of 4 x 3, T 5", "ms", 10)
def judging_attention() -> float:
    return 1000 * _attention()


@figure("judging LinearAttention: 1 head of 64 x 64, T 65", "ms", 150)
def judging_long_attention() -> float:
    return 1000 * _attention(seq_length=65, d_k=64, d_v=64, kv_num_heads=1, group=1, batch_size=1)


@figure("judging LinearAttention: 16 heads of 128 x 128, T 65, float16", "ms", 1000)
def judging_large_attention() -> float:
    sizes = {"kv_num_heads": 16, "group": 1, "d_k": 128, "d_v": 128, "batch_size": 1, "seq_length": 65}
    return 1000 * _attention(**sizes, type="float16", type_S="float32")


@figure("judging LSTM T100 N8 H256 over onnxruntime's create and run", "x", 3.0)
def judging_large() -> float:
    import onnxruntime

    from onnxspec.cases import CaseSpec, build_case

    spec = CaseSpec("LSTM", 14, T=100, N=8, I=64, H=256, bias=True, outputs=("Y", "Y_h", "Y_c"))
    trial = build_case(spec).trial
    judge = judging(spec)

    def create_and_run() -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(trial.model, options, providers=["CPUExecutionProvider"])
        session.run(None, dict(trial.feeds[0].fed))

    judged, ran = each_in_turn(7, judge, create_and_run)
    return judged / ran


def _values_only(op: str, goal: float, size: str, T: int, N: int, I: int, H: int) -> None:
    def measure() -> float:
        from onnx.reference import ReferenceEvaluator

        from onnxspec.cases import CaseSpec, build_case
        from onnxspec.reference import evaluate

        outputs = ("Y", "Y_h", "Y_c")[: 3 if op == "LSTM" else 2]
        trial = build_case(CaseSpec(op, 14, T=T, N=N, I=I, H=H, bias=True, outputs=outputs)).trial
        inputs, session = trial.feeds[0].inputs, ReferenceEvaluator(trial.model)
        ours, theirs = each_in_turn(
            5, lambda: evaluate(trial.node, inputs), lambda: session.run(None, dict(trial.feeds[0].fed))
        )
        return ours / theirs

    FIGURES.append(Figure(f"values of {op} {size} over ReferenceEvaluator", "x", goal, measure))


for _op in ("LSTM", "GRU", "RNN"):
    _values_only(_op, 0.8, "medium", 50, 8, 64, 64)
    _values_only(_op, 1.2 if _op == "RNN" else 0.8, "large", 100, 32, 256, 512)


@figure("fuzz without the target, cases a core-second", "1/s", 500, least=True)
def fuzz_without_target() -> float:
    from onnxspec.cases import build_case
    from onnxspec.cases.profiles.random_cases import random_specs
    from onnxspec.conformance.judging.verdict import judge
    from onnxspec.conformance.probes.probe import SpecProbe

    specs = random_specs(200, "benchmark")
    outcomes = [_conforming(build_case(spec).trials) for spec in specs]
    start = time.process_time()
    for spec, outcome in zip(random_specs(200, "benchmark"), outcomes, strict=True):
        probe = SpecProbe(spec, fresh=True)
        judge(build_case(probe.spec).trials, outcome, "standard", answers=False)
        assert probe.features
    return len(specs) / (time.process_time() - start)


@figure("report of 10,000 results over dumping them", "x", 1.5)
def report_of_ten_thousand() -> float:
    return _report(10_000)


@figure("report of 100,000 results over dumping them", "x", 1.0, long=True)
def report_of_a_hundred_thousand() -> float:
    return _report(100_000)


@figure("pytest core over onnxspec run", "x", 1.0, long=True)
def pytest_over_command() -> float:
    suite = ("--pyargs", "onnxspec.conformance", "--onnxspec-target", "onnxruntime", "--onnxspec-profile", "core")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *suite]
        pytest = command_seconds(command, Path(folder))
        return pytest / command_seconds(onnxspec("run", "--jobs", "1", "--out", "run"), Path(folder))


@figure("prove of all of core, two cores", "min", 4.0, long=True)
def prove() -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        command_seconds(onnxspec("prove"), Path(folder))
        return (time.monotonic() - start) / 60


def _command(*words: str, codes: tuple[int, ...] = (0, 1)) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return command_seconds(onnxspec(*words), Path(folder), codes)


@dataclass(frozen=True)
class _Packed:
    """A package of certificates, and the seconds of its creation."""

    package: Path
    seconds: float


@cache
def _packed() -> _Packed:
    """Return the package of a recorded run of `full`."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command_seconds(onnxspec("run", "--profile", "full", "--record", "--nonce", "7", "--out", "run"), folder)
    options = ("--product", "benchmark", "--vendor", "benchmark", "--out", "all.zip", "--jobs", "1")
    return _Packed(folder / "all.zip", command_seconds(onnxspec("certify", "run", *options), folder))


def _run_of(profile: str, jobs: int = 1) -> float:
    """Return the processor seconds per result, including start, report and all workers."""
    with tempfile.TemporaryDirectory() as folder:
        command = onnxspec("run", "--profile", profile, "--jobs", str(jobs), "--out", "run")
        seconds = command_seconds(command, Path(folder))
        with (Path(folder) / "run" / "results.jsonl").open(encoding="utf-8") as file:
            return seconds / sum(json.loads(line)["record"] == "result" for line in file)


def _tiny() -> Any:
    """Return a tiny case."""
    from onnxspec.cases import CaseSpec

    return CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, outputs=("Y", "Y_h", "Y_c"))


def _conforming(trials: Any, off: float = 0.0) -> list[Any]:
    """Return the outputs of a conforming target, all of them too large by the factor 1 + `off`."""
    from onnxspec.conformance.proof.staged import staged_outcome
    from onnxspec.reference import evaluate, resolve
    from onnxspec.reference.operators.operator import dtype_of

    def implementation(node: Any, inputs: Any) -> dict[str, Any]:
        own, numbers = resolve(node, inputs), evaluate(node, inputs)
        return {name: (number * (1 + off)).astype(dtype_of(node, own, name)) for name, number in numbers.items()}

    return [staged_outcome(trial, implementation) for trial in trials]


def judging(spec: Any) -> Callable[[], object]:
    """Return a function that judges a conforming target's outputs of a case."""
    from onnxspec.cases import build_case
    from onnxspec.conformance.judging.verdict import judge

    trials = build_case(spec).trials
    outcomes = _conforming(trials)
    assert judge(trials, outcomes, "standard").verdict.value == "pass"
    return lambda: judge(trials, outcomes, "standard")


def _report(count: int) -> float:
    from benchmarks.report import dumped, made_run, reported, results

    with tempfile.TemporaryDirectory() as folder:
        run = made_run(Path(folder))
        dump = dumped(results(count), run / "results.jsonl")  # not kept in memory: a report has only the file
        # The first report of a process loads modules and templates, which a command does once.
        return statistics.median(reported(run, Path(folder) / "report")[0] for _ in range(3)) / dump
