"""The model of AMD Quark's CPU kernel against the library itself: on how many random cases they are equal bit for bit,
by what equality rests on, and how long each takes at T=80, I=64, H=128.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.quark [--cases 5000] [--seed 0] [--package FOLDER | --library PATH]

Without either the installed package amd-quark is used (pip install --no-deps amd-quark==0.13).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the generator of cases is the tests'

from quark_random import KINDS, QuarkTrial, random_trial, system_tanhf

from benchmarks.measuring import each_in_turn
from onnxspec.conformance.targets.adapters.quark_library import NoLibrary, quark_library
from onnxspec.reference.operators.extended_lstm.kernel import KernelAttributes, foundations, run_kernel
from onnxspec.reference.operators.extended_lstm.tanhf import TANHF

GOAL = 2.0
ROUNDS = 15


def options_with(library: str) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.register_custom_ops_library(library)
    return options


def equality(options: Any, cases: int, seed: int, tanhf: Any) -> bool:
    """Print the counts; whether all that C++ defines is equal."""
    sound = True
    for kind in KINDS:
        counts: Counter[tuple[str, bool]] = Counter()
        for number in range(cases):
            trial = random_trial(kind, np.random.default_rng([seed, KINDS.index(kind), number]))
            session = ort.InferenceSession(trial.model(), options, providers=["CPUExecutionProvider"])
            theirs = session.run(None, dict(trial.inputs))[0]
            parameters = KernelAttributes.of(trial.attributes)
            ours = run_kernel(**trial.inputs, parameters=parameters, tanhf=tanhf)
            rests_on = ", ".join(sorted(foundations(**trial.inputs, parameters=parameters, tanhf=tanhf)))
            equal = theirs.dtype == ours.dtype and np.array_equal(_bits(theirs), _bits(ours))
            counts[rests_on or "defined", equal] += 1
            if not equal:
                sound &= bool(rests_on)
                print(f"  differs: {kind}, seed {seed}, number {number} ({rests_on or 'defined'})")
        for rests_on in sorted({name for name, _ in counts}):
            same, other = counts[rests_on, True], counts[rests_on, False]
            print(f"{kind:10} {rests_on:30} {same:6} of {same + other:6} equal", flush=True)
    return sound


def _bits(array: Any) -> Any:
    """Bits of float32, NaN as one: its sign and payload mean nothing."""
    return np.where(np.isnan(array), np.float32(np.nan), array).view(np.uint32)


def speed(options: Any, tanhf: Any) -> float:
    """Ratio of medians, model over library, called in turn."""
    rng = np.random.default_rng(0)
    T, I, H = 80, 64, 128
    shapes = {"X": (T, 1, I), "W": (2, 4 * H, I), "R": (2, 4 * H, H), "B": (2, 8 * H)}
    inputs = {n: (rng.normal(size=s) / (1 if n == "X" else 10)).astype(np.float32) for n, s in shapes.items()}
    scales = {"x": 8 / 65535, "w": 0.8 / 65535, "r": 0.8 / 65535, "b": 0.8 / 65535, "y": 2 / 65535}
    attributes: dict[str, Any] = {"direction": "bidirectional", "hidden_size": H}
    for name, scale in scales.items():
        attributes.update({f"{name}_scale": float(np.float32(scale)), f"{name}_zero_point": 33000})
    trial = QuarkTrial(attributes, inputs)
    session = ort.InferenceSession(trial.model(), options, providers=["CPUExecutionProvider"])
    parameters = KernelAttributes.of(attributes)
    library, model = each_in_turn(
        ROUNDS,
        lambda: session.run(None, inputs),
        lambda: run_kernel(**inputs, parameters=parameters, tanhf=tanhf),
    )
    print(f"T=80 I=64 H=128: library {1e3 * library:.1f} ms, model {1e3 * model:.1f} ms")
    return model / library


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5000, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--package", default="")
    parser.add_argument("--library", default="")
    chosen = parser.parse_args()
    try:
        library = quark_library(chosen.library, chosen.package)
    except NoLibrary as error:
        print(error, file=sys.stderr)
        return 2
    name = system_tanhf()
    if name is None:
        print("this machine's tanhf is none that the model knows: results may differ in last bits", file=sys.stderr)
    print(f"amd-quark {library.version or '?'} ({library.origin}), onnxruntime {ort.__version__}, tanhf {name}")
    options, tanhf = options_with(library.path), TANHF[name or "fdlibm"]
    ratio = speed(options, tanhf)
    print(f"model / library {ratio:.2f} (goal {GOAL:g})")
    return 0 if equality(options, chosen.cases, chosen.seed, tanhf) and ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
