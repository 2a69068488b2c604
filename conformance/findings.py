"""Findings: failing results that belong together, said once.

Results are one finding when they fail alike: same verdict, same reason, same broken clause, same reason to expect it.
What failing cases have and cases that pass have not is the condition under which it shows.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..reference import FORMATS
from .probe import AnyProbe, Probe, probe_of
from .result import Result
from .verdict import Verdict

__all__ = ["biases", "findings_of", "grades"]

# A mean signed error of half a unit is far beyond what roundings to nearest leave (they average out to a few
# hundredths, see tests/conformance/test_staged.py), and six standard errors make chance no explanation.
BIAS_UNITS = 0.5
BIAS_ERRORS = 12.0
BIAS_ELEMENTS = 100


def findings_of(results: Sequence[Result], subjects: Mapping[str, AnyProbe]) -> list[dict[str, Any]]:
    """The findings of one target, as run.json holds them. `subjects` has what the results are of, by id."""
    probes = {id: probe_of(subject) for id, subject in subjects.items()}
    groups: dict[tuple[Any, ...], list[Result]] = defaultdict(list)
    passing = [r for r in results if r.verdict is Verdict.PASS and "unconventional" not in r.flags]
    for result in results:
        if result.failing:
            groups["failing", result.verdict, result.reason, result.clause, result.why].append(result)
        elif "unconventional" in result.flags:
            groups["convention", result.verdict, result.reason, result.clause, ""].append(result)
        elif result.verdict is Verdict.REFUSED:
            groups["refused", result.verdict, _message_kind(result.message), None, ""].append(result)
    found = [_finding(kind, members, passing, probes) for (kind, *_), members in groups.items()]
    found += [_bias_finding(kind, bias, results) for kind, bias in biases(results).items() if bias["biased"]]
    return found


def _message_kind(message: str) -> str:
    """A message without what differs from case to case: addresses, shapes and lists."""
    return re.sub(r"0x[0-9a-f]+|\{[^}]*\}|\[[^\]]*\]", "*", message)


def _gist(message: str, length: int = 240) -> str:
    """A long message shortened in its middle: what failed stands at its beginning, why at its end."""
    if len(message) <= length:
        return message
    return f"{message[:60]} ... {message[60 - length :]}"


def _finding(
    kind: str, members: list[Result], passing: Iterable[Result], probes: Mapping[str, Probe]
) -> dict[str, Any]:
    first = min(members, key=lambda r: probes[r.case].size)
    condition = _condition([probes[r.case].traits for r in members], [probes[r.case].traits for r in passing])
    verdict = members[0].verdict.value
    title = {
        "refused": f"refuses {condition or 'these nodes'}",
        "convention": f"breaks a convention ({first.reason})",
    }.get(kind, f"{verdict}{f' ({first.reason})' if first.reason else ''}")
    if condition and kind != "refused":
        title += f" with {condition}"
    return {
        "title": title,
        "kind": verdict if kind == "failing" else kind,
        "clauses": [first.clause] if first.clause else [],
        "verdict": verdict,
        "types": sorted({r.type for r in members}),
        "versions": sorted({r.version for r in members}),
        "cases": [r.case for r in members],
        "smallest": first.case,
        "expected": all(r.expected for r in members),
        "why": first.why,
        "message": _gist(first.message),
        "repeat": first.repeat,
    }


def _condition(failing: list[frozenset[str]], others: list[frozenset[str]]) -> str:
    """In words, what all failing cases have that no passing one has; empty where no feature tells them apart, or where
    nothing passes to tell them apart from.

    A single feature is looked for first, then a pair.
    """
    if not others:
        return ""
    common = failing[0].intersection(*failing)
    telling = sorted(t for t in common if not any(t in o for o in others))
    if telling:
        # A version or a type says most where it tells all: its other traits only come along with it.
        return min(telling, key=lambda t: (t not in FORMATS and not t.startswith("version "), telling.index(t)))
    pairs = ((a, b) for a in sorted(common) for b in sorted(common) if a < b)
    pair = next((p for p in pairs if not any(set(p) <= o for o in others)), None)
    return " and ".join(pair) if pair else ""


def biases(results: Iterable[Result]) -> dict[str, dict[str, Any]]:
    """The mean signed errors in u of a target by type, over its one-step accuracy cases, where every state is exact.

    ``shift`` is the mean of the error itself, ``scale`` of the error towards larger magnitude, ``error`` the standard
    error of both.
    """
    sums: dict[str, list[float]] = {}
    counts: dict[str, int] = defaultdict(int)
    for result in results:
        if result.error_sums and result.verdict in (Verdict.PASS, Verdict.INACCURATE, Verdict.WRONG):
            total = sums.setdefault(result.type, [0.0] * 4)
            sums[result.type] = [a + b for a, b in zip(total, result.error_sums, strict=True)]
            counts[result.type] += result.judged
    found = {}
    for kind, (shift, scale, square, size) in sums.items():
        if not size or not all(map(math.isfinite, (shift, scale, square))):
            continue
        bias = {"shift": shift / size, "scale": scale / size, "error": math.sqrt(square) / size}
        largest = max(abs(bias["shift"]), abs(bias["scale"]))
        biased = largest > max(BIAS_UNITS, BIAS_ERRORS * bias["error"]) and counts[kind] >= BIAS_ELEMENTS
        found[kind] = {**{n: round(v, 6) for n, v in bias.items()}, "elements": counts[kind], "biased": biased}
    return found


def _bias_finding(kind: str, bias: Mapping[str, Any], results: Sequence[Result]) -> dict[str, Any]:
    cases = [r for r in results if r.error_sums and r.type == kind]
    return {
        "title": f"biased in {kind}: errors do not average out",
        "kind": "biased",
        "clauses": [],
        "verdict": "pass",
        "types": [kind],
        "versions": sorted({r.version for r in cases}),
        "cases": [r.case for r in cases],
        "smallest": cases[0].case,
        "expected": False,
        "why": "",
        "message": f"mean signed error {bias['shift']:+.3g}u, towards larger magnitude {bias['scale']:+.3g}u, "
        f"standard error {bias['error']:.2g}u over {bias['elements']} elements",
        "repeat": cases[0].repeat,
    }


def grades(results: Iterable[Result], declared: str) -> dict[str, str]:
    """For each type the tightest class that all cases of a target meet; types with a wrong result have none."""
    found: dict[str, set[str]] = defaultdict(set)
    for result in results:
        if result.verdict is Verdict.WRONG:
            found[result.type].add("")
        elif result.verdict is Verdict.INACCURATE:
            found[result.type].add(result.accuracy or "")
        elif result.strict is not None:
            found[result.type].add("strict" if result.strict else declared)
    order = [
        "strict",
        "standard",
        "flushing",
        "f32-math",
        "tf32",
        "f16-math",
        "bf16-math",
        "f16-storage",
        "bf16-storage",
        "fast",
    ]
    return {
        kind: max(names, key=lambda n: order.index(n) if n in order else len(order))
        for kind, names in sorted(found.items())
        if "" not in names
    }
