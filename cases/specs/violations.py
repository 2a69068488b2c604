"""Violations: the ways in which a model that is legal otherwise is forbidden, as a table.

Only what the documents state or imply is forbidden: a name out of a closed list, a number or a shape that contradicts
what else is given, an attribute, input, output or type that the operator version does not have. What they merely leave
open is marked so: a negative clip, more coefficients than functions, input_forget 2 (they couple "if 1"). Refusing that
and computing anything are both right, only an end of the process is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import OperatorVersion, cell_named, operator_version, versions_of
from ...reference.documents.tensors import Levels

__all__ = ["DUE", "VIOLATIONS", "Draft", "Violation"]

DUE = ("check", "load", "run")
"""Phases of refusal: ``check`` needs only the operator's list of attributes, inputs, outputs and types; ``load`` the
document and what the model holds; ``run`` the values of the inputs."""

Array = NDArray[Any]


@dataclass
class Draft:
    """What a model is made of, for a violation to change: attributes, inputs in order of their places, outputs."""

    operator: OperatorVersion
    H: int
    attributes: dict[str, Any]
    inputs: dict[str, Array]
    outputs: list[str]


@dataclass(frozen=True)
class Violation:
    """One way to break one clause.

    id
        Topic of the clause and a name within it: ``shapes.W-rows``; any words where ``breaks`` has the topic.
    due
        The phase by which it can be known, one of DUE.
    summary
        What the model does, in words: the subject is the model.
    change
        Breaks a draft.
    base
        What the legal case must have, as a row of the space.
    applies
        Whether there can be this violation in an operator version.
    open
        Whether the document leaves open what it means, so that it need not be refused.
    breaks
        The clause that it breaks, without the operator, where the id does not begin with it.
    feature
        What the clause table calls a model that breaks it, where that is not the topic.
    spoils
        Whether an implementation that does not look at it may spoil its memory: it is run in a process of its own.
    """

    id: str
    due: str
    summary: str
    change: Callable[[Draft], None]
    base: Mapping[str, Any] = field(default_factory=dict)
    applies: Callable[[OperatorVersion], bool] = lambda operator: True
    open: bool = False
    breaks: str = ""
    feature: str = ""
    spoils: bool = False

    @property
    def topic(self) -> str:
        """The clause that it breaks, without the operator."""
        return self.breaks or self.id.partition(".")[0]

    def clause(self, op_type: str) -> str:
        """Id of the clause that it breaks, the one that IllegalNode names."""
        return f"{op_type.lower()}.{self.topic}"


# How drafts are changed.


def _attribute(name: str, value: Any) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        draft.attributes[name] = value

    return change


def _hidden_size(by: int) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        draft.attributes["hidden_size"] = draft.H + by

    return change


def _activations(choose: Callable[[tuple[str, ...]], list[str]]) -> Callable[[Draft], None]:
    """`choose` makes the attribute of one direction's default functions."""

    def change(draft: Draft) -> None:
        draft.attributes["activations"] = choose(cell_named(draft.operator.op_type).activations)

    return change


def _input(name: str, change: Callable[[Array], Array]) -> Callable[[Draft], None]:
    def changed(draft: Draft) -> None:
        draft.inputs[name] = change(draft.inputs[name])

    return changed


def _sized(name: str, axis: int, size: Callable[[int], int]) -> Callable[[Draft], None]:
    """An input cut, or repeated from its beginning, along an axis."""
    return _input(name, lambda array: array.take(np.arange(size(array.shape[axis])) % array.shape[axis], axis))


def _one_direction(draft: Draft) -> None:
    for name in ("W", "R"):
        draft.inputs[name] = draft.inputs[name][:1]


def _all_integers(draft: Draft) -> None:
    draft.inputs |= {name: np.rint(array).astype(np.int32) for name, array in draft.inputs.items()}


def _levels(change: Callable[[Draft, Levels], None]) -> Callable[[Draft], None]:
    """A change beside each tensor that holds levels."""

    def changed(draft: Draft) -> None:
        for form in draft.operator.tensors.values():
            if isinstance(form.codec, Levels) and form.name in draft.inputs:
                change(draft, form.codec)

    return changed


def _one_scale_more(draft: Draft, codec: Levels) -> None:
    scale = draft.inputs[codec.scale]
    draft.inputs[codec.scale] = np.concatenate((scale, scale[:1]))


def _other_sign(draft: Draft, codec: Levels) -> None:
    zero = draft.inputs[codec.zero_point]
    draft.inputs[codec.zero_point] = zero.astype(np.uint8 if zero.dtype == np.int8 else np.int8)


