"""Axes of the node's attributes, each one attribute or the way in which it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ....reference import OperatorVersion, operator_version, versions_of
from ..attributes import finite_float32
from ..axis import SELDOM, Axis, Domain, Field, Rule
from ..condition import of_values
from ..observed import Observed
from ..violation import Draft, Violation, has, set_to, sized, unknown_attribute
from .functions import first_functions


class _Direction(Axis):
    """The attribute ``direction``."""

    name = "direction"
    fields = (Field("direction", str, "forward"),)
    part = "model"
    order = ("forward", "reverse", "bidirectional")
    forbidden = tuple(
        Violation(
            f"direction.{value}",
            "load",
            f"direction is '{value}', none of forward, reverse and bidirectional",
            set_to("direction", value),
        )
        for value in ("sideways", "backward")
    )
    levels = {"basic": ("forward",), "sequence": order}
    required = {"basic": ("forward",), "sequence": ("reverse", "bidirectional")}
    words = {
        "direction-absent": "no direction",
        "forward": "the forward direction",
        "reverse": "the reverse direction",
        "bidirectional": "bidirectional nodes",
    }
    columns = ("forward", "reverse", "bidirectional")
    conditions = {
        "reverse": (
            of_values(words["reverse"], "direction", "reverse", "bidirectional"),
            of_values("the reverse direction alone", "direction", "reverse"),
        ),
        "bidirectional": (of_values("both directions", "direction", "bidirectional"),),
    }
    absences = dict.fromkeys(("forward", "reverse"), of_values("one direction", "direction", "forward", "reverse"))

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        often = ("forward", "reverse", "bidirectional", "bidirectional")
        return {"direction": Domain(("forward", "reverse", "bidirectional"), often=often)}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {} if spec.direction == "forward" else {"direction": spec.direction}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        directions = observed.configuration.directions
        return {
            "direction-absent": "direction" not in observed.attributes,
            "forward": "forward" in directions,
            "reverse": "reverse" in directions,
            "bidirectional": len(directions) == 2,
        }

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield single directions. Each direction has its own functions: the remaining one keeps its functions and
        coefficients."""
        for name, changes in super().simpler(spec):
            if spec.activations and spec.directions == 2:
                each = len(spec.activations) // 2
                left = slice(None, each) if changes["direction"] == "forward" else slice(each, None)
                changes = {**changes, **first_functions(spec, left)}
            yield name, changes

    def richer(self, spec: Any) -> Mapping[str, Any]:
        return {"direction": "bidirectional"} if spec.activations is None else {}


DIRECTION = _Direction()


class _Layout(Axis):
    """The attribute ``layout``, of versions from 14 on."""

    name = "layout"
    fields = (Field("layout", int, 0),)
    part = "model"
    forbidden = (
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
    )
    levels = {"basic": (0,), "sequence": (0,)}
    required = {"complete": ("layout1",)}
    words = {"layout1": "layout 1"}
    columns = ("layout1",)
    richer_alone = True
    marked = "layout1"
    conditions = {1: (of_values(words["layout1"], "layout", 1),)}
    absences = {0: of_values("layout 0", "layout", 0)}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"layout": Domain((0, 1), often=(0, 0, 1))} if "layout" in operator.attributes else {}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {"layout": spec.layout} if spec.layout else {}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {"layout1": observed.configuration.layout == 1}

    def richer(self, spec: Any) -> Mapping[str, Any]:
        return {"layout": 1}


LAYOUT = _Layout()


class _Opset(Axis):
    """Kernels are registered for ranges of opsets, and a range can end too early."""

    name = "opset"
    fields = (Field("opset", str, "first"),)
    part = "model"
    conditions = {"last": (of_values("a later opset", "opset", "last"),)}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"opset": Domain(("first", "last"))}


OPSET = _Opset()


