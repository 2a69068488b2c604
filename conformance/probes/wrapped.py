"""Wrap lanes: the cases of a profile with their nodes in surroundings in which providers claim them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from ...cases import Spec, build_case
from ...cases.axes.quantized import features_of_levels
from ...cases.specs.features import groups_with
from ...cases.specs.quantizing import QUANTIZED
from ...cases.specs.wrapping import WRAPS, can_wrap, wrap
from ..targets.target import OPTIMIZED, Target, TargetError, lane, parse_target
from .probe import Prepared, Probe, SpecProbe, prepared_case

__all__ = ["WRAPS", "CaseProbe", "WrapProbe", "named_target", "split_wrap", "wrap_lane", "wrapped_probes"]


class WrapProbe(Struct, frozen=True, dict=True):
    """A case of a profile with its node wrapped (see :mod:`..cases.wrapping`); it keeps the case's id and clauses."""

    probe: SpecProbe
    wrap: str

    @property
    def spec(self) -> Spec:
        return self.probe.spec

    def like(self, spec: Spec) -> WrapProbe:
        """Another case to try in its place, in the same surroundings. Raises ValueError where they do not fit."""
        if not can_wrap(spec, self.wrap):
            raise ValueError(f"{spec.id} cannot be put in the wrap {self.wrap!r}")
        return WrapProbe(self.probe.like(spec), self.wrap)

    @property
    def id(self) -> str:
        return self.probe.id

    @property
    def text(self) -> str:
        return self.probe.text

    @property
    def op(self) -> str:
        return self.probe.op

    @property
    def domain(self) -> str:
        return self.probe.domain

    @property
    def version(self) -> int:
        return self.probe.version

    @property
    def type(self) -> str:
        return self.probe.type

    @property
    def clauses(self) -> tuple[str, ...]:
        return self.probe.clauses

    @cached_property
    def features(self) -> frozenset[str]:
        lane = {"wrapped", f"wrapped-{self.wrap}", *_quantized(self.wrap)}
        return self.probe.features | lane

    @property
    def groups(self) -> tuple[str, ...]:
        return (*self.probe.groups, *groups_with(_quantized(self.wrap)))

    @property
    def traits(self) -> frozenset[str]:
        return self.probe.traits

    @property
    def size(self) -> tuple[float, int]:
        return self.probe.size

    @property
    def graded(self) -> bool:
        return self.probe.graded

    def prepare(self) -> Prepared:
        """Build the wrapped models, with inputs that the node sees unchanged."""
        return prepared_case(wrap(build_case(self.probe.spec), self.wrap))

    def repeat(self, target: str) -> list[str]:
        """``onnxspec explain``; the target's name has its lane."""
        return self.probe.repeat(target)


CaseProbe: TypeAlias = SpecProbe | WrapProbe
"""Probes that are made of a case's values: others like them can be tried."""


def _quantized(name: str) -> frozenset[str]:
    """Features that a lane has in common with cases that are quantized themselves."""
    return features_of_levels(int(name.removeprefix("qdq-")[1:]) if name in QUANTIZED else 0)


def wrapped_probes(probes: Iterable[Probe], name: str) -> tuple[WrapProbe, ...]:
    """The probes that can be wrapped, wrapped."""
    return tuple(
        WrapProbe(probe, name) for probe in probes if isinstance(probe, SpecProbe) and can_wrap(probe.spec, name)
    )


def split_wrap(name: str) -> tuple[str, str]:
    """The name of a target without that of the wrap behind it, and the latter; empty where there is none."""
    plain, _, last = name.rpartition("+")
    return (plain, last) if plain and last in WRAPS else (name, "")


def wrap_lane(target: Target, name: str) -> Target:
    """The target in the lane of a wrap, its name with that of the wrap behind it.

    onnxruntime's adapter is told, so that it leaves the nodes around the one under test to any provider.
    """
    # Nodes that quantize belong to the subject: all of them must be where the node is.
    beside = target.adapter == "onnxruntime" and name not in QUANTIZED
    options = {**target.options, "surroundings": True} if beside else target.options
    return replace(target, name=f"{target.name}+{name}", wrap=name, options=options)


def named_target(name: str, file: Path | None = None) -> Target:
    """Return the target of that name, as :func:`.target.parse_target` has it, in the variant that its suffixes ask for:
    ``+optimized``, and a wrap's. Raises TargetError."""
    given, wrap = split_wrap(name)
    plain = given.removesuffix(OPTIMIZED)
    target = lane(parse_target(plain, file), plain != given)
    if plain != given and target.name != given:
        raise TargetError(f"target {plain!r} has no lane {OPTIMIZED}: only onnxruntime has")
    return wrap_lane(target, wrap) if wrap else target
