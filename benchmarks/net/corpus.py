"""Frozen corpus: `core` of v0.4.0 and 300 of its random cases, with digests of their models and inputs.

It is never thinned. The interpreter of v0.4.0 made it: ``PYTHON benchmarks/net/corpus.py``. Models and inputs would be
100 MB, so v0.4.0 rebuilds them from a case's JSON where they are needed.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("corpus.jsonl.xz")


@cache
def corpus() -> tuple[dict[str, Any], ...]:
    """Return the rows of the corpus: part (``core`` or ``random``), id, JSON of the case, and digests.

    There is a digest of model and inputs for each session of the case.
    """
    lines = lzma.decompress(FILE.read_bytes()).decode().splitlines()
    return tuple(dict(zip(("part", "id", "case", "digests"), json.loads(line), strict=True)) for line in lines)


def digests_of(trials: Iterable[Any]) -> list[str]:
    """Return a digest of the model and the inputs of all runs, for each session of a case."""
    digests = []
    for trial in trials:
        digest = hashlib.sha256(trial.model)
        for feed in trial.feeds:
            for name, array in sorted(feed.inputs.items()):
                digest.update(f"{name} {array.dtype} {array.shape}".encode())
                digest.update(array.tobytes())
        digests.append(digest.hexdigest()[:16])
    return digests


def _freeze() -> None:
    """Write the corpus; needs the interpreter of v0.4.0."""
    from onnxspec.cases import build_case, operator_versions, profile
    from onnxspec.cases.profiles.fresh import fresh_specs

    specs = [("core", spec) for op, version in operator_versions(None) for spec in profile("core", op, version)]
    lines = []
    for part, spec in (*specs, *(("random", spec) for spec in fresh_specs(300, 0))):
        case = {"op": spec.op, "version": spec.version, **spec.to_json()}
        row = [part, spec.id, case, digests_of(build_case(spec).trials)]
        lines.append(json.dumps(row, separators=(",", ":")))
    FILE.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9))


if __name__ == "__main__":
    _freeze()
