"""Tests of faults: their registry, its description of each, how they run, those outside the table, and power."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxspec.cases import CaseSpec, build_case
from onnxspec.reference import CELLS as OPERATORS
from onnxspec.reference import (
    FAULTS,
    FORMATS,
    Fault,
    Node,
    clause_named,
    compare,
    evaluate,
    expect,
    fault,
    fault_named,
    fault_of_run,
    faults_of,
    operator_for,
    operators,
    run_fault,
)
from onnxspec.reference.faults import tables
from onnxspec.reference.faults.computing import layered
from onnxspec.reference.faults.contexts import Run, reported_steps
from onnxspec.reference.faults.fault import Compute, FaultError
from onnxspec.reference.faults.observation import Observation
from onnxspec.reference.kernels.kernel import STYLES, run_kernel
from onnxspec.reference.recurrent.computation import computation_of

from ..situations import OUTPUTS, inputs_for, worst_ratio
from .fault_situations import situation


@pytest.fixture
def registry() -> Iterator[None]:
    """Yield the registry, and restore it afterwards."""
    known = dict(FAULTS)
    yield
    FAULTS.clear()
    FAULTS.update(known)


def _node(name: str, op: str, kind: str) -> tuple[Node, Mapping[str, Any]]:
    """Return the node of a situation and its inputs."""
    trial = situation(name, op, kind).trial
    return trial.node, trial.feeds[0].inputs


def _run(fault: Fault, op: str, kind: str) -> dict[str, Any]:
    return run_fault(fault, *_node("rich", op, kind))


def _unchanged(computation: Any) -> Any:
    return computation


@pytest.mark.parametrize(
    ("id", "arguments", "says"),
    [
        ("outputs.zero", {"clause": "equations"}, "the id is taken"),
        ("a.b", {"clause": "equation"}, "there is no clause lstm.equation"),
        ("a.b", {"clause": "peepholes"}, "there is no clause gru.peepholes"),
        ("a.b", {"clause": "equations", "operators": ("LSTMP",)}, "there is no operator 'LSTMP'"),
        ("a.b", {"clause": "equations", "versions": (14, 15)}, "there is no version 15"),
        ("a.b", {"clause": "equations", "operators": ("LSTM",), "versions": (3,)}, "there is no version 3"),
        ("a.b", {"clause": "equations", "types": ("float8",)}, "there is no type float8"),
        ("a.b", {"clause": "equations", "kind": "odd"}, "there is no kind 'odd'"),
        ("a.b", {"clause": "equations", "layer": "skin"}, "there is no layer 'skin'"),
        ("a.b", {"clause": "equations", "words": ""}, "words must say the fault"),
        ("gru.b", {"clause": "equations"}, "about GRU alone"),
        ("Not an id", {"clause": "equations"}, "an id is words"),
    ],
)
def test_what_cannot_be_registered_is_refused_with_its_place(
    registry: None, id: str, arguments: dict[str, Any], says: str
) -> None:
    before = dict(FAULTS)
    with pytest.raises(FaultError) as caught:
        fault(id, **{"words": "Does nothing wrong.", **arguments})(_unchanged)
    assert says in str(caught.value)
    assert id in str(caught.value)
    assert str(Path(__file__)) in str(caught.value)
    assert before == FAULTS


@pytest.mark.parametrize("register", [fault, fault_of_run])
def test_what_is_registered_can_be_run(registry: None, register: Any) -> None:
    wrong = _unchanged if register is fault else lambda compute, computation: compute(computation)
    register("a.b", "equations", "Does nothing wrong.", wrong, operators=("RNN",), versions=(7, 14))
    registered = FAULTS["a.b"]
    assert registered.summary == "Does nothing wrong."
    assert registered.clause("RNN") == "rnn.equations"
    assert registered.applies("RNN", 7)
    assert not registered.applies("RNN", 22)
    assert not registered.applies("LSTM", 7)
    right = evaluate(*_node("rich", "RNN", "float32"))
    outputs = _run(registered, "RNN", "float32")
    assert all(np.array_equal(outputs[n], right[n].astype(np.float32)) for n in outputs)


def test_all_tables_are_registered() -> None:
    shared = Path(tables.__file__).parent
    package = Path(operators.__file__).parent
    for path in (*shared.glob("[a-z]*.py"), *package.glob("*/faults.py")):
        module = ".".join(["onnxspec", *path.with_suffix("").relative_to(package.parent.parent).parts])
        assert module in sys.modules


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda d: d.id)
def test_a_fault_is_said_in_a_sentence_and_tied_to_clauses(fault: Fault) -> None:
    assert fault.summary[0].isupper()
    assert fault.summary.endswith(".")
    for op in fault.operators:
        versions = clause_named(fault.clause(op)).versions
        assert any(fault.applies(op, version) for version in versions)
    assert fault.types
    assert not (fault.kind == "bias" and fault.structural)


def test_a_fault_applies_to_versions_that_its_clause_holds_for_and_to_types_it_can_show_in() -> None:
    layout = {d.id for d in faults_of("LSTM", 7)} & {d.id for d in FAULTS.values() if d.topic == "layout"}
    assert not layout
    half = {d.id for d in faults_of("LSTM", 22, "float16")}
    assert "precision.half-sums" in half
    assert "precision.half-sums" not in {d.id for d in faults_of("LSTM", 22, "float32")}
    assert "gru.gates.rzh" not in half


@pytest.mark.parametrize("op", OPERATORS)
def test_faults_are_deterministic(op: str) -> None:
    for chosen in faults_of(op, 22, "float32"):
        first, second = _run(chosen, op, "float32"), _run(chosen, op, "float32")
        assert set(first) == set(second)
        assert all(np.array_equal(first[n], second[n], equal_nan=True) for n in first), chosen.id


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize(
    "id",
    ["bias.ignored", "weights.recurrent-ignored", "lengths.first-row", "activations.ignored", "sizes.last-unit-odd"],
)
def test_a_faulty_step_starts_from_the_reported_state(id: str, op: str) -> None:
    c = computation_of(*_node("rich", op, "float64"))
    free = layered(Compute(), [FAULTS[id]], {})(c)
    Y = reported_steps(c, free)
    again = layered(Compute(Y), [FAULTS[id]], {})(c)
    for name, array in free.items():
        np.testing.assert_allclose(again[name], array, rtol=1e-12, atol=1e-14)
    assert Y is not None
    moved = layered(Compute(Y + 0.25), [FAULTS[id]], {})(c)
    assert np.allclose(moved["Y"], free["Y"]) == (id == "weights.recurrent-ignored" and op != "GRU")


def test_memory_is_the_sessions() -> None:
    node, inputs = _node("plain", "RNN", "float32")
    memory: dict[str, Any] = {}
    keeping = FAULTS["session.state-kept"]
    first, second = (run_fault(keeping, node, inputs, memory=memory) for _ in range(2))
    fresh = run_fault(keeping, node, inputs)
    assert np.array_equal(first["Y"], fresh["Y"])
    assert not np.array_equal(second["Y"], first["Y"])


def test_only_what_is_handed_over_and_can_be_written_to_is_changed() -> None:
    node, inputs = _node("rich", "LSTM", "float32")
    before = {n: a.copy() for n, a in inputs.items()}
    chosen = FAULTS["inputs.x-overwritten"]
    fed = {"X": inputs["X"].copy()}
    run_fault(chosen, node, inputs, fed=fed)
    assert not fed["X"].any()
    run_fault(chosen, node, inputs)
    assert all(np.array_equal(inputs[n], a) for n, a in before.items())


def test_outputs_that_are_left_out_are_missing_and_other_types_stay() -> None:
    assert "Y_h" not in _run(FAULTS["outputs.last-hidden-missing"], "GRU", "float16")
    for id, kind, returned in (("outputs.float32", "float16", "float32"), ("bias.ignored", "bfloat16", "bfloat16")):
        assert {a.dtype for a in _run(FAULTS[id], "GRU", kind).values()} == {FORMATS[returned].dtype}


SHAPE: dict[str, Any] = {"T": 4, "N": 3, "I": 2, "H": 5, "outputs": ("Y", "Y_h"), "seed": 3}
LARGE: dict[str, Any] = {**SHAPE, "data": "large"}
AFFINE: dict[str, Any] = {"activations": ("Affine", "Affine", "Tanh"), "alpha": (0.5, 0.7), "beta": (0.1, 0.2)}


@pytest.mark.parametrize(
    ("id", "op", "fields"),
    [
        ("sizes.states-of-rows-past-8", "LSTM", {**SHAPE, "N": 11, "initial": "all"}),
        ("sizes.states-of-rows-past-8@initial_c", "LSTM", {**SHAPE, "N": 11, "initial": "all"}),
        ("sizes.states-by-halves", "GRU", {**SHAPE, "N": 5, "initial": "h"}),
        ("session.padding-kept", "GRU", {**SHAPE, "T": 5, "N": 6, "lengths": "ragged", "reruns": "data"}),
        ("lstm.clip.on-carried-cell", "LSTM", {**SHAPE, "clip": 0.25, "initial": "all"}),
        ("lstm.clip.cell-in-place", "LSTM", {**SHAPE, "clip": 0.25, "initial": "all", "peepholes": True}),
        ("lstm.cell.carried-in-float16", "LSTM", SHAPE),
        ("gru.hidden.in-place-by-4", "GRU", {**SHAPE, "initial": "h", "H": 9}),
        ("tanh.clamped-above-3", "RNN", LARGE),
        ("tanh.clamped-below-3", "RNN", LARGE),
        ("coefficients.by-name", "LSTM", {**SHAPE, **AFFINE}),
        ("lengths.longest-of-4", "RNN", {**SHAPE, "N": 6, "lengths": "ragged"}),
        ("gru.reset-gate.on-bias", "GRU", {**SHAPE, "bias": True}),
        ("gru.reset-gate.on-bias@forward", "GRU", {**SHAPE, "bias": True, "direction": "bidirectional"}),
    ],
)
def test_a_fault_beside_the_table_explains_what_it_does(id: str, op: str, fields: dict[str, Any]) -> None:
    case, fault = build_case(CaseSpec(op, 14, **fields)), fault_named(id)
    assert fault is not None
    node, memory = case.trial.node, dict[str, Any]()
    runs = []
    for feed in case.trial.feeds:
        with np.errstate(all="ignore"):
            answer = operator_for(node).answer(node, feed.inputs, (fault,), fed=dict(feed.fed), memory=memory)
        runs.append(Run(feed.inputs, {name: answer[name] for name in node.outputs}, feed.fed))
    observation = Observation(operator_for(node), node, tuple(runs), "standard")
    fit = observation.fit((fault,))
    assert fit is not None
    assert fit.evidence > 20
    assert observation.fit(()) is None
    assert any(mask.any() for masks in observation.misses() for mask in masks.values())


# Power: wrong values lie far outside the radius, and broken conventions are no faults.

CONVENTIONS = [d for d in FAULTS.values() if d.topic == "padding.zero"]


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("fault", CONVENTIONS, ids=lambda d: d.id)
def test_what_breaks_a_convention_alone_is_no_fault_but_a_finding(fault: Fault, op: str) -> None:
    for kind in FORMATS:
        node, inputs = _node("rich", op, kind)
        outputs = run_fault(fault, node, inputs)
        assert worst_ratio(node, inputs, outputs) <= 1
        broken = [e for e in expect(node, inputs, outputs) if compare(e, outputs[e.output]).worst > 4]
        assert {e.clause for e in broken} == {fault.clause(op)}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("H", [33, 64])
def test_one_wrong_element_is_found_and_named(H: int, kind: str) -> None:
    inputs = inputs_for(
        kind, (4, 3, 5, H), directions=2, optional=("B", "P", "initial_h", "initial_c"), lengths=[2, 4, 1]
    )
    node = Node("LSTM", 22, {"direction": "bidirectional"}, OUTPUTS)
    outputs = run_kernel(node, inputs, STYLES["forward"])
    outputs["Y"][1, 0, 1, H - 1] += outputs["Y"].dtype.type(1)
    (expectation, *_) = expect(node, inputs, outputs)
    agreement = compare(expectation, outputs["Y"])
    assert agreement.worst > 4
    assert agreement.index == (1, 0, 1, H - 1)


@pytest.mark.parametrize("kind", FORMATS)
def test_long_sequences_lose_no_power(kind: str) -> None:
    T = 200
    inputs = inputs_for(kind, (T, 1, 5, 33), optional=("B",))
    node = Node("LSTM", 22, {}, OUTPUTS)
    wrong = run_fault(FAULTS["lstm.gates.ifco"], node, inputs)
    (expectation, *_) = expect(node, inputs, wrong)
    number = expectation.number
    late = slice(T - 10, None)
    beyond = np.abs(wrong["Y"][late].astype(float) - number.value[late]) > 4 * number.radius[late]
    assert beyond.mean() > 0.2
