"""Comparison of outputs with given ones, like in onnx.backend.test: by a fixed tolerance, without a radius."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..workers.process import Outcome
from .judgement import Judgement, Verdict, not_run, wrong_count, wrong_form

BFLOAT16_RTOL = 2.0**-6
"""The minimum relative tolerance for bfloat16 in newer runners: two units in the last place.

With less, one rounding would be wrong.
"""

Given = Mapping[str, NDArray[Any]]


def judge_given(outcome: Outcome, given: Sequence[Given], names: Sequence[str], rtol: float, atol: float) -> Judgement:
    """Return the verdict on the results of a model for which only given outputs are known.

    given
        For each run the expected outputs by name; empty if there are none.
    names
        Of the graph's outputs.
    rtol, atol
        The tolerance of an element is atol + rtol |expected|.
    """
    if outcome.status != "ran":
        return not_run(outcome)
    if outcome.malformed:
        return Judgement(Verdict.MALFORMED, "form", message=outcome.malformed)
    pairs = [(expected, outputs) for expected, lists in zip(given, outcome.outputs, strict=True) for outputs in lists]
    judgements = [_compared(expected, outputs, names, rtol, atol) for expected, outputs in pairs if expected]
    malformed = next((one for one in judgements if one.verdict is Verdict.MALFORMED), None)
    if malformed is not None:
        return malformed
    if outcome.changed:
        changed = ", ".join(outcome.changed)
        return Judgement(Verdict.INPUT_MODIFIED, "inputs-changed", message=f"the run changed its inputs: {changed}")
    flags = ("nondeterministic",) if any(len(lists) > 1 for lists in outcome.outputs) else ()
    judged = sum(one.judged for one in judgements)
    if not judged and any(array is not None and array.size for _, outputs in pairs for array in outputs):
        return Judgement(
            Verdict.INCONCLUSIVE, "inconclusive", message="no outputs are given to compare with", flags=flags
        )
    worst = max(judgements, key=lambda one: one.worst, default=Judgement(Verdict.PASS))
    verdict = worst.verdict
    if flags and verdict is Verdict.WRONG and any(one.verdict is Verdict.PASS for one in judgements):
        verdict = Verdict.UNSTABLE
    return replace(worst, verdict=verdict, flags=flags, judged=judged, elements=judged)


def _compared(
    wanted: Given, outputs: Sequence[NDArray[Any] | None], names: Sequence[str], rtol: float, atol: float
) -> Judgement:
    """Return the verdict on one run."""
    if len(outputs) != len(names):
        return wrong_count(len(outputs), len(names))
    worst = Judgement(Verdict.PASS)
    judged = 0
    for name, got in zip(names, outputs, strict=True):
        must = wanted[name]
        malformed = wrong_form(name, got, must.shape, must.dtype)
        if malformed is not None or got is None:
            return malformed or worst
        judgement = _output(name, got, must, rtol, atol)
        judged += judgement.judged
        if judgement.worst > worst.worst:
            worst = judgement
    return replace(worst, judged=judged)


def _output(name: str, got: NDArray[Any], must: NDArray[Any], rtol: float, atol: float) -> Judgement:
    """Return the verdict on one output of the right form."""
    if must.dtype.name == "bfloat16":
        rtol = max(rtol, BFLOAT16_RTOL)
    wide = np.complex128 if must.dtype.kind == "c" else np.float64
    value, expected = got.astype(wide), must.astype(wide)
    same = (got == must) | (np.isnan(value) & np.isnan(expected))
    with np.errstate(all="ignore"):
        allowed = atol + rtol * np.abs(expected)
        ratio = np.nan_to_num(np.abs(value - expected) / allowed, nan=np.inf, posinf=np.inf)
    ratio = np.where(same, 0.0, np.where(np.isfinite(value) & np.isfinite(expected), ratio, np.inf))
    worst = float(ratio.max(initial=0.0))
    if not worst > 1:
        return Judgement(Verdict.PASS, worst=worst, judged=got.size)
    index = tuple(int(i) for i in np.unravel_index(int(ratio.argmax()), ratio.shape))
    element = f"{name}[{', '.join(map(str, index))}]"
    return Judgement(
        Verdict.WRONG,
        "value" if np.isfinite(value[index]) else "nonfinite",
        {"output": name, "index": list(index), "step": None},
        f"{element} is {value[index]:.9g}, the given output is {expected[index]:.9g}, tolerance {allowed[index]:.3g}",
        worst,
        judged=got.size,
    )
