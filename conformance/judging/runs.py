"""Runs of each node of a case with a target's outputs, or the verdict if there are no numbers to judge.

A graph is judged node by node, like lone nodes. Each node is judged from the inputs that the target itself computed by
earlier nodes, so a wrong node does not make the next one wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import Struct
from numpy.typing import NDArray

from ...cases import Feed, Trial
from ...cases.specs.case import Bound
from ...reference import Node, operator_for, resolve
from ...reference.operators.operator import dtype_of
from ...reference.recurrent.agreement import Expected
from ..workers.process import Outcome
from .judgement import Judgement, Verdict, judge_forbidden, not_run, wrong_count, wrong_form

Array = NDArray[Any]
Arrays = tuple[Array | None, ...]
Outputs = Mapping[str, Array]


_NOTHING = Expected(lambda accuracy, interpretations: [], {})


class NodeView(Struct, frozen=True):
    """Node of a subject as a trial of its own, with the target's outcomes.

    name
        Of the node in its graph; empty for a lone one.
    trials, outcomes
        As those of a case with only this node: its own run and its all-outputs run. If its own run has neither the
        node's outputs nor its inputs, only the latter.
    """

    name: str
    trials: tuple[Trial, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def own(self) -> tuple[Trial, Outcome]:
        """The case's own trial with its outcome, or the one that replaces it."""
        return self.trials[0], self.outcomes[0]

    @property
    def all_outputs(self) -> tuple[Trial, Outcome] | None:
        """The trial of the same node with all outputs, or without its violation, and its outcome."""
        return (self.trials[1], self.outcomes[1]) if len(self.trials) > 1 and len(self.outcomes) > 1 else None


@dataclass(frozen=True)
class NodeRun:
    """One run of a node: all its inputs, its outputs, and the expected outputs.

    outputs
        By name; a missing one may be None.
    trial
        The trial with that node alone.
    name
        Of the node in its graph; empty for a lone one.
    expected
        The expected outputs, by a class and interpretations (:func:`with_expectations`).
    """

    node: Node
    inputs: Mapping[str, Array]
    outputs: Outputs
    trial: Trial
    name: str = ""
    expected: Expected = _NOTHING

    @property
    def number(self) -> str:
        """The number of the run in its session, as text; empty for a single run."""
        feeds = self.trial.feeds
        number = next((k for k, feed in enumerate(feeds, 1) if feed.inputs is self.inputs), 0)
        return f"run {number} of {len(feeds)}" if number and len(feeds) > 1 else ""

    @property
    def present(self) -> dict[str, Array]:
        """The outputs that are not missing."""
        return {name: array for name, array in self.outputs.items() if array is not None}


class ReadRuns(Struct, frozen=True):
    """Well-formed runs, and flags beside the verdict."""

    runs: tuple[NodeRun, ...]
    flags: tuple[str, ...]


def with_expectations(runs: Sequence[NodeRun]) -> list[NodeRun]:
    """Return runs with their expected outputs; expectations of one node on the same inputs are computed together."""
    together: dict[tuple[int, int], list[int]] = {}
    for number, run in enumerate(runs):
        together.setdefault((id(run.node), id(run.inputs)), []).append(number)
    expecting: dict[int, NodeRun] = {}
    for numbers in together.values():
        node, inputs = runs[numbers[0]].node, runs[numbers[0]].inputs
        expectations = operator_for(node).expecting_each(node, inputs, [runs[number].present for number in numbers])
        for number, expected in zip(numbers, expectations, strict=True):
            expecting[number] = replace(runs[number], expected=expected)
    return [expecting[number] for number in range(len(runs))]


def read(trials: Sequence[Trial], outcomes: Sequence[Outcome]) -> ReadRuns | Judgement:
    """Return a target's runs, node by node, or the verdict where there are no numbers to judge."""
    subject, outcome = trials[0].subject, outcomes[0]
    if not subject.is_lone and outcome.status == "ran":
        if outcome.malformed:
            return Judgement(Verdict.MALFORMED, "form", message=outcome.malformed)
        counts = {len(arrays) for lists in outcome.outputs for arrays in lists} - {len(subject.shown)}
        if counts:
            return wrong_count(counts.pop(), len(subject.shown))
    runs: list[NodeRun] = []
    flags: dict[str, None] = {}
    for view in node_views(trials, outcomes):
        of_view = _read(view)
        if isinstance(of_view, Judgement):
            return of_node(of_view, view.name)
        runs += of_view.runs
        flags |= dict.fromkeys(of_view.flags)
    return ReadRuns(tuple(runs), tuple(flags))


def of_node(judgement: Judgement, name: str) -> Judgement:
    """Return a verdict with the name of its node; unchanged for a lone node."""
    if not name or judgement.where is None:
        return judgement
    return replace(judgement, where={"node": name, **judgement.where}, message=f"{name}: {judgement.message}")


