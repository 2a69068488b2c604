"""The grade of quantized outputs: by how many levels a target is off, operator by operator and by bits."""

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
    """Bits of the levels of a result's outputs; 0 where they are numbers."""
    return next((bits for words, bits in _BITS.items() if words in result.features), 0)


def level_records(results: Iterable[Result]) -> list[LevelsRecord]:
    """Numbers of cases by how many levels they are off, for each operator and number of bits. Apart stand those whose
    result is wrong whatever is rounded inside."""
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
    """The grade for levels of so many bits, in a line; empty where nothing has such."""
    own = [record for record in records if record["bits"] == bits]
    held = [(levels, cases) for record in own for levels, cases in record["off"]]
    wrong = [(levels, cases) for record in own for levels, cases in record["wrong"]]
    if not held and not wrong:
        return ""
    parts = []
    if held:
        most, total = max(levels for levels, _ in held), sum(cases for _, cases in held)
        off = sum(cases for levels, cases in held if levels)
        some = f", {off:,} of them by one or more" if off else ""
        parts.append(f"within {plural(most, 'level')} ({plural(total)}{some})")
    if wrong:
        most, total = max(levels for levels, _ in wrong), sum(cases for _, cases in wrong)
        parts.append(f"wrong by up to {most:,} ({plural(total)})")
    return f"levels of {bits} bits: {'; '.join(parts)}"
