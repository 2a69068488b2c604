"""Creation of plans from options. Unknown names raise exceptions with a message of one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ...reference.errors import DirectoryError, UserError
from ..probes.naming import is_folder
from ..probes.probe import Probe
from ..probes.selection import Selection, UnknownName, narrow, operator_types, parse_shard, select_probes
from ..targets.target import Target
from .run import Plan

SPECIAL_VALUES = "special-values"
"""Requirement that NaN and values beyond a formula's range agree with the equations."""


def planned(
    selection: Selection,
    targets: Sequence[Target],
    *,
    shard: str | None = None,
    require: Sequence[str] = (),
) -> Plan:
    """Return the plan for a selection on targets; `replace` other fields as needed.

    shard
        The part that is run, as ``K/N``.
    require
        What must be supported: operator versions with types, like ``LSTM-14:float32``, and `SPECIAL_VALUES`.

    Raise UnknownName for unknown names and for a target without cases, DirectoryError and UserError.
    """
    probes, digest, skipped = chosen_probes(selection, targets)
    plan = Plan(selection, probes, tuple(targets), digest=digest, skipped=skipped)
    _require_cases(plan)
    if shard is not None:
        plan = replace(plan, shard=parse_shard(shard))
        if not plan.probes:
            raise UserError(f"shard {plan.shard} is empty: there are fewer cases than shards")
    versions = _required([text for text in require if text != SPECIAL_VALUES], plan.probes)
    return replace(plan, require=versions, require_special=SPECIAL_VALUES in require)


def chosen_probes(selection: Selection, targets: Iterable[Target]) -> tuple[tuple[Probe, ...], str, tuple[str, ...]]:
    """Return the selected probes; of those from directories a digest, and a line for each that cannot be run.

    Raise UnknownName and DirectoryError.
    """
    named = any(map(is_folder, selection.cases))
    if named or selection.directories:
        from ..probes.directory import digest_of_directories, probe_directories
    if not selection.directories:
        operators = tuple(dict.fromkeys(op for target in targets for op in target.operators))
        probes = tuple(select_probes(selection, operators))
        return probes, digest_of_directories(probes) if named else "", ()
    skipped: list[str] = []
    found = probe_directories([Path(root) for root in selection.directories], skipped.append)
    if not found:
        reason = f"; {skipped[0]}" if skipped else ""
        raise DirectoryError(f"no test case that can be run in {', '.join(selection.directories)}{reason}")
    return tuple(narrow(selection, found)), digest_of_directories(found), tuple(skipped)


def _require_cases(plan: Plan) -> None:
    """Raise UserError if a target has no cases, because an empty run would pass."""
    for target in plan.targets:
        if plan.probes_of(target):
            continue
        if target.wrap:
            raise UserError(
                f"none of the chosen cases can be put in the wrap {target.wrap!r}: choose others, or leave it out"
            )
        about = f"none of the chosen cases is about {' or '.join(target.operators)}"
        raise UserError(f"{about}, which {target.name} is for: choose some, or leave it out")


def _required(texts: Sequence[str], probes: Iterable[Probe]) -> frozenset[tuple[str, str]]:
    """Return operator versions with types. Raise UnknownName for one that does not exist or has no case, because an
    untested requirement would pass."""
    available = {f"{probe.op}-{probe.version}:{probe.type}" for probe in probes}
    required = set()
    for text in texts:
        if text not in operator_types():
            raise UnknownName("requirement", text, operator_types())
        if text not in available:
            raise UnknownName("requirement", text, sorted(available), " among the selected cases")
        operator, _, type_name = text.partition(":")
        required.add((operator, type_name))
    return frozenset(required)
