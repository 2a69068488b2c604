"""Blocks: what an operator version is tried with in one type.

Models are few, since compilers of devices take seconds for each: a model carries many features at once, and many data.
What can be told apart by inputs alone (lengths, magnitudes, spoilt rows, seeds) shares a model. That a case fails for
one reason alone is not needed: a diagnosis tells them apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...reference import cell_named, operator_version
from ..specs.space import axes_of, spec_from
from ..specs.spec import CaseSpec

__all__ = ["alone", "block", "together"]

Row = dict[str, Any]

# By the number of functions of a direction: sets of activations, each with another one in the backward direction, so
# that all eleven functions are there, with and without coefficients.
_FUNCTIONS = {
    3: ("each", "usual", "soft", "mixed", "negative"),
    2: ("each", "usual", "soft", "mixed", "negative", "hard-usual"),
    1: ("each", "usual", "soft", "mixed", "hard-usual", "logistic"),
}


def plain_row(op: str, version: int) -> Row:
    """What every case has unless it says otherwise."""
    row: Row = {"weights": "initializer", "outputs": "all"}
    if "output_sequence" in operator_version(op, version).attributes:
        row["output_sequence"] = 1
    return row


def fits(row: Mapping[str, Any], axes: Mapping[str, Any]) -> bool:
    """Whether a version has what a row asks for."""
    return all(name in axes or name in ("data", "T", "N", "H", "I", "seed", "type") for name in row)


def block(op: str, version: int, kind: str, *, first: bool = True) -> Iterator[CaseSpec]:
    """What is tried in one type beside dense cases: plain nodes, special numbers, each function, the ends of ranges.

    first
        Whether it is the first type of its operator. In the others dense cases stand in for much of it.
    """
    axes = axes_of(operator_version(op, version))
    each, inner = len(cell_named(op).activations), cell_named(op).inner
    # Fewer digits leave wider radii: half types need more numbers for one of them to show a fault clearly.
    half = kind in ("float16", "bfloat16")
    sizes: Row = {"T": 10, "N": 9, "I": 5, "H": 33} if half else {"T": 4, "N": 3, "I": 2, "H": 5}
    base: Row = {**plain_row(op, version), "type": kind, **sizes}
    both: Row = {**base, "direction": "bidirectional", "initial": "all"}
    rich: Row = {**both, "bias": True, "lengths": "ragged", **({"peepholes": True} if "peepholes" in axes else {})}
    named: Row = {**rich, "dimensions": "symbolic", "weights": "input"}

    def case(row: Row, **extra: Any) -> CaseSpec:
        return spec_from(op, version, {**row, **extra})

    def twice(row: Row, **extra: Any) -> Iterator[CaseSpec]:
        return (case(row, **{"seed": seed, **extra}) for seed in (0, 1))

    def often(row: Row, **extra: Any) -> Iterator[CaseSpec]:
        return twice(row, **extra) if first else itertools.islice(twice(row, **extra), 1)

    def plenty(row: Row, **extra: Any) -> Iterator[CaseSpec]:
        """Twice, but once in float64, where nothing hides in a radius."""
        return itertools.islice(twice(row, **extra), 1) if kind == "float64" else twice(row, **extra)

    # Everything at once, and what becomes of it with other lengths and with rows that are spoilt. In half types bounds
    # of the usual functions are wide, so what such a case shows dense ones show better, whose functions are others: one
    # is enough, and those that are there for special numbers.
    yield from (often if half else twice)(rich)
    yield from often(rich, reruns="data")
    for lengths in ("empty",) if half else ("full", "short", "empty"):
        yield case(rich, lengths=lengths, seed=2)
    for data in ("nan-row", "nan-padding"):
        yield from twice(rich, data=data)
    yield from (often if half else plenty)(rich, data="inf-row")
    # Nothing that is optional; kernels go wrong where e^x overflows, and where sums are small.
    yield from (often if half else twice)(base)
    for data in ("large",) if half else ("small", "large"):
        yield from often(base, data=data)
    yield from twice(base, data="huge")
    if not half:
        yield from often(base, reruns="data")
    # With most other seeds it hardly shows in bfloat16 that one state is dropped where the other one is not given.
    for seed in (6, 7) if kind == "bfloat16" else ():
        yield case({**base, "direction": "reverse", "bias": True, "initial": "h", "lengths": "ragged"}, seed=seed)
    for number, name in enumerate(_FUNCTIONS[each]):
        if name == "soft" and not first:
            # Clipped ones below have these functions. Where e^x in Softplus leaves the range, they are alone.
            if kind == "float16":
                yield from often({**both, "activations": name}, data="large")
            continue
        row = {**both, "activations": name, "initial": inner[0] if inner and number % 2 else "all"}
        row["outputs"] = "no-Y_h" if number == 0 else "all"
        yield from twice(row) if half and number == 0 else often(row)
        yield from (often if half and number == 0 else plenty)(row, data="large")
        if name == "logistic":
            yield from twice(row, data="huge")
    if not half:
        # An alpha without a beta; and Softplus of more than 20, where float64 still sees the e^-x in it.
        yield from twice({**both, "activations": "alpha-alone"}, T=2, N=9, I=9, H=17, data="large")
    # Functions for which no document names coefficients; beside the first type in another letter case too, for which
    # that one has a model of its own.
    unknown = spec_from(op, version, {**base, "direction": "bidirectional", "activations": "unknown-default"})
    names = unknown.activations or ()
    for seed in (0, 1):
        yield replace(unknown, seed=seed, activations=names if first else tuple(name.lower() for name in names))
    # Relu, unbounded, where a clamp or a clip that nobody asked for would show.
    straight: Row = {**base, "activations": "straight", "bias": True, "explicit": True, "opset": "last"}
    for data, seeds in (("large", (0, 7)), ("huge", (0, 1, 2))):
        for seed in seeds if first else seeds[:1] if half or data == "large" else seeds[:2]:
            yield case(straight, data=data, seed=seed)
    # Any value of linear_before_reset but zero means the same.
    other_value: Row = {"linear_before_reset": 2} if "linear_before_reset" in axes else {}
    clipped: Row = {**named, "clip": 0.5, "activations": "soft", **other_value}
    if first:
        yield from often(clipped)
    # Of one step too, which kernels have a way of their own for. Few digits see more where nothing saturates.
    yield from twice(clipped, lengths="full", T=1, N=9, data="large" if first else "dense")
    for other_gates in ({"input_forget": 1}, {"linear_before_reset": 1}):
        if first and fits(other_gates, axes):
            yield from often({**rich, **other_gates})
            yield from often({**rich, **other_gates}, data="large")
        elif kind == "float16" and fits(other_gates, axes):
            yield case({**rich, **other_gates}, data="large")
    if "layout" in axes and first:
        yield from often({**rich, "layout": 1})
        yield case({**rich, "layout": 1}, lengths="empty", seed=2)
    # States without Y, soon after the start: a free run's radius is still small there, in half types too.
    yield from twice({**both, "lengths": "ragged", "outputs": "states"}, T=2)
    # The same session with other sizes, and sizes of one and of none: all in a model whose dimensions have names.
    yield from often(named, reruns="sizes")
    # All that sessions may do, one thing after the other, and rows and steps of zeros.
    eventful: Row = {"reweighed": True, "waves": True, "beside": True, "after_refusal": True, "kept": True}
    for seed, zeros in enumerate(("row", "step")):
        yield case(named, T=4, N=3, **eventful, seed=seed, zeros=zeros)
    # Weights beyond what fixed point and int8 hold, zeros among them; sums are moderate in the first step.
    yield from twice(named, lengths="full", T=1, N=9, data="small", zeros="elements", extremes="weights")
    if not half:
        yield from often(named, N=1)
        yield from often(named, lengths="full", T=1)
    yield from often(named, lengths="full", T=1, N=9, data="large")
    for T, N in ((0, 3), (4, 0)):
        yield from often(named, lengths="full", T=T, N=N)
    # What many refuse: no hidden_size, and names of functions in another letter case.
    if first:
        yield from twice({**base, "bias": True, "hidden_size": False, "activations": "lower-case"}, T=1, N=1)
    # Past the numbers of steps, rows, units and terms at which kernels change their ways. (In half types peepholes feed
    # the inner state's radius back into itself, and so long a case is not judged whole.)
    yield from twice({**rich, "clip": 1.0}, T=3, N=3, I=97, H=97)
    long: Row = {**base, "bias": True, "initial": "all", "lengths": "ragged", "direction": "reverse"}
    long |= {"peepholes": True} if "peepholes" in axes and not half else {}
    long |= {"activations": "tight"} if half else {}
    for lengths in ("ragged", "full"):
        more = kind == "bfloat16" and lengths == "full"  # a free run of 70 steps leaves it few digits to go wrong in
        yield from (twice if more else often)(long, T=70, N=18, I=3, H=31 if half else 6, lengths=lengths)
    # A long sum of one sign. The gates, by a function that is constant, neither open nor close.
    relu: Row = {"activations": ("HardSigmoid", "Relu", "Relu")[:each], "alpha": (0.0,), "beta": (0.5,)}
    relu = relu if each > 1 else {"activations": ("Relu",)}
    yield from (twice if half else often)(base, T=1, N=2, I=8192 if half else 2048, H=2, **relu, data="one-sign")
    # Subnormal numbers, which only functions without an error of their own let through.
    yield from twice(base, T=2, N=3, I=3, H=5, **relu, extremes="subnormal")
    # Piecewise-linear activations on few digits: every intermediate is representable, so the tolerance is zero.
    exact: Row = {**rich, "lengths": "absent", "data": "exact", "T": 2 if kind == "float64" else 1}
    exact |= {"N": 3, "I": 2, "H": 3, "activations": ("HardSigmoid", "Relu", "Relu")[:each]}
    exact |= {"alpha": (0.25, 0.25), "beta": (0.5, 0.5)} if each > 1 else {"activations": ("Relu",)}
    exact["activations"] *= 2
    for seed in range(4 if first else 2):
        yield case(exact, seed=seed)
    yield from accuracy(op, version, kind, 6)


def accuracy(op: str, version: int, kind: str, seeds: int) -> Iterator[CaseSpec]:
    """One step from given states, every state exact: here drift that hides inside a radius shows as a bias. The weights
    are inputs, so all seeds share a model."""
    row = {**plain_row(op, version), "type": kind, "weights": "input", "bias": True, "initial": "all"}
    for seed in range(seeds):
        yield spec_from(op, version, row, T=1, N=8, I=3, H=8, seed=seed, weights_seed=seed, data="numerics")


# One feature at a time, on a plain node: a finding's smallest case is then as plain as it can be.
_ALONE: tuple[Row, ...] = (
    {},
    {"direction": "reverse"},
    {"bias": True},
    {"lengths": "ragged"},
    {"peepholes": True, "initial": "all"},
    {"input_forget": 1, "initial": "all"},
    {"linear_before_reset": 1},
    {"clip": 0.5, "initial": "all"},
    {"layout": 1},
    {"T": 0, "initial": "all"},
    {"clip": 0.0},
    {"hidden_size": False},
)


def alone(op: str, version: int) -> Iterator[CaseSpec]:
    """Single features, in the version's first type."""
    axes = axes_of(operator_version(op, version))
    plain = plain_row(op, version)
    for row in _ALONE:
        if fits(row, axes):
            yield spec_from(op, version, {**plain, **row})
    # One output alone that is not Y, with a companion that has all.
    yield spec_from(op, version, {**plain, "outputs": "last"})


