"""What the suite costs: processor time of parent and worker for a profile, over that of a bare onnxruntime loop that
creates a session for the same models and runs each feed once. Goal: at most 3.2.

    python benchmarks/suite.py [smoke|core]
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5


def bare(profile: str) -> float:
    """Processor seconds of creating and running every session of the profile, nothing else."""
    import onnxruntime

    from onnxspec.cases import build_case, operator_versions
    from onnxspec.cases import profile as cases_of

    trials = [
        trial
        for op, version in operator_versions()
        for spec in cases_of(profile, op, version)
        if spec.T and spec.N  # no rows or no steps abort onnxruntime 1.31
        for trial in build_case(spec).trials
    ]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    start = time.process_time()
    for trial in trials:
        try:
            session = onnxruntime.InferenceSession(trial.model, options, providers=["CPUExecutionProvider"])
            for feed in trial.feeds:
                session.run(None, dict(feed.fed))
        except Exception:  # a refusal costs what it costs
            continue
    return time.process_time() - start


def suite(profile: str) -> float:
    """Processor seconds of the run command and all its workers, start of Python and report included."""
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", "from onnxspec.conformance.cli.main import main; main()"]
        arguments = ["run", "--profile", profile, "--out", str(Path(folder) / "run")]
        subprocess.run([*command, *arguments], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    profile = sys.argv[1] if len(sys.argv) > 1 else "core"
    pairs = [(suite(profile), bare(profile)) for _ in range(ROUNDS)]
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"{profile}: suite {pairs[0][0]:.2f} s, bare loop {pairs[0][1]:.2f} s, median ratio {ratio:.2f} (goal 3.2)")


if __name__ == "__main__":
    main()
