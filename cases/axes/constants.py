"""Axes of constants: which inputs are initializers, and which of them a session replaces by fed tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...reference import OperatorVersion, operator_version
from .axis import Axis, Feature, Rule, needs
from .violation import Violation, without_input

if TYPE_CHECKING:
    from .session import SessionScript

CONSTANTS = ("W", "R", "B", "P")
"""The weights of ONNX's own operators."""

OVERRIDDEN = ("overridden", "zeroed")
"""Values of ``held`` for cases whose own run feeds numbers that differ from the model's."""

_SINGLE: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("X", *CONSTANTS)},
    "states": ("initial_h", "initial_c"),
    "lengths": ("sequence_lens",),
}
_ALONE = ("W", "R", "B", "P", "initial_h", "initial_c")
OF_INPUTS = {"B": "bias", "P": "peepholes", "states": "initial", "lengths": "lengths"}
"""The field that adds an input, by input."""


def held(operator: OperatorVersion, name: str) -> bool:
    """Return whether an input is the same in every run: weights, and their scales and zero points."""
    return name in operator.inputs and name != "X" and not operator.tensors[name].rows


def constants_of(spec: Any) -> frozenset[str]:
    """Return the inputs of a case that are initializers."""
    if spec.constant != "weights":
        return frozenset(_SINGLE[spec.constant])
    operator = operator_version(spec.op, spec.version)
    return frozenset(n for n in operator.inputs if spec.weights == "initializer" and held(operator, n))


WEIGHTS = Axis(
    name="weights",
    values=("initializer", "input"),
    forbidden=tuple(
        Violation(f"inputs.missing-{name}", "check", f"{name} is missing", without_input(name)) for name in "WR"
    ),
    features=(Feature("initializers", "constant weights", case=lambda spec: spec.weights == "initializer"),),
)

# weights (all or none of W, R, B and P, as `weights` has it), or the only constant
CONSTANT = Axis(
    name="constant",
    values=("weights", *_SINGLE),
    rare=tuple(_SINGLE),
    often=("weights",) * 8 + tuple(_SINGLE),
    there=lambda operator, value: value == "weights" or bool({*_SINGLE[value]} & {*operator.inputs}),
    ordered=True,
    rules=(
        *needs("constant", "weights", OF_INPUTS, (False, "none", "absent")),
        # A constant has one size.
        Rule(
            "constant",
            "weights",
            ("reruns",),
            lambda row: row["reruns"] in ("sizes", "growing"),
            ("X", "states", "lengths"),
        ),
        # The session must refuse an X of another width.
        Rule("constant", "weights", ("after_refusal",), lambda row: row["after_refusal"], ("X",)),
        # The numbers past a row's length change from run to run.
        Rule("constant", "weights", ("data",), lambda row: row["data"] == "nan-padding", ("X",)),
        Rule("constant", "weights", ("waves",), lambda row: row["waves"], ("X", "states", "lengths")),
        Rule("constant", "weights", ("weights",), lambda row: row["weights"] != "input", tuple(_SINGLE)),
    ),
    features=(
        Feature(
            "constant-data",
            "a constant X, state or sequence_lens",
            case=lambda spec: spec.constant in ("X", "states", "lengths"),
        ),
        Feature("one-constant", "one weight alone constant", case=lambda spec: spec.constant in CONSTANTS),
    ),
    marked="constant-{}",
)


def _script_held(spec: Any, script: SessionScript) -> None:
    if spec.held == "once":
        script.override()


# fixed; listed (constants are graph inputs too, and not fed); overridden (the numbers that are fed differ from the
# model's); once (they are fed in the run before, and not afterwards); zeroed (they are fed, and the model holds zeros,
# as exporters write states)
HELD = Axis(
    name="held",
    values=("fixed", "listed", "overridden", "once", "zeroed"),
    rare=("listed", "overridden", "once", "zeroed"),
    often=("fixed",) * 6 + ("listed", "overridden", "once", "zeroed"),
    ordered=True,
    rules=(
        Rule(
            "held",
            "fixed",
            ("weights", "constant"),
            lambda row: row["weights"] != "initializer" and row["constant"] == "weights",
            ("listed", "overridden", "once", "zeroed"),
        ),
    ),
    features=(
        Feature("overridable", "constants that can be overridden", case=lambda spec: spec.held != "fixed"),
        Feature("overridden", "constants that are overridden", case=lambda spec: spec.held in OVERRIDDEN),
        Feature("overridden-before", "constants that were overridden before", case=lambda spec: spec.held == "once"),
        Feature("overridden-zeros", "constants of zeros that are overridden", case=lambda spec: spec.held == "zeroed"),
    ),
    marked=lambda spec: "" if spec.held == "fixed" else {"once": "overridden-before"}.get(spec.held, spec.held),
    script=_script_held,
)

# all constants that can be overridden are, or that input alone; the others keep the model's numbers
FED = Axis(
    name="fed",
    values=("all", *_ALONE),
    rare=_ALONE,
    often=("all",) * 3 + _ALONE,
    share=0.5,
    there=lambda operator, value: (
        value in ("all", *operator.inputs) and (value != "initial_h" or "initial_c" in operator.inputs)
    ),
    ordered=True,
    rules=(
        Rule("fed", "all", ("held",), lambda row: row["held"] in ("fixed", "listed"), _ALONE),
        Rule("fed", "all", ("constant",), lambda row: row["constant"] != "weights", CONSTANTS),
        Rule("fed", "all", ("constant",), lambda row: row["constant"] != "states", ("initial_h", "initial_c")),
        Rule("fed", "all", ("initial",), lambda row: row["initial"] != "all", ("initial_h", "initial_c")),
        *needs("fed", "all", {"B": "bias", "P": "peepholes"}),
    ),
    features=(
        Feature("overridden-alone", "one of several constants that is overridden", case=lambda spec: spec.fed != "all"),
    ),
    marked=lambda spec: "" if spec.fed == "all" else f"fed-{spec.fed.replace('_', '-')}",
)
