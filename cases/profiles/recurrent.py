"""The cases of operators that have a cell, and those of ONNX's recurrent operators as one family."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import CELLS, FORMATS, Node, operator_version
from ..axes.axis import Axis
from ..axes.generator import uniform
from ..axes.violation import Violation
from ..specs.bounds import Bounds
from ..specs.contexts import ContextSpace
from ..specs.family import Family
from ..specs.features import all_features, node_features, recurrent_features
from ..specs.illegal import break_case, illegal_cases, violations_of
from ..specs.level import Level
from ..specs.recurrent import recurrent_case
from ..specs.recurrent_contexts import RecurrentContexts
from ..specs.space import settle
from ..specs.spec import CaseSpec
from .anything import any_recurrent, crossed_recurrent
from .dense import LEVELS, dense_specs
from .fresh import recurrent_fresh
from .levels import recurrent_challenge, recurrent_levels
from .pool import recurrent_design, recurrent_pooled
from .profiles import unique, written_cases

RANDOM_OF_FULL = 1200
"""Random cases of ``full``, for each operator version."""


class CellFamily(Family):
    """The cases of operators that have a cell: all that follows from the axes of their specs."""

    spec = CaseSpec
    build = staticmethod(recurrent_case)
    crossed = staticmethod(crossed_recurrent)

    def profile(self, name: str, op: str, version: int) -> Iterable[CaseSpec]:
        """Return what the profile's file lists; see :mod:`.profiles` for ``full``."""
        if name != "full":
            return written_cases(name, op, version)
        written = itertools.chain(written_cases("core", op, version), written_cases(name, op, version))
        drawn = itertools.islice(self.random_of_full(op, version), RANDOM_OF_FULL)
        return unique(itertools.chain(written, drawn, illegal_cases(op, version, self.spec)))

    def random_of_full(self, op: str, version: int) -> Iterator[CaseSpec]:
        """Yield the random cases of ``full``, without end."""
        random, types = Random(f"full/{op}/{version}"), operator_version(op, version).types
        while True:
            if (spec := self.anything(op, version, types, random)) is not None:
                yield spec

    def features(self, spec: CaseSpec) -> frozenset[str]:
        """See :func:`..specs.features.recurrent_features`."""
        return recurrent_features(spec)

    def all_features(self, op: str, version: int) -> frozenset[str]:
        """See :func:`..specs.features.all_features`."""
        return all_features(op, version, self.spec)

    def content(self, spec: CaseSpec) -> Iterator[bytes]:
        """Every input by name; of a quantized case its levels, and what they stand for."""
        inputs = break_case(spec)[1]
        if spec.quantized:
            trial = recurrent_case(spec).trial
            inputs = trial.feeds[-1].inputs
            for name, codec in sorted(trial.node.codecs.items()):
                yield f"{name} {codec.scales.tolist()} {codec.zero_points.tolist()} {codec.dtype.name}".encode()
        for name, array in sorted(inputs.items()):
            yield name.encode()
            yield array.tobytes()

    def richer(self, spec: CaseSpec) -> Sequence[Mapping[str, Any]]:
        """Larger with all outputs, then with each optional thing beside that, then with most of them together: what is
        made in one place, or by one of several, tells itself apart there."""
        more: dict[str, Any] = {"T": max(spec.T, 4), "N": max(spec.N, 3), "H": max(spec.H, 5)}
        more["outputs"] = tuple(operator_version(spec.op, spec.version).outputs)
        absent: list[tuple[Axis, Mapping[str, Any]]] = []
        for axis in spec.axes:
            changes = axis.richer(spec)
            if any(getattr(spec, name) != value for name, value in changes.items()):
                absent.append((axis, changes))
        together: dict[str, Any] = {}
        for axis, changes in absent:
            together |= {} if axis.richer_alone else changes
        return [more, *({**more, **changes} for _, changes in absent), {**more, **together}]

    def simpler(self, spec: CaseSpec) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The sum of what each axis says."""
        for axis in spec.axes:
            yield from axis.simpler(spec)

    def goes_together(self, spec: CaseSpec) -> bool:
        """Tell whether the rules of axes leave it as it is."""
        row = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
        return bool(spec.illegal or settle(row, search=True, axes=spec.axes) == row)

    def anything(self, op: str, version: int, types: Collection[str], random: Random) -> CaseSpec | None:
        """See :mod:`.anything`."""
        return any_recurrent(op, version, tuple(types), random, self.spec)

    def cases(self, op: str, version: int, bounds: Bounds) -> Any:
        """See :func:`..specs.drawing.recurrent_cases`."""
        from ..specs.drawing import recurrent_cases  # Hypothesis is imported where something is drawn

        return recurrent_cases(op, version, bounds, self.spec)

    def node_features(self, node: Node, inputs: Mapping[str, NDArray[Any]]) -> frozenset[str]:
        """See :func:`..specs.features.node_features`."""
        return node_features(node, inputs, self.spec.axes)

    def formula(self, spec: CaseSpec, name: str, array: NDArray[Any]) -> str | None:
        """The generator that a tensor came from."""
        dtype = "float32" if array.dtype.name == "bfloat16" else array.dtype.name
        runs = range(1 if spec.reruns == "none" else 2)
        keys = (f"{spec.op}/{name}/{spec.weights_seed}", *(f"{spec.op}/{name}/{spec.seed}/{k}" for k in runs))
        for key in keys:
            for precision in (FORMATS[spec.type].precision, 3):
                exponent = _unit_exponent(float(array.astype(np.float64).flat[0])) + precision
                if uniform(key, array.shape, precision, exponent).astype(array.dtype).tobytes() == array.tobytes():
                    return f'drawn("{key}", {array.shape}, {precision}, {exponent}).astype("{dtype}")'
        return None

    def context_space(self, op: str) -> ContextSpace | None:
        """See :mod:`..specs.recurrent_contexts`."""
        return _space(op, tuple(self.spec.axes))

    def violations(self, op: str, version: int) -> Sequence[Violation]:
        """See :func:`..specs.illegal.violations_of`."""
        return violations_of(op, version, self.spec)

    def levels(self, op: str, version: int) -> Sequence[Level]:
        """See :mod:`.levels`."""
        return recurrent_levels(op, version, self.spec)


class RecurrentFamily(CellFamily):
    """LSTM, GRU and RNN; see :class:`..specs.family.Family`. What their profiles have is pinned, with a pool behind."""

    operators = tuple(CELLS)
    pool_design = staticmethod(recurrent_design)
    challenge = staticmethod(recurrent_challenge)

    def random_of_full(self, op: str, version: int) -> Iterator[CaseSpec]:
        """Yield the random cases of ``full``, without end."""
        return dense_specs(op, version, supported=LEVELS["complete"], seed="full", later=True, wide=True)

    def pooled(self, op: str, level: str, index: int, sibling: int) -> CaseSpec | None:
        """See :func:`.pool.recurrent_pooled`."""
        return recurrent_pooled(op, level, index, sibling)

    def fresh(
        self,
        op: str,
        seed: int | str,
        versions: Collection[int] = (),
        types: Collection[str] = (),
        lacks: Collection[str] = (),
    ) -> Iterator[CaseSpec] | None:
        """See :mod:`.fresh`."""
        return recurrent_fresh(op, seed, versions, types, lacks)


@cache
def _space(op: str, axes: tuple[Axis, ...]) -> RecurrentContexts:
    return RecurrentContexts(op, axes)


def _unit_exponent(value: float) -> int:
    """q of value = m * 2^q with odd m; 0 where there is none."""
    if not np.isfinite(value) or value == 0:
        return 0
    over, under = value.as_integer_ratio()
    return (over & -over).bit_length() - under.bit_length()


RECURRENT = RecurrentFamily()
