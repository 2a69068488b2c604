"""Results of real targets on quantized nodes: a table by target, bits and operator, for docs/measurements.md.

    python -m benchmarks.quantized FOLDER [--profile core] [--lane TARGET+qdq-u8 ...]

Lanes without a run in FOLDER are run first, as users run them, with examples/targets/runtimes.toml.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.results.folder import read_folder
from onnxspec.conformance.results.result import Result

LANES = (
    "onnxruntime+qdq-u8",
    "onnxruntime+qdq-u16",
    "onnxruntime+optimized+qdq-u8",
    "onnxruntime+optimized+qdq-u16",
    "onnxruntime-qnn-8bit+qdq-u8",
    "onnxruntime-qnn-16bit+qdq-u16",
    "openvino+qdq-u8",
    "openvino+qdq-s8",
    "openvino+qdq-u16",
    "onnxruntime-openvino+qdq-u8",
    "onnxruntime-openvino+qdq-s8",
    "onnxruntime-openvino+qdq-u16",
    "rknn+qdq-u8",
    "quark-library",
)
TARGETS = Path(__file__).parent.parent / "examples" / "targets" / "runtimes.toml"
OFF = (Verdict.PASS, Verdict.INACCURATE, Verdict.WRONG)
DECLINED = (Verdict.UNSUPPORTED, Verdict.FALLBACK)


def run(lane: str, profile: str, folder: Path) -> None:
    """Run a lane. Failures of the runtime do not matter for the exit code."""
    words = ["run", "--profile", profile, "--targets-file", str(TARGETS), "--target", lane, "--no-extra"]
    shutil.rmtree(folder, ignore_errors=True)
    onnxspec = Path(sys.executable).with_name("onnxspec")
    done = subprocess.run([onnxspec, *words, "--out", folder], stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{lane}: onnxspec run ended with {done.returncode}")


def rows(lane: str, results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """Return a row for each operator."""
    for op in sorted({result.op for result in results}):
        own = [result for result in results if result.op == op]
        verdicts = Counter(result.verdict for result in own)
        declined = sum(verdicts[verdict] for verdict in DECLINED)
        failing = [result for result in own if result.failing]
        yield (
            f"`{lane}`",
            op,
            str(len(own) - declined - verdicts[Verdict.INCONCLUSIVE]),
            str(verdicts[Verdict.PASS]),
            off_by([result for result in own if result.verdict in OFF]),
            str(declined),
            smallest(failing),
        )


def off_by(results: Sequence[Result]) -> str:
    """By how many levels results are off, right ones too by a class that says so: how many by so many, the tail of them
    together."""
    units = Counter(int(place["units"]) for r in results if (place := r.where) and place.get("units"))
    few = sorted(units)[:3]
    shown = [f"{count} ({units[count]})" for count in few]
    if len(units) > len(few):
        shown.append(f"up to {max(units)} ({sum(units.values()) - sum(units[count] for count in few)})")
    return ", ".join(shown)


def smallest(failing: Sequence[Result]) -> str:
    """Of the cases that fail the one with the fewest numbers, and what explains it."""
    if not failing:
        return ""
    least = min(failing, key=lambda result: (result.elements or sys.maxsize, len(result.features), result.case))
    explained = f"; explained by {', '.join(least.diagnosis)}" if least.diagnosis else ""
    return f"`{least.case}` ({least.verdict.value}{explained})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--profile", default="core")
    parser.add_argument("--lane", action="append", default=[])
    given = parser.parse_args()
    print("| target and lane | operator | judged | right | off by levels (cases) | declined | smallest failing case |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for lane in given.lane or LANES:
        folder = given.folder / lane
        if not (folder / "run.json").exists():
            run(lane, given.profile, folder)
        for row in rows(lane, list(read_folder(folder).results)):
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