def _holds_levels(operator: OperatorVersion) -> bool:
    return any(isinstance(form.codec, Levels) for form in operator.tensors.values())


def _without(name: str) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        draft.inputs.pop(name)

    return change


def _one_input_more(draft: Draft) -> None:
    """At the place behind the last one; GRU and RNN get what LSTM has there."""
    name = "extra" if "initial_c" in draft.operator.inputs else "initial_c"
    draft.inputs[name] = draft.inputs["initial_h"].copy()


def _one_output_more(draft: Draft) -> None:
    draft.outputs.append("extra" if "Y_c" in draft.operator.outputs else "Y_c")


def _two_outputs_more(draft: Draft) -> None:
    _one_output_more(draft)
    draft.outputs.append("more")


def _without_last_output(draft: Draft) -> None:
    draft.outputs.pop()


def _last_length(change: Callable[[int], int]) -> Callable[[Draft], None]:
    """The last row's length changed; the others are whole."""

    def changed(draft: Draft) -> None:
        lengths = draft.inputs["sequence_lens"].copy()
        lengths[-1] = change(int(lengths[-1]))
        draft.inputs["sequence_lens"] = lengths

    return changed


def _has(name: str) -> Callable[[OperatorVersion], bool]:
    return lambda operator: name in (*operator.attributes, *operator.inputs)


def _lacks(name: str) -> Callable[[OperatorVersion], bool]:
    return lambda operator: name not in operator.attributes


def _knows(operator: OperatorVersion, name: str) -> bool:
    """Tell whether some version of an operator has an attribute."""
    versions = versions_of(operator.op_type)
    return any(name in operator_version(operator.op_type, version).attributes for version in versions)


def _several(operator: OperatorVersion) -> bool:
    return len(cell_named(operator.op_type).activations) > 1


_BOTH: Mapping[str, Any] = {"direction": "bidirectional"}

