"""Count the faults of the zoo that lists of cases catch.

    python -m benchmarks.zoo [BATCH ...] [--fresh 300] [--fuzz CASES | --minutes M] [--seed 1] [--missed]

The default is the batches of this folder. The older batches, against which faults and cases were tuned, are in git's
history: batch_amber, batch_basalt, batch_cedar, batch_dolomite, batch_ember, batch_fjord, batch_granite.

For each batch: `smoke`, `core`, random cases and, if requested, a search of a number of cases or minutes for each
fault. A fault is caught if a case fails whose outputs it changes.

Exit code 1 where the right kernel of a batch fails, or a fault does not show on its own witness: then the batch itself
is wrong.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from onnxspec import NotConforming, assert_conforms
from onnxspec.cases import Case, build_case, operator_versions, profile
from onnxspec.cases.profiles.random_cases import random_specs
from onnxspec.conformance.workers.in_process import run_in_process

from .batches import batches
from .searching import first_failing

Arrays = Sequence[Any]
_TOGETHER = 2
"""Number of failing cases after which a fault counts as caught: one may be chance, and more add nothing."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of a batch, with one session for each model that it has run."""

    batch: ModuleType
    fault: str | None
    sessions: dict[bytes, Any] = field(default_factory=dict)

    def fresh(self) -> Kernel:
        """Return the same kernel without sessions."""
        return Kernel(self.batch, self.fault)

    def __call__(self, model: bytes, feeds: dict[str, Any]) -> list[Any]:
        """Return the outputs of one run."""
        if model not in self.sessions:
            self.sessions[model] = self.batch.prepare(model, self.fault)
        return list(self.sessions[model].run(feeds))


def runs_of(kernel: Kernel, case: Case) -> list[Arrays] | None:
    """Return the outputs of the sessions of a case, run by run; None if the kernel refuses the case, or raises."""
    try:
        outcome = run_in_process(kernel.fresh(), case.trial)
    except Exception:
        return None
    return [list(arrays) for feed in outcome.outputs for arrays in feed]


def same(first: list[Arrays] | None, second: list[Arrays] | None) -> bool:
    """Return whether the outputs of two sessions are indistinguishable."""
    if first is None or second is None:
        return True
    if len(first) != len(second):  # runs that differ in only one of the sessions
        return False
    pairs = ((a, b) for run, other in zip(first, second, strict=True) for a, b in zip(run, other, strict=True))
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


def conforms(kernel: Kernel, case: Case) -> bool:
    """Return whether a kernel passes a case."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert_conforms(case.spec, kernel.fresh())
    except NotConforming as error:
        return error.judgement.verdict.value in ("unsupported", "not-tried")
    except Exception:  # a kernel of NumPy need not support the sessions of a course
        return True
    return True


def caught(batch: ModuleType, cases: Sequence[Case]) -> tuple[dict[str, int], list[str]]:
    """Return, by fault, the number of failing cases, at most two; and ids of cases that the right kernel fails."""
    plain = Kernel(batch, None)
    right = [runs_of(plain, case) for case in cases]
    accused = [case.spec.id for case, runs in zip(cases, right, strict=True) if runs and not conforms(plain, case)]
    counts: dict[str, int] = {}
    for fault in batch.FAULTS:
        kernel, failing = Kernel(batch, fault), 0
        for case, expected in zip(cases, right, strict=True):
            if failing == _TOGETHER:
                break
            runs = None if expected is None else runs_of(kernel, case)
            if expected is not None and runs is None:
                failing += 1  # an exception that the right kernel does not raise is obvious
            elif not same(runs, expected):
                failing += not conforms(kernel, case)
        counts[fault] = failing
    return counts, accused


def shows(batch: ModuleType, fault: str) -> bool:
    """Return whether a fault shows on its own witness."""
    model, runs = batch.witness(fault)
    sessions = [batch.prepare(model, variant) for variant in (None, fault)]
    right, wrong = ([list(session.run(dict(feeds))) for feeds in runs][-1] for session in sessions)
    return not all(
        np.allclose(np.float64(a), np.float64(b), rtol=0, atol=_FAR.get(a.dtype.name, 1e-4), equal_nan=True)
        for a, b in zip(right, wrong, strict=True)
    )


_FAR = {"float64": 1e-12}
"""Differences beyond rounding, where those of float32 would hide a fault."""


def lists(fresh: int, seed: int) -> dict[str, list[Case]]:
    """Return the lists of cases by name: legal ones of ONNX's own operators."""
    named = {
        name: [spec for op, version in operator_versions() for spec in profile(name, op, version) if not spec.illegal]
        for name in ("smoke", "core")
    }
    named[f"{fresh} fresh"] = list(random_specs(fresh, seed))
    return {name: [build_case(spec) for spec in specs] for name, specs in named.items()}


def sought(batch: ModuleType, seed: int, seconds: float, cases: float) -> tuple[dict[str, int], list[str]]:
    """Return the results of a search, in the form of :func:`caught`.

    The values are 1 for faults that the search found, else 0; and a case that the right kernel fails, if any.
    """
    failing = {fault: first_failing(batch, fault, seed, seconds, cases) for fault in (None, *batch.FAULTS)}
    accused = failing.pop(None)
    return {fault: int(case is not None) for fault, case in failing.items()}, [accused] if accused else []


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("batch", nargs="*")
    parser.add_argument("--fresh", type=int, default=300)
    parser.add_argument("--fuzz", type=int, metavar="CASES", help="search for each fault in so many cases")
    parser.add_argument("--minutes", type=float, help="search for each fault so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--missed", action="store_true", help="list what core misses")
    options = parser.parse_args()
    named, wrong = lists(options.fresh, options.seed), False
    searches = options.fuzz is not None or options.minutes is not None
    seconds = float("inf") if options.minutes is None else 60 * options.minutes
    columns = [*named, *(["fuzz"] if searches else [])]
    print(f"| batch | written | faults | {' | '.join(columns)} | caught by any |\n|{' --- |' * (4 + len(columns))}")
    for batch in batches(options.batch):
        silent = [fault for fault in batch.FAULTS if not shows(batch, fault)]
        results = {name: caught(batch, cases) for name, cases in named.items()}
        if searches:
            results["fuzz"] = sought(batch, options.seed, seconds, options.fuzz or float("inf"))
        hits = {name: {fault for fault, count in counts.items() if count} for name, (counts, _) in results.items()}
        total, union = len(batch.FAULTS), set().union(*hits.values())
        cells = [str(len(hit)) for hit in hits.values()]
        print(
            f"| {batch.__name__.rpartition('.')[2]} | {batch.WRITTEN} | {total} | {' | '.join(cells)} | {len(union)} |"
        )
        for fault in batch.FAULTS if options.missed else ():
            if fault not in hits["core"]:
                print(f"  {fault}: {batch.FAULTS[fault]}")
        for text in (*silent, *(id for _, accused in results.values() for id in accused)):
            wrong = True
            print(f"  does not show, or accuses the right kernel: {text}", file=sys.stderr)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
