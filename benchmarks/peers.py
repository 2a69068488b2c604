"""Costs of other tools for comparable work: figures without goals, for the reader."""

from __future__ import annotations

import importlib
import io
import re
import tempfile
import unittest
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measuring import each_in_turn

_RECURRENT = re.compile(r"test_.*(lstm|gru|rnn).*_cpu")


def standard_suite() -> float:
    """Return the milliseconds per recurrent case of onnx.backend.test's own runner, on ReferenceEvaluator."""
    import onnx.backend.base
    import onnx.backend.test
    from onnx.reference import ReferenceEvaluator

    class Rep(onnx.backend.base.BackendRep):
        def __init__(self, session: Any) -> None:
            self.session = session

        def run(self, inputs: Any, **options: Any) -> Any:
            return self.session.run(None, dict(zip(self.session.input_names, inputs, strict=False)))

    class Backend(onnx.backend.base.Backend):
        @classmethod
        def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> Any:
            return Rep(ReferenceEvaluator(model))

        @classmethod
        def supports_device(cls, device: str) -> bool:
            return device == "CPU"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runner = onnx.backend.test.BackendTest(Backend, __name__)
        for word in ("lstm", "gru", "rnn"):
            runner.include(f"test_.*{word}.*_cpu")
        # The runner holds all of ONNX's cases, and would skip four thousand of them one by one.
        chosen = [test for test in runner.test_suite if _RECURRENT.search(test.id())]
        suite, outcomes = unittest.TestSuite(chosen), list[unittest.TestResult]()
        seconds = each_in_turn(1, lambda: outcomes.append(unittest.TextTestRunner(io.StringIO()).run(suite)))[0]
        ran = outcomes[0].testsRun - len(outcomes[0].skipped)
        if not ran:
            raise RuntimeError("the runner ran no case")
        return 1000 * seconds / ran


def _case() -> Any:
    from onnxspec.cases import CaseSpec, build_case

    spec = CaseSpec("LSTM", 14, T=100, N=8, I=64, H=256, bias=True, outputs=("Y", "Y_h", "Y_c"))
    return build_case(spec).trial


def ours() -> float:
    """Return the milliseconds of onnxspec's values, of LSTM T100 N8 I64 H256."""
    from onnxspec.reference import evaluate

    trial = _case()
    return 1000 * each_in_turn(5, lambda: evaluate(trial.node, trial.feeds[0].inputs))[0]


def evaluator() -> float:
    """Return the milliseconds of ONNX's ReferenceEvaluator for the same node."""
    from onnx.reference import ReferenceEvaluator

    trial = _case()
    session = ReferenceEvaluator(trial.model)
    return 1000 * each_in_turn(5, lambda: session.run(None, dict(trial.feeds[0].fed)))[0]


def judged() -> float:
    """Return the milliseconds of judging a conforming target's outputs of the same node.

    They include expectations, bounds and the comparison.
    """
    from benchmarks.figures import judging
    from onnxspec.cases import CaseSpec

    judge = judging(CaseSpec("LSTM", 14, T=100, N=8, I=64, H=256, bias=True, outputs=("Y", "Y_h", "Y_c")))
    return 1000 * each_in_turn(5, judge)[0]


def torch() -> float:
    """Return the milliseconds of torch.nn.LSTM on one thread for the same sizes, values alone."""
    module: Any = importlib.import_module("torch")
    module.set_num_threads(1)
    lstm, X = module.nn.LSTM(64, 256), module.zeros(100, 8, 64)
    with module.no_grad():
        return 1000 * each_in_turn(5, lambda: lstm(X))[0]


def polygraphy() -> float:
    """Return the milliseconds of Polygraphy's comparison of onnxruntime with itself, on the same model, without the
    runs."""
    comparator: Any = importlib.import_module("polygraphy.comparator")
    runtime: Any = importlib.import_module("polygraphy.backend.onnxrt")
    logger: Any = importlib.import_module("polygraphy.logger").G_LOGGER
    logger.module_severity = logger.CRITICAL
    trial = _case()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(trial.model)
        build = runtime.SessionFromOnnx(str(path))
        runners = [runtime.OnnxrtRunner(build, name=name) for name in ("one", "other")]
        results = comparator.Comparator.run(runners, data_loader=[dict(trial.feeds[0].fed)])
        return 1000 * each_in_turn(5, lambda: comparator.Comparator.compare_accuracy(results))[0]


PEERS: dict[str, Callable[[], float]] = {
    "onnx.backend.test's runner on ReferenceEvaluator, a case": standard_suite,
    "LSTM T100 N8 I64 H256: values of onnxspec": ours,
    "LSTM T100 N8 I64 H256: ReferenceEvaluator": evaluator,
    "LSTM T100 N8 I64 H256: judged by onnxspec, bounds and all": judged,
    "LSTM T100 N8 I64 H256: torch": torch,
    "LSTM T100 N8 I64 H256: Polygraphy's comparison alone": polygraphy,
}
