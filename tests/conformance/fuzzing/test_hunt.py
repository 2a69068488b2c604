"""The search: random cases, several failures in one search, each shrunk; known failures come first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.cases.portable import case_text, check_case
from onnxspec.conformance.diagnosis import experiments
from onnxspec.conformance.fuzzing import hunt as hunting
from onnxspec.conformance.fuzzing.database import FORMAT, Database, read_database, write_database
from onnxspec.conformance.fuzzing.drawing import altered, drawn
from onnxspec.conformance.fuzzing.hunt import Hunt, Limits
from onnxspec.conformance.fuzzing.writing import REGRESSIONS, write_failures
from onnxspec.conformance.probes.naming import portable_probes
from onnxspec.conformance.probes.probe import Probe
from onnxspec.conformance.probes.stream import CaseRun
from onnxspec.conformance.probes.wrapped import wrap_lane
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.conformance.results.expected.entries import Entry
from onnxspec.conformance.targets.target import parse_target
from onnxspec.conformance.workers.job import Outcome
from onnxspec.reference import FORMATS, Node, evaluate
from onnxspec.reference.errors import RecordError

Arrays = Mapping[str, NDArray[Any]]
Target = Callable[[Node, Arrays], Arrays]
VERSIONS = [("LSTM", 14), ("GRU", 22), ("RNN", 7)]
TYPES = list(FORMATS)


class Crash(Exception):
    """End of the target's process."""


def put(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    """Replace the target behind a worker by a target in this process."""

    def one_of(probe: Probe) -> CaseRun:
        prepared, outcomes = probe.prepare(), []
        for trial in prepared.trials:
            try:
                outcomes.append(staged_outcome(trial, target))
            except Crash as crash:
                outcomes.append(Outcome(trial.key, "crashed", message=str(crash), signal="SIGSEGV"))
        return CaseRun(probe, prepared, tuple(outcomes), prepared.judge(outcomes, "standard"))

    def tried(process: object, probes: Sequence[Probe], accuracy: str, pool: object = None) -> Iterator[CaseRun]:
        return (one_of(probe) for probe in probes)

    for module in (experiments, hunting):
        monkeypatch.setattr(module, "tried", tried)


def conforming(node: Node, inputs: Arrays) -> Arrays:
    numbers = np.float32 if node.codecs else inputs["X"].dtype
    return {
        name: a.astype(node.codecs[name].dtype if name in node.codecs else numbers)
        for name, a in evaluate(node, inputs).items()
    }


def twofold(node: Node, inputs: Arrays) -> Arrays:
    """Crash with peepholes, and with layout 1."""
    if "P" in inputs:
        raise Crash("died of peepholes")
    if node.attributes.get("layout"):
        raise Crash("died of layout")
    return conforming(node, inputs)


def search(known: Database | None = None, cases: int = 60, seed: int = 1, wrap: str = "") -> Hunt:
    database = known or Database(FORMAT, "onnxruntime")
    target = parse_target("onnxruntime")
    if wrap:
        target = wrap_lane(target, wrap)
    hunt = Hunt(target, None, [("LSTM", 14)], ["float32"], seed, database)  # type: ignore[arg-type]
    hunt.run(Limits(cases=cases))
    return hunt


def test_what_is_drawn_is_legal_and_the_same_from_the_same_seed() -> None:
    first, second = Random(5), Random(5)
    for _ in range(40):
        spec = drawn(first, VERSIONS, TYPES)
        assert spec == drawn(second, VERSIONS, TYPES)
        check_case(spec)
        near = altered(first, spec, TYPES)
        assert near == altered(second, spec, TYPES)
        check_case(near)
        assert (near.op, near.version) == (spec.op, spec.version)
    assert drawn(Random(6), VERSIONS, TYPES) != drawn(Random(7), VERSIONS, TYPES)


def test_what_is_drawn_varies() -> None:
    random = Random(1)
    specs = [drawn(random, [("LSTM", 22)], ["float32"]) for _ in range(150)]
    assert {s.direction for s in specs} == {"forward", "reverse", "bidirectional"}
    assert {s.lengths for s in specs} >= {"absent", "ragged", "full", "short"}
    assert {s.layout for s in specs} == {0, 1}
    assert any(s.H > 32 for s in specs)
    assert any(s.alpha and not s.beta for s in specs)


def test_a_search_whose_draws_are_never_cases_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(spec: Any) -> None:
        raise ValueError("no inputs")

    monkeypatch.setattr("onnxspec.conformance.fuzzing.drawing.check_case", broken)
    with pytest.raises(ValueError, match="no inputs"):
        drawn(Random(1), [("LSTM", 14)], ["float32"])


def test_in_a_lane_every_case_is_wrapped_those_of_experiments_too(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, twofold)
    hunt = search(wrap="neg", cases=30)
    assert hunt.new
    assert all(f.one.probe.wrap for f in hunt.new)
    assert hunt.done == 30  # cases that do not fit are counted


def test_several_failures_are_found_in_one_search_each_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, twofold)
    hunt = search()
    assert hunt.done == 60
    assert {f.title for f in hunt.new} == {"LSTM: crashed (with peepholes P)", "LSTM: crashed (with layout 1)"}
    assert {case_text(f.spec) for f in hunt.new} == {
        '{"op":"LSTM","version":14,"type":"float32","peepholes":true}',
        '{"op":"LSTM","version":14,"type":"float32","layout":1}',
    }
    assert hunt.verdicts["crashed"] > 2


def test_a_search_repeats_from_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, twofold)
    first, second = search(cases=30), search(cases=30)
    assert first.verdicts == second.verdicts
    assert [f.drawn for f in first.failures] == [f.drawn for f in second.failures]
    assert first.near == second.near


