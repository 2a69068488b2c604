"""What a reader must see of a case of ExtendedLSTM: its numbers around the place where they part, in levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..cases.extended_spec import ExtendedSpec
from ..reference.extended_mistakes import run_extended
from .exhibit import plain, window
from .extended_probe import runs_of
from .extended_verdict import Compared, ExtendedRun, arithmetic_of, compared
from .judgement import Judgement
from .process import Outcome

__all__ = ["extended_numbers"]

_STEPS, _UNITS = 64, 64


def extended_numbers(
    spec: ExtendedSpec, outcomes: Sequence[Outcome], judgement: Judgement | None, accuracy: str
) -> dict[str, Any] | None:
    """The numbers of an exhibit, as :mod:`.exhibit` has them; levels stand in the place of gates. None where there are
    none to compare. Without outcomes they are those that are expected alone."""
    if spec.illegal:
        return None
    if not outcomes:
        run = runs_of(spec)[-1]
        pairs: list[tuple[ExtendedRun, Any]] = [(run, run_extended((), run.node))]
    elif outcomes[0].status != "ran" or outcomes[0].malformed:
        return None
    else:
        runs = zip(runs_of(spec), outcomes[0].outputs, strict=True)
        pairs = [(run, outputs[0]) for run, lists in runs for outputs in lists]
    state = "as-computed" if judgement is not None and "state-as-computed" in judgement.flags else "quantized"
    found = [compared(r, Y, arithmetic_of(accuracy), state) for r, Y in pairs if Y is not None and Y.size]
    if not found:
        return None
    worst = max(range(len(found)), key=lambda k: float(found[k].ratio.max()))
    c, y = found[worst], pairs[worst][0].node.y
    first = c.first
    t, d, n, h = first if first is not None else _focus(c)
    order = np.arange(len(c.got)) if d == 0 else np.arange(len(c.got))[::-1]
    step = int(np.argwhere(order == t)[0, 0])
    shown, units = window(len(order), _STEPS, step), window(spec.H, _UNITS, h)

    def checked(at: tuple[int, ...]) -> dict[str, Any]:
        doubtful = bool(c.doubt[at])
        return {
            "must": None if doubtful else plain(c.value[at], 9),
            "within": None if doubtful else plain(c.radius[at], 3),
            "got": plain(c.got[at], 9) if outcomes else None,
            "ratio": None if doubtful or not outcomes else plain(c.ratio[at], 3),
        }

    lines = []
    for s in shown:
        at = (int(order[s]), d, n, h)
        level, must = (c.got[at], c.value[at]) if y is None else (c.got[at] / y.scale, c.value[at] / y.scale)
        values = {"must_levels": plain(must, 7)}
        if outcomes:
            values = {"got_levels": plain(level, 7), **values, "off_by": plain(level - must, 4)}
        lines.append({"step": s, "position": at[0], "padding": False, "values": values, **checked(at)})
    names = list(lines[0]["values"]) if lines else []
    parting = None
    if first is not None and judgement is not None:
        way = "backward" if d else "forward"
        place = f"Y[{t}, {d}, {n}, {h}], step {step} {way}"
        parting = {"output": "Y", "place": place, "clause": judgement.clause, "step": step, **checked((t, d, n, h))}
    ratio = c.ratio[order][:, d, n]
    doubt = c.doubt[order][:, d, n]
    return {
        "title": "the case's own run" if len(pairs) == 1 else f"run {worst + 1}",
        "from_reported": True,
        "direction": "reverse" if d else "forward",
        "row": n,
        "unit": h,
        "parting": parting,
        "outputs": [],
        "gates": {"names": names, "of_steps": len(order), "lines": lines},
        "plane": {
            "steps": list(shown),
            "positions": [int(order[s]) for s in shown],
            "of_steps": len(order),
            "units": list(units),
            "of_units": spec.H,
            "length": len(order),
            "ratio": [[None if doubt[s, u] else plain(ratio[s, u], 3) for u in units] for s in shown],
        },
        "states": [],
    }


def _focus(c: Compared) -> tuple[int, ...]:
    return tuple(int(k) for k in np.unravel_index(int(c.ratio.argmax()), c.ratio.shape))
