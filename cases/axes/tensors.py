"""Axes of the tensors: their type, sizes and presence, which are constants, and the seeds of their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...reference import OperatorVersion, cell_named, operator_version
from .axis import Axis, Changes, Feature, Rule, choice, needs, of_values, skips
from .violation import Draft, Violation, changed, has, sized, without_input

if TYPE_CHECKING:
    from ..specs.features import Observed
    from ..specs.model import TensorDraft

# Type

_TYPES = ("float32", "float64", "float16", "bfloat16")


def _all_integers(draft: Draft) -> None:
    draft.inputs |= {name: np.rint(array).astype(np.int32) for name, array in draft.inputs.items()}


def _type_feature(name: str) -> Feature:
    def own(o: Observed) -> bool | None:
        return o.configuration.format.name == name if name in o.node.operator.types else None

    return Feature(name, node=own)


# float32 first, because every runtime has it.
ELEMENT_TYPE = Axis(
    name="type",
    values=_TYPES,
    there=lambda operator, value: value in operator.types,
    ordered=True,
    forbidden=(
        Violation(
            "types.mixed",
            "check",
            "initial_h is float64 while all else is float32",
            changed("initial_h", lambda array: array.astype(np.float64)),
            {"initial": "all"},
        ),
        Violation("types.integer", "check", "all tensors are int32, which T may not be", _all_integers),
    ),
    features=tuple(map(_type_feature, _TYPES)),
    conditions={name: (of_values(name, "type", name),) for name in _TYPES},
)

# Sizes: T (seq_length), N (batch_size), I (input_size) and H (hidden_size)

LONGEST, HIGHEST_SEED = 2**20, 2**63 - 1
_OTHERS = 3
"""Number of draws of other numbers with which a smaller size is tried."""


def smaller(name: str) -> Callable[[Any], Iterator[Changes]]:
    """Return the function that yields smaller sizes of a spec.

    With few numbers, a failure depends on their values, so other draws are tried as well.
    """

    def changes(spec: Any) -> Iterator[Changes]:
        value = getattr(spec, name)
        seeded = [seed for seed in ("seed", "weights_seed") if seed in spec.__dataclass_fields__]
        # If the size is 0, 1 is the simpler size.
        for size in dict.fromkeys((1, 2, 3, value // 2, value - 1)):
            if 0 < size < value or (size == 1 and not value):
                yield {name: size}
                for other in range(1, _OTHERS + 1) if size in (1, value - 1) else ():
                    yield {name: size, **dict.fromkeys(seeded, spec.seed + other)}

    return changes


def whole_number(least: int, most: int) -> tuple[Callable[[Any], bool], str]:
    """Return the test for a whole number within limits, and its description."""
    return lambda value: type(value) is int and least <= value <= most, f"a whole number from {least} to {most}"


def size_axis(name: str, called: str, least: int, **members: Any) -> Axis:
    """Return the axis of a size."""
    return Axis(name=name, called=called, fits=whole_number(least, LONGEST), simpler=smaller(name), **members)


def _one_direction(draft: Draft) -> None:
    for name in ("W", "R"):
        draft.inputs[name] = draft.inputs[name][:1]


STEPS = size_axis(
    "T",
    "step",
    0,
    forbidden=(
        Violation(
            "shapes.X-rank", "load", "X has two dimensions, without a batch", changed("X", lambda array: array[:, 0])
        ),
        Violation("shapes.W-rows", "load", "W has a row too many", sized("W", 1, lambda n: n + 1)),
        Violation(
            "shapes.W-columns", "load", "W has a column more than X has features", sized("W", 2, lambda n: n + 1)
        ),
        Violation(
            "shapes.W-directions",
            "load",
            "W and R of a bidirectional node have one direction",
            _one_direction,
            {"direction": "bidirectional"},
        ),
        Violation("shapes.R-rows", "load", "R has a row too many", sized("R", 1, lambda n: n + 1)),
    ),
    features=(
        Feature("several-rows", "several rows", lambda o: o.configuration.N > 1, level="sequence"),
        Feature(
            "size-one",
            "a size of 1",
            lambda o: 1 in (o.configuration.T, o.configuration.N, o.configuration.I, o.configuration.H),
        ),
        Feature("size-zero", "a size of 0", lambda o: 0 in (o.configuration.T, o.configuration.N)),
        Feature("no-rows", "batch_size 0", lambda o: o.configuration.N == 0),
        Feature("no-steps", "seq_length 0", lambda o: o.configuration.T == 0),
        Feature("input-skipped", "an input skipped", lambda o: skips(o.node.operator.inputs, o.inputs)),
    ),
    conditions={0: (of_values("seq_length 0", "T", 0),)},
)
ROWS = size_axis("N", "row", 0, conditions={0: (of_values("batch_size 0", "N", 0),)})
INPUTS = size_axis("I", "feature of X", 1)
UNITS = size_axis("H", "unit", 1)

# Optional inputs


def _fill_bias(spec: Any, draft: TensorDraft) -> None:
    if spec.bias:
        draft.hold("B", (draft.D, 2 * draft.G * draft.H), -1)


BIAS = Axis(
    name="bias",
    values=(False, True),
    often=(True, True, False),
    forbidden=(
        Violation(
            "shapes.B-length",
            "load",
            "B is half as long as it must be: it lacks the recurrent biases",
            sized("B", 1, lambda n: n // 2),
            {"bias": True},
        ),
    ),
    features=(Feature("bias", "bias", lambda o: "B" in o.inputs, column=True, level="basic"),),
    marked="bias",
    conditions={True: (of_values("bias", "bias", True),)},
    absences={False: of_values("no bias", "bias", False)},
    richer={"bias": True},
    fill=_fill_bias,
)


def _one_input_more(draft: Draft) -> None:
    """Add an input after the last one; GRU and RNN get the one that LSTM has there."""
    name = "extra" if "initial_c" in draft.operator.inputs else "initial_c"
    draft.inputs[name] = draft.inputs["initial_h"].copy()


def _fill_initial(spec: Any, draft: TensorDraft) -> None:
    for name in ("h", *draft.cell.inner):
        if spec.initial in ("all", name):
            draft.draw(f"initial_{name}", draft.of_state, draft.of_states)


def _initial_states(o: Observed) -> list[bool]:
    return [name in o.inputs for name in o.node.operator.inputs if name.startswith("initial_")]


_SOME = of_values("initial states", "initial", "all", "h", "c")

INITIAL = Axis(
    name="initial",
    values=("none", "h", "c", "all"),
    often=("none", "none", "all", "all", "all", "h", "c"),
    there=lambda operator, value: value != "c" or value in cell_named(operator.known_as).inner,
    ordered=True,
    forbidden=(
        *(
            Violation(
                f"shapes.{name.replace('_', '-')}",
                "load",
                f"{name} has one row for a batch of several",
                sized(name, 1, lambda n: 1),
                {"initial": "all"},
                has(name),
            )
            for name in ("initial_h", "initial_c")
        ),
        Violation(
            "inputs.too-many",
            "check",
            "there is an input behind the last one that the operator defines",
            _one_input_more,
            {"initial": "all"},
        ),
    ),
    features=(
        Feature("initial-state", "initial states", lambda o: any(_initial_states(o)), column=True, level="basic"),
        Feature("initial-state-absent", "no initial state", lambda o: not all(_initial_states(o)), level="basic"),
    ),
    marked="initial-{}",
    conditions={
        "all": (of_values("all initial states", "initial", "all"), _SOME),
        **{
            name: (
                of_values(f"initial_{name}", "initial", name, "all"),
                of_values(f"initial_{name} alone", "initial", name),
                _SOME,
            )
            for name in ("h", "c")
        },
    },
    absences={"none": of_values("no initial states", "initial", "none")},
    richer={"initial": "all"},
    fill=_fill_initial,
)


def _fill_peepholes(spec: Any, draft: TensorDraft) -> None:
    if spec.peepholes:
        draft.hold("P", (draft.D, len(draft.cell.peepholes) * draft.H), 0)


PEEPHOLES = Axis(
    name="peepholes",
    values=(False, True),
    often=(True, True, False),
    there=lambda operator, value: bool(cell_named(operator.known_as).peepholes),
    forbidden=(
        Violation(
            "shapes.P-length",
            "load",
            "P has weights for four gates, not three",
            sized("P", 1, lambda n: n // 3 * 4),
            {"peepholes": True, "initial": "all"},
            has("P"),
        ),
    ),
    level="complete",
    features=(Feature("peepholes", "peepholes P", lambda o: "P" in o.inputs, column=True, level="complete"),),
    marked="peepholes",
    conditions={True: (of_values("peepholes P", "peepholes", True),)},
    fill=_fill_peepholes,
)

# Seeds: of the inputs that change from run to run, and of the others, so that cases can share a model


def _without_seeds(spec: Any) -> Iterator[Changes]:
    """Yield both seeds together: the numbers of one belong to those of the other."""
    if spec.seed:
        yield dict.fromkeys([seed for seed in ("seed", "weights_seed") if seed in spec.__dataclass_fields__], 0)


SEED = Axis(name="seed", fits=whole_number(0, HIGHEST_SEED), simpler=_without_seeds)
WEIGHTS_SEED = Axis(name="weights_seed", fits=whole_number(0, HIGHEST_SEED), simpler=lambda spec: ())


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
CONSTANT = choice(
    "constant",
    "weights",
    tuple(_SINGLE),
    8,
    there=lambda operator, value: value == "weights" or bool({*_SINGLE[value]} & {*operator.inputs}),
    rules=(
        *needs(OF_INPUTS, (False, "none", "absent")),
        # A constant has one size.
        Rule(("reruns",), lambda reruns: reruns in ("sizes", "growing"), ("X", "states", "lengths")),
        # The session must refuse an X of another width.
        Rule(("after_refusal",), bool, ("X",)),
        # The numbers past a row's length change from run to run.
        Rule(("data",), lambda data: data == "nan-padding", ("X",)),
        Rule(("waves",), bool, ("X", "states", "lengths")),
        Rule(("weights",), lambda weights: weights != "input"),
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
HELD = choice(
    "held",
    "fixed",
    ("listed", "overridden", "once", "zeroed"),
    6,
    rules=(
        Rule(
            ("weights", "constant"),
            lambda weights, constant: weights != "initializer" and constant == "weights",
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
FED = choice(
    "fed",
    "all",
    _ALONE,
    3,
    there=lambda operator, value: (
        value in ("all", *operator.inputs) and (value != "initial_h" or "initial_c" in operator.inputs)
    ),
    rules=(
        Rule(("held",), lambda held: held in ("fixed", "listed")),
        Rule(("constant",), lambda constant: constant != "weights", CONSTANTS),
        Rule(("constant",), lambda constant: constant != "states", ("initial_h", "initial_c")),
        Rule(("initial",), lambda initial: initial != "all", ("initial_h", "initial_c")),
        *needs({"B": "bias", "P": "peepholes"}),
    ),
    features=(
        Feature("overridden-alone", "one of several constants that is overridden", case=lambda spec: spec.fed != "all"),
    ),
    marked=lambda spec: "" if spec.fed == "all" else f"fed-{spec.fed.replace('_', '-')}",
)
