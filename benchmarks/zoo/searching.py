"""`onnxspec fuzz` on a kernel of the zoo, until the first failing case."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from onnxspec.cases import operator_versions
from onnxspec.conformance.judging.judgement import FAILING
from onnxspec.conformance.probes.drawn import random_batches
from onnxspec.conformance.probes.stream import tried
from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.process import TargetProcess
from onnxspec.reference import FORMATS

_ADAPTER = Path(__file__).with_name("adapter.py")


def first_failing(batch: ModuleType, fault: str | None, seed: int, seconds: float, cases: float) -> str | None:
    """Return the id of the first failing case of a search on a kernel; None if there is none within the limits."""
    options = {"batch": str(batch.__file__)} | ({} if fault is None else {"fault": fault})
    target = Target(f"{batch.__name__}:{fault}", str(_ADAPTER), options)
    with TargetProcess(target) as process:
        process.start()
        for probes in random_batches(list(operator_versions()), tuple(FORMATS), seed, seconds, cases):
            for one in tried(process, probes, target.accuracy):
                if one.judgement.verdict in FAILING:
                    return one.probe.id
    return None
