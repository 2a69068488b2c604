"""assert_conforms: its arguments, its messages, and results that it cannot judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.cases.directories.reading import NotOneNode
from onnxspec.conformance import NotConforming, NotJudged, assert_conforms
from onnxspec.conformance.probes.naming import UnknownName
from onnxspec.conformance.pytest_plugin.assertion import RunningTarget
from onnxspec.conformance.targets.target import parse_target
from onnxspec.reference import IllegalNode, Node, evaluate, operator_of

STEPS, BATCH, WIDTH, HIDDEN = 4, 2, 3, 5
SHAPES = {"X": (STEPS, BATCH, WIDTH), "W": (1, 4 * HIDDEN, WIDTH), "R": (1, 4 * HIDDEN, HIDDEN)}
PLAIN = next(spec for spec in profile("core", "LSTM", 14) if spec.marks == ())


def inputs() -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


def model(
    constants: dict[str, np.ndarray] | None = None, outputs: tuple[str, ...] = ("Y",), **attributes: Any
) -> onnx.ModelProto:
    """Return an LSTM whose tensors do not have the formal names."""
    constants = constants or {}
    names = [f"my_{name}" for name in SHAPES]
    node = helper.make_node("LSTM", names, [f"my_{o}" if o else "" for o in outputs], hidden_size=HIDDEN, **attributes)
    made = {"Y": (STEPS, 1, BATCH, HIDDEN), "Y_h": (1, BATCH, HIDDEN), "Y_c": (1, BATCH, HIDDEN)}
    graph = helper.make_graph(
        [node],
        "mine",
        [
            helper.make_tensor_value_info(f"my_{n}", TensorProto.FLOAT, s)
            for n, s in SHAPES.items()
            if n not in constants
        ],
        [helper.make_tensor_value_info(f"my_{o}", TensorProto.FLOAT, made[o]) for o in outputs if o],
        [numpy_helper.from_array(array, f"my_{name}") for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def outputs_of(spec: CaseSpec) -> list[np.ndarray]:
    trial = build_case(spec).trial
    return [array.astype(spec.type) for array in evaluate(trial.node, trial.feeds[-1].inputs).values()]


def right() -> np.ndarray:
    return onnx_y(inputs())


def onnx_y(tensors: dict[str, np.ndarray]) -> np.ndarray:
    return evaluate(Node("LSTM", 14, {"hidden_size": HIDDEN}), tensors)["Y"].astype(np.float32)


def fed() -> dict[str, np.ndarray]:
    return {f"my_{name}": array for name, array in inputs().items()}


@pytest.mark.parametrize("form", ["proto", "bytes", "path", "text"])
def test_a_model_in_any_form(form: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(), path)
    subject: Any = {"proto": model(), "bytes": model().SerializeToString(), "path": path, "text": str(path)}[form]
    assert_conforms(subject, {"my_Y": right()}, inputs=fed())
    assert_conforms(subject, [right()], inputs=list(fed().values()))
    with pytest.raises(NotConforming, match=r"wrong \(value\): Y\["):
        assert_conforms(subject, {"my_Y": -right()}, inputs=fed())


def test_constants_are_not_fed() -> None:
    constants = {name: inputs()[name] for name in ("W", "R")}
    assert_conforms(model(constants), [right()], inputs={"my_X": inputs()["X"]})
    with pytest.raises(NotConforming):
        assert_conforms(model({**constants, "R": constants["R"] * 2}), [right()], inputs={"my_X": inputs()["X"]})


def test_the_error_is_an_assertion_with_its_judgement() -> None:
    bad = right()
    bad[2, 0, 1, 3] += 1
    with pytest.raises(AssertionError) as caught:
        assert_conforms(model(), [bad], inputs=fed())
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


def test_outputs_of_another_shape_are_malformed() -> None:
    with pytest.raises(NotConforming, match="malformed"):
        assert_conforms(model(), [right()[:-1]], inputs=fed())


def test_an_accuracy_class_may_be_named() -> None:
    near = right() * np.float32(1 + 2e-4)
    with pytest.raises(NotConforming, match="inaccurate"):
        assert_conforms(model(), [near], inputs=fed())
    assert_conforms(model(), [near], inputs=fed(), accuracy="f16-math")


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
        (b"garbage", [right()], fed(), NotOneNode, "no ONNX model"),
        (Path("absent.onnx"), [right()], fed(), NotOneNode, "absent.onnx: cannot be read: No such file"),
        (model(), [right()], None, ValueError, "give inputs"),
        (model(), {"Y": right()}, fed(), ValueError, "no output 'Y'; it has my_Y"),
        (model(), [right(), right()], fed(), ValueError, "2 outputs are given, the graph has 1: my_Y"),
        (model(), [right()], inputs(), ValueError, "no input 'X'; it has my_X, my_W, my_R"),
        (model(), [right()], {"my_X": inputs()["X"]}, ValueError, "no input my_W, my_R is given"),
        (foreign(), [right()], fed(), NotOneNode, "AttnLSTM is no operator that is judged here: LSTM, GRU"),
        (model(clip=-1.0), [right()], fed(), IllegalNode, "clip is a threshold"),
        ("lstm-14.float32.none", [right()], None, UnknownName, "unknown case"),
        (PLAIN, [right()], fed(), ValueError, "a case has its own inputs"),
    ],
)
def test_what_cannot_be_judged(subject: Any, outputs: Any, given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        assert_conforms(subject, outputs, inputs=given)
    assert not isinstance(caught.value, AssertionError)


def test_a_running_target() -> None:
    with RunningTarget(parse_target("onnxruntime")) as target:
        target.assert_conforms(model(), fed())
        target.assert_conforms(model(outputs=("", "Y_h")), fed())
        target.assert_conforms(PLAIN.id)
        outputs = target.run(model(), fed())
        assert_conforms(model(), outputs, inputs=fed())
        with pytest.raises(NotConforming, match="unsupported"):
            target.assert_conforms(model(layout=1), fed() | {"my_X": np.zeros((BATCH, STEPS, WIDTH), np.float32)})
        assert target.description["runtime"] == "onnxruntime"


@pytest.mark.parametrize("of", ["expecting_each", "resolve"])
def test_an_operators_own_exception_is_no_failure_of_the_target(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: Any, **__: Any) -> Any:
        raise LookupError("no such\ngate")

    given, text = (
        [right()],
        r"^not-judged \(judging\): the suite's fault or the operator's: LookupError: no such gate \(",
    )
    monkeypatch.setattr(type(operator_of("LSTM")), of, raising)
    with pytest.raises(NotJudged, match=text):
        assert_conforms(model(), given, inputs=fed())
