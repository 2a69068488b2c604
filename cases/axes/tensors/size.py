"""Sizes: T (seq_length), N (batch_size), I (input_size) and H (hidden_size)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field
from ..condition import Condition, of_values
from ..observed import Observed, skips
from ..violation import Draft, Violation, changed, sized

LONGEST, HIGHEST_SEED = 2**20, 2**63 - 1
MOST_ELEMENTS = 2**26
"""Most bytes of the tensors of a case together: of float64, half a gigabyte."""

SIZES: dict[str, tuple[int, int, int, int]] = {
    "small": (4, 3, 2, 5),
    "one": (1, 1, 1, 1),
    "long": (7, 2, 5, 3),
    "square": (3, 3, 4, 4),
    "wide": (2, 5, 9, 17),
    "single-row": (5, 1, 3, 8),
    "block": (3, 4, 16, 16),
}
"""(T, N, I, H) by the word of a design: small and all different; ones; T == N; a size that is no multiple of any
block."""

BEYOND: tuple[dict[str, int], ...] = (
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
"""Sizes past the largest that dice throw for dense cases: counters of a byte, tiles of rows, caches."""


def coinciding(directions: int, gates: int, sizes: Mapping[str, int]) -> tuple[dict[str, int], ...]:
    """Sizes that are others of a case's too, so that a tensor with its axes exchanged has its own shape: W is square, a
    state of layout 1 is one of layout 0, a step of X is a state."""
    two = dict.fromkeys("TNIH", directions)
    square = {"I": gates * sizes["H"]}
    return square, {"N": directions}, {"H": sizes["N"]}, {"I": sizes["T"]}, {"I": sizes["N"]}, {"I": sizes["H"]}, two


_OTHERS = 3
"""Draws of other numbers with which a smaller size is tried."""

BLOCKS = (2, 4, 8, 16, 32)


def _one_direction(draft: Draft) -> None:
    for name in ("W", "R"):
        draft.inputs[name] = draft.inputs[name][:1]


_FORBIDDEN = (
    Violation(
        "shapes.X-rank",
        "load",
        "X has two dimensions, without a batch",
        changed("X", lambda array: array[:, 0]),
    ),
    Violation("shapes.W-rows", "load", "W has a row too many", sized("W", 1, lambda n: n + 1)),
    Violation("shapes.W-columns", "load", "W has a column more than X has features", sized("W", 2, lambda n: n + 1)),
    Violation(
        "shapes.W-directions",
        "load",
        "W and R of a bidirectional node have one direction",
        _one_direction,
        {"direction": "bidirectional"},
    ),
    Violation("shapes.R-rows", "load", "R has a row too many", sized("R", 1, lambda n: n + 1)),
)


_CALLED = {"T": "step", "N": "row", "I": "feature of X", "H": "unit"}


def sizes(**defaults: int) -> tuple[Field, ...]:
    """Return the fields of sizes, with the default of each."""
    return tuple(Field(name, int, default, _CALLED[name]) for name, default in defaults.items())


class SizeAxis(Axis):
    """Four fields, which designs choose together by a word of :data:`SIZES`."""

    name = "size"
    fields = sizes(T=1, N=1, I=1, H=1)
    forbidden: tuple[Violation, ...] = _FORBIDDEN
    least: Mapping[str, int] = MappingProxyType({"T": 0, "N": 0, "I": 1, "H": 1})
    required = {"sequence": ("several-rows",)}
    words = {
        "several-rows": "several rows",
        "size-one": "a size of 1",
        "size-zero": "a size of 0",
        "no-rows": "batch_size 0",
        "no-steps": "seq_length 0",
        "input-skipped": "an input skipped",
    }

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"size": Domain(("small", "one", "square", "wide", "single-row"))}

    def choices(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        return {}

    def told(self, name: str, value: Any, instead: Collection[Any]) -> tuple[Condition, ...]:
        words = {"T": "no-steps", "N": "no-rows"}
        return () if value or name not in words else (of_values(self.words[words[name]], name, 0),)

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        for name, least in self.least.items():
            value = getattr(spec, name)
            if type(value) is not int or not least <= value <= LONGEST:
                return name, f"a whole number from {least} to {LONGEST}"
        if spec.elements > MOST_ELEMENTS:
            sizes = f"T={spec.T}, N={spec.N}, I={spec.I}, H={spec.H}"
            raise ValueError(f"a case has {MOST_ELEMENTS} numbers at most, not {spec.elements} ({sizes})")
        return None

    def written(self, row: dict[str, Any], operator: OperatorVersion) -> dict[str, Any]:
        sizes = dict(zip("TNIH", SIZES[row.pop("size", "small")], strict=True))
        return {**sizes, **row}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        c = observed.configuration
        return {
            "input-skipped": skips(observed.node.operator.inputs, observed.inputs),
            "several-rows": c.N > 1,
            "size-one": 1 in (c.T, c.N, c.I, c.H),
            "size-zero": 0 in (c.T, c.N),
            "no-rows": c.N == 0,
            "no-steps": c.T == 0,
        }

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Smaller; of few numbers it depends on which they are whether anything shows, so others are tried as well."""
        seeded = [name for name in ("seed", "weights_seed") if name in spec.__dataclass_fields__]
        for name in self.least:
            if not hasattr(spec, name):
                continue
            value = getattr(spec, name)
            # Of nothing at all, one is the plainer size.
            for size in dict.fromkeys((1, 2, 3, value // 2, value - 1)):
                if 0 < size < value or (size == 1 and not value):
                    yield name, {name: size}
                    for other in range(1, _OTHERS + 1) if size in (1, value - 1) else ():
                        yield name, {name: size, **dict.fromkeys(seeded, spec.seed + other)}


SIZE = SizeAxis()
