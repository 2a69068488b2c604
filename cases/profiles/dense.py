"""Dense cases: legal configurations drawn at random, each with many features at once.

Kernels break one thing when another is there, and a case in which many things are there tries all their combinations
at a time: sixty such models show more pairs of "X goes wrong when Y" than hundreds that carry one feature each. They
are drawn from the space (:mod:`..specs.space`) by a counter, every case by its own number, so that a list of numbers is
a list of cases and the same numbers are the same cases everywhere.

*Levels* are nested parts of the space. A target that stops at one keeps the dense cases of that level.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any

from ...reference import ACTIVATIONS, cell_named, interpretations_touched, operator_version, versions_of
from ..axes.axis import NOTHING, Domain
from ..axes.generator import Counter
from ..axes.node.functions import functions_of
from ..axes.node.outputs import output_subsets
from ..axes.recurrent import RECURRENT_AXES
from ..axes.tensors.size import BEYOND, coinciding
from ..specs.data import inputs_of
from ..specs.space import PINNED_AXES, settle, space_of
from ..specs.spec import CaseSpec

Supported = Mapping[str, Collection[Any]]
"""Values that a case may have on axes of the space, named as the fields of CaseSpec; an axis that is not named
may have any. ``activations`` are names of functions that a node may list, and none may be listed where it is empty;
values of ``outputs`` are tuples."""


def _level(name: str) -> Supported:
    """The values that belong to a level, by what axes say; what none says of a level holds as for the one before."""
    return {axis.name: axis.levels.get(name, axis.levels["basic"]) for axis in RECURRENT_AXES if axis.levels}


def _restricts(supported: Supported) -> Supported:
    """Without axes that may have any of their values."""
    free = {axis.name for axis in RECURRENT_AXES if set(supported.get(axis.name, ())) == set(axis.order) != set()}
    return {name: values for name, values in supported.items() if name not in free}


LEVELS: Mapping[str, Supported] = MappingProxyType(
    {
        "basic": _level("basic"),
        "sequence": _restricts(_level("sequence")),
        "complete": {axis.name: axis.levels["complete"] for axis in RECURRENT_AXES if "complete" in axis.levels},
    }
)
"""Nested parts of the space, from what every runtime begins with to all that there is of numbers."""

# Values of a draw, each as often as is its weight. Sizes stand on both sides of the numbers at which kernels
# change their ways: blocks of 1, 2, 4, 8, 16 and 32, even and odd tails.
_STEPS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 7, 8, 9, 11, 16, 17)
_ROWS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 9)
_WIDTHS = (1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 16, 17, 19, 24, 31, 32, 32, 32, 33, 33, 34, 36)
_LARGEST = 1500  # T*N*H, beyond which a case costs more to judge than it shows
# Coefficients that keep a few steps within the range of float16, and are no function's defaults.
_COEFFICIENTS = (0.1875, 0.3125, 0.625, 0.875, 1.25, -0.375, -0.75)
_BOUNDED = frozenset({"Sigmoid", "Tanh", "HardSigmoid", "Softsign", "ScaledTanh"})
_COEFFICIENTED = frozenset(name for name, kind in ACTIVATIONS.items() if kind.uses_beta)
_LONG = 6  # steps, beyond which only one function of a direction may be unbounded
_WIDE = 16  # of so many fresh cases one has sizes beyond the usual, one sizes that coincide, and two have functions
_FURTHER = (1.25, 1.5, 2.0, 3.0, 0.5, 0.25, -1.25, 0.0)
_FURTHER_FUNCTIONS = ("LeakyRelu", "LeakyRelu", "Elu", "ThresholdedRelu", "ScaledTanh", "Affine", "HardSigmoid")
_OPEN = 2  # interpretations that a case may touch: each doubles the ways in which a fault may be excused
_REDRAWS = 6
_LEAN = (0, 0, 0, 0, 1, 3)  # of eight: how often an axis of a case is left at its simplest value


def supports(spec: CaseSpec, supported: Supported) -> bool:
    """Tell whether a case lies in a part of the space."""
    return all(_within(name, getattr(spec, name, None), values) for name, values in supported.items())


def _within(name: str, value: Any, values: Collection[Any]) -> bool:
    if name == "activations":
        return value is None or {v.lower() for v in value} <= {v.lower() for v in values}
    return value in values


def levels_of(spec: CaseSpec) -> tuple[str, ...]:
    """The levels that a case belongs to, narrowest first."""
    return tuple(name for name, level in LEVELS.items() if supports(spec, level))


def dense_specs(
    op: str,
    version: int | None = None,
    type: str | None = None,
    supported: Supported = NOTHING,
    seed: int | str = 0,
    *,
    later: bool = False,
    wide: bool = False,
) -> Iterator[CaseSpec]:
    """Dense legal cases of an operator without end, no two alike, the same ones for the same arguments.

    version, type
        Those of every case; without them each case has its own.
    supported
        The part of the space to draw from.
    later
        Whether axes are drawn too that came after the pool was pinned; each has a stream of its own.
    wide
        Whether some cases have sizes and coefficients beyond those of the pool.

    Raises ValueError where the part holds no configuration of the operator: at once for a type or a value that it does
    not have, and after many draws in vain.
    """
    known: set[str] = set()
    vain = 0
    for index in itertools.count():
        spec = dense_spec(op, index, version, type, supported, seed, later=later, wide=wide)
        if spec is None or spec.digest in known:
            vain += 1
            if vain > 2000:
                if known:
                    return
                raise ValueError(f"{op}: no configuration in {dict(supported)}")
            continue
        vain = 0
        known.add(spec.digest)
        yield spec


def dense_spec(
    op: str,
    index: int,
    version: int | None = None,
    type: str | None = None,
    supported: Supported = NOTHING,
    seed: int | str = 0,
    *,
    later: bool = False,
    wide: bool = False,
) -> CaseSpec | None:
    """Dense case number `index`; None where what is drawn there is not in the part of the space. Arguments and errors
    are those of :func:`dense_specs`."""
    stream = f"{op}/{version}/{type}/{seed}/{index}"
    choose = Counter.of(stream)
    chosen, kind = choose.one_of(_pairs(op, version, type, supported.get("type")))
    spec = _drawn(op, chosen, kind, supported, choose, stream if later else None)
    return _widened(spec, supported, Counter.of(f"{stream}/wide")) if wide else spec


def _pairs(op: str, version: int | None, type: str | None, types: Collection[str] | None) -> list[tuple[int, str]]:
    """Versions and types that a case may have, as often as is their weight: newer versions are in wider use."""
    if op not in CaseSpec.operators:
        raise ValueError(f"op is one of {', '.join(CaseSpec.operators)}, not {op!r}")
    pairs = [
        (v, str(t))
        for v in versions_of(op)
        if version in (None, v)
        for t in space_of(operator_version(op, v))["type"].values
        if type in (None, t) and (types is None or t in types)
        for _ in range(4 if v >= 14 and t in ("float32", "bfloat16") else 2 if v >= 14 else 1)
    ]
    if not pairs:
        raise ValueError(f"{op} has no version and type that are {version or 'any'} and {type or types or 'any'}")
    return pairs


@cache
def _weighted(op: str, version: int) -> Mapping[str, list[Any]]:
    """Axis to the values that are drawn from, those several times that are drawn more often."""
    space = space_of(operator_version(op, version))
    return {name: [v for v in domain.often or domain.values if domain.holds(v)] for name, domain in space.items()}


def _drawn(
    op: str, version: int, kind: str, supported: Supported, choose: Counter, stream: str | None
) -> CaseSpec | None:
    operator = operator_version(op, version)
    space = space_of(operator)
    weighted = _weighted(op, version)
    lean = choose.one_of(_LEAN)

    def drawn(name: str) -> Any:
        axis = space[name]
        values = weighted[name]
        allowed = supported.get(name)
        if allowed is not None:
            values = [v for v in values if v in allowed] or list(allowed)
        simplest = [v for v in axis.values if v in values]
        value = choose.one_of(values)
        return simplest[0] if simplest and choose.below(8) < lean else value

    row: dict[str, Any] = {"type": kind}
    row |= _sizes(choose, supported)
    for name in space:
        if name in PINNED_AXES and name not in ("type", "size", "activations", "alpha", "beta", "outputs"):
            row[name] = drawn(name)
    row["outputs"] = _outputs(op, version, supported, choose)
    if "output_sequence" in row and "Y" in row["outputs"] and supported.get("output_sequence") is None:
        row["output_sequence"] = 1
    if kind in ("float16", "bfloat16") and "Y" not in row["outputs"]:
        # Without Y a radius grows with every step; in half types it outgrows the signal after a few.
        row["T"] = min(row["T"], 3)
    row["seed"] = row["weights_seed"] = choose.below(1 << 16)
    if stream is not None:
        row |= _later(space, weighted, supported, stream)
    legal: dict[str, Any] = settle(row)
    if any(not _within(name, legal[name], values) for name, values in supported.items() if name in legal):
        return None
    inputs: Mapping[str, Any] = NOTHING
    for _ in range(_REDRAWS):
        spec = CaseSpec(op, version, **{**legal, **_activations(op, version, legal, supported, choose)})
        inputs = inputs or inputs_of(spec)  # which do not depend on functions
        if len(interpretations_touched(spec.node, inputs)) <= _OPEN:
            return spec
    return CaseSpec(op, version, **legal)


def _later(
    space: Mapping[str, Domain], weighted: Mapping[str, Sequence[Any]], supported: Supported, stream: str
) -> dict[str, Any]:
    """Values of the axes that the pinned pool does not know."""
    row: dict[str, Any] = {}
    for name in space:
        if name not in PINNED_AXES:
            allowed = supported.get(name)
            values = [v for v in weighted[name] if allowed is None or v in allowed]
            values = values or list(space[name].values)
            row[name] = Counter.of(f"{stream}/{name}").one_of(values)
    return row


def _widened(spec: CaseSpec | None, supported: Supported, choose: Counter) -> CaseSpec | None:
    """The case, of few with other sizes or functions than dense cases of the pool have; as it is where these are not in
    the part of the space."""
    if spec is None:
        return None
    changes: dict[str, Any] = {}
    sizes, functions, size = choose.below(_WIDE), choose.below(_WIDE // 2), choose.one_of(BEYOND)
    # Steps that no output shows have a bound that grows with each of them.
    if sizes == 0 and ("Y" in spec.outputs or size["T"] < _LONG):
        changes |= size
        if size["T"] > _LONG:
            changes |= {"activations": None, "alpha": None, "beta": None}
    elif sizes == 1 and spec.T * spec.N > 0:
        among = coinciding(spec.directions, operator_version(spec.op, spec.version).gates, vars(spec))
        changes |= choose.one_of(among)
    elif functions == 0 and 0 < spec.T <= _LONG and supported.get("activations") is None:
        changes |= _coefficiented(spec, choose)
    if any(name in supported and not _within(name, changes[name], supported[name]) for name in changes):
        return spec
    row = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
    return replace(spec, **changes) if settle({**row, **changes}) == {**settle(row), **changes} else spec


def _coefficiented(spec: CaseSpec, choose: Counter) -> dict[str, Any]:
    """Functions the last of which, in each direction, has coefficients beyond the usual, and each its own ones."""
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

    T, N = one_of("T", _STEPS), one_of("N", _ROWS)
    I, H = one_of("I", _WIDTHS), one_of("H", _WIDTHS)
    equal = choose.below(8)
    if equal == 0 and "N" not in supported:
        N = T
    if equal == 1 and "I" not in supported:
        I = H
    while T * N * H > _LARGEST and N > 1 and "N" not in supported:
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
    """activations, alpha and beta of a node; nothing where it lists no functions."""
    allowed = supported.get("activations")
    functions = [f for f in functions_of(operator_version(op, version)) if allowed is None or f in allowed]
    if not functions or choose.below(8) < 3:
        return {}
    each = len(cell_named(op).activations)
    directions = 2 if row["direction"] == "bidirectional" else 1
    functions += [f for f in functions if f in _COEFFICIENTED]
    bounded = [f for f in functions if f in _BOUNDED] or functions
    names: list[str] = []
    for _ in range(directions):
        own = [choose.one_of(functions) for _ in range(each)]
        if each > 1:
            own[0] = choose.one_of(bounded)  # gates that open without limit leave every range
        if row["T"] > _LONG and sum(f not in _BOUNDED for f in own) > (each > 2):
            own[-1] = choose.one_of(bounded)
        names += own
    if choose.below(12) == 0:
        names = [name.lower() for name in names]
    attributes: dict[str, Any] = {"activations": tuple(names)}
    for name in ("alpha", "beta"):
        if choose.below(5) < 3 and supported.get(name, (None, 1)) != (None,):
            count = 1 + choose.below(len(names))
            attributes[name] = tuple(choose.one_of(_COEFFICIENTS) for _ in range(count))
    return attributes


def sibling(spec: CaseSpec, number: int) -> CaseSpec:
    """Another case of the same model: other numbers, and other sizes and lengths where the model leaves them open."""
    choose = Counter.of(f"{spec.digest}/{number}")
    changed: dict[str, Any] = {"seed": choose.below(1 << 16)}
    if spec.weights == "input":
        changed["weights_seed"] = changed["seed"]
    if spec.dimensions == "symbolic":
        changed |= {"T": choose.one_of(_STEPS), "N": choose.one_of(_ROWS)}
        if "Y" not in spec.outputs and spec.type in ("float16", "bfloat16"):
            changed["T"] = min(changed["T"], 3)
        if spec.activations is not None:
            changed["T"] = min(changed["T"], max(spec.T, _LONG))
        changed["reruns"] = choose.one_of(("none", "data", "sizes", "growing"))
    if spec.lengths != "absent":
        changed["lengths"] = choose.one_of(("ragged", "full", "short", "empty"))
    if spec.data in ("dense", "small", "large"):
        changed["data"] = choose.one_of(("dense", "small", "large"))
    row = {name: changed.get(name, getattr(spec, name)) for name in ("T", "N", "lengths", "reruns", "data")}
    row |= {"dimensions": spec.dimensions, "initial": spec.initial}
    return replace(spec, **{**changed, **settle(row)})
