"""Growth of costs: judging by T, N and H, a run by its cases, a report by its results.

Drawn as SVG with two logarithmic axes, so that linear growth is parallel to the dashed line.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from benchmarks.figures import judging
from benchmarks.measuring import command_seconds, each_in_turn, onnxspec
from benchmarks.report import dumped, made_run, reported, results

Curve = Sequence[tuple[float, float]]
WIDTH, HEIGHT, MARGIN = 640, 400, 60
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")


def curves() -> dict[str, Curve]:
    """Return the points (size, processor seconds) of each curve, by name."""
    _report(100)  # loads the modules of pages once
    return {
        "judging, T of LSTM N4 H16": [(T, _judged(T=T, N=4, H=16)) for T in (4, 16, 64, 256)],
        "judging, N of LSTM T8 H16": [(N, _judged(T=8, N=N, H=16)) for N in (4, 16, 64, 256)],
        "judging, H of LSTM T8 N4": [(H, _judged(T=8, N=4, H=H)) for H in (4, 16, 64, 256)],
        "a run, cases": [(count, _run(count)) for count in (25, 100, 400)],
        "a report, results": [(count, _report(count)) for count in (1000, 10_000, 100_000)],
    }


def _judged(*, T: int, N: int, H: int) -> float:
    from onnxspec.cases import CaseSpec

    judge = judging(CaseSpec("LSTM", 14, T=T, N=N, I=8, H=H, bias=True, outputs=("Y", "Y_h", "Y_c")))
    return each_in_turn(9, judge)[0]


def _run(count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        command = onnxspec("run", "--random", f"{count}:growth", "--no-extra", "--out", "run")
        return command_seconds(command, Path(folder))


def _report(count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        run = made_run(Path(folder))
        dumped(results(count), run / "results.jsonl")
        return reported(run, Path(folder) / "report")[0]


def drawn(every: Mapping[str, Curve]) -> str:
    """Return the curves as SVG, each relative to its first point: only the growth matters."""
    across = [math.log10(x) for curve in every.values() for x, _ in curve]
    rises = [math.log10(y / curve[0][1]) for curve in every.values() for _, y in curve]
    left, right, bottom, top = min(across), max(across), min(rises), max(max(rises), right_of(every))

    def place(x: float, y: float) -> str:
        over = (math.log10(x) - left) / (right - left)
        up = (math.log10(y) - bottom) / (top - bottom)
        return f"{MARGIN + over * (WIDTH - 2 * MARGIN):.1f},{HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for power in range(math.ceil(left), math.floor(right) + 1):
        x = place(10.0**power, 1).split(",")[0]
        parts.append(f'<path d="M{x},{MARGIN}V{HEIGHT - MARGIN}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{10**power:,}</text>')
    for power in range(math.floor(top) + 1):
        y = float(place(10.0**left, 10.0**power).split(",")[1])
        parts.append(f'<path d="M{MARGIN},{y}H{WIDTH - MARGIN}" stroke="#ddd"/>')
        parts.append(f'<text x="{MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end">x{10**power:,}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 16}" text-anchor="middle">T, N, H, cases, results</text>')
    up = f'transform="translate(16,{HEIGHT / 2}) rotate(-90)" text-anchor="middle"'
    parts.append(f"<text {up}>processor time over that of the first point</text>")
    for number, (name, curve) in enumerate(every.items()):
        colour, (first, base) = COLOURS[number % len(COLOURS)], curve[0]
        points = " ".join(place(x, y / base) for x, y in curve)
        linear = " ".join(place(x, x / first) for x, _ in (curve[0], curve[-1]))
        parts.append(
            f'<polyline points="{linear}" fill="none" stroke="{colour}" stroke-dasharray="3 5" opacity="0.5"/>'
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        at = f'x="{MARGIN + 8}" y="{MARGIN + 15 + 15 * number}"'
        parts.append(f'<text {at} fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def right_of(every: Mapping[str, Curve]) -> float:
    """Return the end of the steepest linear curve, as a power of ten."""
    return max(math.log10(curve[-1][0] / curve[0][0]) for curve in every.values())
