"""Several nodes in one session: each is judged by itself, and the wrong node is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, build_case
from onnxspec.cases.specs.case import Subject, Trial
from onnxspec.cases.specs.graphs import GRAPHS, can_join, join
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.judging.runs import node_views
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.workers.in_process import run_in_process
from onnxspec.conformance.workers.job import Outcome
from onnxspec.reference import evaluate

Arrays = dict[str, NDArray[Any]]

SPECS = [
    CaseSpec("LSTM", 14, T=4, N=3, I=5, H=5, bias=True, initial="all", outputs=("Y", "Y_h", "Y_c")),
    CaseSpec("GRU", 14, T=4, N=3, I=5, H=5, lengths="ragged", weights="initializer", outputs=("Y", "Y_h")),
    CaseSpec("RNN", 14, T=5, N=2, I=4, H=4, direction="bidirectional", reruns="sizes"),
]


class Kernel:
    """Kernel that computes node by node.

    `inputs` changes a node's inputs, `outputs` its outputs, and `returned` the model's, which are in the graph's order.
    """

    def __init__(
        self,
        subject: Subject,
        inputs: Callable[[str, Arrays, Arrays], Arrays] = lambda name, inputs, tensors: inputs,
        outputs: Callable[[str, Arrays], Arrays] = lambda name, outputs: outputs,
        returned: Callable[[Arrays], Arrays] = dict,
    ) -> None:
        self.subject, self.inputs, self.outputs, self.returned = subject, inputs, outputs, returned

    def __call__(self, model: bytes, fed: Arrays) -> list[NDArray[Any]]:
        held = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load_model_from_string(model).graph.initializer}
        tensors: Arrays = {**held, **fed}
        for bound in self.subject.nodes:
            inputs = self.inputs(bound.name, bound.inputs_from(tensors), tensors)
            values = self.outputs(bound.name, evaluate(bound.node, inputs))
            dtype = inputs["X"].dtype
            tensors |= {bound.called(formal): np.asarray(value, dtype) for formal, value in values.items()}
        return list(self.returned({name: tensors[name] for name in self.subject.shown}).values())


def verdict(trial: Trial, **changes: Any) -> tuple[Judgement, Outcome]:
    """Return the verdict on a kernel with changes, and its outcome."""
    outcome = run_in_process(Kernel(trial.subject, **changes), trial)
    return judge([trial], [outcome]), outcome


def takes(node: str, **others: str) -> Callable[[str, Arrays, Arrays], Arrays]:
    """Return a change of inputs: a node takes other tensors for its own."""
    return lambda name, inputs, tensors: (
        {**inputs, **{formal: tensors[other] for formal, other in others.items()}} if name == node else inputs
    )


def joined(spec: CaseSpec, name: str) -> Trial:
    return join(build_case(spec), name).trial


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_a_right_kernel_passes(spec: CaseSpec, name: str) -> None:
    trial = joined(spec, name)
    judgement, outcome = verdict(trial)
    assert judgement.verdict is Verdict.PASS
    node_judgements = [judge(view.trials, view.outcomes) for view in node_views([trial], [outcome])]
    assert [node_judgement.verdict for node_judgement in node_judgements] == [Verdict.PASS] * len(trial.subject.nodes)
    assert judgement.elements == sum(node_judgement.elements for node_judgement in node_judgements)
    assert judgement.judged == judgement.elements
    assert all(node_judgement.elements for node_judgement in node_judgements)


def negated(node: str) -> Callable[[str, Arrays], Arrays]:
    """Return a change of outputs: all numbers of a node have the other sign."""
    return lambda name, outputs: {n: -a for n, a in outputs.items()} if name == node else outputs


def as_of_first(outputs: Arrays) -> Arrays:
    """Return the model's outputs with those of the first node in place of the second's."""
    return {name: outputs[name.removeprefix("second_")] for name in outputs}


KEYED = [CaseSpec(op, 14, T=3, N=2, I=3, H=3, weights="initializer") for op in ("LSTM", "GRU", "RNN")]
NOT_LAST = [
    CaseSpec(op, 14, T=4, N=3, I=3, H=3, layout=layout, outputs=("Y", "Y_h"), **change)
    for op in ("LSTM", "GRU", "RNN")
    for change in ({"direction": "reverse"}, {"lengths": "ragged"}, {"direction": "bidirectional"})
    for layout in (0, 1)
]
SHARES_STATE = takes("second", initial_h="Y_h")
# (case, graph, change of the kernel, the node that is then wrong)
MISTAKES: list[tuple[CaseSpec, str, dict[str, Any], str]] = [
    # Two nodes share a state buffer; in `last-step` they may.
    *((SPECS[0], name, {"inputs": SHARES_STATE}, "second") for name in GRAPHS if name != "last-step"),
    # The last step of Y is taken for Y_h.
    *((spec, "last-step", {"inputs": SHARES_STATE}, "second") for spec in NOT_LAST),
    # A node with the same W as an earlier node runs with the R of that node.
    *((spec, "twins", {"inputs": takes("third", R="R")}, "third") for spec in KEYED),
    # Nodes that differ in clip alone are taken for one.
    *((spec, "twins", {"returned": as_of_first}, "second") for spec in KEYED),
    # Weights are mixed up.
    *(
        (spec, name, {"inputs": takes("first", **{tensor: f"second_{tensor}"})}, "first")
        for spec in SPECS
        for name, tensor in (("side-by-side", "W"), ("side-by-side", "R"), ("chain", "R"))
    ),
    # A wrong node passes on its wrong numbers.
    (SPECS[1], "chain", {"outputs": negated("first")}, "first"),
]


@pytest.mark.parametrize(("spec", "name", "changes", "node"), MISTAKES)
def test_the_node_that_is_wrong_is_named_and_the_others_are_right(
    spec: CaseSpec, name: str, changes: dict[str, Any], node: str
) -> None:
    trial = joined(spec, name)
    assert verdict(trial)[0].verdict is Verdict.PASS
    judgement, outcome = verdict(trial, **changes)
    assert judgement.verdict is Verdict.WRONG
    assert judgement.where["node"] == node
    assert judgement.message.startswith(f"{node}: Y[")
    verdicts = {view.name: judge(view.trials, view.outcomes).verdict for view in node_views([trial], [outcome])}
    assert verdicts == {
        bound.name: Verdict.WRONG if bound.name == node else Verdict.PASS for bound in trial.subject.nodes
    }


def test_outputs_of_a_wrong_form_are_malformed() -> None:
    """A node is named if its outputs are there; if one is missing, nobody knows which."""
    trial = joined(SPECS[0], "chain")

    def cut(node: str, outputs: Arrays) -> Arrays:
        return {**outputs, "Y_h": outputs["Y_h"][:, :1]} if node == "second" else outputs

    judgement, _ = verdict(trial, outputs=cut)
    assert judgement.verdict is Verdict.MALFORMED
    assert judgement.message == "second: Y_h has shape (1, 1, 5), must be (1, 3, 5)"
    first = trial.subject.shown[0]
    short, _ = verdict(trial, returned=lambda outputs: {**outputs, first: outputs[first][:1]})
    assert (short.verdict, short.where["node"]) == (Verdict.MALFORMED, "first")
    few, _ = verdict(trial, returned=lambda outputs: dict(list(outputs.items())[:3]))
    assert few.verdict is Verdict.MALFORMED


def test_runs_that_differ_are_told_of_the_node_that_differs() -> None:
    """The first node's last digit changes from run to run; the second is judged from its actual inputs each time."""
    trial = joined(SPECS[1], "chain")
    calls = iter(range(100))

    def unsteady(node: str, outputs: Arrays) -> Arrays:
        if node != "first":
            return outputs
        factor = np.float32(1 + next(calls) * 2.0**-23)
        return {name: array.astype(np.float32) * factor for name, array in outputs.items()}

    judgement, outcome = verdict(trial, outputs=unsteady)
    assert judgement.verdict is Verdict.PASS
    assert "nondeterministic" in judgement.flags
    _, second = node_views([trial], [outcome])
    assert len(second.trials[0].feeds) == 2
    assert judge(second.trials, second.outcomes).flags == ()


@pytest.mark.parametrize("name", [name for name in GRAPHS if can_join(CaseSpec("GRU", 14, outputs=("", "Y_h")), name)])
def test_companions_stand_for_cases_without_Y(name: str) -> None:
    spec = CaseSpec("GRU", 14, T=6, N=2, I=3, H=4, outputs=("", "Y_h"))
    trials = join(build_case(spec), name).trials
    outcomes = [run_in_process(Kernel(trial.subject), trial) for trial in trials]
    judgement = judge(trials, outcomes)
    assert judgement.verdict is Verdict.PASS
    assert judgement.elements == len(trials[0].subject.nodes) * (6 * 2 * 4 + 2 * 4)
