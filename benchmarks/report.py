"""Made-up runs with many results, and the cost of a report on them."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

from onnxspec.cases import clauses_exercised, group_of, operator_versions, profile
from onnxspec.conformance.border.strict_json import encode
from onnxspec.conformance.results.lines import header_of
from onnxspec.reports.page import write_report
from onnxspec.reports.run import NO_RUN

VERDICTS = ("pass",) * 80 + ("unsupported",) * 12 + ("wrong",) * 6 + ("inaccurate", "inconclusive")


def results(count: int) -> list[dict[str, Any]]:
    """Return results like those of a large run, on a target with faults.

    They are cases of ``core``, repeated with other data.
    """
    draw = random.Random(1)
    specs = [spec for op, version in operator_versions() for spec in profile("core", op, version)]
    subjects = [(s, [clause.id for clause in clauses_exercised(s)], list(group_of(s))) for s in specs]
    rows = []
    for number in range(count):
        spec, clauses, features = subjects[number % len(subjects)]
        verdict = draw.choice(VERDICTS)
        failing = verdict in ("wrong", "inaccurate")
        case = f"{spec.id.rpartition('.')[0]}.{draw.getrandbits(24):06x}"
        index, got = [draw.randrange(5) for _ in range(4)], draw.random()
        rows.append(
            {
                "record": "result",
                "case": case,
                "op": spec.op,
                "domain": "",
                "version": spec.version,
                "type": spec.type,
                "target": "onnxruntime",
                "verdict": verdict,
                "expected": failing and number % 2 == 0,
                "clauses": clauses,
                "features": features,
                "worst": None if verdict == "unsupported" else draw.random() * (100 if failing else 0.5),
                "reason": "value" if failing else None,
                "where": {"output": "Y", "index": index, "step": index[0]} if failing else None,
                "message": f"Y[{index}] is {got:.9g}, must be {got + 0.1:.9g} within 1e-07" if failing else "",
                "flags": [],
                "diagnosis": [],
                "seconds": round(draw.uniform(0.00015, 0.002), 6),  # the range of onnxruntime
                "clause": "lstm.equations" if failing else None,
                "accuracy": "standard",
                "interpretations": {},
                "judged": 60,
                "elements": 60,
                "repeat": f"onnxspec explain {case} --target onnxruntime",
                "why": "",
                "error_sums": [draw.gauss(0, 1e-8) for _ in range(4)]
                if getattr(spec, "data", "") == "numerics"
                else [],
                "strict": None,
                "printed": "",
            }
        )
    return rows


def made_run(folder: Path) -> Path:
    """Return the folder of a run without results."""
    run = folder / "run"
    run.mkdir()
    info = {**NO_RUN, "started": "2026-01-01T00:00:00+00:00", "complete": True, "profile": "made up"}
    (run / "run.json").write_text(json.dumps(info), encoding="utf-8")
    return run


def dumped(rows: list[dict[str, Any]], path: Path) -> float:
    """Write results behind the header of their run, and return the processor time of writing."""
    header = encode(header_of(json.loads(path.with_name("run.json").read_bytes())))
    start = time.process_time()
    with path.open("w", encoding="utf-8") as file:
        file.write(header + "\n")
        for row in rows:
            file.write(json.dumps(row, allow_nan=False, separators=(",", ":")) + "\n")
    return time.process_time() - start


def reported(run: Path, out: Path) -> tuple[float, int]:
    """Return the processor seconds of the report on a run, and the bytes of its page."""
    start = time.process_time()
    page = write_report([run], out)
    return time.process_time() - start, page.stat().st_size
