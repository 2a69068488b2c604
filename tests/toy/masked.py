"""MaskedLeaky, which extends Leaky: directions, a mask, a second output, and an open question."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.cases import Violation
from onnxspec.cases import register as register_cases
from onnxspec.cases.axes import set_to
from onnxspec.reference import IllegalNode, Interpretations, Node, OperatorVersion, budget, fault, register
from onnxspec.reference.documents import Document, Extent, Question, TensorForm
from onnxspec.reference.numbers import Bounded, Budget
from onnxspec.reference.recurrent import Steps

from .leaky import DOMAIN, Leak, Leaky, LeakyFamily, LeakySpec

OP = "MaskedLeaky"
_T, _N, _I, _D = (Extent(name) for name in ("seq_length", "batch_size", "input_size", "num_directions"))
_FORMS = (
    TensorForm("X", ((_T, _N, _I),)),
    TensorForm("mask", ((_T, _N),), kind="M"),
    TensorForm("Y", ((_T, _D, _N, _I),)),
    TensorForm("Y_last", ((_D, _N, _I),)),
)
VERSION = OperatorVersion(
    DOMAIN,
    OP,
    1,
    attributes={"decay": "FLOAT", "direction": "STRING"},
    defaults={"direction": "forward"},
    inputs=("X", "mask"),
    required=frozenset({"X"}),
    outputs=("Y", "Y_last"),
    required_outputs=frozenset(),
    types=("float32",),
    kinds=MappingProxyType({"M": ("int32",)}),
    tensors={form.name: form for form in _FORMS},
)
_DIRECTIONS = {"forward": ("forward",), "reverse": ("reverse",), "bidirectional": ("forward", "reverse")}


@dataclass(frozen=True)
class MaskedLeak(Leak):
    """A node with its inputs, and further points that may go wrong: the direction through X, and the last step."""

    directions: tuple[str, ...] = ("forward",)
    mask: NDArray[Any] | None = None
    masked_steps: str = "kept"
    backwards: bool = True
    last_in_time: bool = False
    operator = VERSION

    def way(self, direction: str) -> slice:
        """Return the slice from the positions of X to the steps of a direction, and back."""
        return slice(None, None, -1 if direction == "reverse" and self.backwards else 1)

    def step(self, before: NDArray[Any], way: slice, t: int | slice) -> NDArray[Any]:
        """Return Y of a step, or of several, from the one before."""
        mask = np.ones(self.X.shape[:2]) if self.mask is None else self.mask
        reset = before if self.masked_steps == "kept" else 0.0
        return np.where(mask[way][t][..., np.newaxis] != 0, self.decay * before + self.X[way][t], reset)

    def run(self) -> NDArray[np.float64]:
        """Return Y (T, D, N, I), each direction by itself."""
        Y = np.zeros(self.shape_of("Y"))
        for d, direction in enumerate(self.directions):
            way, y = self.way(direction), np.full(self.X.shape[1:], self.start)
            for t in range(self.T):
                y = Y[way, d][t] = self.step(y, way, t)
        return Y

    def bounded(self, accuracy: str, observed: Mapping[str, Any]) -> dict[str, Bounded]:
        free, Y = self.run(), observed.get("Y")
        reported = free if Y is None else Y.astype(np.float64)
        value, radius = np.zeros(free.shape), np.zeros(free.shape)
        allowed = budget(accuracy, "float32")
        for d, direction in enumerate(self.directions):
            way = self.way(direction)
            before = np.concatenate([np.full((1, *self.X.shape[1:]), self.start), reported[way, d][:-1]])
            value[way, d] = self.step(before, way, slice(None))
            radius[way, d] = self.radius(before, self.X[way], allowed, free=Y is None)
        last = Bounded(self.last(reported if Y is not None else value), self.last(radius), allowed)
        return {"Y": Bounded(value, radius, allowed), "Y_last": last}

    def radius(self, before: NDArray[Any], X: NDArray[Any], allowed: Budget, *, free: bool) -> NDArray[Any]:
        """Return the error bound of each step, as Leaky has it."""
        radius: NDArray[Any] = 3 * (allowed.unit * (np.abs(self.decay * before) + np.abs(X)) + allowed.floor)
        radius += (1 + abs(self.decay)) * allowed.input_floor
        for t in range(1, len(radius) if free else 0):
            radius[t] += abs(self.decay) * radius[t - 1]
        return radius

    def last(self, Y: NDArray[Any]) -> NDArray[Any]:
        """Return Y_last of a Y."""
        first = self.backwards and not self.last_in_time
        ends = [0 if direction == "reverse" and first else -1 for direction in self.directions]
        return np.stack([Y[end, d] for d, end in enumerate(ends)])


class MaskedLeaky(Leaky):
    document = Document(
        OP, DOMAIN, Path(__file__).with_name("masked.toml"), {1: VERSION},
        questions=(Question("masked_steps", ("kept", "reset")),),
    )  # fmt: skip
    topics = MappingProxyType({"Y_last": "last"})

    def resolve(self, node: Node, inputs: Mapping[str, Any], interpretations: Any = None) -> MaskedLeak:
        attributes = {**VERSION.defaults, **node.attributes}
        if "decay" not in attributes or attributes["direction"] not in _DIRECTIONS:
            raise IllegalNode("maskedleaky.attributes", "MaskedLeaky-1: no decay, or no such direction")
        directions = _DIRECTIONS[attributes["direction"]]
        masked = (interpretations or Interpretations()).masked_steps
        return MaskedLeak(
            inputs["X"], float(np.float32(attributes["decay"])), 0.0, directions, inputs.get("mask"), masked
        )

    def open_questions(self, node: Node, inputs: Mapping[str, Any]) -> frozenset[str]:
        mask = inputs.get("mask")
        return frozenset({"masked_steps"} if mask is not None and not np.asarray(mask).all() else ())

    def steps(
        self, node: Node, inputs: Mapping[str, Any], reported: Any = None, interpretations: Any = None
    ) -> tuple[Steps, ...]:
        leak = self.resolve(node, inputs, interpretations)
        positions = np.broadcast_to(np.arange(leak.T)[:, np.newaxis], (leak.T, leak.N))
        ways = [leak.way(direction) for direction in leak.directions]
        return tuple(
            Steps(direction, positions[way], leak.lengths, {"kept": leak.decay * leak.run()[way, d]})
            for d, (direction, way) in enumerate(zip(leak.directions, ways, strict=True))
        )


register(MaskedLeaky())
masked = partial(fault, operators=(OP,), types=("float32",))

masked(
    "maskedleaky.mask.ignored", "mask", "Lets every row take part in all steps.", lambda leak: replace(leak, mask=None)
)
masked(
    "maskedleaky.reverse.forward",
    "direction",
    "Goes forward in the reverse direction.",
    lambda leak: replace(leak, backwards=False),
)
masked(
    "maskedleaky.last.in-time",
    "last",
    "Returns Y of the last position of X for Y_last of the reverse direction.",
    lambda leak: replace(leak, last_in_time=True),
)


@dataclass(frozen=True)
class MaskedSpec(LeakySpec):
    direction: str = "forward"
    unasked: tuple[str, ...] = ()
    type_M = "int32"  # noqa: N815 - the mask's type parameter
    op = OP

    @property
    def num_directions(self) -> int:  # type: ignore[override]
        return len(_DIRECTIONS.get(self.direction, ("forward",)))

    @property
    def node(self) -> Node:
        node = super().node
        return replace(node, outputs=tuple(name for name in node.outputs if name not in self.unasked))


class MaskedFamily(LeakyFamily):
    operators = (OP,)
    spec = MaskedSpec
    forbidden = tuple(
        Violation(f"attributes.{way}", "load", f"direction is {way!r}", set_to("direction", way))
        for way in ("up", "down")
    )

    def profile(self, name: str, op: str, version: int) -> Sequence[MaskedSpec]:
        ways = itertools.product(_DIRECTIONS, (("mask",), ()), ((), ("Y_last",), ("Y",)))
        plain = MaskedSpec(batch_size=3, input_size=2, decay=0.75)
        legal = [
            replace(plain, seq_length=3 + k % 3, seed=k, direction=direction, absent=absent, unasked=unasked)
            for k, (direction, absent, unasked) in enumerate(ways)
        ]
        return legal[:6] if name == "smoke" else [*legal, *(MaskedSpec(illegal=v.id) for v in self.forbidden)]

    def draw(self, spec: MaskedSpec, name: str, shape: tuple[int, ...], key: str) -> NDArray[Any]:
        drawn = super().draw(spec, name, shape, key)
        return np.where(drawn > -0.25, 1, 0) if name == "mask" else drawn

    def node_features(self, node: Node, inputs: Mapping[str, Any]) -> frozenset[str]:
        marks = {"masked": "mask" in inputs, "Y-absent": "Y" not in node.outputs}
        direction = str(node.attributes.get("direction", "forward"))
        return frozenset({direction, *(name for name, there in marks.items() if there)})


register_cases(MaskedFamily())