def _read(view: NodeView) -> ReadRuns | Judgement:
    """Return the runs of one node, or the verdict where there are no numbers to judge."""
    trial, outcome = view.own
    legal_trial, legal = view.all_outputs or (None, None)
    if trial.violation is not None:
        broken = trial.violation
        clause = broken.clause(trial.node.operator.known_as)
        return judge_forbidden(broken.summary, broken.due, clause, outcome, legal, open=broken.open)
    if outcome.status != "ran":
        return not_run(outcome)
    lost = ("crashed", "timed-out", "unavailable", "not-run", "not-tried")
    if legal is not None and (legal.broke or legal.status in lost):
        message = f"with all outputs asked for: {legal.reason}"
        return replace(not_run(legal), reason="companion", message=message)
    returned = [list(_named(trial.node, lists)) for lists in outcome.outputs]
    if outcome.malformed:
        return Judgement(Verdict.MALFORMED, "form", message=outcome.malformed)
    for feed, lists in zip(trial.feeds, returned, strict=True):
        for outputs in lists:
            wrong_form = malformed(trial.node, feed.inputs, outputs, trial.open_questions)
            if wrong_form is not None:
                return wrong_form
    if outcome.changed:
        names = ", ".join(outcome.changed)
        return Judgement(Verdict.INPUT_MODIFIED, "inputs-changed", message=f"the run changed its inputs: {names}")
    for altered in (outcome.altered, legal.altered if legal is not None else ()):
        if altered:
            return _altered(altered, len(trial.feeds))

    runs: list[NodeRun] = []
    same = True
    for feed, lists, complete in zip(trial.feeds, returned, _complete_outputs(view), strict=True):
        for outputs in lists:
            joined = _joined(outputs, complete)
            same = same and (joined is not None or not complete)
            if joined is not None and legal_trial is not None:
                runs.append(NodeRun(legal_trial.node, feed.inputs, joined, trial, view.name))
            else:
                runs.append(NodeRun(trial.node, feed.inputs, outputs, trial, view.name))
                # For an operator's joint questions, the all-outputs run must be right, too, with the same answers.
                # Other answers may differ there: a state is passed on as levels only where Y has levels.
                if legal_trial is not None and operator_for(trial.node).joint_questions:
                    runs += [NodeRun(legal_trial.node, feed.inputs, o, trial, view.name) for o in complete]
    flags = ["nondeterministic"] if any(len(lists) > 1 for lists in returned) else []
    if not same:
        flags.append("outputs-differ-from-companion")
    return ReadRuns(tuple(runs), tuple(flags))


def _altered(feeds: Sequence[int], count: int) -> Judgement:
    """Return the verdict on outputs that changed while the caller held them."""
    run_numbers = ", ".join(str(feed + 1) for feed in feeds)
    message = f"outputs of run {run_numbers} of {count}, held by the caller, had changed after a later run"
    return Judgement(Verdict.UNSTABLE, "held", message=message)


def _named(node: Node, lists: Sequence[Sequence[Array | None]]) -> Iterator[dict[str, Any]]:
    for outputs in lists:
        # A list of another length is rejected as malformed later; until then its outputs get names as far as possible.
        names = [*node.outputs, *(f"output {k}" for k in range(len(node.outputs), len(outputs)))]
        yield dict(zip(names, outputs, strict=False))


def malformed(
    node: Node, inputs: Mapping[str, Array], outputs: Mapping[str, Any], open_questions: frozenset[str]
) -> Judgement | None:
    """Return a verdict on a wrong number, type or shape of outputs; None if they are right."""
    c = resolve(node, inputs)
    if len(outputs) != len(node.outputs):
        return wrong_count(len(outputs), len(node.outputs))
    for name, array in outputs.items():
        if array is None and name == "Y" and "sequence_output" in open_questions:
            continue
        judgement = wrong_form(name, array, c.shape_of(name), dtype_of(node, c, name))
        if judgement is not None:
            return judgement
    return None


def _complete_outputs(view: NodeView) -> list[list[dict[str, Any]]]:
    """Return the outputs of the all-outputs run for each feed, if it ran and they are well formed."""
    trial, outcome = view.all_outputs or (None, None)
    if trial is None or outcome is None or outcome.status != "ran" or outcome.malformed:
        return [[] for _ in view.trials[0].feeds]
    outputs = []
    for feed, lists in zip(trial.feeds, outcome.outputs, strict=True):
        named = list(_named(trial.node, lists))
        outputs.append([o for o in named if malformed(trial.node, feed.inputs, o, frozenset()) is None])
    return outputs


