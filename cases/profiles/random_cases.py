"""Random legal cases, each with many features at once.

Kernels often fail for a combination of features, so a case with many features tests many combinations. Each case is
drawn by a key: the same key gives the same case everywhere. ``--random``, the fresh cases of a nonce, ``full``, cases
that fill up a run and `fuzz` use this module.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any

from ...reference import (
    ACTIVATIONS,
    cell_named,
    open_questions_of,
    operator_names,
    operator_version,
    versions_of,
)
from ..axes.activations import functions_of
from ..axes.axis import NOTHING, Axis
from ..axes.generator import Counter
from ..axes.node import output_subsets
from ..specs.family import Supported, drawn_operators, family_of
from ..specs.model import inputs_of
from ..specs.space import settle, space_of
from ..specs.spec import CaseSpec

# Fields drawn by one common counter, in this order. Every other field has its own counter.
_IN_ORDER = (
    *("direction", "bias", "lengths", "initial", "clip", "hidden_size", "explicit", "weights", "dimensions", "opset"),
    *("reruns", "peepholes", "input_forget", "linear_before_reset", "layout", "output_sequence", "data"),
)
_APART = frozenset({*_IN_ORDER, "type", "alpha", "beta"})

# Values of a draw, repeated by their weight. Sizes are on both sides of the numbers at which kernels change their
# method: blocks of 1, 2, 4, 8, 16 and 32, even and odd tails.
STEPS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 7, 8, 9, 11, 16, 17)
_ROWS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 9)
WIDTHS = (1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 16, 17, 19, 24, 31, 32, 32, 32, 33, 33, 34, 36)
LARGEST = 1500  # largest T*N*H; larger cases cost more than they show
# Coefficients that keep a few steps within the range of float16, and are no function's defaults.
_COEFFICIENTS = (0.1875, 0.3125, 0.625, 0.875, 1.25, -0.375, -0.75)
_BOUNDED = frozenset({"Sigmoid", "Tanh", "HardSigmoid", "Softsign", "ScaledTanh"})
_COEFFICIENTED = frozenset(name for name, kind in ACTIVATIONS.items() if kind.uses_beta)
_LONG = 6  # steps, above which only one function of a direction may be unbounded
_WIDE = 16  # of 16 cases, one has larger sizes, one has coinciding sizes, and two have other functions
_FURTHER = (1.25, 1.5, 2.0, 3.0, 0.5, 0.25, -1.25, 0.0)
_FURTHER_FUNCTIONS = ("LeakyRelu", "LeakyRelu", "Elu", "ThresholdedRelu", "ScaledTanh", "Affine", "HardSigmoid")
_OPEN = 2  # interpretations that a case may depend on: each doubles the alternatives that may excuse a fault
_REDRAWS = 6
_LEAN = (0, 0, 0, 0, 1, 3)  # of eight: how often an axis of a case keeps its simplest value


_BEYOND: tuple[dict[str, int], ...] = (
    {"T": 129, "N": 3, "I": 3, "H": 5},
    {"T": 257, "N": 3, "I": 2, "H": 4},
    {"T": 300, "N": 2, "I": 3, "H": 3},
    {"T": 3, "N": 33},
    {"T": 2, "N": 66},
    {"T": 2, "N": 3, "I": 65},
    {"T": 2, "N": 3, "I": 257},
    {"T": 3, "N": 3, "H": 65},
    {"T": 2, "N": 5, "H": 128},
    {"T": 2, "N": 2, "H": 129},
)
"""Sizes beyond the usual ones: counters of a byte, tiles of rows, caches."""


def _coinciding(directions: int, gates: int, sizes: Mapping[str, int]) -> tuple[dict[str, int], ...]:
    """Return sizes that equal other sizes of a case, so that a tensor keeps its shape when axes are exchanged.

    W is square, a state of layout 1 has the shape of layout 0, or a step of X has the shape of a state.
    """
    two = dict.fromkeys("TNIH", directions)
    square = {"I": gates * sizes["H"]}
    return square, {"N": directions}, {"H": sizes["N"]}, {"I": sizes["T"]}, {"I": sizes["N"]}, {"I": sizes["H"]}, two


def within(name: str, value: Any, values: Collection[Any]) -> bool:
    """Return whether a field's value is supported."""
    if name == "activations":
        return value is None or {v.lower() for v in value} <= {v.lower() for v in values}
    return value in values


