"""Runs shared by several processes: the results do not depend on their number."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from onnxspec.conformance.workers.pool import Pool

from ..miniatures import Inside, naming, pick, read_results

_OF_TIME = {"seconds", "target_seconds", "started", "finished", "time", "command"}


def _but_for_time(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _but_for_time(item) for name, item in value.items() if name not in _OF_TIME}
    return [_but_for_time(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("target", ["lengths_ignored", pytest.param("gates_swapped", marks=pytest.mark.long)])
def test_a_run_is_the_same_for_any_number_of_jobs(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    shared: set[str] = set()
    share = Pool._shared

    def noted(pool: Pool, work: Callable[[Any], Any], source: Iterator[Any], *more: Any) -> Iterable[Any]:
        shared.add(work.__name__)
        return share(pool, work, source, *more)

    monkeypatch.setitem(Pool.__init__.__kwdefaults__, "alone", 4)  # type: ignore[index]
    monkeypatch.setattr(Pool, "_shared", noted)
    cases = naming(pick(48, lambda spec: spec.lengths != "absent" and spec.T * spec.N * spec.H < 200))
    runs = []
    for jobs in (1, 2, 4):
        folder = tmp_path / f"jobs-{jobs}"
        shared.clear()
        done = inside("run", "--target", f"backend:{target}", *cases, "--jobs", jobs, "--out", folder)
        assert done.code == 1
        assert bool(shared) == (jobs > 1)
        lines = [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]
        described = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        runs.append(_but_for_time([read_results(folder), lines, described]))
    assert runs[0] == runs[1] == runs[2]
    results, _, described = runs[0]
    assert any(result["diagnosis"] for result in results)
    assert any(finding["foretold"] for finding in described["targets"][0]["findings"])
