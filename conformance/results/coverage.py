"""The reach of a run's cases on a target, in words: the terminal and the report say it alike."""

from __future__ import annotations

from collections.abc import Sequence

from .records import CoverageRecord, OperatorCoverage
from .support import listed


def coverage_line(record: CoverageRecord) -> str:
    """The coverage of a target in one line; empty where nothing was to be counted."""
    counted = _counted(record)
    if not counted:
        return ""
    telling = [each for each in counted if each["after"]["pairs"][0]]
    parts = []
    if telling:
        pairs, triples = (
            listed([f"{_percent(each['after'][key])} % ({each['operator']})" for each in telling])
            for key in ("pairs", "triples")
        )
        parts.append(
            f"these cases find {pairs} of faults that need two features at once (reverse and clip, say), {triples} of "
            "those that need three"
        )
    if idle := [each["operator"] for each in counted if each not in telling]:
        none = "none" if telling else "these cases find no fault that needs two features at once"
        parts.append(f"{none} in {listed(idle)}")
    cases = sum(each["cases"] for each in counted)
    if cases:
        parts.append(f"{cases:,} {'was' if cases == 1 else 'were'} added for these, where others do not run")
    avoided = len({id for each in counted for id in each["avoided"]})
    if avoided:
        are = "combination is" if avoided == 1 else "combinations are"
        parts.append(f"{avoided:,} {are} left out, since no case passes with them (`avoided` in run.json)")
    short = [each["operator"] for each in telling if not each["reached"]]
    if short:
        why = f", and no cases were added: {record['left_out']}" if record["left_out"] else ""
        parts.append(f"less than is due in {listed(short)}{why}")
    return "; ".join(parts)


def falls_short(record: CoverageRecord) -> bool:
    """Tell whether the cases show less, in some operator, than they should."""
    return not all(each["reached"] for each in _counted(record))


def _counted(record: CoverageRecord) -> list[OperatorCoverage]:
    """Operators of which there was something to count."""
    return [each for each in record["operators"] if each["after"]["pairs"][1]]


def _percent(share: Sequence[int]) -> str:
    shown, possible = share
    return f"{1000 * shown // possible / 10:.1f}" if possible else "100"  # never rounded up to all
