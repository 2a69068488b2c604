"""Violations of ExtendedLSTM's document, as a table: what a model that is legal otherwise does and must be refused for.

Those that leave a kernel, which looks at no shape, reading or writing past a tensor are marked: each is run in a
process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...specs.violations import Draft, Violation

__all__ = ["EXTENDED_VIOLATIONS", "extended_violation"]

Change = Callable[[Draft], None]


def _set(**values: Any) -> Change:
    return lambda draft: draft.attributes.update(values)


def _without(*names: str) -> Change:
    def change(draft: Draft) -> None:
        for name in names:
            draft.attributes.pop(name)

    return change


def _input(name: str, of: Callable[[Any], Any]) -> Change:
    def change(draft: Draft) -> None:
        draft.inputs[name] = np.asarray(of(draft.inputs[name]), order="C")  # a number stays without dimensions

    return change


def _all(*changes: Change) -> Change:
    def change(draft: Draft) -> None:
        for each in changes:
            each(draft)

    return change


def _cast(dtype: Any) -> Change:
    return _all(*(_input(name, lambda a: a.astype(dtype)) for name in ("X", "W", "R", "B")))


def _drop(name: str) -> Change:
    return lambda draft: draft.inputs.__delitem__(name)


def _fifth(draft: Draft) -> None:
    draft.inputs["initial_h"] = np.zeros((2, 1, draft.attributes["hidden_size"]), np.float32)


def _second(draft: Draft) -> None:
    draft.outputs = ["Y", "Y_h"]


def _third(draft: Draft) -> None:
    draft.outputs = ["Y", "Y_h", "Y_c"]


def _table() -> list[Violation]:
    def V(
        id: str, topic: str, feature: str, summary: str, change: Change, spoils: bool = False, due: str = "load"
    ) -> Violation:
        return Violation(id, due, summary, change, breaks=topic, feature=feature, spoils=spoils)

    one = _all(*(_input(name, lambda a: a[:1]) for name in ("W", "R", "B")))
    rows = [
        V("direction-forward", "directions.supported", "direction", 'direction is "forward"',
          _set(direction="forward")),
        V("direction-reverse", "directions.supported", "direction", 'direction is "reverse"',
          _set(direction="reverse")),
        V("direction-other", "directions.supported", "direction", 'direction is "sideways"',
          _set(direction="sideways")),
        V("direction-absent", "directions.default", "direction-absent", "there is no direction", _without("direction")),
        V("direction-one", "directions.supported", "direction", 'direction is "forward", and so are the weights',
          _all(_set(direction="forward"), one), True),
        V("direction-number", "attributes.types", "attribute-type", "direction is an INT", _set(direction=2)),
        V("hidden-size-larger", "hidden-size", "hidden-size", "hidden_size is larger than R",
          lambda d: d.attributes.update(hidden_size=d.attributes["hidden_size"] + 5), True),
        V("hidden-size-smaller", "hidden-size", "hidden-size", "hidden_size is smaller than R",
          lambda d: d.attributes.update(hidden_size=d.attributes["hidden_size"] - 1), True),
        V("hidden-size-zero", "hidden-size", "hidden-size", "hidden_size is 0", _set(hidden_size=0), True),
        V("hidden-size-negative", "hidden-size", "hidden-size", "hidden_size is -1", _set(hidden_size=-1), True),
        V("hidden-size-float", "attributes.types", "attribute-type", "hidden_size is a FLOAT",
          lambda d: d.attributes.update(hidden_size=float(d.attributes["hidden_size"]))),
        V("input-forget-one", "input-forget", "input-forget", "input_forget is 1", _set(input_forget=1)),
        V("input-forget-float", "attributes.types", "attribute-type", "input_forget is a FLOAT, 1.0",
          _set(input_forget=1.0)),
        V("layout-one", "layout", "layout", "layout is 1", _set(layout=1)),
        V("layout-float", "attributes.types", "attribute-type", "layout is a FLOAT, 1.0", _set(layout=1.0)),
        V("attribute-clip", "attributes", "attribute", "clip is given, which the operator does not have",
          _set(clip=0.5)),
        V("attribute-activations", "attributes", "attribute", "activations are given, which the operator does not have",
          _set(activations=["Relu", "Relu", "Relu"] * 2)),
        V("attribute-unknown", "attributes", "attribute", "an attribute z_scale is given", _set(z_scale=1.0)),
        V("weights-one-direction", "shapes", "shapes", "W, R and B are of one direction", one, True),
        V("w-one-direction", "shapes", "shapes", "W is of one direction", _input("W", lambda a: a[:1]), True),
        V("w-three-gates", "shapes", "shapes", "W has three gates", _input("W", lambda a: a[:, : a.shape[1] // 4 * 3]),
          True),
        V("w-narrow", "shapes", "shapes", "W has fewer columns than X", _input("W", lambda a: a[:, :, :-1]), True),
        V("w-wide", "shapes", "shapes", "W has more columns than X",
          _input("W", lambda a: np.concatenate([a, a], 2)), True),
        V("r-not-square", "shapes", "shapes", "R has fewer columns than units", _input("R", lambda a: a[:, :,
          :-1]), True),
        V("b-half", "shapes", "shapes", "B holds Wb alone", _input("B", lambda a: a[:, : a.shape[1] // 2]), True),
        V("w-rank-two", "shapes", "shapes", "W has two dimensions", _input("W", lambda a: a.reshape(-1, a.shape[-1]))),
        V("b-rank-one", "shapes", "shapes", "B has one dimension", _input("B", lambda a: a.reshape(-1))),
        V("x-rank-two", "shapes", "shapes", "X has two dimensions", _input("X", lambda a: a[:, 0]), True),
        V("x-rank-four", "shapes", "shapes", "X has four dimensions", _input("X", lambda a: a[..., np.newaxis])),
        V("x-rank-zero", "shapes", "shapes", "X has no dimension", _input("X", lambda a: a.reshape(-1)[0]), True),
        V("types-double", "types", "types", "all tensors are float64", _cast(np.float64)),
        V("types-half", "types", "types", "all tensors are float16", _cast(np.float16)),
        V("types-uint16", "types", "types", "W, R and B are uint16, quantized already",
          _all(*(_input(n, lambda a: np.zeros(a.shape, np.uint16)) for n in ("W", "R", "B")))),
        V("inputs-five", "inputs", "inputs", "there is a fifth input", _fifth),
        V("inputs-no-r", "inputs", "inputs", "there is no R", _drop("R")),
        V("inputs-no-w", "inputs", "inputs", "there is no W", _drop("W")),
        V("outputs-two", "outputs", "outputs", "a second output is asked for", _second),
    ]  # fmt: skip
    rows += [
        V("direction-absent-one", "directions.default", "direction-absent", "there is no direction, and weights of one",
          _all(_without("direction"), one), True),
        V("input-forget-two", "input-forget", "input-forget", "input_forget is 2", _set(input_forget=2)),
        V("layout-two", "layout", "layout", "layout is 2", _set(layout=2)),
        V("outputs-three", "outputs", "outputs", "all outputs of ONNX's LSTM are asked for", _third),
    ]  # fmt: skip
    for name in "xwrb":
        rows.append(V(f"{name}-scale-absent", "scales.required", "scale-absent", f"there is no {name}_scale",
                      _without(f"{name}_scale")))  # fmt: skip
        rows.append(V(f"{name}-zero-point-absent", "scales.required", "scale-absent", f"there is no {name}_zero_point",
                      _without(f"{name}_zero_point")))  # fmt: skip
        rows.append(V(f"{name}-scale-list", "scales", "scale-list", f"{name}_scale is a list",
                      _set(**{f"{name}_scale": [0.5, 0.25]})))  # fmt: skip
        rows.append(V(f"{name}-zero-point-float", "attributes.types", "attribute-type", f"{name}_zero_point is a FLOAT",
                      _set(**{f"{name}_zero_point": 32768.0})))  # fmt: skip
        rows.append(V(f"{name}-scale-int", "attributes.types", "attribute-type", f"{name}_scale is an INT",
                      _set(**{f"{name}_scale": 1})))  # fmt: skip
        rows.append(V(f"{name}-zero-point-negative", "zero-points.range", "zero-point", f"{name}_zero_point is -1",
                      _set(**{f"{name}_zero_point": -1})))  # fmt: skip
        rows.append(V(f"{name}-zero-point-beyond", "zero-points.range", "zero-point", f"{name}_zero_point is 65536",
                      _set(**{f"{name}_zero_point": 65536})))  # fmt: skip
        for words, value in (("zero", 0.0), ("negative", -0.001), ("infinite", float("inf")), ("nan", float("nan"))):
            if name == "x" or words in ("zero", "negative"):
                rows.append(V(f"{name}-scale-{words}", "scales.range", "scale", f"{name}_scale is {value}",
                              _set(**{f"{name}_scale": value})))  # fmt: skip
    return rows


EXTENDED_VIOLATIONS: tuple[Violation, ...] = tuple(_table())
_BY_ID = {violation.id: violation for violation in EXTENDED_VIOLATIONS}


def extended_violation(id: str) -> Violation:
    """The violation of that id. Raises KeyError."""
    return _BY_ID[id]
