"""Wraps as suffixes of targets: a target in a wrap, and the cases that fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ...cases.specs.quantizing import QUANTIZED
from ...cases.specs.wrapping import WRAPS, can_wrap
from ..targets.target import OPTIMIZED, Target, TargetError, lane, parse_target
from .probe import Probe, SpecProbe


def wrapped_probes(probes: Iterable[Probe], name: str) -> tuple[SpecProbe, ...]:
    """Return wrapped copies of the probes that can be wrapped."""
    return tuple(
        replace(probe, wrap=name) for probe in probes if isinstance(probe, SpecProbe) and can_wrap(probe.spec, name)
    )


def split_wrap(name: str) -> tuple[str, str]:
    """Return the name of a target without its wrap, and the wrap's name; the latter is empty if there is none."""
    plain, _, last = name.rpartition("+")
    return (plain, last) if plain and last in WRAPS else (name, "")


def wrap_lane(target: Target, name: str) -> Target:
    """Return the target in the variant of a wrap, with the wrap's name appended to its name.

    For onnxruntime, an option lets its adapter run the surrounding nodes on any provider.
    """
    # Quantizing nodes are under test too: they must run on the same provider as the node.
    beside = target.adapter == "onnxruntime" and name not in QUANTIZED
    options = {**target.options, "surroundings": True} if beside else target.options
    return replace(target, name=f"{target.name}+{name}", wrap=name, options=options)


def named_target(name: str, file: Path | None = None) -> Target:
    """Return the target of that name, as :func:`.target.parse_target` does, in the variant of its suffixes.

    Suffixes are ``+optimized`` and the name of a wrap. Raise TargetError.
    """
    given, wrap = split_wrap(name)
    plain = given.removesuffix(OPTIMIZED)
    target = lane(parse_target(plain, file), plain != given)
    if plain != given and target.name != given:
        raise TargetError(f"target {plain!r} has no lane {OPTIMIZED}: only onnxruntime has")
    return wrap_lane(target, wrap) if wrap else target
