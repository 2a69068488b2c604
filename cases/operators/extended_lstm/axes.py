"""The axes of ExtendedLSTM: those of an LSTM that it has, and its own: what a case is about, how each tensor is
quantized, how much of its range its numbers use."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....reference import OperatorVersion
from ...axes.attributes import finite_float32
from ...axes.axis import Axis, Domain, Field, Rule, but
from ...axes.condition import Condition, of_values
from ...axes.node.attributes import EXPLICIT, HiddenSizeAxis
from ...axes.observed import Observed
from ...axes.session import RerunsAxis
from ...axes.tensors.bias import BiasAxis
from ...axes.tensors.draft import TensorDraft
from ...axes.tensors.seeds import SEEDS
from ...axes.tensors.size import SizeAxis, sizes
from ...axes.tensors.weights import WeightsAxis
from ...axes.violation import Draft, changed, set_to, without_input
from .codec import B, CodecAxis, OutputCodecAxis, R, W, X
from .violations import broken, cast, each, one_direction, without


class _About(Axis):
    """The subject of a case, as words of its id: ``realistic``, ``x-scale-power-of-two``."""

    name = "about"
    fields = (Field("about", str, ""),)
    part = "session"

    def choices(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        return {}

    def drawn(self, st: Any) -> Mapping[str, Any]:
        return {"about": st.just("drawn")}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        fits = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]{0,59}", spec.about)
        return None if fits else ("about", "one to 60 letters, digits, dots and hyphens")

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {f"about-{spec.about}": True}

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        return iter(())


class _ExtendedDirection(Axis):
    """Both directions, always."""

    name = "direction"
    forbidden = (
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
    )  # fmt: skip

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {"direction": spec.direction}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {"bidirectional": True}


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


class _Size(SizeAxis):
    """T, N, I and H, the first two of which may be 0, and I."""

    fields = sizes(T=4, N=1, I=3, H=3)
    least = {"T": 0, "N": 0, "I": 0, "H": 1}
    forbidden = (
        broken("weights-one-direction", "shapes", "shapes", "W, R and B are of one direction", one_direction, True),
        *(
            broken(id, "shapes", "shapes", summary, changed(id[0].upper(), change), spoils)
            for id, summary, change, spoils in _SHAPES
        ),
    )

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return _sizes(observed.configuration)

    def used(self, spec: Any) -> Mapping[str, bool]:
        return _sizes(spec)


def _sizes(of: Any) -> Mapping[str, bool]:
    return {
        "size-one": 1 in (of.T, of.I, of.H),
        "size-zero": 0 in (of.T, of.N, of.I, of.H),
        "several-rows": of.N > 1,
    }


class _Fill(Axis):
    """The part of its range that a tensor's numbers use: more than 1 saturates."""

    name = "fill"
    fields = (Field("fill", tuple[tuple[str, float], ...], ()),)

    def choices(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        return {}

    def drawn(self, st: Any) -> Mapping[str, Any]:
        shares = st.tuples(*[st.sampled_from((1.0, 0.25, 1.5))] * 4)  # all of a range, little, more than there is
        return {"fill": shares.map(lambda some: tuple(pair for pair in zip("XWRB", some, strict=True) if pair[1] != 1))}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        right = all(name in ("X", "W", "R", "B", "Y") and finite_float32(f) and f > 0 for name, f in spec.fill)
        return None if right else ("fill", "pairs of a tensor's name and a positive number")

    def told(self, name: str, value: Any, instead: Collection[Any]) -> tuple[Condition, ...]:
        if any(share > 1 for _, share in value):
            words = "numbers beyond what levels stand for"
            return (Condition(words, lambda spec: any(share > 1 for _, share in spec.fill)),)
        words = "numbers that use little of their range"
        return (Condition(words, lambda spec: bool(spec.fill) and all(share <= 1 for _, share in spec.fill)),)


def _beyond(row: Any, name: str) -> bool:
    return any(fill > 1 for of, fill in row.fill if of == name.upper())


_WILD = {"inf": np.inf, "nan": np.nan, "far": 1e30}
_SAID = {
    "nan": "NaN",
    "inf": "infinity",
    "far": "numbers far beyond all levels",
    "ties": "numbers between two levels",
}


class _ExtendedData(Axis):
    """``dense``; ``ties`` (X between two levels); ``inf``, ``nan``, ``far`` (some of X is infinite, NaN, 1e30)."""

    name = "data"
    fields = (Field("data", str, "dense"),)
    conditions = {value: (of_values(words, "data", value),) for value, words in _SAID.items()}
    rules = (Rule("data", "dense", ("T", "N"), lambda row: not (row["T"] and row["N"])),)

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"data": Domain(("dense",), rare=("ties", "inf", "far", "nan"))}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.data != "dense" and spec.illegal:
            return "data", "'dense' in a forbidden model"
        if spec.data != "dense" and not spec.T * spec.N * spec.I * spec.x[0]:
            return "data", "'dense' where X is empty or has no scale"
        return None

    def spoil(self, spec: Any, draft: TensorDraft) -> None:
        X: NDArray[Any] = draft.inputs["X"]
        if spec.data == "ties":
            levels = np.floor(X.astype(np.float64) / spec.x[0])
            draft.inputs["X"] = ((levels + 0.5) * spec.x[0]).astype(X.dtype)
        elif spec.data != "dense":
            wild = _WILD[spec.data]
            X[len(X) // 2, 0, 0] = wild
            if spec.data != "nan" and X.size > 1:
                X[-1, 0, -1] = -wild

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        resolved: Any = observed.configuration
        given, codecs = resolved.given, resolved.affine
        beyond = (
            (given[name] < affine.least - affine.scale).any() or (given[name] > affine.greatest + affine.scale).any()
            for name, affine in codecs.items()
        )
        return {
            "nonfinite": not all(np.isfinite(array).all() for array in given.values()),
            "saturating-input": any(beyond),
        }

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {
            "near-tie": spec.data == "ties",
            "nonfinite": spec.data in ("inf", "nan"),
            "saturating-input": spec.data in ("inf", "far") or any(_beyond(spec, name) for name in "xwrb"),
        }


class _Bias(BiasAxis):
    """The input B, which most runtimes ask for."""

    fields = (Field("bias", bool, True),)
    marked = "no-bias"
    forbidden = (
        broken("b-half", "shapes", "shapes", "B holds Wb alone", changed("B", lambda a: a[:, : a.shape[1] // 2]), True),
        broken("b-rank-one", "shapes", "shapes", "B has one dimension", changed("B", lambda a: a.reshape(-1))),
    )

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {**super().observe(observed), "bias-absent": "B" not in observed.inputs}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"bias-absent": not spec.bias}


def _hidden_size(of: Callable[[int], float]) -> Callable[[Draft], None]:
    return lambda draft: draft.attributes.update(hidden_size=of(draft.H))


class _HiddenSize(HiddenSizeAxis):
    """The attribute, which cases tell to be there or not, since the document leaves open what follows."""

    forbidden = (
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
    )  # fmt: skip

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {"hidden-size-absent": "hidden_size" not in observed.attributes}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"hidden-size-absent": not spec.hidden_size}


class _Weights(WeightsAxis):
    """Constants first, which is how the producer writes them."""

    fields = (Field("weights", str, "initializer"),)
    forbidden = tuple(
        broken(f"inputs-no-{name.lower()}", "inputs", "inputs", f"there is no {name}", without_input(name))
        for name in "RW"
    )

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {value: spec.weights == value for value in ("initializer", "input")}


class _Reruns(RerunsAxis):
    """``sizes``: of more steps, since one row is what every implementation has."""

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"reruns": Domain(("none", "data", "sizes"))}

    def resize(self, spec: Any, draft: TensorDraft) -> None:
        if draft.run and spec.reruns == "sizes":
            draft.T += 2


class _Open(Axis):
    """Names for seq_length and batch_size in the model; where runs have several sizes it does anyhow."""

    name = "open"
    fields = (Field("open", bool, False),)
    part = "model"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"open": Domain((False, True))}


