"""Violations: the ways in which an otherwise valid model is invalid. Each axis names its own.

Only the documents' stated or implied rules count: a name out of a closed list, a number or a shape that contradicts
another one, an attribute, input, output or type that the operator version does not have. Cases that the documents leave
open are marked so: a negative clip, more coefficients than functions, input_forget 2 (they couple "if 1"). For these, a
refusal and any result are both right; only a crash of the process is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...reference import OperatorVersion, document_of

DUE = ("check", "load", "run")
"""Phases of refusal.

``check`` needs only the operator's list of attributes, inputs, outputs and types; ``load`` the document and the model;
``run`` the values of the inputs.
"""

Array = NDArray[Any]


class Draft(Struct):
    """Parts of a model for a violation to change: attributes, inputs in order of position, outputs."""

    operator: OperatorVersion
    H: int
    attributes: dict[str, Any]
    inputs: dict[str, Array]
    outputs: list[str]


@dataclass(frozen=True)
class Violation:
    """One way to violate one clause.

    id
        Topic of the clause and a name within it: ``shapes.W-rows``; any words if ``breaks`` has the topic.
    due
        The phase by which it can be known, one of DUE.
    summary
        Description of the model, whose subject is the model.
    change
        Function that breaks a draft.
    base
        Requirements of the legal case, as a row of the space.
    applies
        Whether an operator version can have this violation.
    open
        Whether its meaning is open, so that it need not be refused.
    breaks
        The clause that it violates, without the operator, if the id does not begin with it.
    feature
        Feature of such models in the clause table, if that is not the topic.
    spoils
        Whether an implementation that does not check it may corrupt its memory: it is run in a process of its own.
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

    def __post_init__(self) -> None:
        if self.due not in DUE:
            raise ValueError(f"violation {self.id}: a refusal is due at {', '.join(DUE)}, not {self.due!r}")

    @property
    def topic(self) -> str:
        """The clause that it breaks, without the operator."""
        return self.breaks or self.id.partition(".")[0]

    def clause(self, op_type: str) -> str:
        """Id of the clause that it breaks, the one that IllegalNode names."""
        return f"{document_of(op_type).prefix}.{self.topic}"


# Changes of a draft, and operator versions to which a violation applies.


def set_to(name: str, value: Any) -> Callable[[Draft], None]:
    """Return a change that sets an attribute."""

    def change(draft: Draft) -> None:
        draft.attributes[name] = value

    return change


def changed(name: str, change: Callable[[Array], Any]) -> Callable[[Draft], None]:
    """Return a change of an input's values, shape or type."""

    def change_draft(draft: Draft) -> None:
        draft.inputs[name] = np.asarray(change(draft.inputs[name]), order="C")  # a number stays without dimensions

    return change_draft


def sized(name: str, axis: int, size: Callable[[int], int]) -> Callable[[Draft], None]:
    """Return a change that cuts an input, or repeats it from its beginning, along an axis.

    An axis without length raises IndexError.
    """

    def resized(array: Array) -> Array:
        length = array.shape[axis]
        if not length:
            raise IndexError(f"element of {name} along axis {axis}")
        result: Array = array.take(np.arange(size(length)) % length, axis)
        return result

    return changed(name, resized)


def without_input(name: str) -> Callable[[Draft], None]:
    """Return a change that removes an input."""

    def change(draft: Draft) -> None:
        draft.inputs.pop(name)

    return change


def has(name: str) -> Callable[[OperatorVersion], bool]:
    """Return whether a version has an attribute or input."""
    return lambda operator: name in (*operator.attributes, *operator.inputs)


def lacks(name: str) -> Callable[[OperatorVersion], bool]:
    """Return whether a version lacks an attribute."""
    return lambda operator: name not in operator.attributes


def unknown_attribute(name: str, where: str, applies: Callable[[OperatorVersion], bool] | None = None) -> Violation:
    """Return the violation by an attribute, 1, that a version lacks; ``where`` says which."""
    return Violation(
        f"attributes.{name.replace('_', '-')}",
        "check",
        f"there is an attribute {name}, which {where}",
        set_to(name, 1),
        applies=applies or lacks(name),
    )
