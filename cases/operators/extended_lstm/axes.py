"""Axes of ExtendedLSTM: those of LSTM that it has, and its own.

Its own are the subject of a case, the quantization of each tensor, and the part of its range that its numbers use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ...axes.activations import finite_float32
from ...axes.axis import Axis, Condition, Feature, Rule, of_values, without_numbers
from ...axes.node import EXPLICIT, HIDDEN_SIZE
from ...axes.session import RERUNS, WEIGHTS
from ...axes.tensors import BIAS, SEED, size_axis
from ...axes.violation import Draft, changed, set_to, without_input
from ...specs.data import TensorDraft
from .codec import OUTPUT_CODEC, B, R, W, X, broken, cast, codec_axis, each, fill_levels, one_direction, without

# The subject of a case, as part of its id: realistic, x-scale-power-of-two
_ABOUT = Axis(
    name="about",
    fits=(
        lambda value: re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]{0,59}", value) is not None,
        "one to 60 letters, digits, dots and hyphens",
    ),
    drawn=lambda st: st.just("drawn"),
    simpler=lambda spec: (),
)

# Both directions, always.
_DIRECTION = Axis(
    name="direction",
    forbidden=(
        *(
            broken(f"direction-{word}", "directions.supported", "direction", f'direction is "{value}"',
                   set_to("direction", value))
            for word, value in (("forward", "forward"), ("reverse", "reverse"), ("other", "sideways"))
        ),
        broken("direction-absent", "directions.default", "direction-absent", "there is no direction",
               without("direction")),
        broken("direction-one", "directions.supported", "direction", 'direction is "forward", and so are the weights',
               each(set_to("direction", "forward"), one_direction), True),
        broken("direction-number", "attributes.types", "attribute-type", "direction is an INT",
               set_to("direction", 2)),
        broken("direction-absent-one", "directions.default", "direction-absent",
               "there is no direction, and weights of one", each(without("direction"), one_direction), True),
    ),
    features=(Feature("bidirectional", "", lambda o: True),),
)  # fmt: skip


_SHAPES: tuple[tuple[str, str, Callable[[NDArray[Any]], Any], bool], ...] = (
    ("w-one-direction", "W is of one direction", lambda a: a[:1], True),
    ("w-three-gates", "W has three gates", lambda a: a[:, : a.shape[1] // 4 * 3], True),
    ("w-narrow", "W has fewer columns than X", lambda a: a[:, :, :-1], True),
    ("w-wide", "W has more columns than X", lambda a: np.concatenate([a, a], 2), True),
    ("r-not-square", "R has fewer columns than units", lambda a: a[:, :, :-1], True),
    ("w-rank-two", "W has two dimensions", lambda a: a.reshape(-1, a.shape[-1]), False),
    ("x-rank-two", "X has two dimensions", lambda a: a[:, 0], True),
    ("x-rank-four", "X has four dimensions", lambda a: a[..., np.newaxis], False),
    ("x-rank-zero", "X has no dimension", lambda a: a.reshape(-1)[0], True),
)


def _extents(test: Callable[[int, int, int, int], bool], name: str, words: str = "") -> Feature:
    """Return a feature of T, N, I and H."""

    def holds(of: Any) -> bool:
        return test(of.T, of.N, of.I, of.H)

    return Feature(name, words, lambda o: holds(o.configuration), holds)


_STEPS = size_axis(
    "T",
    "step",
    0,
    forbidden=(
        broken("weights-one-direction", "shapes", "shapes", "W, R and B are of one direction", one_direction, True),
        *(
            broken(id, "shapes", "shapes", summary, changed(id[0].upper(), change), spoils)
            for id, summary, change, spoils in _SHAPES
        ),
    ),
    features=(
        _extents(lambda T, N, I, H: 1 in (T, I, H), "size-one"),
        _extents(lambda T, N, I, H: 0 in (T, N, I, H), "size-zero"),
        _extents(lambda T, N, I, H: N > 1, "several-rows"),
    ),
    conditions={0: (of_values("seq_length 0", "T", 0),)},
)


def _right_shares(value: Any) -> bool:
    return all(name in ("X", "W", "R", "B", "Y") and finite_float32(f) and f > 0 for name, f in value)


def _shares(st: Any) -> Any:
    shares = st.tuples(*[st.sampled_from((1.0, 0.25, 1.5))] * 4)  # all of a range, little, more than there is
    return shares.map(lambda some: tuple(pair for pair in zip("XWRB", some, strict=True) if pair[1] != 1))


def _words_of_shares(value: Any, instead: Collection[Any]) -> tuple[Condition, ...]:
    if any(share > 1 for _, share in value):
        words = "numbers beyond what levels stand for"
        return (Condition(words, lambda spec: any(share > 1 for _, share in spec.fill)),)
    words = "numbers that use little of their range"
    return (Condition(words, lambda spec: bool(spec.fill) and all(share <= 1 for _, share in spec.fill)),)


# The part of its range that a tensor's numbers use; above 1 they saturate.
_FILL = Axis(
    name="fill",
    fits=(_right_shares, "pairs of a tensor's name and a positive number"),
    drawn=_shares,
    conditions=_words_of_shares,
)


def _beyond(row: Any, name: str) -> bool:
    return any(fill > 1 for of, fill in row.fill if of == name.upper())


_WILD = {"inf": np.inf, "nan": np.nan, "far": 1e30}
_SAID = {
    "nan": "NaN",
    "inf": "infinity",
    "far": "numbers far beyond all levels",
    "ties": "numbers between two levels",
}


def _fill_data(spec: Any, draft: TensorDraft) -> None:
    X: NDArray[Any] = draft.inputs["X"]
    if spec.data == "ties":
        levels = np.floor(X.astype(np.float64) / spec.x[0])
        draft.inputs["X"] = ((levels + 0.5) * spec.x[0]).astype(X.dtype)
    elif spec.data != "dense":
        wild = _WILD[spec.data]
        X[len(X) // 2, 0, 0] = wild
        if spec.data != "nan" and X.size > 1:
            X[-1, 0, -1] = -wild


def _saturates(o: Any) -> bool:
    given, codecs = o.configuration.given, o.configuration.affine
    return any(
        bool((array < codecs[name].least - codecs[name].scale).any())
        or bool((array > codecs[name].greatest + codecs[name].scale).any())
        for name, array in given.items()
    )


# dense; ties (X between two levels); inf, nan, far (some of X is infinite, NaN, 1e30)
_DATA = Axis(
    name="data",
    values=("dense", "ties", "inf", "far", "nan"),
    rare=("ties", "inf", "far", "nan"),
    legal_only=True,
    rules=(Rule("data", "dense", ("T", "N"), without_numbers),),
    features=(
        Feature("near-tie", case=lambda spec: spec.data == "ties"),
        Feature(
            "nonfinite",
            "",
            lambda o: not all(np.isfinite(array).all() for array in o.configuration.given.values()),  # type: ignore[attr-defined]
            lambda spec: spec.data in ("inf", "nan"),
        ),
        Feature(
            "saturating-input",
            "",
            _saturates,
            lambda spec: spec.data in ("inf", "far") or any(_beyond(spec, name) for name in "xwrb"),
        ),
    ),
    conditions={value: (of_values(words, "data", value),) for value, words in _SAID.items()},
    fill=_fill_data,
)


def _fill_bias(spec: Any, draft: TensorDraft) -> None:
    if spec.bias:
        draft.hold("B", (2, 8 * draft.H), -1)
        fill_levels(spec, draft, "B")


_LEVELS_OF_BIAS = replace(codec_axis("b", B), fill=_fill_bias)

# The input B, which most runtimes require.
_BIAS = replace(
    BIAS,
    fill=None,
    marked="no-bias",
    forbidden=(
        broken("b-half", "shapes", "shapes", "B holds Wb alone", changed("B", lambda a: a[:, : a.shape[1] // 2]), True),
        broken("b-rank-one", "shapes", "shapes", "B has one dimension", changed("B", lambda a: a.reshape(-1))),
    ),
    features=(
        *BIAS.features,
        Feature("bias-absent", "", lambda o: "B" not in o.inputs, lambda spec: not spec.bias),
    ),
)


def _hidden_size(of: Callable[[int], float]) -> Callable[[Draft], None]:
    return lambda draft: draft.attributes.update(hidden_size=of(draft.H))


# Cases set the attribute or leave it out, because the document is ambiguous about its absence.
_HIDDEN_SIZE = replace(
    HIDDEN_SIZE,
    forbidden=(
        *(
            broken(f"hidden-size-{word}", "hidden-size", "hidden-size", f"hidden_size is {words}", _hidden_size(of),
                   True)
            for word, words, of in (
                ("larger", "larger than R", lambda H: H + 5),
                ("smaller", "smaller than R", lambda H: H - 1),
                ("zero", "0", lambda H: 0),
                ("negative", "-1", lambda H: -1),
            )
        ),
        broken("hidden-size-float", "attributes.types", "attribute-type", "hidden_size is a FLOAT",
               _hidden_size(float)),
    ),
    features=(
        Feature(
            "hidden-size-absent", "", lambda o: "hidden_size" not in o.attributes, lambda spec: not spec.hidden_size
        ),
    ),
)  # fmt: skip

# Constants first, as the producer writes models.
_WEIGHTS = replace(
    WEIGHTS,
    forbidden=tuple(
        broken(f"inputs-no-{name.lower()}", "inputs", "inputs", f"there is no {name}", without_input(name))
        for name in "RW"
    ),
    features=(
        Feature("initializer", case=lambda spec: spec.weights == "initializer"),
        Feature("input", case=lambda spec: spec.weights == "input"),
    ),
)


def _longer(spec: Any, draft: TensorDraft) -> None:
    """Give the earlier run more steps. Rows stay the same, because every implementation supports one row."""
    if draft.run and spec.reruns == "sizes":
        draft.T += 2


_RERUNS = replace(RERUNS, values=("none", "data", "sizes"), rare=(), often=(), prepare=_longer)

# Names for seq_length and batch_size in the model; models of runs with several sizes have names in any case.
_OPEN = Axis(name="open", values=(False, True))


# The old domain and name of the node.
_OLD = Axis(
    name="old",
    values=(False, True),
    features=(Feature("old-domain", "the operator's former name", case=lambda spec: spec.old),),
    conditions={True: (of_values("the old name", "old", True),)},
)


def _fifth_input(draft: Draft) -> None:
    draft.inputs["initial_h"] = np.zeros((2, 1, draft.H), np.float32)


def _outputs(*names: str) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        draft.outputs = [*names]

    return change


# Facts that the document fixes and only invalid models change: input_forget, layout, the names of attributes, types,
# the numbers of inputs and outputs.
_FIXED = Axis(
    name="fixed",
    simpler=lambda spec: (),
    forbidden=(
        broken("input-forget-one", "input-forget", "input-forget", "input_forget is 1", set_to("input_forget", 1)),
        broken("input-forget-float", "attributes.types", "attribute-type", "input_forget is a FLOAT, 1.0",
               set_to("input_forget", 1.0)),
        broken("layout-one", "layout", "layout", "layout is 1", set_to("layout", 1)),
        broken("layout-float", "attributes.types", "attribute-type", "layout is a FLOAT, 1.0", set_to("layout", 1.0)),
        broken("attribute-clip", "attributes", "attribute", "clip is given, which the operator does not have",
               set_to("clip", 0.5)),
        broken("attribute-activations", "attributes", "attribute",
               "activations are given, which the operator does not have",
               set_to("activations", ["Relu", "Relu", "Relu"] * 2)),
        broken("attribute-unknown", "attributes", "attribute", "an attribute z_scale is given", set_to("z_scale", 1.0)),
        broken("types-double", "types", "types", "all tensors are float64", cast(np.float64)),
        broken("types-half", "types", "types", "all tensors are float16", cast(np.float16)),
        broken("types-uint16", "types", "types", "W, R and B are uint16, quantized already",
               each(*(changed(n, lambda a: np.zeros(a.shape, np.uint16)) for n in ("W", "R", "B")))),
        broken("inputs-five", "inputs", "inputs", "there is a fifth input", _fifth_input),
        broken("outputs-two", "outputs", "outputs", "a second output is asked for", _outputs("Y", "Y_h")),
        broken("input-forget-two", "input-forget", "input-forget", "input_forget is 2", set_to("input_forget", 2)),
        broken("layout-two", "layout", "layout", "layout is 2", set_to("layout", 2)),
        broken("outputs-three", "outputs", "outputs", "all outputs of ONNX's LSTM are asked for",
               _outputs("Y", "Y_h", "Y_c")),
    ),
)  # fmt: skip

EXTENDED_AXES: tuple[Axis, ...] = (
    *(_ABOUT, _DIRECTION, _FIXED),
    *(_STEPS, size_axis("N", "row", 0, conditions={0: (of_values("batch_size 0", "N", 0),)})),
    *(size_axis("I", "feature of X", 0), size_axis("H", "unit", 1)),
    *(codec_axis("x", X), codec_axis("w", W), codec_axis("r", R), _LEVELS_OF_BIAS, OUTPUT_CODEC, _FILL, _DATA, _BIAS),
    *(_HIDDEN_SIZE, _WEIGHTS, _RERUNS, _OPEN, _OLD),
    # Dense cases write a node in these two ways.
    replace(EXPLICIT, rules=(), forbidden=()),
    SEED,
)