def random_case(
    op: str,
    key: str,
    version: int | None = None,
    type: str | None = None,
    supported: Supported = NOTHING,
    kind: type[CaseSpec] = CaseSpec,
) -> CaseSpec | None:
    """Return the case that a key draws; None if the draw is not in the part of the space.

    version, type
        Version and type of the case; by default they are drawn.
    supported
        The part of the space to draw from.
    kind
        The class of the operator's cases.

    Raise ValueError for a version, type or value that the operator does not have.
    """
    stream = f"{op}/{version}/{type}/{key}"
    choose = Counter.of(stream)
    chosen, own_type = choose.one_of(_pairs(op, version, type, supported.get("type"), kind))
    spec = _drawn(op, chosen, own_type, supported, choose, stream, kind)
    return _widened(spec, supported, Counter.of(f"{stream}/wide")) if spec is not None else None


def _pairs(
    op: str, version: int | None, type: str | None, types: Collection[str] | None, kind: type[CaseSpec]
) -> list[tuple[int, str]]:
    """Return possible versions and types, repeated by their weight: newer versions are in wider use."""
    if op not in kind.operators:
        raise ValueError(f"op is one of {', '.join(kind.operators)}, not {op!r}")
    pairs = [
        (v, str(t))
        for v in versions_of(op)
        if version in (None, v)
        for t in space_of(operator_version(op, v), kind.axes)["type"].values
        if type in (None, t) and (types is None or t in types)
        for _ in range(4 if v >= 14 and t in ("float32", "bfloat16") else 2 if v >= 14 else 1)
    ]
    if not pairs:
        raise ValueError(f"{op} has no version and type that are {version or 'any'} and {type or types or 'any'}")
    return pairs


@cache
def _weighted(op: str, version: int, kind: Any) -> Mapping[str, list[Any]]:
    """Return the values to draw from by axis, repeated by their weight."""
    space = space_of(operator_version(op, version), kind.axes)
    return {name: list(axis.often or axis.common) for name, axis in space.items()}


def _drawn(
    op: str,
    version: int,
    type: str,
    supported: Supported,
    choose: Counter,
    stream: str,
    kind: type[CaseSpec],
) -> CaseSpec | None:
    space, weighted = space_of(operator_version(op, version), kind.axes), _weighted(op, version, kind)  # type: ignore[arg-type]
    lean = choose.one_of(_LEAN)

    def drawn(name: str) -> Any:
        axis = space[name]
        values = weighted[name]
        allowed = supported.get(name)
        if allowed is not None:
            values = [v for v in values if v in allowed] or list(allowed)
        simplest = [v for v in axis.common if v in values]
        value = choose.one_of(values)
        return simplest[0] if simplest and choose.below(8) < lean else value

    row: dict[str, Any] = {"type": type}
    row |= _sizes(choose, supported)
    row |= {name: drawn(name) for name in _IN_ORDER if name in space}
    row["outputs"] = _outputs(op, version, supported, choose)
    if "output_sequence" in row and "Y" in row["outputs"] and supported.get("output_sequence") is None:
        row["output_sequence"] = 1
    if type in ("float16", "bfloat16") and "Y" not in row["outputs"]:
        # Without Y, a radius grows with every step; in half types it soon exceeds the signal.
        row["T"] = min(row["T"], 3)
    row["seed"] = row["weights_seed"] = choose.below(1 << 16)
    row |= _others(space, weighted, supported, stream)
    legal = settle(row, axes=kind.axes)
    if any(not within(name, legal[name], values) for name, values in supported.items() if name in legal):
        return None
    inputs: Mapping[str, Any] = NOTHING
    for _ in range(_REDRAWS):
        spec = kind(op, version, **{**legal, **_activations(op, version, legal, supported, choose)})
        inputs = inputs or inputs_of(spec)  # they do not depend on functions
        if len(open_questions_of(spec.node, inputs)) <= _OPEN:
            return spec
    return kind(op, version, **legal)


def _others(
    space: Mapping[str, Axis], weighted: Mapping[str, Sequence[Any]], supported: Supported, stream: str
) -> dict[str, Any]:
    """Return values of the fields that have their own counter."""
    row: dict[str, Any] = {}
    for name in space:
        if name not in _APART:
            allowed = supported.get(name)
            values = [v for v in weighted[name] if allowed is None or v in allowed]
            values = values or list(space[name].common)
            row[name] = Counter.of(f"{stream}/{name}").one_of(values)
    return row


