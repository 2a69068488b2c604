"""Views: each node of a subject as if it were alone, with what the target itself reported for the nodes before it.

So a graph is judged node by node, by what judges a lone one: a wrong node does not accuse the next, which is judged
from the numbers that it got.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct
from numpy.typing import NDArray

from ...cases import Feed, Trial
from ...cases.specs.subject import Bound
from ..workers.process import Outcome
from .judgement import Judgement

__all__ = ["View", "view_of", "views"]

Arrays = tuple[NDArray[Any] | None, ...]


class View(Struct, frozen=True):
    """A node of a subject as a trial of its own, with what the target did.

    name
        Of the node in its graph; empty for a lone one.
    trials, outcomes
        As those of a case whose one node it is: its own and its companion's. Where its own run does not show it, or not
        what it got, the companion's alone.
    """

    name: str
    trials: tuple[Trial, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def own(self) -> tuple[Trial, Outcome]:
        """The case's own trial with what came back, or what stands for it."""
        return self.trials[0], self.outcomes[0]


def views(trials: Sequence[Trial], outcomes: Sequence[Outcome]) -> Iterator[View]:
    """The nodes of a case one after the other, each behind those that it gets numbers from.

    Of a case that did not run, or from which another number of outputs came back than its graph has, it is the first.
    What a node reported must be of the right form before those behind it are asked for.
    """
    subject = trials[0].subject
    if subject.is_lone:
        yield View("", tuple(trials), tuple(outcomes))
        return
    ran = bool(outcomes) and outcomes[0].status == "ran"
    for bound in subject.nodes if ran else subject.nodes[:1]:
        if not ran:
            yield View(bound.name, tuple(trial.first for trial in trials), tuple(outcomes))
            continue
        several = [_alone(t, t.subject.named(bound.name), o) for t, o in zip(trials, outcomes, strict=False)]
        seen = [pair for pair in several if pair is not None]
        if len(seen) > 1 and not bound.is_given(trials[0].feeds[0].inputs):
            # On other inputs nothing stands for anything.
            seen = seen[1:] if _agree(trials, outcomes) else seen[:1]
        if seen:
            yield View(bound.name, tuple(trial for trial, _ in seen), tuple(outcome for _, outcome in seen))


def _agree(trials: Sequence[Trial], outcomes: Sequence[Outcome]) -> bool:
    """Tell whether a case and its companion returned the same, bit for bit, wherever both show it."""
    (names, own), (others, companion) = ((t.subject.shown, o) for t, o in zip(trials, outcomes, strict=True))
    for lists, other in zip(own.outputs, companion.outputs, strict=False):
        if len(lists) != 1 or len(other) != 1 or len(other[0]) != len(others):
            return False
        shown = _present(others, other[0])
        if any(_bits([array]) != _bits([shown.get(name)]) for name, array in _present(names, lists[0]).items()):
            return False
    return bool(companion.outputs)


def view_of(trials: Sequence[Trial], outcomes: Sequence[Outcome], judgement: Judgement | None) -> View:
    """The node that a verdict is about: the one that it names, else the first."""
    name = (judgement.where or {}).get("node") if judgement is not None else None
    first: View | None = None
    for view in views(trials, outcomes):
        if name is None or view.name == name:
            return view
        first = first or view
    assert first is not None
    return first


def _alone(trial: Trial, bound: Bound, outcome: Outcome) -> tuple[Trial, Outcome] | None:
    """A node as a trial of its own, with its part of what came back; None where nothing of it, or not what it got, is
    to be seen."""
    subject = trial.subject
    node = subject.showing(bound)
    if not node.outputs or bound.outputs is None:
        return None
    if outcome.status != "ran" or outcome.malformed:
        # There are no numbers to be handed on.
        given = all(bound.is_given(feed.inputs) for feed in trial.feeds)
        return (
            (_lone(trial, bound, [(f, bound.inputs_from(f.inputs)) for f in trial.feeds]), outcome) if given else None
        )
    places = [subject.shown.index(bound.outputs[formal]) for formal in node.outputs]
    feeds: list[tuple[Feed, Mapping[str, NDArray[Any]]]] = []
    returned: list[tuple[Arrays, ...]] = []
    for feed, lists in zip(trial.feeds, outcome.outputs, strict=True):
        # Runs that differ may hand on numbers that differ: then they are runs of this node on other inputs.
        alike: dict[object, tuple[dict[str, NDArray[Any]], list[Arrays]]] = {}
        for arrays in lists:
            tensors = {**feed.inputs, **_present(subject.shown, arrays)}
            if not bound.is_given(tensors):
                return None
            inputs = bound.inputs_from(tensors)
            alike.setdefault(_bits(inputs.values()), (inputs, []))[1].append(tuple(arrays[place] for place in places))
        for inputs, several in alike.values():
            feeds.append((feed, inputs))
            returned.append(tuple({_bits(arrays): arrays for arrays in several}.values()))
    return _lone(trial, bound, feeds), replace(outcome, outputs=tuple(returned))


def _lone(trial: Trial, bound: Bound, feeds: Iterable[tuple[Feed, Mapping[str, NDArray[Any]]]]) -> Trial:
    """A node as a trial of its own, from what the graph is fed in each run and what that makes the node's inputs."""
    made = tuple(Feed(inputs, bound.fed_from(feed.fed)) for feed, inputs in feeds)
    return replace(trial, node=trial.subject.showing(bound), feeds=made, graph=None)


def _present(names: Sequence[str], arrays: Arrays) -> dict[str, NDArray[Any]]:
    return {name: array for name, array in zip(names, arrays, strict=True) if array is not None}


def _bits(arrays: Iterable[NDArray[Any] | None]) -> object:
    """The key that tells arrays from others."""
    return tuple(None if a is None else (a.dtype.name, a.shape, a.tobytes()) for a in arrays)
