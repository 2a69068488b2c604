"""Grade of quantized outputs: the number of levels by which a target is off, by operator and by bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ...cases.specs.features import WORDS
from ..judging.judgement import Verdict
from ..text import plural
from .records import LevelsRecord
from .result import Result

_BITS = {WORDS["quantized-8-bits"]: 8, WORDS["quantized-16-bits"]: 16}
_HOLDING = (Verdict.PASS, Verdict.INACCURATE, Verdict.INCONCLUSIVE)


def bits_of(result: Result) -> int:
    """Return the bits of the levels of a result's outputs; 0 where they are not quantized."""
    return next((bits for feature, bits in _BITS.items() if feature in result.features), 0)


def level_records(results: Iterable[Result]) -> list[LevelsRecord]:
    """Return the numbers of cases by difference in levels, for each operator and number of bits.

    Results that are wrong by any internal rounding are counted separately.
    """
    cases: dict[tuple[str, int, bool], Counter[int]] = {}
    for result in results:
        bits, off = bits_of(result), None if result.where is None else result.where.get("units")
        if bits and result.judged and off is not None:
            wrong = result.verdict not in _HOLDING
            cases.setdefault((result.op, bits, wrong), Counter())[round(off)] += 1
    records: list[LevelsRecord] = []
    for op, bits in sorted({(op, bits) for op, bits, _ in cases}):
        within, beyond = (cases.get((op, bits, wrong), Counter()) for wrong in (False, True))
        records.append(
            {
                "operator": op,
                "bits": bits,
                "within": max(within) if within else None,
                "off": _pairs(within),
                "wrong": _pairs(beyond),
            }
        )
    return records


def _pairs(counter: Counter[int]) -> list[list[int]]:
    return [[levels, cases] for levels, cases in sorted(counter.items())]


def graded_line(records: Sequence[LevelsRecord], bits: int) -> str:
    """Return one line with the grade for levels of ``bits`` bits; empty where there are none."""
    matching = [record for record in records if record["bits"] == bits]
    held = [(levels, cases) for record in matching for levels, cases in record["off"]]
    wrong = [(levels, cases) for record in matching for levels, cases in record["wrong"]]
    if not held and not wrong:
        return ""
    parts = []
    if held:
        most, total = max(levels for levels, _ in held), sum(cases for _, cases in held)
        off = sum(cases for levels, cases in held if levels)
        off_text = f", {off:,} of them by one or more" if off else ""
        parts.append(f"within {plural(most, 'level')} ({plural(total)}{off_text})")
    if wrong:
        most, total = max(levels for levels, _ in wrong), sum(cases for _, cases in wrong)
        parts.append(f"wrong by up to {most:,} ({plural(total)})")
    return f"levels of {bits} bits: {'; '.join(parts)}"
