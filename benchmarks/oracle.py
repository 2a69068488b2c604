"""What the oracle costs: value, and value with radius, over one run of ONNX's ReferenceEvaluator and over the bare
matrix products. Every figure is a ratio of medians measured in turn in this process.

    python -m benchmarks.oracle
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator

from benchmarks.measuring import each_in_turn
from onnxspec.cases import CaseSpec, build_case
from onnxspec.reference import evaluate, expect

OPERATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM": ("LSTM", {"outputs": ("Y", "Y_h", "Y_c")}),
    "GRU": ("GRU", {"outputs": ("Y", "Y_h")}),
    "GRU, linear_before_reset": ("GRU", {"outputs": ("Y", "Y_h"), "linear_before_reset": 1}),
    "RNN": ("RNN", {"outputs": ("Y", "Y_h")}),
}
SIZES = {"tiny": (5, 2, 4, 3), "medium": (50, 8, 64, 64), "large": (100, 32, 256, 512)}
GOALS = {"value": (0.25, 0.45, 1.3), "value and radius": (0.4, 0.7, 2.0), "value / products": (None, 2.5, 1.2)}
ROUNDS = {"tiny": 300, "medium": 30, "large": 5}


def measure(spec: CaseSpec, rounds: int) -> dict[str, float]:
    """Median processor seconds of the evaluator, the value, the value with its radius, and the products alone."""
    T, N, H = spec.T, spec.N, spec.H
    case = build_case(spec)
    node, inputs = case.trial.node, case.trial.feeds[0].inputs
    session = ReferenceEvaluator(case.trial.model)
    observed = {n: a.astype(np.float32) for n, a in evaluate(node, inputs).items()}
    X, W, R = (inputs[n].astype(np.float64) for n in "XWR")
    hidden = np.zeros((N, H))

    def products() -> None:
        X @ W[0].T
        for _ in range(T):
            hidden @ R[0].T

    functions: dict[str, Callable[[], object]] = {
        "evaluator": lambda: session.run(None, dict(inputs)),
        "value": lambda: evaluate(node, inputs),
        "value and radius": lambda: expect(node, inputs, observed),
        "products": products,
    }
    return dict(zip(functions, each_in_turn(rounds, *functions.values()), strict=True))


def main() -> None:
    print(f"{'operator':26} {'size':8} {'value':>12} {'with radius':>12} {'/ products':>12}   (goals in brackets)")
    for name, (op, options) in OPERATORS.items():
        for position, (size, (T, N, I, H)) in enumerate(SIZES.items()):
            spec = CaseSpec(op, 14, T=T, N=N, I=I, H=H, bias=True, **options)
            times = measure(spec, ROUNDS[size])
            ratios = [
                times["value"] / times["evaluator"],
                times["value and radius"] / times["evaluator"],
                times["value"] / times["products"],
            ]
            goals = [GOALS[goal][position] for goal in ("value", "value and radius", "value / products")]
            cells = [f"{r:5.2f} [{g if g is not None else '-'}]" for r, g in zip(ratios, goals, strict=True)]
            print(f"{name:26} {size:8} {cells[0]:>12} {cells[1]:>12} {cells[2]:>12}")


if __name__ == "__main__":
    main()
