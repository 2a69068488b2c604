"""Every model that is sent to a target or written passes onnx.checker's full check, unless it is forbidden on purpose.

Backends that prepare models as ONNX's base class does call the checker, and so do runners of test-case directories.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import onnx
import pytest

from onnxspec.cases import CaseSpec, build_case, operator_versions, profile
from onnxspec.cases.directories.directory import write_directory
from onnxspec.cases.directories.manifest import data_sets_of
from onnxspec.conformance.probes.directory import probe_directories

from ...quark import quark_node
from ..checking.nodes import I, N, T, model_of, recurrent, weights_of
from ..miniatures import read_results, run_command

BACKEND = """
from onnx.backend.base import Backend as Base
from onnx.reference import ReferenceEvaluator

class Prepared:
    def __init__(self, model):
        self.evaluator = ReferenceEvaluator(model)
    def run(self, inputs):
        return self.evaluator.run(None, dict(zip(self.evaluator.input_names, inputs)))

class Checking(Base):
    @classmethod
    def prepare(cls, model, device="CPU", **options):
        super().prepare(model, device, **options)
        return Prepared(model)

prepare, supports_device = Checking.prepare, lambda device: True
"""


def refused(models: Iterable[tuple[str, bytes]]) -> list[str]:
    """Return the checker's message for each model that it refuses."""
    complaints = []
    for name, model in models:
        try:
            onnx.checker.check_model(onnx.load_model_from_string(model), full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            complaints.append(f"{name}: {error}")
    return complaints


@pytest.mark.parametrize(("op", "version"), list(operator_versions(None)), ids=str)
def test_models_of_profiles(op: str, version: int) -> None:
    legal = [spec for spec in profile("smoke", op, version) if not spec.illegal]
    models = [(trial.key, trial.model) for spec in legal for trial in build_case(spec).trials]
    assert models
    assert refused(models) == []


@pytest.mark.parametrize("layout", [0, 1])
def test_the_companion_of_a_foreign_model(layout: int, tmp_path: Path) -> None:
    case = build_case(CaseSpec("LSTM", 14, layout=layout, outputs=("", "Y_h", "")))
    write_directory(tmp_path / "case", case.trial.model, data_sets_of(case.trial))
    (probe,) = probe_directories([tmp_path])
    trials = probe.prepare().trials
    assert [trial.node.outputs for trial in trials] == [("Y_h",), ("Y", "Y_h", "Y_c")]
    assert refused((trial.key, trial.model) for trial in trials) == []


def test_a_quantized_model() -> None:
    assert refused([("extended", quark_node().model())]) == []


def test_a_backend_that_checks_what_it_prepares_runs_the_nodes_of_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "checking_backend.py").write_text(BACKEND, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    inputs = ("X", "W", "R", "B")
    nodes = [recurrent("LSTM", inputs, name="first"), recurrent("LSTM", inputs, name="second", direction="reverse")]
    nodes[1].output[0] = "Y_of_second"
    weights = weights_of("LSTM")
    model = model_of(nodes, {"X": (T, N, I)}, {name: weights[name] for name in ("W", "R", "B")})
    onnx.save_model(model, tmp_path / "model.onnx")
    target = ("--target", "backend:checking_backend")
    assert run_command("run", *target, tmp_path / "model.onnx", "--out", tmp_path / "run") == 0
    # Each node by itself, and both together, since they share X and weights.
    assert [result["verdict"] for result in read_results(tmp_path / "run")] == ["pass"] * 3
