"""The block of cases that a type is tried with beside dense ones, part by part."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...reference import cell_named, operator_version
from ..specs.space import axes_of, spec_from
from ..specs.spec import CaseSpec
from .designs import Row, accuracy, fits, plain_row
from .turns import EVENTS

# By the number of functions of a direction: sets of activations, each with another one in the backward direction, so
# that all eleven functions are there, with and without coefficients.
_FUNCTIONS = {
    3: ("each", "usual", "soft", "mixed", "negative"),
    2: ("each", "usual", "soft", "mixed", "negative", "hard-usual"),
    1: ("each", "usual", "soft", "mixed", "hard-usual", "logistic"),
}


def block(op: str, version: int, kind: str, *, first: bool = True) -> Iterator[CaseSpec]:
    """The cases tried in one type beside dense cases: plain nodes, special numbers, each function, the ends of ranges.

    first
        Whether it is the first type of its operator. In the others dense cases stand in for much of it.
    """
    parts = _Block(op, version, kind, first)
    yield from parts.everything_at_once()
    yield from parts.nothing_optional()
    yield from parts.functions()
    yield from parts.gates()
    yield from parts.sessions()
    yield from parts.ends_of_ranges()
    yield from parts.exact()
    yield from accuracy(op, version, kind, 6)


class _Block:
    """The rows that its parts begin with: plain, with both directions, with all inputs, and with named dimensions."""

    def __init__(self, op: str, version: int, kind: str, first: bool) -> None:
        self.op, self.version, self.kind, self.first = op, version, kind, first
        self.axes = axes_of(operator_version(op, version))
        self.each, self.inner = len(cell_named(op).activations), cell_named(op).inner
        # Fewer digits leave wider radii: half types need more numbers for one of them to show a fault clearly.
        self.half = kind in ("float16", "bfloat16")
        sizes: Row = {"T": 10, "N": 9, "I": 5, "H": 33} if self.half else {"T": 4, "N": 3, "I": 2, "H": 5}
        self.base: Row = {**plain_row(op, version), "type": kind, **sizes}
        self.both: Row = {**self.base, "direction": "bidirectional", "initial": "all"}
        peepholes: Row = {"peepholes": True} if "peepholes" in self.axes else {}
        self.rich: Row = {**self.both, "bias": True, "lengths": "ragged", **peepholes}
        self.named: Row = {**self.rich, "dimensions": "symbolic", "weights": "input"}

    def _case(self, row: Row, **extra: Any) -> CaseSpec:
        return spec_from(self.op, self.version, {**row, **extra})

    def _twice(self, row: Row, **extra: Any) -> Iterator[CaseSpec]:
        return (self._case(row, **{"seed": seed, **extra}) for seed in (0, 1))

    def _often(self, row: Row, **extra: Any) -> Iterator[CaseSpec]:
        """Twice, but once beside the first type."""
        return self._twice(row, **extra) if self.first else itertools.islice(self._twice(row, **extra), 1)

    def _plenty(self, row: Row, **extra: Any) -> Iterator[CaseSpec]:
        """Twice, but once in float64, where nothing hides in a radius."""
        return itertools.islice(self._twice(row, **extra), 1) if self.kind == "float64" else self._twice(row, **extra)

    def everything_at_once(self) -> Iterator[CaseSpec]:
        """Nodes with all inputs, their lengths, and rows that are spoilt."""
        # Everything at once, and what becomes of it with other lengths and with rows that are spoilt. In half types
        # bounds of the usual functions are wide, so what such a case shows dense ones show better, whose functions are
        # others: one is enough, and those that are there for special numbers.
        yield from (self._often if self.half else self._twice)(self.rich)
        yield from self._often(self.rich, reruns="data")
        for lengths in ("empty",) if self.half else ("full", "short", "empty"):
            yield self._case(self.rich, lengths=lengths, seed=2)
        for data in ("nan-row", "nan-padding"):
            yield from self._twice(self.rich, data=data)
        yield from (self._often if self.half else self._plenty)(self.rich, data="inf-row")

    def nothing_optional(self) -> Iterator[CaseSpec]:
        """Plain nodes, and magnitudes."""
        # Nothing that is optional; kernels go wrong where e^x overflows, and where sums are small.
        yield from (self._often if self.half else self._twice)(self.base)
        for data in ("large",) if self.half else ("small", "large"):
            yield from self._often(self.base, data=data)
        yield from self._twice(self.base, data="huge")
        if not self.half:
            yield from self._often(self.base, reruns="data")
        # With most other seeds it hardly shows in bfloat16 that one state is dropped where the other one is not given.
        for seed in (6, 7) if self.kind == "bfloat16" else ():
            yield self._case(
                {**self.base, "direction": "reverse", "bias": True, "initial": "h", "lengths": "ragged"}, seed=seed
            )

    def functions(self) -> Iterator[CaseSpec]:
        """Each activation function, with coefficients and without."""
        for number, name in enumerate(_FUNCTIONS[self.each]):
            if name == "soft" and not self.first:
                # Clipped ones below have these functions. Where e^x in Softplus leaves the range, they are alone.
                if self.kind == "float16":
                    yield from self._often({**self.both, "activations": name}, data="large")
                continue
            row = {**self.both, "activations": name, "initial": self.inner[0] if self.inner and number % 2 else "all"}
            row["outputs"] = "no-Y_h" if number == 0 else "all"
            yield from self._twice(row) if self.half and number == 0 else self._often(row)
            yield from (self._often if self.half and number == 0 else self._plenty)(row, data="large")
            if name == "logistic":
                yield from self._twice(row, data="huge")
        if not self.half:
            # An alpha without a beta; and Softplus of more than 20, where float64 still sees the e^-x in it.
            yield from self._twice({**self.both, "activations": "alpha-alone"}, T=2, N=9, I=9, H=17, data="large")
        # Functions for which no document names coefficients; beside the first type in another letter case too, for
        # which that one has a model of its own.
        unknown = spec_from(
            self.op, self.version, {**self.base, "direction": "bidirectional", "activations": "unknown-default"}
        )
        names = unknown.activations or ()
        for seed in (0, 1):
            yield replace(
                unknown, seed=seed, activations=names if self.first else tuple(name.lower() for name in names)
            )
        # Relu, unbounded, where a clamp or a clip that nobody asked for would show.
        straight: Row = {**self.base, "activations": "straight", "bias": True, "explicit": True, "opset": "last"}
        for data, seeds in (("large", (0, 7)), ("huge", (0, 1, 2))):
            for seed in seeds if self.first else seeds[:1] if self.half or data == "large" else seeds[:2]:
                yield self._case(straight, data=data, seed=seed)

    def gates(self) -> Iterator[CaseSpec]:
        """Clip, coupled gates, the reset of a sum, layout."""
        # Any value of linear_before_reset but zero means the same.
        other_value: Row = {"linear_before_reset": 2} if "linear_before_reset" in self.axes else {}
        clipped: Row = {**self.named, "clip": 0.5, "activations": "soft", **other_value}
        if self.first:
            yield from self._often(clipped)
        # Of one step too, which kernels have a way of their own for. Few digits see more where nothing saturates.
        yield from self._twice(clipped, lengths="full", T=1, N=9, data="large" if self.first else "dense")
        for other_gates in ({"input_forget": 1}, {"linear_before_reset": 1}):
            if self.first and fits(other_gates, self.axes):
                yield from self._often({**self.rich, **other_gates})
                yield from self._often({**self.rich, **other_gates}, data="large")
            elif self.kind == "float16" and fits(other_gates, self.axes):
                yield self._case({**self.rich, **other_gates}, data="large")
        if "layout" in self.axes and self.first:
            yield from self._often({**self.rich, "layout": 1})
            yield self._case({**self.rich, "layout": 1}, lengths="empty", seed=2)

    def sessions(self) -> Iterator[CaseSpec]:
        """Sessions of several runs and of other sizes, sizes of one and of none."""
        # States without Y, soon after the start: a free run's radius is still small there, in half types too.
        yield from self._twice({**self.both, "lengths": "ragged", "outputs": "states"}, T=2)
        # The same session with other sizes, and sizes of one and of none: all in a model whose dimensions have names.
        yield from self._often(self.named, reruns="sizes")
        # All that sessions may do, one thing after the other, and rows and steps of zeros.
        for seed, zeros in enumerate(("row", "step")):
            yield self._case(self.named, T=4, N=3, **EVENTS[0], seed=seed, zeros=zeros)
        # Weights beyond what fixed point and int8 hold, zeros among them; sums are moderate in the first step.
        yield from self._twice(self.named, lengths="full", T=1, N=9, data="small", zeros="elements", extremes="weights")
        if not self.half:
            yield from self._often(self.named, N=1)
            yield from self._often(self.named, lengths="full", T=1)
        yield from self._often(self.named, lengths="full", T=1, N=9, data="large")
        for T, N in ((0, 3), (4, 0)):
            yield from self._often(self.named, lengths="full", T=T, N=N)

    def ends_of_ranges(self) -> Iterator[CaseSpec]:
        """Attributes that many refuse, large sizes, long sums, subnormal numbers."""
        # Forms that many refuse: no hidden_size, and names of functions in another letter case.
        if self.first:
            yield from self._twice(
                {**self.base, "bias": True, "hidden_size": False, "activations": "lower-case"}, T=1, N=1
            )
        # Past the numbers of steps, rows, units and terms at which kernels change their ways. (In half types peepholes
        # feed the inner state's radius back into itself, and so long a case is not judged whole.)
        yield from self._twice({**self.rich, "clip": 1.0}, T=3, N=3, I=97, H=97)
        long: Row = {**self.base, "bias": True, "initial": "all", "lengths": "ragged", "direction": "reverse"}
        long |= {"peepholes": True} if "peepholes" in self.axes and not self.half else {}
        long |= {"activations": "tight"} if self.half else {}
        for lengths in ("ragged", "full"):
            more = (
                self.kind == "bfloat16" and lengths == "full"
            )  # a free run of 70 steps leaves it few digits to go wrong in
            yield from (self._twice if more else self._often)(
                long, T=70, N=18, I=3, H=31 if self.half else 6, lengths=lengths
            )
        # A long sum of one sign. The gates, by a function that is constant, neither open nor close.
        relu: Row = {"activations": ("HardSigmoid", "Relu", "Relu")[: self.each], "alpha": (0.0,), "beta": (0.5,)}
        relu = relu if self.each > 1 else {"activations": ("Relu",)}
        yield from (self._twice if self.half else self._often)(
            self.base, T=1, N=2, I=8192 if self.half else 2048, H=2, **relu, data="one-sign"
        )
        # Subnormal numbers, which only functions without an error of their own let through.
        yield from self._twice(self.base, T=2, N=3, I=3, H=5, **relu, extremes="subnormal")

    def exact(self) -> Iterator[CaseSpec]:
        """Nodes whose every number is exact."""
        # Piecewise-linear activations on few digits: every intermediate is representable, so the tolerance is zero.
        exact: Row = {**self.rich, "lengths": "absent", "data": "exact", "T": 2 if self.kind == "float64" else 1}
        exact |= {"N": 3, "I": 2, "H": 3, "activations": ("HardSigmoid", "Relu", "Relu")[: self.each]}
        exact |= {"alpha": (0.25, 0.25), "beta": (0.5, 0.5)} if self.each > 1 else {"activations": ("Relu",)}
        exact["activations"] *= 2
        for seed in range(4 if self.first else 2):
            yield self._case(exact, seed=seed)
