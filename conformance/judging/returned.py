"""The outputs of a target in a case: the runs whose numbers are to be judged, or the verdict where there are none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import Struct
from numpy.typing import NDArray

from ...cases import Trial
from ...reference import Node, operator_for, resolve
from ...reference.operators.operator import dtype_of
from ..workers.process import Outcome
from .judgement import Judgement, Verdict, judge_forbidden, not_run
from .view import View, views

__all__ = ["Outputs", "Returned", "Session", "malformed", "of_node", "read"]

Outputs = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Session:
    """One run to be judged: a node, all its inputs, and what came out.

    trial
        What it is a run of, with that node alone.
    name
        Of the node in its graph; empty for a lone one.
    """

    node: Node
    inputs: Mapping[str, NDArray[Any]]
    outputs: Outputs
    trial: Trial
    name: str = ""

    @property
    def place(self) -> str:
        """The number of the run in its session, in words; empty where there is one."""
        feeds = self.trial.feeds
        number = next((k for k, feed in enumerate(feeds, 1) if feed.inputs is self.inputs), 0)
        return f"run {number} of {len(feeds)}" if number and len(feeds) > 1 else ""

    @property
    def present(self) -> dict[str, NDArray[Any]]:
        """The outputs that there are."""
        return {name: array for name, array in self.outputs.items() if array is not None}


class Returned(Struct, frozen=True):
    """Runs that are well formed, and what is to be said of them beside the verdict."""

    sessions: tuple[Session, ...]
    flags: tuple[str, ...]


def read(trials: Sequence[Trial], outcomes: Sequence[Outcome]) -> Returned | Judgement:
    """The outputs of a target, node by node, or the verdict where there are no numbers to be judged."""
    subject, outcome = trials[0].subject, outcomes[0]
    if not subject.is_lone and outcome.status == "ran":
        if outcome.malformed:
            return Judgement(Verdict.MALFORMED, "form", message=outcome.malformed)
        counts = {len(arrays) for lists in outcome.outputs for arrays in lists} - {len(subject.shown)}
        if counts:
            count = f"{counts.pop()} outputs came back, {len(subject.shown)} were asked for"
            return Judgement(Verdict.MALFORMED, "count", message=count)
    sessions: list[Session] = []
    flags: dict[str, None] = {}
    for view in views(trials, outcomes):
        one = _read(view)
        if isinstance(one, Judgement):
            return of_node(one, view.name)
        sessions += one.sessions
        flags |= dict.fromkeys(one.flags)
    return Returned(tuple(sessions), tuple(flags))


def of_node(judgement: Judgement, name: str) -> Judgement:
    """The verdict with the name of the node that it is about; as it is where a lone one needs none."""
    if not name or judgement.where is None:
        return judgement
    return replace(judgement, where={"node": name, **judgement.where}, message=f"{name}: {judgement.message}")


def _read(view: View) -> Returned | Judgement:
    """The outputs of one node on a target, or the verdict where there are no numbers to be judged."""
    trials, outcomes = view.trials, view.outcomes
    trial, outcome = trials[0], outcomes[0]
    companion_trial, companion = (trials[1], outcomes[1]) if len(trials) > 1 and len(outcomes) > 1 else (None, None)
    if trial.violation is not None:
        broken = trial.violation
        clause = broken.clause(trial.node.operator.known_as)
        return judge_forbidden(broken.summary, broken.due, clause, outcome, companion, open=broken.open)
    if outcome.status != "ran":
        return not_run(outcome)
    lost = ("crashed", "timed-out", "unavailable", "not-run", "not-tried")
    if companion is not None and (companion.broke or companion.status in lost):
        message = f"with all outputs asked for: {companion.reason}"
        return replace(not_run(companion), reason="companion", message=message)
    returned = [list(_named(trial.node, lists)) for lists in outcome.outputs]
    if outcome.malformed:
        return Judgement(Verdict.MALFORMED, "form", message=outcome.malformed)
    for feed, lists in zip(trial.feeds, returned, strict=True):
        for outputs in lists:
            wrong_form = malformed(trial.node, feed.inputs, outputs, trial.touched)
            if wrong_form is not None:
                return wrong_form
    if outcome.changed:
        names = ", ".join(outcome.changed)
        return Judgement(Verdict.INPUT_MODIFIED, "inputs-changed", message=f"the run changed its inputs: {names}")
    for altered in (outcome.altered, companion.altered if companion is not None else ()):
        if altered:
            return _altered(altered, len(trial.feeds))

    companions = _companion_outputs(companion_trial, companion, len(trial.feeds))
    sessions: list[Session] = []
    same = True
    for feed, lists, all_outputs in zip(trial.feeds, returned, companions, strict=True):
        for outputs in lists:
            joined = _joined(outputs, all_outputs)
            same = same and (joined is not None or not all_outputs)
            if joined is not None and companion_trial is not None:
                sessions.append(Session(companion_trial.node, feed.inputs, joined, trial, view.name))
            else:
                sessions.append(Session(trial.node, feed.inputs, outputs, trial, view.name))
                # By an operator's own questions that one must be right as well, and by the same answers. The others may
                # be others there: a state goes on as levels only where Y has levels.
                if companion_trial is not None and operator_for(trial.node).entangled:
                    sessions += [Session(companion_trial.node, feed.inputs, o, trial, view.name) for o in all_outputs]
    flags = ["nondeterministic"] if any(len(lists) > 1 for lists in returned) else []
    if not same:
        flags.append("outputs-differ-from-companion")
    return Returned(tuple(sessions), tuple(flags))


def _altered(feeds: Sequence[int], count: int) -> Judgement:
    """The verdict on outputs that did not stay what they were while somebody held them."""
    which = ", ".join(str(feed + 1) for feed in feeds)
    message = f"outputs of run {which} of {count}, held by the caller, had changed after a later run"
    return Judgement(Verdict.UNSTABLE, "held", message=message)


def _named(node: Node, lists: Sequence[Sequence[NDArray[Any] | None]]) -> Iterator[dict[str, Any]]:
    for outputs in lists:
        # A list of another length is caught as malformed; until then it keeps what can be named.
        names = [*node.outputs, *(f"output {k}" for k in range(len(node.outputs), len(outputs)))]
        yield dict(zip(names, outputs, strict=False))


def malformed(
    node: Node, inputs: Mapping[str, NDArray[Any]], outputs: Mapping[str, Any], touched: frozenset[str]
) -> Judgement | None:
    """A complaint about the count, the types or the shapes of outputs, if there is one."""
    c = resolve(node, inputs)
    if len(outputs) != len(node.outputs):
        count = f"{len(outputs)} outputs came back, {len(node.outputs)} were asked for"
        return Judgement(Verdict.MALFORMED, "count", message=count)
    for name, array in outputs.items():
        where = {"output": name, "index": None, "step": None}
        if array is None:
            if name == "Y" and "sequence_output" in touched:
                continue
            return Judgement(Verdict.MALFORMED, "form", where, f"{name} is missing or no array of numbers")
        if array.shape != c.shape_of(name):
            wrong = f"{name} has shape {array.shape}, must be {c.shape_of(name)}"
            return Judgement(Verdict.MALFORMED, "shape", where, wrong)
        if array.dtype != (dtype := dtype_of(c, name)):
            return Judgement(Verdict.MALFORMED, "type", where, f"{name} is {array.dtype.name}, must be {dtype.name}")
    return None


def _companion_outputs(
    companion_trial: Trial | None, companion: Outcome | None, feeds: int
) -> list[list[dict[str, Any]]]:
    """The companion's outputs for each feed, which has Y, as far as it ran and they are well formed."""
    if companion_trial is None or companion is None or companion.status != "ran" or companion.malformed:
        return [[] for _ in range(feeds)]
    outputs = []
    for feed, lists in zip(companion_trial.feeds, companion.outputs, strict=True):
        named = list(_named(companion_trial.node, lists))
        outputs.append([o for o in named if malformed(companion_trial.node, feed.inputs, o, frozenset()) is None])
    return outputs


def _joined(outputs: Outputs, companions: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The companion's outputs in place of a run's own, where those that both have are equal bit for bit: then it
    stands for both, and every step can be judged. Otherwise the run is judged alone, by the radius of a free run."""
    for all_outputs in companions:
        if all(array.tobytes() == all_outputs[name].tobytes() for name, array in outputs.items()):
            return all_outputs
    return None