def _joined(outputs: Outputs, complete: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the outputs of the all-outputs run in place of a run's own, if the common ones are equal bit for bit.

    They then stand for both, and every step can be judged. Otherwise return None: the run is judged alone, by the
    radius of a free run.
    """
    for all_outputs in complete:
        if all(array.tobytes() == all_outputs[name].tobytes() for name, array in outputs.items()):
            return all_outputs
    return None


def node_views(trials: Sequence[Trial], outcomes: Sequence[Outcome]) -> Iterator[NodeView]:
    """Yield the nodes of a case one after the other, each after those that feed it.

    For a case that did not run, or returned another number of outputs than its graph has, yield only the first. The
    outputs of a node must have the right form before later nodes are requested.
    """
    subject = trials[0].subject
    if subject.is_lone:
        yield NodeView("", tuple(trials), tuple(outcomes))
        return
    ran = bool(outcomes) and outcomes[0].status == "ran"
    for bound in subject.nodes if ran else subject.nodes[:1]:
        if not ran:
            yield NodeView(bound.name, tuple(trial.first for trial in trials), tuple(outcomes))
            continue
        candidates = [_alone(t, t.subject.named(bound.name), o) for t, o in zip(trials, outcomes, strict=False)]
        views = [pair for pair in candidates if pair is not None]
        if len(views) > 1 and not bound.is_given(trials[0].feeds[0].inputs):
            # With other inputs, neither run stands for the other.
            views = views[1:] if _agree(trials, outcomes) else views[:1]
        if views:
            yield NodeView(bound.name, tuple(trial for trial, _ in views), tuple(outcome for _, outcome in views))


def view_of(trials: Sequence[Trial], outcomes: Sequence[Outcome], judgement: Judgement | None) -> NodeView:
    """Return the node that a verdict names, else the first node."""
    name = (judgement.where or {}).get("node") if judgement is not None else None
    first: NodeView | None = None
    for view in node_views(trials, outcomes):
        if name is None or view.name == name:
            return view
        first = first or view
    assert first is not None
    return first


def _agree(trials: Sequence[Trial], outcomes: Sequence[Outcome]) -> bool:
    """Return whether a case and its all-outputs run returned the same bits for all common outputs."""
    (names, outcome), (complete_names, complete) = ((t.subject.shown, o) for t, o in zip(trials, outcomes, strict=True))
    for lists, other_lists in zip(outcome.outputs, complete.outputs, strict=False):
        if len(lists) != 1 or len(other_lists) != 1 or len(other_lists[0]) != len(complete_names):
            return False
        complete_outputs = _present(complete_names, other_lists[0])
        if any(
            _bits([array]) != _bits([complete_outputs.get(name)]) for name, array in _present(names, lists[0]).items()
        ):
            return False
    return bool(complete.outputs)


def _alone(trial: Trial, bound: Bound, outcome: Outcome) -> tuple[Trial, Outcome] | None:
    """Return a node as a trial of its own, with its part of the outputs.

    Return None if neither the outputs nor the inputs of the node are known.
    """
    subject = trial.subject
    node = subject.showing(bound)
    if not node.outputs or bound.outputs is None:
        return None
    if outcome.status != "ran" or outcome.malformed:
        # There are no numbers for later nodes.
        if not all(bound.is_given(feed.inputs) for feed in trial.feeds):
            return None
        return _lone(trial, bound, [(f, bound.inputs_from(f.inputs)) for f in trial.feeds]), outcome
    indices = [subject.shown.index(bound.outputs[formal]) for formal in node.outputs]
    feeds: list[tuple[Feed, Mapping[str, Array]]] = []
    returned: list[tuple[Arrays, ...]] = []
    for feed, lists in zip(trial.feeds, outcome.outputs, strict=True):
        # Runs that differ may pass on different numbers: then they are runs of this node on other inputs.
        equal: dict[object, tuple[dict[str, Array], list[Arrays]]] = {}
        for arrays in lists:
            tensors = {**feed.inputs, **_present(subject.shown, arrays)}
            if not bound.is_given(tensors):
                return None
            inputs = bound.inputs_from(tensors)
            equal.setdefault(_bits(inputs.values()), (inputs, []))[1].append(tuple(arrays[place] for place in indices))
        for inputs, results in equal.values():
            feeds.append((feed, inputs))
            returned.append(tuple({_bits(arrays): arrays for arrays in results}.values()))
    return _lone(trial, bound, feeds), replace(outcome, outputs=tuple(returned))


def _lone(trial: Trial, bound: Bound, feeds: Iterable[tuple[Feed, Mapping[str, Array]]]) -> Trial:
    """Return a node as a trial of its own, from the graph's inputs and the node's inputs in each run."""
    node_feeds = tuple(Feed(inputs, bound.fed_from(feed.fed)) for feed, inputs in feeds)
    return replace(trial, node=trial.subject.showing(bound), feeds=node_feeds, graph=None)


def _present(names: Sequence[str], arrays: Arrays) -> dict[str, Array]:
    return {name: array for name, array in zip(names, arrays, strict=True) if array is not None}


def _bits(arrays: Iterable[Array | None]) -> object:
    """Return a key that is equal for equal arrays."""
    return tuple(None if a is None else (a.dtype.name, a.shape, a.tobytes()) for a in arrays)