def test_what_an_earlier_search_found_is_known_or_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(monkeypatch, twofold)
    path = tmp_path / "known" / "database.json"
    write_database(path, search().knowledge())
    database = read_database(path, "onnxruntime")
    again = search(database, seed=2)
    assert again.new == []
    assert len(again.failures) == 2
    put(monkeypatch, conforming)
    fixed = search(database, cases=20)
    assert fixed.failures == []
    assert {k.verdict for k in fixed.gone} == {"crashed"}
    assert len(fixed.gone) == 2


def test_what_the_list_of_known_failures_names_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, twofold)
    hunt = search(cases=120)
    hunt.expect([Entry("P is not supported.", "LSTM", features=("peepholes",), verdicts=("crashed",))])
    reasons = {tuple(need.field for need in failure.needs): hunt.reason(failure) for failure in hunt.failures}
    assert reasons == {("peepholes",): "P is not supported.", ("layout",): ""}
    assert len(hunt.new) == 2  # the database has none of them


def test_what_is_found_is_left_in_files_that_can_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(monkeypatch, twofold)
    hunt = search(cases=40)
    reports = write_failures(tmp_path, hunt, {"runtime": "a runtime", "version": "1.2.3"})
    lines = [line for line in (tmp_path / REGRESSIONS).read_text().splitlines() if not line.startswith("#")]
    assert [p.id for p in portable_probes(lines)] == [f.one.probe.id for f in hunt.failures]
    for path, failure in zip(reports, hunt.failures, strict=True):
        text = (tmp_path / path).read_text()
        assert text.startswith(f"# {failure.title}\n")
        assert "a runtime" in text
        assert "import onnx" in text
        assert "with False it is gone" in text or "with 0 it is gone" in text
    assert sorted(p.name for p in tmp_path.glob("evidence/*/*/model.onnx")) == ["model.onnx"] * len(hunt.failures)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense", "is no database of a search"),
        ('{"format": 7, "target": "onnxruntime"}', "is of format 7, this version has 1"),
        ('{"format": 1, "target": "tract"}', "is about tract, not about onnxruntime"),
    ],
)
def test_a_file_that_is_no_database_of_this_target_is_answered_in_a_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "database.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=says) as caught:
        read_database(path, "onnxruntime")
    assert "\n" not in str(caught.value)
    assert path.read_text() == text


def test_what_is_drawn_anew_is_of_the_version_and_has_rare_values_too(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, conforming)
    hunt = search(cases=1)
    drawn_anew = [hunt._next() for _ in range(300)]
    assert {(spec.op, spec.version, spec.type) for spec in drawn_anew} == {("LSTM", 14, "float32")}
    assert sum(spec.activations is not None for spec in drawn_anew) > 40
    random = Random(1)
    drawn_often = [drawn(random, [("LSTM", 14)], ["float32"]) for _ in range(600)]
    assert any(not spec.T or not spec.N for spec in drawn_often)
    assert any(spec.bias is False and spec.activations is None and spec.initial == "none" for spec in drawn_often)


def test_ctrl_c_while_a_case_is_made_small_loses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The failure that is being shrunk is kept unshrunk, those before it are kept shrunk."""
    put(monkeypatch, twofold)
    shrink, calls = hunting.shrink, []

    def interrupted(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return shrink(*given)

    monkeypatch.setattr(hunting, "shrink", interrupted)
    database = Database(FORMAT, "onnxruntime")
    hunt = Hunt(parse_target("onnxruntime"), None, [("LSTM", 14)], ["float32"], 1, database)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        hunt.run(Limits(cases=60))
    small, drawn_only = hunt.failures
    assert small.complete
    assert not drawn_only.complete
    assert drawn_only.spec == drawn_only.drawn
    reports = write_failures(tmp_path, hunt, {"runtime": "a runtime", "version": "1.2.3"})
    assert len(reports) == 2
    assert [found.case for found in hunt.knowledge().found] == [case_text(f.spec) for f in hunt.failures]


def clipless(node: Node, inputs: Arrays) -> Arrays:
    """Ignore clip."""
    left = {name: value for name, value in node.attributes.items() if name != "clip"}
    return conforming(replace(node, attributes=left), inputs)


@pytest.mark.long
def test_a_name_has_foretold_fresh_cases_or_is_no_more_than_consistent(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, clipless)
    hunt = search(cases=24)
    (failure,) = hunt.failures
    assert failure.diagnosis == ("clip.ignored",)
    assert failure.predicted >= 5
    assert failure.title.startswith("LSTM: ")
    assert "consistent with" not in failure.title
    assert "wrong (value), consistent with: " in replace(failure, predicted=0).title
    # An unnamed failure is dropped if causes that were found later explain it together.
    hunt.failures.append(replace(failure, diagnosis=(), predicted=0))
    hunt._settle()
    assert len(hunt.failures) == 2
    monkeypatch.setattr(hunt, "_several", lambda one, spec: True)
    hunt._settle()
    assert hunt.failures == [failure]


def test_experiments_do_not_come_between_a_job_and_its_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both share one process: an interrupted stream would wait for reports that the other stream has read."""
    put(monkeypatch, twofold)
    streamed, under_way = hunting.tried, []

    def alone(process: Any, probes: Sequence[Probe], accuracy: str, pool: Any = None) -> Iterator[CaseRun]:
        assert not under_way
        under_way.append(probes)
        try:
            yield from streamed(process, probes, accuracy, pool)
        finally:
            under_way.clear()

    for module in (experiments, hunting):
        monkeypatch.setattr(module, "tried", alone)
    hunt = search(cases=40)
    assert len(hunt.failures) == 2
    search(hunt.knowledge(), cases=1)
