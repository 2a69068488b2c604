"""The reach of a run's cases on a target, in words: the terminal and the report say it alike."""

from __future__ import annotations

from collections.abc import Sequence

from .records import CoverageRecord, OperatorCoverage
from .support import listed

__all__ = ["coverage_line", "falls_short"]


def coverage_line(record: CoverageRecord) -> str:
    """All of it in one line; empty where nothing was to be counted."""
    counted = _counted(record)
    if not counted:
        return ""
    pairs, triples = (
        ", ".join(f"{_percent(each['after'][key])} % in {each['operator']}" for each in counted)
        for key in ("pairs", "triples")
    )
    parts = [
        f"of faults that show only where two things meet in a node (reverse and clip, say) these cases find {pairs}; "
        f"where three meet {triples}"
    ]
    cases = sum(each["cases"] for each in counted)
    if cases:
        plural = "case was" if cases == 1 else "cases were"
        parts.append(f"{cases:,} {plural} added for these, in place of such as do not run here")
    avoided = len({id for each in counted for id in each["avoided"]})
    if avoided:
        some = (
            "combination that no case had passed with is"
            if avoided == 1
            else "combinations that no case had passed with are"
        )
        parts.append(f"{avoided:,} {some} left out of them (`avoided` in run.json)")
    short = [each["operator"] for each in counted if not each["reached"]]
    if short:
        why = f", and no cases were added: {record['left_out']}" if record["left_out"] else ""
        parts.append(f"fewer than are due in {listed(short)}{why}")
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
