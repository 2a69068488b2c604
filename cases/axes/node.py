"""Axes of the node: its attributes, the ways to write them, and its outputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from ...reference import OperatorVersion, operator_version, versions_of
from .activations import finite_float32, first_functions
from .axis import Axis, Changes, Condition, Feature, Rule, has_attribute, of_values, open_question, skips, switch
from .violation import Draft, Violation, has, set_to, sized, unknown_attribute

if TYPE_CHECKING:
    from ..specs.features import Observed

# Directions


def _has_directions(*directions: str) -> Callable[[Observed], bool]:
    """Return a predicate that is true of nodes with all these directions."""
    return lambda o: {*directions} <= {*o.configuration.directions}


def _single_directions(spec: Any) -> Iterator[Changes]:
    """Yield single directions. The remaining one keeps its own functions and coefficients."""
    values = DIRECTION.values
    for less in values[: values.index(spec.direction)]:
        changes: dict[str, Any] = {"direction": less}
        if spec.activations and spec.directions == 2:
            half = len(spec.activations) // 2
            changes |= first_functions(spec, slice(None, half) if less == "forward" else slice(half, None))
        yield changes


DIRECTION = Axis(
    name="direction",
    values=("forward", "reverse", "bidirectional"),
    often=("forward", "reverse", "bidirectional", "bidirectional"),
    attribute="direction",
    forbidden=tuple(
        Violation(
            f"direction.{value}",
            "load",
            f"direction is '{value}', none of forward, reverse and bidirectional",
            set_to("direction", value),
        )
        for value in ("sideways", "backward")
    ),
    level="sequence",
    features=(
        Feature("direction-absent", "no direction", lambda o: "direction" not in o.attributes),
        Feature("forward", "the forward direction", _has_directions("forward"), column=True, level="basic"),
        Feature("reverse", "the reverse direction", _has_directions("reverse"), column=True, level="sequence"),
        Feature(
            "bidirectional", "bidirectional nodes", _has_directions("forward", "reverse"), column=True, level="sequence"
        ),
    ),
    conditions={
        "reverse": (
            of_values("the reverse direction", "direction", "reverse", "bidirectional"),
            of_values("the reverse direction alone", "direction", "reverse"),
        ),
        "bidirectional": (of_values("both directions", "direction", "bidirectional"),),
    },
    absences=dict.fromkeys(("forward", "reverse"), of_values("one direction", "direction", "forward", "reverse")),
    simpler=_single_directions,
    richer=lambda spec: {"direction": "bidirectional"} if spec.activations is None else {},
)

# Attributes with a number

LAYOUT = Axis(
    name="layout",
    values=(0, 1),
    often=(0, 0, 1),
    there=lambda operator, value: "layout" in operator.attributes,
    attribute="layout",
    forbidden=(
        *(
            Violation(
                f"layout.{name}",
                "load",
                f"layout is {value}, for which no shapes are defined",
                set_to("layout", value),
                applies=has("layout"),
            )
            for name, value in (("two", 2), ("minus-one", -1))
        ),
        unknown_attribute("layout", "the version does not define"),
    ),
    level="complete",
    features=(Feature("layout1", "layout 1", lambda o: o.configuration.layout == 1, column=True, level="complete"),),
    marked="layout1",
    conditions={1: (of_values("layout 1", "layout", 1),)},
    absences={0: of_values("layout 0", "layout", 0)},
    richer={"layout": 1},
    richer_alone=True,
)

# Kernels are registered for ranges of opsets, and a range can end too early.
OPSET = Axis(
    name="opset", values=("first", "last"), conditions={"last": (of_values("a later opset", "opset", "last"),)}
)

CLIP = Axis(
    name="clip",
    values=(None, 0.5, 8.0, 0.0, 2.0**-10, 1e30),
    rare=(0.0, 2.0**-10, 1e30),
    between=(2.0**-6, 64.0),
    fits=(lambda value: value is None or finite_float32(value), "None or a finite number"),
    often=(None, None, None, None, 0.125, 0.25, 0.5, 1.0, 2.0, 8.0),
    attribute="clip",
    forbidden=(Violation("clip.negative", "load", "clip is below zero", set_to("clip", -0.5), open=True),),
    level="complete",
    features=(
        Feature("clip", "clip", has_attribute("clip"), column=True, level="complete"),
        Feature("zero-clip", "clip 0", lambda o: o.attributes.get("clip") == 0),
        Feature("clip-absent", "no clip", lambda o: o.attributes.get("clip") is None),
    ),
    marked="clip",
    richer={"clip": 0.25},
    richer_alone=True,
)


def _uncoupled(o: Observed) -> bool:
    return not o.attributes.get("input_forget")


INPUT_FORGET = Axis(
    name="input_forget",
    values=(None, 1, 0),
    rare=(0,),
    often=(None, None, 1, 1, 0),
    there=lambda operator, value: "input_forget" in operator.attributes,
    attribute="input_forget",
    forbidden=(
        Violation(
            "input-forget.two",
            "load",
            "input_forget is 2",
            set_to("input_forget", 2),
            applies=has("input_forget"),
            open=True,
        ),
        unknown_attribute("input_forget", "only LSTM defines"),
    ),
    level="complete",
    features=(
        Feature("input-forget", "input_forget", lambda o: not _uncoupled(o), column=True, level="complete"),
        Feature("uncoupled", "input_forget off", _uncoupled),
    ),
    marked=lambda spec: "coupled" if spec.input_forget else "",
)


def _ever_linear(operator: OperatorVersion) -> bool:
    """Return whether some version of an operator has linear_before_reset."""
    op, domain = operator.op_type, operator.domain
    return any("linear_before_reset" in operator_version(op, v, domain).attributes for v in versions_of(op, domain))


def _of_linear(is_applied: bool) -> Callable[[Observed], bool | None]:
    """Return a predicate on the use of linear_before_reset; it gives None for operators that never have it."""
    return lambda o: o.configuration.linear_before_reset == is_applied if _ever_linear(o.node.operator) else None


def _other_linear(o: Observed) -> bool | None:
    return o.attributes.get("linear_before_reset", 0) not in (0, 1) if _ever_linear(o.node.operator) else None


LINEAR_BEFORE_RESET = Axis(
    name="linear_before_reset",
    values=(None, 1, 0, 2, -1, 255),
    rare=(0, 2, -1, 255),
    fits=(
        lambda value: value is None or (type(value) is int and -(2**63) <= value < 2**63),
        "None or a whole number of 64 bits",
    ),
    often=(None, None, 1, 1, 0, 2),
    there=lambda operator, value: "linear_before_reset" in operator.attributes,
    attribute="linear_before_reset",
    forbidden=(
        unknown_attribute(
            "linear_before_reset",
            "the version does not define",
            lambda operator: "linear_before_reset" not in operator.attributes and _ever_linear(operator),
        ),
    ),
    level="complete",
    features=(
        Feature("linear-before-reset", "linear_before_reset", _of_linear(True), column=True, level="complete"),
        Feature("linear-before-reset-not-one", "a linear_before_reset other than 0 and 1", _other_linear),
        Feature("reset-before-linear", "linear_before_reset 0", _of_linear(False)),
    ),
    marked=lambda spec: "linear-before-reset" if spec.linear_before_reset else "",
)

OUTPUT_SEQUENCE = Axis(
    name="output_sequence",
    values=(None, 1, 0),
    often=(1, 1, 0, None),
    there=lambda operator, value: "output_sequence" in operator.attributes,
    attribute="output_sequence",
    # Whether Y exists against output_sequence is an open question, which other cases test.
    rules=(Rule(("outputs",), lambda outputs: "Y" in outputs, instead=1, kind="open"),),
    forbidden=(unknown_attribute("output_sequence", "the version does not define any more"),),
    features=(
        Feature(
            "output-sequence",
            "old operator versions (attribute output_sequence)",
            lambda o: "output_sequence" in o.node.operator.attributes,
        ),
        Feature("Y-unannounced", "Y without output_sequence", open_question("sequence_output")),
    ),
)


def _hidden_size_off(by: int) -> Callable[[Draft], None]:
    return lambda draft: draft.attributes.update(hidden_size=draft.H + by)


# hidden_size also follows from the shape of R. The spec writes it, since its value is a size of the case.
HIDDEN_SIZE = Axis(
    name="hidden_size",
    values=(True, False),
    often=(True, True, True, False),
    forbidden=(
        *(
            Violation(
                f"hidden-size.{word}",
                "load",
                f"hidden_size is {word} by one than the last dimension of R",
                _hidden_size_off(by),
            )
            for word, by in (("larger", 1), ("smaller", -1))
        ),
        Violation(
            "hidden-size.R-columns",
            "load",
            "R has a column more than hidden_size, and than a gate has rows",
            sized("R", 2, lambda n: n + 1),
        ),
    ),
    level="complete",
    conditions={False: (of_values("no hidden_size", "hidden_size", False),)},
)

# Ways to write a node

EXPLICIT = Axis(
    name="explicit",
    values=(False, True),
    often=(False, False, True),
    # Two ways to write a node at the same time make a refusal hard to read.
    rules=(Rule(("hidden_size",), lambda hidden_size: not hidden_size, kind="open"),),
    forbidden=(
        Violation(
            "attributes.unknown",
            "check",
            "there is an attribute batch_first, which ONNX does not define",
            set_to("batch_first", 1),
        ),
    ),
    conditions={True: (of_values("defaults written down", "explicit", True),)},
)

# Kernels count inputs to find out whether one is present.
PLACEHOLDERS = switch(
    "placeholders",
    rules=(Rule(("quantization",), lambda quantization: quantization != "none"),),
    level="complete",
    features=(
        Feature("placeholders", "empty names for what is left out at the end", case=lambda spec: spec.placeholders),
    ),
)

# Outputs


@cache
def output_subsets(operator: OperatorVersion) -> tuple[tuple[str, ...], ...]:
    """Return every legal subset of outputs, by position in a case; all have the outputs that the version requires.

    The first subset is the one that needs no attribute: Y, or Y_h if output_sequence must announce Y.
    """
    plain = "Y_h" if "output_sequence" in operator.attributes else "Y"
    required = operator.required_outputs
    optional = sorted(set(operator.outputs) - required, key=lambda n: (n != plain, n))
    counts = range(0 if required else 1, len(optional) + 1)
    chosen = [set(subset) | required for count in counts for subset in itertools.combinations(optional, count)]
    return tuple(by_position(operator.outputs, subset) for subset in chosen)


def by_position(formal: Iterable[str], given: Collection[str]) -> tuple[str, ...]:
    """Return the given inputs or outputs of a node, each at its position; empty strings stand for absent ones before
    them.

    An invalid model may have names that the operator does not define; they come last.
    """
    names = [name if name in given else "" for name in dict.fromkeys((*formal, *given))]
    while names and not names[-1]:
        names.pop()
    return tuple(names)


def _more_outputs(draft: Draft, *further: str) -> None:
    draft.outputs += ["extra" if "Y_c" in draft.operator.outputs else "Y_c", *further]


def _output_words(value: tuple[str, ...], instead: Collection[Any]) -> tuple[Condition, ...]:
    asked = set(filter(None, value))
    listed = ", ".join(filter(None, value))
    return (
        Condition(f"outputs {listed}", lambda spec: asked <= set(spec.outputs)),
        Condition(f"no outputs but {listed}", lambda spec: asked == set(filter(None, spec.outputs))),
    )


def _fewer_outputs(spec: Any) -> Iterator[Changes]:
    """Yield fewer outputs, and Y alone."""
    for outputs in sorted(output_subsets(operator_version(spec.op, spec.version)), key=lambda o: sum(map(bool, o))):
        if sum(map(bool, outputs)) < sum(map(bool, spec.outputs)) or outputs == ("Y",):
            yield {"outputs": outputs}


def _output(name: str) -> Feature:
    def asked(o: Observed) -> bool | None:
        return name in o.node.outputs if name in o.node.operator.outputs else None

    return Feature(name, f"output {name}", asked, level="basic")


# The node's outputs by position; the spec checks them.
OUTPUTS = Axis(
    name="outputs",
    forbidden=(
        Violation(
            "outputs.too-many",
            "check",
            "there is an output behind the last one that the operator defines",
            _more_outputs,
        ),
        Violation(
            "outputs.far-too-many",
            "check",
            "there are two outputs behind the last one that the operator defines",
            lambda draft: _more_outputs(draft, "more"),
        ),
        Violation(
            "outputs.Y_h-missing",
            "check",
            "Y_h, which the version demands, is missing",
            lambda draft: draft.outputs.__delitem__(-1),
            applies=lambda operator: "Y_h" in operator.required_outputs,
        ),
    ),
    features=(
        *map(_output, ("Y", "Y_h", "Y_c")),
        Feature("Y-absent", "no Y", lambda o: "Y" not in o.node.outputs, column=True),
        Feature("output-skipped", "an output skipped", lambda o: skips(o.node.operator.outputs, o.node.outputs)),
    ),
    marked=lambda spec: "" if "Y" in spec.outputs else "no-Y",
    conditions=_output_words,
    simpler=_fewer_outputs,
)
