"""The cases of ExtendedLSTM, as a family."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from random import Random
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....reference import Node
from ...axes.generator import uniform
from ...specs.bounds import Bounds
from ...specs.case import Case, Feed, Trial
from ...specs.contexts import ContextSpace
from ...specs.family import Family, PoolDesign
from ...specs.features import groups_with
from ...specs.level import Level
from ...specs.violations import Draft, Violation
from .anything import any_extended
from .contexts import EXTENDED_CONTEXTS
from .dense import DESIGN, dense_extended, fresh_extended
from .features import node_features
from .levels import EXTENDED_LEVELS, extended_challenge
from .profile import B, R, W, X, Y, extended_profile
from .spec import HIGHEST, MIDDLE, OP_TYPE, VERSION, Affine, ExtendedSpec
from .violations import EXTENDED_VIOLATIONS, extended_violation

__all__ = ["EXTENDED_FAMILY"]


_ASIDE = 5000  # levels, by which a zero point is moved: far, though scales beside it keep their sense


class _Extended(Family):
    """ExtendedLSTM; see :class:`...specs.family.Family`."""

    operators = (OP_TYPE,)
    spec = ExtendedSpec
    larger = MappingProxyType({"T": 3, "I": 3, "H": 5})  # a second row is another subject for those who have one only

    def profile(self, name: str, op: str, version: int) -> Sequence[ExtendedSpec]:
        """By the rules of :mod:`.profile`."""
        return extended_profile(name)

    def build(self, spec: ExtendedSpec) -> Case:
        """A session of the case's own run and of what runs before; of a forbidden model the same without its violation
        beside it."""
        if spec.illegal:
            violation = extended_violation(spec.illegal)
            trial = _trial(spec, spec.id, [spec.broken], violation)
            legal = replace(spec, illegal="")
            return Case(spec, trial, _trial(legal, f"{spec.id}~companion", [legal.draft]))
        drafts = [spec.draft]
        if spec.reruns != "none":
            drafts.insert(0, replace(spec.draft, inputs=spec.inputs(1)))
        return Case(spec, _trial(spec, spec.id, drafts), None)

    def features(self, spec: ExtendedSpec) -> frozenset[str]:
        """See :attr:`.spec.ExtendedSpec.features`."""
        return spec.features

    def groups(self, spec: ExtendedSpec) -> list[str]:
        """Every legal case is bidirectional."""
        always = {"bidirectional", *(["bias"] if spec.bias else [])}
        return groups_with(spec.features & {"illegal"} or spec.features | always)

    def all_features(self, op: str, version: int) -> frozenset[str]:
        """Those of all cases that there are."""
        return _all_features()

    def content(self, spec: ExtendedSpec) -> Iterator[bytes]:
        """Attributes, inputs, and what is fed before."""
        draft = spec.broken
        yield repr(sorted(draft.attributes.items())).encode()
        for name, array in sorted(draft.inputs.items()):
            yield name.encode()
            yield array.tobytes()
        if spec.reruns != "none":
            yield spec.inputs(1)["X"].tobytes()

    def node_features(self, node: Node, inputs: Mapping[str, NDArray[Any]]) -> frozenset[str]:
        """See :func:`.features.node_features`."""
        return node_features(node, inputs)

    def formula(self, spec: ExtendedSpec, name: str, array: NDArray[Any]) -> str | None:
        """The generator that a tensor came from, within its range."""
        affine = getattr(spec, name.lower(), None)
        if affine is None:
            return None
        (scale, zero_point), fill = affine, dict(spec.fill).get(name, 1.0)
        low, high = -zero_point * scale * fill, (HIGHEST - zero_point) * scale * fill
        for run in (0, 1):
            key = f"{spec.op}/{name}/{spec.seed}/{run}"
            values = (low + high) / 2 + (high - low) / 2 * uniform(key, array.shape, 24, 0)
            if values.astype(array.dtype).tobytes() == array.tobytes():
                words = f'drawn("{key}", {array.shape}, 24, 0)'
                return f'({(low + high) / 2!r} + {(high - low) / 2!r} * {words}).astype("{array.dtype.name}")'
        return None

    def context_space(self, op: str) -> ContextSpace:
        """See :mod:`.contexts`."""
        return EXTENDED_CONTEXTS

    def pool_design(self, op: str) -> PoolDesign:
        """See :mod:`.dense`."""
        return DESIGN

    def pooled(self, op: str, level: str, index: int, sibling: int) -> ExtendedSpec:
        """See :func:`.dense.dense_extended`."""
        return dense_extended(level, index)

    def fresh(
        self,
        op: str,
        seed: int | str,
        versions: Collection[int] = (),
        types: Collection[str] = (),
        lacks: Collection[str] = (),
    ) -> Iterator[ExtendedSpec] | None:
        """See :func:`.dense.fresh_extended`. There is one version, of one type."""
        there = (not versions or VERSION in versions) and (not types or "float32" in types)
        return fresh_extended(seed, lacks) if there else None

    def richer(self, spec: ExtendedSpec) -> Sequence[Mapping[str, Any]]:
        """Larger, and then with a bias, a run before, and other scales and zero points of each tensor: faults of levels
        and faults of sums look alike where gates are shut."""
        more = {"T": max(spec.T, 4), "I": max(spec.I, 3), "H": max(spec.H, 5)}
        richer: list[dict[str, Any]] = [more, {**more, "bias": True}, {**more, "reruns": "data"}]
        for name in ("x", "w"):
            scale, zero_point = getattr(spec, name)
            aside = zero_point + (_ASIDE if zero_point < MIDDLE else -_ASIDE)
            richer += [{**more, name: (scale / 2, zero_point)}, {**more, name: (scale, aside)}]
        return richer

    def plainer(self, spec: ExtendedSpec) -> Sequence[tuple[str, Any]]:
        """The scales and zero points that calibration gives for tensors of usual sizes; a zero point in the middle; a
        scale that is no power of two; and numbers that stay in their range."""
        plainer: list[tuple[str, Any]] = [("fill", ())] if spec.fill else []
        for name, usual in {"x": X, "w": W, "r": R, "b": B, "y": Y}.items():
            affine: Affine | None = getattr(spec, name)
            if affine is None or affine == usual:
                continue
            scale, zero_point = affine
            values = [usual, (scale, MIDDLE)]
            if math.frexp(float(np.float32(scale)))[0] == 0.5:
                values.append((scale * 1.25, zero_point))
            plainer += [(name, value) for value in values if value != affine]
        return plainer

    def anything(self, op: str, version: int, types: Collection[str], random: Random) -> ExtendedSpec | None:
        """See :func:`.anything.any_extended`."""
        return any_extended(random)

    def cases(self, op: str, version: int, bounds: Bounds) -> Any:
        """See :func:`.drawing.extended_cases`."""
        from .drawing import extended_cases  # Hypothesis is imported where something is drawn

        return extended_cases(bounds)

    def violations(self, op: str, version: int) -> Sequence[Violation]:
        """All that there are."""
        return EXTENDED_VIOLATIONS

    def levels(self, op: str, version: int) -> Sequence[Level]:
        """See :mod:`.levels`."""
        return EXTENDED_LEVELS

    def challenge(self, op: str, version: int, type: str, nonce: str) -> Sequence[ExtendedSpec]:
        """See :func:`.levels.extended_challenge`."""
        return extended_challenge(nonce)


def _broken(node: Node, draft: Draft) -> Node:
    """The node of a forbidden model, without the checks that it would not pass."""
    broken = copy.copy(node)
    object.__setattr__(broken, "attributes", MappingProxyType(draft.attributes))
    object.__setattr__(broken, "outputs", tuple(name for name in draft.outputs if name))
    return broken


def _trial(spec: ExtendedSpec, key: str, drafts: Sequence[Draft], violation: Violation | None = None) -> Trial:
    feeds = tuple(
        Feed(draft.inputs, {n: a for n, a in draft.inputs.items() if n not in spec.constants}) for draft in drafts
    )
    node = spec.node if violation is None else _broken(spec.node, drafts[-1])
    return Trial(key, spec.model(drafts[-1]), node, feeds, violation=violation, alone=spec.spoils)


@cache
def _all_features() -> frozenset[str]:
    return frozenset().union(*(spec.features for spec in extended_profile("full")))


EXTENDED_FAMILY = _Extended()
