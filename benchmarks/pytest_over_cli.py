"""What pytest costs over the command: wall time of ``pytest --pyargs onnxspec.conformance`` over that of
``onnxspec run`` for the same cases, both as a user starts them. Goal: at most 1.5.

    python benchmarks/pytest_over_cli.py [smoke|core]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
GOAL = 1.5
PLUGIN = "onnxspec.conformance.pytest_plugin.plugin"
MAIN = "from onnxspec.conformance.cli.main import main; main()"


def seconds(folder: str, *arguments: str) -> float:
    """Wall seconds of a Python process, which must end well. No ini-file and no other plugin plays a part."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=folder, env=environment)
    return time.perf_counter() - start


def main() -> None:
    profile = sys.argv[1] if len(sys.argv) > 1 else "core"
    suite = ("--pyargs", "onnxspec.conformance", "--onnxspec-target", "onnxruntime", "--onnxspec-profile", profile)
    times: dict[str, list[float]] = {"onnxspec run": [], "pytest": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            run = ("run", "--target", "onnxruntime", "--profile", profile, "--out", "run", "--overwrite")
            times["onnxspec run"].append(seconds(folder, "-c", MAIN, *run))
            times["pytest"].append(
                seconds(folder, "-m", "pytest", "-p", "onnxspec.conformance.pytest_plugin.plugin", *suite)
            )
    for name, each in times.items():
        print(f"{name:13} {statistics.median(each):6.2f} s  ({min(each):.2f} to {max(each):.2f})")
    ratio = statistics.median(p / r for r, p in zip(*times.values(), strict=True))
    print(f"ratio {ratio:.2f}, goal {GOAL}")


if __name__ == "__main__":
    main()
