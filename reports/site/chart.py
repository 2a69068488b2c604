"""The share of failing cases over the releases of a runtime, as a picture."""

from __future__ import annotations

from dataclasses import dataclass

from .releases import Runtime

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT = 728, 220, 56, 16, 130


@dataclass(frozen=True)
class Curve:
    """One operator: its name, the points of its line, each with what it says, and the height of its name."""

    name: str
    points: tuple[tuple[float, float, str], ...]
    label_y: float
    style: int

    @property
    def line(self) -> str:
        return " ".join(f"{x:g},{y:g}" for x, y, _ in self.points)


@dataclass(frozen=True)
class Chart:
    """Lines over releases; ``ticks`` are heights with what they stand for, ``versions`` places with names."""

    curves: tuple[Curve, ...]
    ticks: tuple[tuple[float, str], ...]
    versions: tuple[tuple[float, str], ...]
    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    right: int = _WIDTH - _RIGHT

    @property
    def summary(self) -> str:
        """The chart in words."""
        return "; ".join(f"{curve.name}: " + ", ".join(told for *_, told in curve.points) for curve in self.curves)


def chart_of(runtime: Runtime) -> Chart | None:
    """The chart of a runtime; None where there is one release only, or nothing was judged in two."""
    releases = runtime.releases
    names = sorted({name for release in releases for name in release.subject.by_operator})
    shares: dict[str, list[tuple[int, float, str]]] = {name: [] for name in names}
    for place, release in enumerate(releases):
        for name, tally in release.subject.by_operator.items():
            if tally.judged:
                told = f"{release.version} fails {tally.failed:,} of {tally.judged:,}"
                shares[name].append((place, tally.failed / tally.judged, told))
    shown = {name: points for name, points in shares.items() if len(points) > 1}
    if not shown:
        return None
    most = max(share for points in shown.values() for _, share, _ in points)
    top = next(limit for limit in (0.05, 0.1, 0.25, 0.5, 1.0) if most <= limit)
    step = (_WIDTH - _LEFT - _RIGHT) / max(1, len(releases) - 1)
    floor = _HEIGHT - 34

    def height(share: float) -> float:
        return round(floor - (floor - _TOP) * share / top, 1)

    curves = []
    taken: list[float] = []
    for style, (name, points) in enumerate(sorted(shown.items(), key=lambda pair: pair[1][-1][1])):
        label = height(points[-1][1])
        while any(abs(label - other) < 16 for other in taken):
            label -= 4
        taken.append(label)
        places = tuple((round(_LEFT + place * step, 1), height(share), told) for place, share, told in points)
        curves.append(Curve(name, places, label, style % 4))
    every = max(1, -(-len(releases) // 8))
    return Chart(
        tuple(curves),
        tuple((height(top * part), f"{top * part * 100:g} %") for part in (0, 0.5, 1)),
        tuple(
            (round(_LEFT + place * step, 1), release.version)
            for place, release in enumerate(releases)
            if place % every == 0 or place == len(releases) - 1
        ),
    )
