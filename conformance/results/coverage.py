"""How far the cases of a run reach on a target, in words: the terminal and the report say it alike."""

from __future__ import annotations

from collections.abc import Sequence

from .records import CoverageRecord, OperatorCoverage
from .support import listed

__all__ = ["coverage_line"]


def coverage_line(record: CoverageRecord) -> str:
    """All of it in one line; empty where nothing was to be counted."""
    shown = [each for each in record["operators"] if each["after"]["pairs"][1]]
    if not shown:
        return ""
    shares = "; ".join(f"{each['operator']} {_shares(each)}{'' if each['reached'] else ' (short)'}" for each in shown)
    cases = sum(each["cases"] for each in shown)
    models = sum(each["models"] for each in shown)
    line = f"pairs, twice and triples of what it can show: {shares}"
    if cases:
        line += f"; {cases:,} case{'' if cases == 1 else 's'} in {models:,} models followed for it"
    avoided = list(dict.fromkeys(id for each in shown for id in each["avoided"]))
    if avoided:
        line += f"; around what fails always ({listed(avoided)})"
    if record["left_out"] and not all(each["reached"] for each in shown):
        line += f"; not filled up: {record['left_out']}"
    return line


def _shares(each: OperatorCoverage) -> str:
    after = each["after"]
    return f"{_percent(after['pairs'])}, {_percent(after['twice'])} and {_percent(after['triples'])} %"


def _percent(share: Sequence[int]) -> str:
    shown, possible = share
    return f"{1000 * shown // possible / 10:.1f}" if possible else "100"  # never rounded up to all
