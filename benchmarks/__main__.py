"""Measure the costs of onnxspec, and compare them with their goals.

    python -m benchmarks [WORD ...] [--long] [--runs N] [--json FILE] [--before FILE] [--growth FILE.svg]

Each WORD selects the figures with that word in their names. ``--json`` writes the values, ``--before`` shows those of
an earlier file beside them, ``--growth`` draws the growth of judging, runs and reports. Exit code 1 where a goal is
missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

from benchmarks.figures import FIGURES
from benchmarks.growth import curves, drawn
from benchmarks.peers import PEERS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--long", action="store_true", help="what takes minutes, too")
    parser.add_argument("--runs", type=int, default=3, help="of each figure, of which the median counts")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--growth", type=Path)
    options = parser.parse_args()
    before = json.loads(options.before.read_text(encoding="utf-8")) if options.before else {}
    values: dict[str, dict[str, float | str | bool | None]] = {}
    print("| | before | now | goal | |\n| --- | --- | --- | --- | --- |")
    for figure in FIGURES:
        if (figure.long and not options.long) or (
            options.words and not any(word in figure.name for word in options.words)
        ):
            continue
        try:
            value = statistics.median(figure.measure() for _ in range(1 if figure.long else options.runs))
        except Exception as error:  # one failing figure must not stop the others
            print(f"| {figure.name} | | {type(error).__name__}: {error} | | **failed** |", flush=True)
            values[figure.name] = {"value": None, "missed": True}
            continue
        missed = figure.missed(value)
        values[figure.name] = {"value": value, "unit": figure.unit, "goal": figure.goal, "missed": missed}
        previous = before.get(figure.name, {}).get("value")
        cells = [_shown(previous, figure.unit), _shown(value, figure.unit), _shown(figure.goal, figure.unit)]
        print(f"| {figure.name} | {' | '.join(cells)} | {'**missed**' if missed else ''} |", flush=True)
    for name, measure in PEERS.items():
        if options.words and not any(word in name for word in options.words):
            continue
        try:
            value = measure()
        except ImportError:
            print(f"| {name} | | not installed | | |", flush=True)
            continue
        except Exception as error:
            print(f"| {name} | | {type(error).__name__}: {error} | | |", flush=True)
            continue
        values[name] = {"value": value, "unit": "ms", "goal": None, "missed": False}
        print(f"| {name} | {_shown(before.get(name, {}).get('value'), 'ms')} | {_shown(value, 'ms')} | | |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    if options.growth:
        options.growth.write_text(drawn(curves()), encoding="utf-8")
    return int(any(each["missed"] for each in values.values()))


def _shown(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.3g} {unit}"


if __name__ == "__main__":
    sys.exit(main())