VIOLATIONS: tuple[Violation, ...] = (
    Violation(
        "direction.sideways",
        "load",
        "direction is 'sideways', none of forward, reverse and bidirectional",
        _attribute("direction", "sideways"),
    ),
    Violation(
        "direction.backward",
        "load",
        "direction is 'backward', none of forward, reverse and bidirectional",
        _attribute("direction", "backward"),
    ),
    Violation(
        "layout.two",
        "load",
        "layout is 2, for which no shapes are defined",
        _attribute("layout", 2),
        applies=_has("layout"),
    ),
    Violation(
        "layout.minus-one",
        "load",
        "layout is -1, for which no shapes are defined",
        _attribute("layout", -1),
        applies=_has("layout"),
    ),
    Violation(
        "hidden-size.larger", "load", "hidden_size is larger by one than the last dimension of R", _hidden_size(1)
    ),
    Violation(
        "hidden-size.smaller", "load", "hidden_size is smaller by one than the last dimension of R", _hidden_size(-1)
    ),
    Violation(
        "hidden-size.R-columns",
        "load",
        "R has a column more than hidden_size, and than a gate has rows",
        _sized("R", 2, lambda n: n + 1),
    ),
    Violation(
        "activations.unknown",
        "load",
        "activations name 'Gelu', none of the functions that the document defines",
        _activations(lambda usual: ["Gelu", *usual[1:]]),
    ),
    Violation(
        "activations.too-few",
        "load",
        "activations are one name too few",
        _activations(lambda usual: [*usual[:-1]]),
        applies=_several,
    ),
    Violation(
        "activations.too-many",
        "load",
        "activations are more names than one direction has",
        # One direction of RNN has one, and two are the default that is registered for it: see ERRATA.
        _activations(lambda usual: [*usual, "Tanh", *(["Tanh"] if len(usual) == 1 else [])]),
    ),
    Violation(
        "activations.one-direction",
        "load",
        "a bidirectional node names the activations of one direction",
        _activations(lambda usual: [*usual]),
        _BOTH,
    ),
    Violation(
        "shapes.X-rank",
        "load",
        "X has two dimensions, without a batch",
        _input("X", lambda array: array[:, 0]),
    ),
    Violation("shapes.W-rows", "load", "W has a row too many", _sized("W", 1, lambda n: n + 1)),
    Violation("shapes.W-columns", "load", "W has a column more than X has features", _sized("W", 2, lambda n: n + 1)),
    Violation(
        "shapes.W-directions", "load", "W and R of a bidirectional node have one direction", _one_direction, _BOTH
    ),
    Violation("shapes.R-rows", "load", "R has a row too many", _sized("R", 1, lambda n: n + 1)),
    Violation(
        "shapes.B-length",
        "load",
        "B is half as long as it must be: it lacks the recurrent biases",
        _sized("B", 1, lambda n: n // 2),
        {"bias": True},
    ),
    Violation(
        "shapes.P-length",
        "load",
        "P has weights for four gates, not three",
        _sized("P", 1, lambda n: n // 3 * 4),
        {"peepholes": True, "initial": "all"},
        _has("P"),
    ),
    Violation(
        "shapes.initial-h",
        "load",
        "initial_h has one row for a batch of several",
        _sized("initial_h", 1, lambda n: 1),
        {"initial": "all"},
    ),
    Violation(
        "shapes.initial-c",
        "load",
        "initial_c has one row for a batch of several",
        _sized("initial_c", 1, lambda n: 1),
        {"initial": "all"},
        _has("initial_c"),
    ),
    Violation(
        "shapes.lens-length",
        "load",
        "sequence_lens has one element less than the batch has rows",
        _sized("sequence_lens", 0, lambda n: n - 1),
        {"lengths": "full"},
    ),
    Violation(
        "shapes.scales",
        "load",
        "the scales of what holds levels are one more than there are directions",
        _levels(_one_scale_more),
        applies=_holds_levels,
    ),
    Violation(
        "types.zero-points",
        "check",
        "zero points have not the type of their levels",
        _levels(_other_sign),
        applies=_holds_levels,
    ),
    Violation(
        "lengths.above-T",
        "run",
        "sequence_lens holds a length above seq_length",
        _last_length(lambda length: length + 1),
        {"lengths": "full"},
    ),
    Violation(
        "lengths.negative",
        "run",
        "sequence_lens holds a length of -1",
        _last_length(lambda length: -1),
        {"lengths": "full"},
    ),
    Violation(
        "types.lens-int64",
        "check",
        "sequence_lens is int64, not int32",
        _input("sequence_lens", lambda array: array.astype(np.int64)),
        {"lengths": "full"},
    ),
    Violation(
        "types.mixed",
        "check",
        "initial_h is float64 while all else is float32",
        _input("initial_h", lambda array: array.astype(np.float64)),
        {"initial": "all"},
    ),
    Violation("types.integer", "check", "all tensors are int32, which T may not be", _all_integers),
    Violation("inputs.missing-W", "check", "W is missing", _without("W")),
    Violation("inputs.missing-R", "check", "R is missing", _without("R")),
    Violation(
        "inputs.too-many",
        "check",
        "there is an input behind the last one that the operator defines",
        _one_input_more,
        {"initial": "all"},
    ),
    Violation(
        "attributes.unknown",
        "check",
        "there is an attribute batch_first, which ONNX does not define",
        _attribute("batch_first", 1),
    ),
    Violation(
        "attributes.layout",
        "check",
        "there is an attribute layout, which the version does not define",
        _attribute("layout", 1),
        applies=_lacks("layout"),
    ),
    Violation(
        "attributes.linear-before-reset",
        "check",
        "there is an attribute linear_before_reset, which the version does not define",
        _attribute("linear_before_reset", 1),
        applies=lambda operator: _lacks("linear_before_reset")(operator) and _knows(operator, "linear_before_reset"),
    ),
    Violation(
        "attributes.input-forget",
        "check",
        "there is an attribute input_forget, which only LSTM defines",
        _attribute("input_forget", 1),
        applies=_lacks("input_forget"),
    ),
    Violation(
        "attributes.output-sequence",
        "check",
        "there is an attribute output_sequence, which the version does not define any more",
        _attribute("output_sequence", 1),
        applies=_lacks("output_sequence"),
    ),
    Violation("clip.negative", "load", "clip is below zero", _attribute("clip", -0.5), open=True),
    Violation(
        "activation-alpha.left-over",
        "load",
        "activation_alpha has more entries than there are activations",
        _attribute("activation_alpha", [0.5] * 9),
        open=True,
    ),
    Violation(
        "input-forget.two",
        "load",
        "input_forget is 2",
        _attribute("input_forget", 2),
        applies=_has("input_forget"),
        open=True,
    ),
    Violation(
        "outputs.too-many",
        "check",
        "there is an output behind the last one that the operator defines",
        _one_output_more,
    ),
    Violation(
        "outputs.far-too-many",
        "check",
        "there are two outputs behind the last one that the operator defines",
        _two_outputs_more,
    ),
    Violation(
        "outputs.Y_h-missing",
        "check",
        "Y_h, which the version demands, is missing",
        _without_last_output,
        applies=lambda operator: "Y_h" in operator.required_outputs,
    ),
)
