"""A picture of what roads to a quantized node cost, as SVG: the largest error at each step, in powers of ten."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 320, 70, 230, 40, 40
_LINES = (
    ("#0b63ce", ""), ("#c2410c", "7 4"), ("#15803d", "2 3"), ("#7e22ce", "9 3 2 3"),
    ("#b91c1c", "4 4"), ("#0f766e", "1 4"), ("#a16207", "12 4"),
)  # fmt: skip
"""A colour and a pattern for each line, so that colour alone tells nothing."""


def picture_of_roads(costs: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """One panel for each node, one under the other; by node and road its errors, step by step."""
    height = _HEIGHT * len(costs)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
    ]
    for number, (node, roads) in enumerate(costs.items()):
        parts.append(f'<g transform="translate(0,{_HEIGHT * number})">')
        parts += _panel(node, {name: steps for name, steps in roads.items() if any(steps)})
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _panel(node: str, roads: Mapping[str, Sequence[float]]) -> list[str]:
    parts = [f'<text x="{_LEFT}" y="22" font-weight="bold">{escape(node)}: largest error at each step</text>']
    powers = [math.log10(error) for steps in roads.values() for error in steps if error]
    if not powers:
        return [*parts, f'<text x="{_LEFT}" y="60">no road costs anything</text>']
    low, high = math.floor(min(powers)), max(math.ceil(max(powers)), math.floor(min(powers)) + 1)
    count = max(map(len, roads.values()))

    def place(step: int, error: float) -> str:
        over = step / max(1, count - 1)
        down = 1 - (math.log10(error) - low) / (high - low)
        return f"{_LEFT + over * (_WIDTH - _LEFT - _RIGHT):.1f},{_TOP + down * (_HEIGHT - _TOP - _BOTTOM):.1f}"

    for power in range(low, high + 1):
        y = place(0, 10.0**power).split(",")[1]
        parts.append(f'<path d="M{_LEFT},{y}H{_WIDTH - _RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y}" dy="4" text-anchor="end">1e{power}</text>')
    for step in {0, count - 1}:
        x = place(step, 10.0**low).split(",")[0]
        parts.append(f'<text x="{x}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">step {step}</text>')
    for number, (name, steps) in enumerate(roads.items()):
        colour, pattern = _LINES[number % len(_LINES)]
        points = " ".join(place(step, error) for step, error in enumerate(steps) if error)
        style = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{pattern}" fill="none"'
        at, line = _WIDTH - _RIGHT + 16, _TOP + 18 * number
        parts.append(f'<polyline points="{points}" {style}/>')
        parts.append(f'<path d="M{at},{line}h28" {style}/><text x="{at + 34}" y="{line}" dy="4">{escape(name)}</text>')
    return parts
