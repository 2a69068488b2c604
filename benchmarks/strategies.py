"""What a drawn case costs: the median time from one example to the next of a test that does nothing, beside that of
Hypothesis's own integers. Both are measured in turn in this process; the ratio is what carries over to other machines.

    python benchmarks/strategies.py
"""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from onnxspec.cases import build_case, strategies

EXAMPLES = 400
ROUNDS = 5
GOAL = 1.0  # milliseconds a draw, about
PLAIN = 24  # choices of a draw of cases("LSTM", 14), about


def gap(strategy: SearchStrategy[Any]) -> float:
    """Milliseconds from one example to the next, the median of one test."""
    began: list[float] = []

    @settings(max_examples=EXAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def test(_: Any) -> None:
        began.append(time.perf_counter())

    test()
    return 1000 * statistics.median(after - before for before, after in itertools.pairwise(began))


def main() -> None:
    subjects: dict[str, SearchStrategy[Any]] = {
        f"a tuple of {PLAIN} integers": st.tuples(*[st.integers(0, 3)] * PLAIN),
        'cases("LSTM", 14)': strategies.cases("LSTM", 14),
        'cases("GRU", 14)': strategies.cases("GRU", 14),
        'cases("RNN", 1)': strategies.cases("RNN", 1),
        "operator_cases()": strategies.operator_cases(),
        "operator_cases(), built": strategies.operator_cases().map(build_case),
    }
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(ROUNDS):
        for name, strategy in subjects.items():
            times[name].append(gap(strategy))
    fastest = {name: min(each) for name, each in times.items()}
    plain = next(iter(fastest.values()))
    print(f"{'':28} {'ms a draw':>10} {'/ integers':>10}   (goal: about {GOAL:g} ms)")
    for name, milliseconds in fastest.items():
        print(f"{name:28} {milliseconds:10.2f} {milliseconds / plain:10.2f}")


if __name__ == "__main__":
    main()
