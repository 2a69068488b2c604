"""Activation functions, and the coefficients that they are given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ....reference import ACTIVATIONS, OperatorVersion, cell_named, operator_version
from ....reference.numbers.activations import kind_named
from ..attributes import finite_float32, list_of
from ..axis import Axis, Domain, Field
from ..condition import Condition
from ..observed import Observed
from ..violation import Draft, Violation, set_to
from .functions import activations_of, functions_of

_COEFFICIENTS = (-4.0, 4.0)  # beyond which a few steps leave the range of float16

_LISTED = 3
"""Functions of a failing case for which the plainest condition is that there is a list."""


def _named(choose: Callable[[tuple[str, ...]], list[str]]) -> Callable[[Draft], None]:
    """Return the attribute that `choose` makes of one direction's default functions."""

    def change(draft: Draft) -> None:
        draft.attributes["activations"] = choose(cell_named(draft.operator.known_as).activations)

    return change


_FORBIDDEN = (
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
)


class _Activations(Axis):
    """``activations``, ``activation_alpha`` and ``activation_beta``. A row of a design names a set of functions."""

    name = "activations"
    fields = (
        Field("activations", tuple[str, ...] | None, None),
        Field("alpha", tuple[float, ...] | None, None, called="activation_alpha"),
        Field("beta", tuple[float, ...] | None, None, called="activation_beta"),
    )
    part = "model"
    forbidden = _FORBIDDEN
    levels = {"basic": (), "sequence": ()}
    required = {"complete": ("activations", "alpha", "beta")}
    words = {
        "activations": "activations",
        "activations-absent": "no activations",
        "letter-case": "differently capitalised activation names",
        "alpha": "activation_alpha",
        "beta": "activation_beta",
        "coefficients-ambiguous": "coefficients that can be given to several functions",
        "default-coefficient": "a coefficient left out",
        "default-unknown": "a coefficient left out that has no sure default",
        "thresholded-relu": "ThresholdedRelu",
        **{f"uses-{name}": name for name in ACTIVATIONS},
    }
    columns = ("activations",)
    richer_alone = True
    marked = "activations"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        sets = ("default", "each", "usual", "soft", "mixed", "negative")
        return {
            "activations": Domain(sets),
            "alpha": Domain((None,), between=_COEFFICIENTS),
            "beta": Domain((None,), between=_COEFFICIENTS),
        }

    def choices(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        return {}

    def told(self, name: str, value: Any, instead: Collection[Any]) -> tuple[Condition, ...]:
        if name != "activations":
            return ()
        functions = set(value)
        words = f"activations {'/'.join(dict.fromkeys(value))}"
        narrow = Condition(words, lambda spec: functions <= set(spec.activations or ()))
        wide = Condition("a list of activations", lambda spec: spec.activations is not None)
        # That it takes just these three or more functions is less likely than that it takes a list.
        return (narrow, wide) if len(functions) < _LISTED else (wide, narrow)

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.activations is not None and not list_of(spec.activations, lambda value: isinstance(value, str)):
            return "activations", "None or a tuple of names, not an empty one"
        for name in ("alpha", "beta"):
            value = getattr(spec, name)
            if value is not None and not list_of(value, finite_float32):
                return name, "None or a tuple of finite numbers, not an empty one"
            # 1 and 1.0 are the same attribute, so they are the same case.
            object.__setattr__(spec, name, value if value is None else tuple(map(float, value)))
        return None

    def written(self, row: dict[str, Any], operator: OperatorVersion) -> dict[str, Any]:
        chosen = row.pop("activations", "default")
        if isinstance(chosen, tuple):
            return {**row, "activations": chosen}
        if chosen == "default":
            return row
        return {**row, **activations_of(chosen, operator.known_as, row.get("direction") == "bidirectional")}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        named = {"activations": "activations", "activation_alpha": "alpha", "activation_beta": "beta"}
        given = {attribute: getattr(spec, name) for attribute, name in named.items()}
        return {attribute: list(values) for attribute, values in given.items() if values is not None}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        names, touched = observed.attributes.get("activations"), observed.configuration.touched
        kinds = [kind for name in names or () if (kind := kind_named(name)) is not None]
        alpha, beta = (observed.attributes.get(f"activation_{name}") for name in ("alpha", "beta"))
        left_out = len(alpha or ()) < sum(kind.uses_alpha for kind in kinds)
        return {
            "activations": names is not None,
            "activations-absent": names is None,
            "letter-case": any(name not in ACTIVATIONS for name in names or ()),
            "alpha": alpha is not None,
            "beta": beta is not None,
            "coefficients-ambiguous": "coefficients" in touched,
            "default-coefficient": left_out or len(beta or ()) < sum(kind.uses_beta for kind in kinds),
            "default-unknown": "defaults" in touched,
            "thresholded-relu": "threshold" in touched,
            **{f"uses-{name}": name in observed.functions for name in ACTIVATIONS},
        }

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield cases without the list of functions; with one function after the other replaced by its default, if no
        coefficient then belongs to another function; and without coefficients."""
        names = spec.activations
        if names is not None:
            yield "activations", {"activations": None, "alpha": None, "beta": None}
            usual = functions_of(operator_version(spec.op, spec.version))
            each = len(names) // spec.directions
            for position, name in enumerate(names):
                plain = usual[min(position % each, 1)] if each > 1 else usual[0]
                if name != plain and spec.alpha is None and spec.beta is None:
                    yield "activations", {"activations": (*names[:position], plain, *names[position + 1 :])}
        for name in ("alpha", "beta"):
            if getattr(spec, name) is not None:
                yield name, {name: None}

    def richer(self, spec: Any) -> Mapping[str, Any]:
        """Return HardSigmoid, whose coefficients both have defaults, in place of functions with coefficients: the error
        may be how one of them takes its own."""
        given = spec.activations is not None and not (spec.alpha is None and spec.beta is None)
        return activations_of("hard", spec.op, spec.direction == "bidirectional") if given else {}


ACTIVATIONS_AXIS = _Activations()