class _Clip(Axis):
    """The attribute ``clip``."""

    name = "clip"
    fields = (Field("clip", float | None, None),)
    part = "model"
    forbidden = (Violation("clip.negative", "load", "clip is below zero", set_to("clip", -0.5), open=True),)
    levels = {"basic": (None,), "sequence": (None,)}
    required = {"complete": ("clip",)}
    words = {"clip": "clip", "zero-clip": "clip 0", "clip-absent": "no clip"}
    columns = ("clip",)
    richer_alone = True
    marked = "clip"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        often = (None, None, None, None, 0.125, 0.25, 0.5, 1.0, 2.0, 8.0)
        return {"clip": Domain((None, 0.5, 8.0), rare=(0.0, 2.0**-10, 1e30), between=(2.0**-6, 64.0), often=often)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.clip is None:
            return None
        if not finite_float32(spec.clip):
            return "clip", "None or a finite number"
        object.__setattr__(spec, "clip", float(spec.clip))
        return None

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {} if spec.clip is None else {"clip": spec.clip}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        clip = observed.attributes.get("clip")
        return {"clip": clip is not None, "zero-clip": clip == 0, "clip-absent": clip is None}

    def richer(self, spec: Any) -> Mapping[str, Any]:
        return {"clip": 0.25}


CLIP = _Clip()


class _InputForget(Axis):
    """The attribute ``input_forget``."""

    name = "input_forget"
    fields = (Field("input_forget", int | None, None),)
    part = "model"
    forbidden = (
        Violation(
            "input-forget.two",
            "load",
            "input_forget is 2",
            set_to("input_forget", 2),
            applies=has("input_forget"),
            open=True,
        ),
        unknown_attribute("input_forget", "only LSTM defines"),
    )
    levels = {"basic": (None,), "sequence": (None,)}
    required = {"complete": ("input-forget",)}
    words = {"input-forget": "input_forget", "uncoupled": "input_forget off"}
    columns = ("input-forget",)

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if "input_forget" not in operator.attributes:
            return {}
        return {"input_forget": Domain((None, 1), rare=(0,), often=(None, None, 1, 1, 0))}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {} if spec.input_forget is None else {"input_forget": spec.input_forget}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        coupled = bool(observed.attributes.get("input_forget"))
        return {"input-forget": coupled, "uncoupled": not coupled}

    def mark(self, spec: Any) -> str:
        return "coupled" if spec.input_forget else ""


INPUT_FORGET = _InputForget()


def _ever(operator: OperatorVersion) -> bool:
    """Tell whether some version of an operator has the attribute."""
    op, domain = operator.op_type, operator.domain
    return any("linear_before_reset" in operator_version(op, v, domain).attributes for v in versions_of(op, domain))


def _came_later(operator: OperatorVersion) -> bool:
    """Tell whether a version lacks the attribute, and another of its operator has it."""
    return "linear_before_reset" not in operator.attributes and _ever(operator)


class _LinearBeforeReset(Axis):
    """The attribute ``linear_before_reset``."""

    name = "linear_before_reset"
    fields = (Field("linear_before_reset", int | None, None),)
    part = "model"
    forbidden = (unknown_attribute("linear_before_reset", "the version does not define", _came_later),)
    levels = {"basic": (None,), "sequence": (None,)}
    required = {"complete": ("linear-before-reset",)}
    words = {
        "linear-before-reset": "linear_before_reset",
        "linear-before-reset-not-one": "a linear_before_reset other than 0 and 1",
        "reset-before-linear": "linear_before_reset 0",
    }
    columns = ("linear-before-reset",)

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if "linear_before_reset" not in operator.attributes:
            return {}
        return {"linear_before_reset": Domain((None, 1), rare=(0, 2, -1, 255), often=(None, None, 1, 1, 0, 2))}

    def choices(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        return {} if "linear_before_reset" in operator.attributes else {"linear_before_reset": (None,)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        linear = spec.linear_before_reset
        if linear is not None and (type(linear) is not int or not -(2**63) <= linear < 2**63):
            return "linear_before_reset", "None or a whole number of 64 bits"
        return None

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        given = spec.linear_before_reset
        return {} if given is None else {"linear_before_reset": given}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        if not _ever(observed.node.operator):
            return {}
        linear = observed.configuration.linear_before_reset
        return {
            "linear-before-reset": linear,
            "linear-before-reset-not-one": observed.attributes.get("linear_before_reset", 0) not in (0, 1),
            "reset-before-linear": not linear,
        }

    def mark(self, spec: Any) -> str:
        return "linear-before-reset" if spec.linear_before_reset else ""


LINEAR_BEFORE_RESET = _LinearBeforeReset()


def _asks_for_y(row: Mapping[str, Any]) -> bool:
    outputs = row["outputs"]
    return "Y" in outputs if isinstance(outputs, tuple) else outputs in ("all", "Y", "no-Y_h")


class _OutputSequence(Axis):
    """The attribute ``output_sequence``."""

    name = "output_sequence"
    fields = (Field("output_sequence", int | None, None),)
    part = "model"
    # Whether Y is given against output_sequence is an open question that other cases are for.
    rules = (
        Rule(
            "output_sequence",
            1,
            ("outputs",),
            lambda row: not row["output_sequence"] and _asks_for_y(row),
            kind="open",
        ),
    )
    forbidden = (unknown_attribute("output_sequence", "the version does not define any more"),)
    words = {
        "output-sequence": "old operator versions (attribute output_sequence)",
        "Y-unannounced": "Y without output_sequence",
    }

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if "output_sequence" not in operator.attributes:
            return {}
        return {"output_sequence": Domain((None, 1, 0), often=(1, 1, 0, None))}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {} if spec.output_sequence is None else {"output_sequence": spec.output_sequence}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {
            "output-sequence": "output_sequence" in observed.node.operator.attributes,
            "Y-unannounced": "sequence_output" in observed.configuration.touched,
        }


OUTPUT_SEQUENCE = _OutputSequence()


def _off(by: int) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        draft.attributes["hidden_size"] = draft.H + by

    return change


class HiddenSizeAxis(Axis):
    """The attribute ``hidden_size``, which also follows from the shape of R."""

    name = "hidden_size"
    fields = (Field("hidden_size", bool, True),)
    part = "model"
    forbidden: tuple[Violation, ...] = (
        *(
            Violation(
                f"hidden-size.{word}", "load", f"hidden_size is {word} by one than the last dimension of R", _off(by)
            )
            for word, by in (("larger", 1), ("smaller", -1))
        ),
        Violation(
            "hidden-size.R-columns",
            "load",
            "R has a column more than hidden_size, and than a gate has rows",
            sized("R", 2, lambda n: n + 1),
        ),
    )
    levels = {"basic": (True,)}
    conditions = {False: (of_values("no hidden_size", "hidden_size", False),)}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"hidden_size": Domain((True, False), often=(True, True, True, False))}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {"hidden_size": spec.H} if spec.hidden_size else {}


HIDDEN_SIZE = HiddenSizeAxis()


class _Explicit(Axis):
    """Defaults, in words or not. The attributes of other axes replace them."""

    name = "explicit"
    fields = (Field("explicit", bool, False),)
    part = "model"
    # Two ways to write a node at a time make a refusal hard to read.
    rules = (Rule("explicit", False, ("hidden_size",), lambda row: not row["hidden_size"], (True,), kind="open"),)
    forbidden = (
        Violation(
            "attributes.unknown",
            "check",
            "there is an attribute batch_first, which ONNX does not define",
            set_to("batch_first", 1),
        ),
    )
    conditions = {True: (of_values("defaults written down", "explicit", True),)}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"explicit": Domain((False, True), often=(False, False, True))}


EXPLICIT = _Explicit()


class _Placeholders(Axis):
    """Empty names for missing inputs and outputs at the end, as some exporters write them. Kernels count inputs to find
    out whether one is there."""

    name = "placeholders"
    fields = (Field("placeholders", bool, False),)
    part = "model"
    rules = (Rule("placeholders", False, ("quantization",), lambda row: row["quantization"] != "none", (True,)),)
    levels = {"basic": (False,), "sequence": (False,)}
    words = {"placeholders": "empty names for what is left out at the end"}
    marked = "placeholders"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"placeholders": SELDOM}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.illegal and spec.placeholders:
            return "placeholders", "False in a forbidden model"
        return None

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"placeholders": spec.placeholders}


PLACEHOLDERS = _Placeholders()