def is_open(row: Any) -> bool:
    """Tell whether the model of a case gives names to seq_length and batch_size."""
    return bool(row.open or row.reruns == "sizes")


class _Former(Axis):
    """The old domain and name of the node."""

    name = "old"
    fields = (Field("old", bool, False),)
    part = "model"
    words = {"old-domain": "the operator's former name"}
    conditions = {True: (of_values("the old name", "old", True),)}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"old": Domain((False, True))}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"old-domain": spec.old}


def _fifth_input(draft: Draft) -> None:
    draft.inputs["initial_h"] = np.zeros((2, 1, draft.H), np.float32)


def _outputs(*names: str) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        draft.outputs = [*names]

    return change


class _Fixed(Axis):
    """Facts that the document holds fast, and models can only break: input_forget, layout, the names of attributes,
    types, how many inputs and outputs there are."""

    name = "fixed"
    forbidden = (
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
    )  # fmt: skip


EXTENDED_AXES: tuple[Axis, ...] = (
    *(_About(), _ExtendedDirection(), _Fixed(), _Size()),
    *(
        CodecAxis("x", X),
        CodecAxis("w", W),
        CodecAxis("r", R),
        CodecAxis("b", B),
        OutputCodecAxis(),
        _Fill(),
        _ExtendedData(),
        _Bias(),
    ),
    *(_HiddenSize(), _Weights(), _Reruns(), _Open(), _Former()),
    # Two ways to write a node at a time are what its dense cases have.
    but(EXPLICIT, rules=(), forbidden=()),
    but(SEEDS, fields=(Field("seed", int, 0),)),
)