def together(op: str, version: int, kind: str, *, first: bool) -> Iterator[CaseSpec]:
    """All features in few models: for versions and types that repeat what another one has been tried with.

    first
        Whether it is the first type of the version, in which everything is tried.
    """
    operator = operator_version(op, version)
    axes = axes_of(operator)
    base = {**plain_row(op, version), "type": kind}
    rich = {**base, "bias": True, "initial": "all", "lengths": "ragged", "direction": "bidirectional"}
    if "peepholes" in axes:
        rich["peepholes"] = True
    rows: list[Row] = [rich]
    if first:
        rows += [
            {**rich, "activations": "mixed", "clip": 0.25},
            {**base, "outputs": "states", "lengths": "ragged", "initial": "all"},
        ]
        if version in cell_named(op).without_defaults:
            rows.append({**base, "activations": "usual"})
        more: Row = {n: 1 for n in ("input_forget", "linear_before_reset", "layout") if n in axes}
        rows.append({**rich, **more, "direction": "reverse", "dimensions": "symbolic", "reruns": "sizes"})
        if "output_sequence" in operator.attributes:
            rows += [
                {"outputs": "all", "weights": "initializer"},
                {"outputs": "states", "weights": "initializer", "output_sequence": 0},
            ]
    for row in rows:
        for seed in (0, 1):
            yield spec_from(op, version, row, seed=seed)
    if first and len(operator.types) > 3:
        yield from accuracy(op, version, kind, 2)
