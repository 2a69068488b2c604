"""Axes of activation functions and their coefficients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...reference import ACTIVATIONS, OperatorVersion, cell_named, operator_version
from ...reference.numbers.activations import kind_named
from .axis import Axis, Changes, Condition, Feature, has_attribute, open_question
from .violation import Draft, Violation, set_to

if TYPE_CHECKING:
    from ..specs.features import Observed

_LARGEST = float(np.finfo(np.float32).max)


def finite_float32(value: object) -> bool:
    """Return whether a value is a finite number that a float32 attribute can hold."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _list_of(holds: Callable[[object], bool]) -> Callable[[Any], bool]:
    """Return a test for None and tuples, not empty, of values that pass `holds`. An empty list means no attribute."""
    return lambda values: values is None or (isinstance(values, tuple) and values != () and all(map(holds, values)))


def first_functions(spec: Any, left: slice) -> dict[str, Any]:
    """Return the fields of a case that keeps only the functions of a slice, each with its coefficients."""
    names = spec.activations
    if spec.alpha is None and spec.beta is None:
        return {"activations": names[left]}
    kinds = [ACTIVATIONS[n] for n in names if n in ACTIVATIONS]
    if len(kinds) != len(names):
        return {"activations": names[left], "alpha": None, "beta": None}
    chosen = range(len(names))[left]

    def kept(values: tuple[float, ...] | None, uses: list[bool]) -> tuple[float, ...] | None:
        if values is None:
            return None
        places = [sum(uses[:k]) for k in chosen if uses[k]]
        return tuple(values[p] for p in places if p < len(values)) or None

    return {
        "activations": names[left],
        "alpha": kept(spec.alpha, [kind.uses_alpha for kind in kinds]),
        "beta": kept(spec.beta, [kind.uses_beta for kind in kinds]),
    }


def functions_of(operator: OperatorVersion) -> tuple[str, ...]:
    """Return the names of the activation functions that a node may list, the operator's own first."""
    usual = dict.fromkeys(cell_named(operator.known_as).activations)
    return (*usual, *(name for name in ACTIVATIONS if name not in usual))


def _named(choose: Callable[[tuple[str, ...]], list[str]]) -> Callable[[Draft], None]:
    """Return the change of a draft that sets activations.

    `choose` derives them from one direction's default functions.
    """
    return lambda draft: draft.attributes.update(activations=choose(cell_named(draft.operator.known_as).activations))


def _coefficients_left_out(o: Observed) -> bool:
    kinds = [kind for name in o.attributes.get("activations") or () if (kind := kind_named(name)) is not None]
    alpha, beta = (len(o.attributes.get(f"activation_{name}") or ()) for name in ("alpha", "beta"))
    return alpha < sum(kind.uses_alpha for kind in kinds) or beta < sum(kind.uses_beta for kind in kinds)


def _uses(name: str) -> Feature:
    return Feature(f"uses-{name}", name, lambda o: name in o.functions)


def _function_words(value: tuple[str, ...], instead: Collection[Any]) -> tuple[Condition, ...]:
    functions = set(value)
    description = f"activations {'/'.join(dict.fromkeys(value))}"
    narrow = Condition(description, lambda spec: functions <= set(spec.activations or ()))
    wide = Condition("a list of activations", lambda spec: spec.activations is not None)
    # A failure that needs exactly these three or more functions is less likely than one that needs any list.
    return (narrow, wide) if len(functions) < 3 else (wide, narrow)


def _simpler_functions(spec: Any) -> Iterator[Changes]:
    """Yield cases without the list of functions, and cases with one function replaced by its default.

    A function is replaced only if no coefficient then belongs to another function.
    """
    names = spec.activations
    if names is None:
        return
    yield {"activations": None, "alpha": None, "beta": None}
    usual = functions_of(operator_version(spec.op, spec.version))
    count = len(names) // spec.directions
    for position, name in enumerate(names):
        plain = usual[min(position % count, 1)] if count > 1 else usual[0]
        if name != plain and spec.alpha is None and spec.beta is None:
            yield {"activations": (*names[:position], plain, *names[position + 1 :])}


