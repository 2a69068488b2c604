"""Invalid models of ExtendedLSTM, by the clause that each violates and the feature that the clause table gives it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...axes.violation import Draft, Violation, changed, set_to, without_input

Change = Callable[[Draft], None]
Row = tuple[Any, ...]


def _each(*changes: Change) -> Change:
    """Return a change that makes several changes in order."""

    def change(draft: Draft) -> None:
        for one in changes:
            one(draft)

    return change


def _without(name: str) -> Change:
    return lambda draft: draft.attributes.__delitem__(name)


def _cast(names: str, dtype: Any) -> Change:
    return _each(*(changed(name, lambda array: array.astype(dtype)) for name in names))


def _hidden_size(of: Callable[[int], float]) -> Change:
    return lambda draft: draft.attributes.update(hidden_size=of(draft.H))


def _outputs(*names: str) -> Change:
    return lambda draft: draft.outputs.__setitem__(slice(None), names)


def _fifth_input(draft: Draft) -> None:
    draft.inputs["initial_h"] = np.zeros((2, 1, draft.H), np.float32)


_one_direction = _each(*(changed(name, lambda array: array[:1]) for name in "WRB"))

SPOILS = True
"""An implementation that does not check this may corrupt its memory."""

# Rows: id, summary, change, SPOILS.
# fmt: off

_FIXED: Mapping[tuple[str, str], tuple[Row, ...]] = {
    ("directions.supported", "direction"): (
        ("direction-forward", 'direction is "forward"', set_to("direction", "forward")),
        ("direction-reverse", 'direction is "reverse"', set_to("direction", "reverse")),
        ("direction-other", 'direction is "sideways"', set_to("direction", "sideways")),
        ("direction-one", 'direction is "forward", and so are the weights',
         _each(set_to("direction", "forward"), _one_direction), SPOILS),
    ),
    ("directions.default", "direction-absent"): (
        ("direction-absent", "there is no direction", _without("direction")),
        ("direction-absent-one", "there is no direction, and weights of one",
         _each(_without("direction"), _one_direction), SPOILS),
    ),
    ("attributes.types", "attribute-type"): (
        ("direction-number", "direction is an INT", set_to("direction", 2)),
        ("input-forget-float", "input_forget is a FLOAT, 1.0", set_to("input_forget", 1.0)),
        ("layout-float", "layout is a FLOAT, 1.0", set_to("layout", 1.0)),
        ("hidden-size-float", "hidden_size is a FLOAT", _hidden_size(float)),
    ),
    ("input-forget", "input-forget"): (
        ("input-forget-one", "input_forget is 1", set_to("input_forget", 1)),
        ("input-forget-two", "input_forget is 2", set_to("input_forget", 2)),
    ),
    ("layout", "layout"): (
        ("layout-one", "layout is 1", set_to("layout", 1)),
        ("layout-two", "layout is 2", set_to("layout", 2)),
    ),
    ("attributes", "attribute"): (
        ("attribute-clip", "clip is given, which the operator does not have", set_to("clip", 0.5)),
        ("attribute-activations", "activations are given, which the operator does not have",
         set_to("activations", ["Relu", "Relu", "Relu"] * 2)),
        ("attribute-unknown", "an attribute z_scale is given", set_to("z_scale", 1.0)),
    ),
    ("types", "types"): (
        ("types-double", "all tensors are float64", _cast("XWRB", np.float64)),
        ("types-half", "all tensors are float16", _cast("XWRB", np.float16)),
        ("types-uint16", "W, R and B are uint16, quantized already",
         _each(*(changed(n, lambda a: np.zeros(a.shape, np.uint16)) for n in "WRB"))),
    ),
    ("inputs", "inputs"): (
        ("inputs-five", "there is a fifth input", _fifth_input),
        ("inputs-no-r", "there is no R", without_input("R")),
        ("inputs-no-w", "there is no W", without_input("W")),
    ),
    ("outputs", "outputs"): (
        ("outputs-two", "a second output is asked for", _outputs("Y", "Y_h")),
        ("outputs-three", "all outputs of ONNX's LSTM are asked for", _outputs("Y", "Y_h", "Y_c")),
    ),
    ("hidden-size", "hidden-size"): (
        ("hidden-size-larger", "hidden_size is larger than R", _hidden_size(lambda H: H + 5), SPOILS),
        ("hidden-size-smaller", "hidden_size is smaller than R", _hidden_size(lambda H: H - 1), SPOILS),
        ("hidden-size-zero", "hidden_size is 0", _hidden_size(lambda H: 0), SPOILS),
        ("hidden-size-negative", "hidden_size is -1", _hidden_size(lambda H: -1), SPOILS),
    ),
    ("shapes", "shapes"): (
        ("weights-one-direction", "W, R and B are of one direction", _one_direction, SPOILS),
        ("w-one-direction", "W is of one direction", changed("W", lambda a: a[:1]), SPOILS),
        ("w-three-gates", "W has three gates", changed("W", lambda a: a[:, : a.shape[1] // 4 * 3]), SPOILS),
        ("w-narrow", "W has fewer columns than X", changed("W", lambda a: a[:, :, :-1]), SPOILS),
        ("w-wide", "W has more columns than X", changed("W", lambda a: np.concatenate([a, a], 2)), SPOILS),
        ("r-not-square", "R has fewer columns than units", changed("R", lambda a: a[:, :, :-1]), SPOILS),
        ("w-rank-two", "W has two dimensions", changed("W", lambda a: a.reshape(-1, a.shape[-1]))),
        ("x-rank-two", "X has two dimensions", changed("X", lambda a: a[:, 0]), SPOILS),
        ("x-rank-four", "X has four dimensions", changed("X", lambda a: a[..., np.newaxis])),
        ("x-rank-zero", "X has no dimension", changed("X", lambda a: a.reshape(-1)[0]), SPOILS),
        ("b-half", "B holds Wb alone", changed("B", lambda a: a[:, : a.shape[1] // 2]), SPOILS),
        ("b-rank-one", "B has one dimension", changed("B", lambda a: a.reshape(-1))),
    ),
}


def _of_codec(name: str) -> Iterator[tuple[tuple[str, str], Row]]:
    """Yield the violations in the scale and zero point of a tensor."""
    scale, zero = f"{name}_scale", f"{name}_zero_point"
    for attribute, kind, value in ((zero, "a FLOAT", 32768.0), (scale, "an INT", 1)):
        words = attribute.replace("_", "-")
        yield ("scales.required", "scale-absent"), (f"{words}-absent", f"there is no {attribute}", _without(attribute))
        id = f"{words}-{kind.split()[1].lower()}"
        yield ("attributes.types", "attribute-type"), (id, f"{attribute} is {kind}", set_to(attribute, value))
    yield ("scales", "scale-list"), (f"{name}-scale-list", f"{scale} is a list", set_to(scale, [0.5, 0.25]))
    for word, level in (("negative", -1), ("beyond", 65536)):
        row = f"{name}-zero-point-{word}", f"{zero} is {level}", set_to(zero, level)
        yield ("zero-points.range", "zero-point"), row
    sizes = {"zero": 0.0, "negative": -0.001}
    # Whether a loader detects an infinite or NaN scale does not depend on the tensor, so one tensor is enough.
    for word, size in {**sizes, **({"infinite": math.inf, "nan": math.nan} if name == "x" else {})}.items():
        yield ("scales.range", "scale"), (f"{name}-scale-{word}", f"{scale} is {size}", set_to(scale, size))


def violations() -> Iterator[Violation]:
    """Yield all of them. Each is due when the model is loaded."""
    rows = [(key, row) for key, of_topic in _FIXED.items() for row in of_topic]
    for (topic, feature), (id, summary, change, *spoils) in [*rows, *(row for n in "xwrb" for row in _of_codec(n))]:
        yield Violation(id, "load", summary, change, breaks=topic, feature=feature, spoils=bool(spoils))
