"""assert_conforms: its arguments, its messages, and results that it cannot judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnxspec import NotConforming, NotJudged, assert_conforms
from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.cases.directories.reading import NotOneNode
from onnxspec.conformance.probes.naming import UnknownName
from onnxspec.conformance.pytest_plugin.assertion import RunningTarget
from onnxspec.conformance.targets.target import parse_target
from onnxspec.reference import IllegalNode, Node, evaluate, operator_of

from ..checking.nodes import H, I, N, T, model_of, recurrent, weights_of

INPUTS = {"X": np.random.default_rng(7).normal(size=(T, N, I)).astype(np.float32), **weights_of("LSTM", seed=7)}
del INPUTS["B"]
FED = {f"my_{name}": array for name, array in INPUTS.items()}
RIGHT = evaluate(Node("LSTM", 14, {"hidden_size": H}), INPUTS)["Y"].astype(np.float32)
PLAIN = next(spec for spec in profile("core", "LSTM", 14) if spec.marks == ())


def model(constants: tuple[str, ...] = (), outputs: tuple[str, ...] = ("Y",), **attributes: Any) -> onnx.ModelProto:
    """Return an LSTM whose tensors do not have the formal names."""
    node = recurrent("LSTM", [*FED], **attributes)
    node.output[:] = [f"my_{name}" if name else "" for name in outputs]
    names = {f"my_{name}" for name in constants}
    fed = {name: array.shape for name, array in FED.items() if name not in names}
    return model_of([node], fed, {n: FED[n] for n in names}, 17, [name for name in node.output if name])


def outputs_of(spec: CaseSpec) -> list[np.ndarray]:
    trial = build_case(spec).trial
    return [array.astype(spec.type) for array in evaluate(trial.node, trial.feeds[-1].inputs).values()]


@pytest.mark.parametrize("form", ["proto", "bytes", "path", "text"])
def test_a_model_in_any_form(form: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(), path)
    subject: Any = {"proto": model(), "bytes": model().SerializeToString(), "path": path, "text": str(path)}[form]
    assert_conforms(subject, {"my_Y": RIGHT}, inputs=FED)
    assert_conforms(subject, [RIGHT], inputs=list(FED.values()))
    with pytest.raises(NotConforming, match=r"wrong \(value\): Y\["):
        assert_conforms(subject, {"my_Y": -RIGHT}, inputs=FED)


def test_constants_are_not_fed() -> None:
    held = model(("W", "R"))
    assert_conforms(held, [RIGHT], inputs={"my_X": INPUTS["X"]})
    for tensor in held.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(FED[tensor.name] * 2, tensor.name))
    with pytest.raises(NotConforming):
        assert_conforms(held, [RIGHT], inputs={"my_X": INPUTS["X"]})


def test_the_error_is_an_assertion_with_its_judgement() -> None:
    bad = RIGHT.copy()
    bad[2, 0, 1, 3] += 1
    with pytest.raises(AssertionError) as caught:
        assert_conforms(model(), [bad], inputs=FED)
    error = caught.value
    assert isinstance(error, NotConforming)
    assert error.judgement.where == {"output": "Y", "index": [2, 0, 1, 3], "step": 2}
    lines = str(error).splitlines()
    assert lines[0].startswith("wrong (value): Y[2, 0, 1, 3] (step 2, forward, row 1) is ")
    assert [line.split()[0] for line in lines[1:]] == ["bound", "clause", "node"]
    assert "LSTM-14(X[4,2,3], W[1,20,3], R[1,20,5]) -> Y, float32; hidden_size=5" in lines[-1]


@pytest.mark.parametrize("named", [True, False])
def test_a_case_has_its_own_inputs(named: bool) -> None:
    subject = PLAIN.id if named else PLAIN
    assert_conforms(subject, outputs_of(PLAIN))
    wrong = outputs_of(PLAIN)
    wrong[0][-1, 0, 0, 0] += 1
    with pytest.raises(NotConforming, match="step 3"):
        assert_conforms(subject, wrong)


def test_an_accuracy_class_may_be_named_and_a_shape_must_be_right() -> None:
    near = RIGHT * np.float32(1 + 2e-4)
    with pytest.raises(NotConforming, match="inaccurate"):
        assert_conforms(model(), [near], inputs=FED)
    assert_conforms(model(), [near], inputs=FED, accuracy="f16-math")
    with pytest.raises(NotConforming, match="malformed"):
        assert_conforms(model(), [RIGHT[:-1]], inputs=FED, accuracy="f16-math")


EXTENDED = profile("smoke", "ExtendedLSTM", 1)[1]
"""Case of an operator outside ONNX."""


def test_a_case_of_another_domain_is_judged_like_any_other() -> None:
    trial = build_case(EXTENDED).trial
    Y = evaluate(trial.node, trial.feeds[-1].inputs)["Y"].astype(np.float32)
    fed = trial.feeds[-1].fed
    assert_conforms(EXTENDED, lambda model, inputs: [Y])
    assert_conforms(EXTENDED.id, [Y])
    assert_conforms(trial.model, [Y], inputs=fed)
    for subject, given in ((EXTENDED, None), (EXTENDED.id, None), (trial.model, fed)):
        with pytest.raises(NotConforming, match=r"extendedlstm\.equations"):
            assert_conforms(subject, [-Y], inputs=given)
    with pytest.raises(NotConforming, match="wrong"):
        assert_conforms(EXTENDED, lambda model, inputs: [-Y])


def foreign() -> bytes:
    """Return a model of an operator without a specification here."""
    proto = onnx.load_model_from_string(build_case(EXTENDED).trial.model)
    proto.graph.node[0].op_type = "AttnLSTM"
    return bytes(proto.SerializeToString())


@pytest.mark.parametrize(
    ("subject", "outputs", "given", "error", "message"),
    [
        (b"garbage", [RIGHT], FED, NotOneNode, "no ONNX model"),
        (Path("absent.onnx"), [RIGHT], FED, NotOneNode, "absent.onnx: cannot be read: No such file"),
        (model(), [RIGHT], None, ValueError, "give inputs"),
        (model(), {"Y": RIGHT}, FED, ValueError, "no output 'Y'; it has my_Y"),
        (model(), [RIGHT, RIGHT], FED, ValueError, "2 outputs are given, the graph has 1: my_Y"),
        (model(), [RIGHT], INPUTS, ValueError, "no input 'X'; it has my_X, my_W, my_R"),
        (model(), [RIGHT], {"my_X": INPUTS["X"]}, ValueError, "no input my_W, my_R is given"),
        (foreign(), [RIGHT], FED, NotOneNode, "AttnLSTM is no operator that is judged here: LSTM, GRU"),
        (model(clip=-1.0), [RIGHT], FED, IllegalNode, "clip is a threshold"),
        ("lstm-14.float32.none", [RIGHT], None, UnknownName, "unknown case"),
        (PLAIN, [RIGHT], FED, ValueError, "a case has its own inputs"),
    ],
)
def test_what_cannot_be_judged(subject: Any, outputs: Any, given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        assert_conforms(subject, outputs, inputs=given)
    assert not isinstance(caught.value, AssertionError)


def test_a_running_target() -> None:
    with RunningTarget(parse_target("onnxruntime")) as target:
        target.assert_conforms(model(), FED)
        target.assert_conforms(model(outputs=("", "Y_h")), FED)
        target.assert_conforms(PLAIN.id)
        outputs = target.run(model(), FED)
        assert_conforms(model(), outputs, inputs=FED)
        with pytest.raises(NotConforming, match="unsupported"):
            target.assert_conforms(model(layout=1), FED | {"my_X": np.zeros((N, T, I), np.float32)})
        assert target.description["runtime"] == "onnxruntime"


@pytest.mark.parametrize("of", ["expecting_each", "resolve"])
def test_an_operators_own_exception_is_no_failure_of_the_target(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: Any, **__: Any) -> Any:
        raise LookupError("no such\ngate")

    message = r"^not-judged \(judging\): the suite's fault or the operator's: LookupError: no such gate \("
    monkeypatch.setattr(type(operator_of("LSTM")), of, raising)
    with pytest.raises(NotJudged, match=message):
        assert_conforms(model(), [RIGHT], inputs=FED)