# f, g and h, each with its coefficients, of a forward and of a backward direction.
_HARD = (
    (("HardSigmoid", 0.25, 0.5), ("Tanh", None, None), ("HardSigmoid", 0.3125, 0.625)),
    (("HardSigmoid", 0.3125, 0.4375), ("ScaledTanh", 1.25, 0.875), ("Affine", 0.75, 0.125)),
)
_KEPT = {3: (0, 1, 2), 2: (0, 2), 1: (2,)}
"""Indices among f, g and h of the functions of an operator, by their number."""


def _hard_functions(spec: Any) -> Changes:
    """Return HardSigmoid, whose coefficients both have defaults, in place of functions with coefficients.

    One of these may handle its coefficients wrongly.
    """
    if spec.activations is None or (spec.alpha is None and spec.beta is None):
        return {}
    indices = _KEPT[len(cell_named(spec.op).activations)]
    chosen = [of_direction[k] for of_direction in _HARD[: spec.directions] for k in indices]
    names, alpha, beta = zip(*chosen, strict=True)
    return {
        "activations": names,
        "alpha": tuple(a for a in alpha if a is not None) or None,
        "beta": tuple(b for b in beta if b is not None) or None,
    }


ACTIVATIONS_AXIS = Axis(
    name="activations",
    fits=(_list_of(lambda value: isinstance(value, str)), "None or a tuple of names, not an empty one"),
    attribute="activations",
    forbidden=(
        Violation(
            "activations.unknown",
            "load",
            "activations name 'Gelu', none of the functions that the document defines",
            _named(lambda usual: ["Gelu", *usual[1:]]),
        ),
        Violation(
            "activations.too-few",
            "load",
            "activations are one name too few",
            _named(lambda usual: [*usual[:-1]]),
            applies=lambda operator: len(cell_named(operator.known_as).activations) > 1,
        ),
        Violation(
            "activations.too-many",
            "load",
            "activations are more names than one direction has",
            # One direction of RNN has one, and two are the default that is registered for it: see ERRATA.
            _named(lambda usual: [*usual, "Tanh", *(["Tanh"] if len(usual) == 1 else [])]),
        ),
        Violation(
            "activations.one-direction",
            "load",
            "a bidirectional node names the activations of one direction",
            _named(lambda usual: [*usual]),
            {"direction": "bidirectional"},
        ),
        Violation(
            "activation-alpha.left-over",
            "load",
            "activation_alpha has more entries than there are activations",
            set_to("activation_alpha", [0.5] * 9),
            open=True,
        ),
    ),
    level="complete",
    usual=(),
    features=(
        Feature("activations", "activations", has_attribute("activations"), column=True, level="complete"),
        Feature("activations-absent", "no activations", lambda o: o.attributes.get("activations") is None),
        Feature(
            "letter-case",
            "differently capitalised activation names",
            lambda o: any(name not in ACTIVATIONS for name in o.attributes.get("activations") or ()),
        ),
        Feature("alpha", "activation_alpha", has_attribute("activation_alpha"), level="complete"),
        Feature("beta", "activation_beta", has_attribute("activation_beta"), level="complete"),
        Feature(
            "coefficients-ambiguous",
            "coefficients that can be given to several functions",
            open_question("coefficients"),
        ),
        Feature("default-coefficient", "a coefficient left out", _coefficients_left_out),
        Feature("default-unknown", "a coefficient left out that has no sure default", open_question("defaults")),
        Feature("thresholded-relu", "ThresholdedRelu", open_question("threshold")),
        *map(_uses, ACTIVATIONS),
    ),
    marked="activations",
    conditions=_function_words,
    simpler=_simpler_functions,
    richer=_hard_functions,
    richer_alone=True,
)

ALPHA, BETA = (
    Axis(
        name=name,
        called=f"activation_{name}",
        values=(None,),
        between=(-4.0, 4.0),  # beyond which a few steps leave the range of float16
        fits=(_list_of(finite_float32), "None or a tuple of finite numbers, not an empty one"),
        attribute=f"activation_{name}",
    )
    for name in ("alpha", "beta")
)