def _widened(spec: CaseSpec, supported: Supported, choose: Counter) -> CaseSpec:
    """Return the case; a few cases with larger sizes, coinciding sizes or other coefficients.

    The case is unchanged if these are not in the part of the space.
    """
    changes: dict[str, Any] = {}
    sizes, functions, size = choose.below(_WIDE), choose.below(_WIDE // 2), choose.one_of(_BEYOND)
    # If Y is not returned, bounds grow with each step.
    if sizes == 0 and ("Y" in spec.outputs or size["T"] < _LONG):
        changes |= size
        if size["T"] > _LONG:
            changes |= {"activations": None, "alpha": None, "beta": None}
    elif sizes == 1 and spec.T * spec.N > 0:
        among = _coinciding(spec.directions, operator_version(spec.op, spec.version).gates, vars(spec))
        changes |= choose.one_of(among)
    elif functions == 0 and 0 < spec.T <= _LONG and supported.get("activations") is None:
        changes |= _coefficiented(spec, choose)
    if any(name in supported and not within(name, changes[name], supported[name]) for name in changes):
        return spec
    row = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
    legal = settle({**row, **changes}, axes=spec.axes) == {**settle(row, axes=spec.axes), **changes}
    return replace(spec, **changes) if legal else spec


def _coefficiented(spec: CaseSpec, choose: Counter) -> dict[str, Any]:
    """Return functions in which the last one of each direction has unusual coefficients."""
    usual = cell_named(operator_version(spec.op, spec.version).known_as).activations
    names = list(spec.activations or usual * spec.directions)
    for last in range(len(usual) - 1, len(names), len(usual)):
        names[last] = choose.one_of(_FURTHER_FUNCTIONS)
    kinds = [ACTIVATIONS[n] for name in names for n in ACTIVATIONS if n.lower() == name.lower()]

    def given(uses: str) -> tuple[float, ...] | None:
        return tuple(choose.one_of(_FURTHER) for kind in kinds if getattr(kind, uses)) or None

    return {"activations": tuple(names), "alpha": given("uses_alpha"), "beta": given("uses_beta")}


def _sizes(choose: Counter, supported: Supported) -> dict[str, int]:
    def one_of(name: str, values: Sequence[int]) -> int:
        allowed = supported.get(name)
        chosen = [v for v in values if v in allowed] or list(allowed) if allowed is not None else values
        return int(choose.one_of(chosen))

    T, N = one_of("T", STEPS), one_of("N", _ROWS)
    I, H = one_of("I", WIDTHS), one_of("H", WIDTHS)
    equal = choose.below(8)
    if equal == 0 and "N" not in supported:
        N = T
    if equal == 1 and "I" not in supported:
        I = H
    while T * N * H > LARGEST and N > 1 and "N" not in supported:
        N -= 1
    return {"T": T, "N": N, "I": I, "H": H}


def _outputs(op: str, version: int, supported: Supported, choose: Counter) -> tuple[str, ...]:
    operator = operator_version(op, version)
    subsets = [s for s in output_subsets(operator) if "outputs" not in supported or s in supported["outputs"]]
    if not subsets:
        raise ValueError(f"{operator.name} has no outputs {list(supported['outputs'])}")
    everything = max(subsets, key=lambda s: sum(map(bool, s)))
    chosen = choose.one_of(subsets)
    return everything if choose.below(5) < 2 else chosen


def _activations(
    op: str, version: int, row: Mapping[str, Any], supported: Supported, choose: Counter
) -> dict[str, Any]:
    """Return activations, alpha and beta of a node; an empty dictionary if it lists no functions."""
    allowed = supported.get("activations")
    functions = [f for f in functions_of(operator_version(op, version)) if allowed is None or f in allowed]
    if not functions or choose.below(8) < 3:
        return {}
    per_direction = len(cell_named(op).activations)
    directions = 2 if row["direction"] == "bidirectional" else 1
    functions += [f for f in functions if f in _COEFFICIENTED]
    bounded = [f for f in functions if f in _BOUNDED] or functions
    names: list[str] = []
    for _ in range(directions):
        functions_of_direction = [choose.one_of(functions) for _ in range(per_direction)]
        if per_direction > 1:
            functions_of_direction[0] = choose.one_of(bounded)  # unbounded gates leave every range
        if row["T"] > _LONG and sum(f not in _BOUNDED for f in functions_of_direction) > (per_direction > 2):
            functions_of_direction[-1] = choose.one_of(bounded)
        names += functions_of_direction
    if choose.below(12) == 0:
        names = [name.lower() for name in names]
    attributes: dict[str, Any] = {"activations": tuple(names)}
    for name in ("alpha", "beta"):
        if choose.below(5) < 3 and supported.get(name, (None, 1)) != (None,):
            count = 1 + choose.below(len(names))
            attributes[name] = tuple(choose.one_of(_COEFFICIENTS) for _ in range(count))
    return attributes


# Features that targets lack: traits of a case are its features, and values of its fields as ``field=value``.

_UNLISTED = frozenset({"alpha", "beta"})
"""Axes without traits for their values; their traits are features only."""


def traits_of(spec: Any, features: Collection[str]) -> frozenset[str]:
    """Return the traits of a case with these features."""
    axes = getattr(spec, "axes", ())
    listed = space_of(operator_version(spec.op, spec.version), axes) if axes else {}
    fields = (name for name in (*listed, "version") if name not in _UNLISTED and hasattr(spec, name))
    return frozenset({*features, *(f"{name}={getattr(spec, name)}" for name in fields)})


def left_of(op: str, lacks: Collection[str], kind: type[CaseSpec] = CaseSpec) -> Supported:
    """Return the part of the space without some traits, as far as values of axes determine them.

    Raise ValueError where nothing is left.
    """
    axes: dict[str, dict[Any, None]] = {}
    for version in [version for version in versions_of(op) if f"version={version}" not in lacks]:
        for name, axis in space_of(operator_version(op, version), kind.axes).items():
            axes.setdefault(name, {}).update(dict.fromkeys((*axis.common, *axis.rare)))
    left: dict[str, Collection[Any]] = {}
    for name, values in axes.items():
        kept = tuple(value for value in values if f"{name}={value}" not in lacks)
        if len(kept) < len(values) and name not in _UNLISTED:
            left[name] = kept
    if "clip" in lacks:
        left["clip"] = (None,)
    newest = operator_version(op, versions_of(op)[-1])
    functions = tuple(name for name in functions_of(newest) if f"uses-{name}" not in lacks)
    if "activations" in lacks or len(functions) < len(functions_of(newest)):
        left["activations"] = () if "activations" in lacks else functions
    if any(not values for name, values in left.items() if name != "activations"):
        raise ValueError(f"nothing is left of {op} without {', '.join(sorted(lacks))}")
    return MappingProxyType(left)


_MOST_IN_VAIN = 5000
"""Number of unsuccessful draws after which a stream ends."""


def random_specs(
    count: int,
    seed: int | str,
    ops: Collection[str] = (),
    versions: Collection[int] = (),
    types: Collection[str] = (),
    lacks: Collection[str] = (),
) -> tuple[Any, ...]:
    """Return the first cases of :func:`random_stream`."""
    return tuple(itertools.islice(random_stream(seed, ops, versions, types, lacks), count))


def random_stream(
    seed: int | str,
    ops: Collection[str] = (),
    versions: Collection[int] = (),
    types: Collection[str] = (),
    lacks: Collection[str] = (),
) -> Iterator[Any]:
    """Return random cases without end, of each operator in turn; the stream ends if no more cases are found.

    ops, versions, types
        Selected operators, versions and types; empty collections mean all. By default the operators are those of ONNX
        that draw cases themselves.
    lacks
        Traits (:func:`traits_of`) that no case has, because the targets do not support them.

    Raise ValueError where no operator has one of the versions with one of the types, or nothing is left of one.
    """
    usual = [op for op in drawn_operators() if op in operator_names("")]
    chosen = [op for op in operator_names() if op in (ops or usual)]
    drawn = [_of_operator(op, seed, versions, types, lacks) for op in chosen if _exists(op, versions, types)]
    if not drawn:
        raise ValueError("no operator has a version and a type of those that were asked for")
    turns = itertools.chain.from_iterable(itertools.zip_longest(*drawn))
    return (spec for spec in turns if spec is not None)


def _exists(op: str, versions: Collection[int], types: Collection[str]) -> bool:
    """Return whether an operator has one of the versions with one of the types."""
    chosen = [version for version in versions_of(op) if not versions or version in versions]
    return any(not types or set(types) & set(operator_version(op, version).types) for version in chosen)


def _of_operator(
    op: str, seed: int | str, versions: Collection[int], types: Collection[str], lacks: Collection[str]
) -> Iterator[Any]:
    family = family_of(op)
    supported = family.without(op, lacks)
    if types:
        supported = {**supported, "type": [t for t in types if t in supported.get("type", types)]}
    absent = frozenset(lacks)

    def refused(spec: Any) -> bool:
        if (versions and spec.version not in versions) or (types and spec.type not in types):
            return True
        return bool(absent and absent & traits_of(spec, family.features(spec)))

    return distinct(lambda key: family.random_case(op, key, supported=supported), f"fresh/{seed}", refused)


def distinct(
    draw: Callable[[str], Any], seed: int | str, refused: Callable[[Any], bool] = lambda spec: False
) -> Iterator[Any]:
    """Yield distinct cases, drawn by the keys of a seed. The stream ends if no more cases are found."""
    found: set[Any] = set()
    in_vain = 0
    for index in itertools.count():
        spec = draw(f"{seed}/{index}")
        if spec is None or spec in found or refused(spec):
            in_vain += 1
            if in_vain > _MOST_IN_VAIN:
                return
            continue
        in_vain = 0
        found.add(spec)
        yield spec
