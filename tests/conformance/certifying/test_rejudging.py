"""What a run keeps of its targets, and verdicts reached again from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onnxspec.conformance.certifying.rejudging import BY_NUMBERS, Difference, differences, rejudged
from onnxspec.conformance.probes.probe import Probe
from onnxspec.conformance.probes.selection import probes_of_profile
from onnxspec.conformance.results.folder import read_folder, recorded_in
from onnxspec.conformance.results.lines import Recorded
from onnxspec.conformance.results.recorded import CASE, FRESH, MissingBits, bits_of, bits_path

from ..miniatures import Finished, naming, pick

Inside = Callable[..., Finished]

CASES = naming(
    [
        *pick(3, lambda s: s.lengths == "ragged" and s.data == "dense" and "Y" in s.outputs),
        *pick(2, versions=(22,)),
    ]
)
RUN = ["run", "--target", "onnxruntime", "--target", "backend:lengths_ignored", *CASES, "--record"]


@pytest.fixture(scope="module")
def probes() -> dict[str, Probe]:
    return {probe.id: probe for probe in probes_of_profile("core")}


def all_differences(folder: Path, probes: dict[str, Probe]) -> Iterator[Difference]:
    run = read_folder(folder)
    assert run.info is not None
    results = {(r.target, r.case): r for r in run.results}
    lines = {(line.target, line.case): line for line in recorded_in(folder) if line.purpose == CASE}
    assert set(lines) == set(results)
    for target in run.info["targets"]:
        with bits_of(folder, target["name"]) as bits:
            for (name, case), line in lines.items():
                if name == target["name"]:
                    judgement = rejudged(probes[case], line.jobs, bits, target["class"])
                    yield from differences(results[name, case], judgement)


def test_every_verdict_is_reached_again_from_the_record(
    inside: Inside, tmp_path: Path, probes: dict[str, Probe]
) -> None:
    done = inside(*RUN, "--out", "run")
    assert done.code == 1, done.err
    verdicts = {result.verdict for result in read_folder(tmp_path / "run").results}
    assert {verdict.value for verdict in verdicts & BY_NUMBERS} >= {"pass", "wrong"}
    assert not list(all_differences(tmp_path / "run", probes))


def test_other_bits_are_another_verdict_or_none(inside: Inside, tmp_path: Path, probes: dict[str, Probe]) -> None:
    assert inside(*RUN, "--out", "run").code == 1
    (line, *_) = (line for line in recorded_in(tmp_path / "run") if line.jobs[0].status == "ran")
    path = bits_path(tmp_path / "run", line.target)
    content = bytearray(path.read_bytes())
    tensor = line.jobs[0].outputs[0][0][0]
    assert tensor is not None
    content[tensor.offset] ^= 1
    with pytest.raises(MissingBits, match="are others than those that were recorded"):
        rejudged(probes[line.case], line.jobs, bytes(content), "standard")
    with pytest.raises(MissingBits, match="are no "):
        rejudged(probes[line.case], line.jobs, bytes(content[: tensor.offset]), "standard")
    other = next(case for case in probes if case != line.case)
    with pytest.raises(MissingBits, match="not those that were recorded"):
        rejudged(probes[other], line.jobs, bytes(content), "standard")


def test_a_run_that_is_gone_on_with_and_a_merged_one_hold_all_of_it(
    inside: Inside, tmp_path: Path, probes: dict[str, Probe]
) -> None:
    for number in (1, 2):
        assert inside(*RUN, "--shard", f"{number}/2", "--out", f"s{number}").code in (0, 1)
    journal = tmp_path / "s1" / "journal.jsonl"
    lines = journal.read_text(encoding="ascii").splitlines(keepends=True)
    last = max(number for number, text in enumerate(lines) if text.startswith('{"record":"recorded"'))
    # As a kill leaves it: the bits and their line are there, the result is not.
    journal.write_text("".join(lines[: last + 1]), encoding="ascii")
    assert inside(*RUN, "--shard", "1/2", "--out", "s1", "--resume").code in (0, 1)
    without = [word for word in RUN if word != "--record"]
    refused = inside(*without, "--shard", "1/2", "--out", "s1", "--resume")
    assert refused.code == 2
    assert "another keeps outputs" in refused.err
    assert inside("merge", "s1", "s2", "--to", "whole").code in (0, 1)
    assert not list(all_differences(tmp_path / "whole", probes))


def test_nothing_is_kept_unless_that_is_asked_for(inside: Inside, tmp_path: Path) -> None:
    assert inside(*[word for word in RUN if word != "--record"], "--out", "run").code == 1
    assert not (tmp_path / "run" / "recorded").exists()
    assert not list(recorded_in(tmp_path / "run"))


def test_what_is_run_again_in_a_fresh_process_is_kept_as_that(inside: Inside, tmp_path: Path) -> None:
    cases = naming(pick(12, lambda s: s.direction == "forward" and not s.illegal))
    assert inside("run", *cases, "--record", "--out", "run").code in (0, 1)
    lines: list[Recorded] = list(recorded_in(tmp_path / "run"))
    again = [line for line in lines if line.purpose == FRESH]
    assert again
    first = {line.case: line for line in lines if line.purpose == CASE}
    for line in again:
        assert [job.outputs for job in line.jobs] == [job.outputs for job in first[line.case].jobs]
