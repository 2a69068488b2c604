"""Runs that are derived again from their recordings, without using their own results."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onnxspec.conformance.certifying.replay import BY_NUMBERS, _confirmed, replay
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.results.folder import read_folder
from onnxspec.conformance.results.recorded import bits_path
from onnxspec.reference.errors import RecordError

from ..miniatures import Finished, naming, pick

Inside = Callable[..., Finished]

CASES = naming(
    [
        *pick(2, lambda s: s.lengths == "ragged" and s.data == "dense" and "Y" in s.outputs),
        *pick(1, versions=(22,)),
    ]
)
RUN = ["run", "--target", "onnxruntime", "--target", "backend:lengths_ignored", *CASES, "--record"]


def test_every_verdict_is_reached_again_and_other_bits_are_none(inside: Inside, tmp_path: Path) -> None:
    done = inside(*RUN, "--out", "run")
    assert done.code == 1, done.err
    run = tmp_path / "run"
    seen: set[Verdict] = set()
    for name in ("onnxruntime", "backend:lengths_ignored"):
        again = replay(run, name)
        assert not again.flaws
        assert not list(again.differing())
        seen |= {result.verdict for result in again.results}
        by_case = {result.case: result for result in again.results}
        for case, claimed in again.claimed.items():
            for key in ("reason", "clause", "where", "interpretations", "accuracy", "judged", "worst", "diagnosis"):
                assert getattr(by_case[case], key) == getattr(claimed, key), (case, key)
    assert seen & BY_NUMBERS >= {Verdict.PASS, Verdict.WRONG}
    with pytest.raises(RecordError, match="several targets"):
        replay(run)
    path = bits_path(run, "onnxruntime")
    path.write_bytes(path.read_bytes()[:100])
    assert any("are no " in flaw for flaw in replay(run, "onnxruntime").flaws)


def test_a_run_that_is_gone_on_with_and_a_merged_one_hold_all_of_it(inside: Inside, tmp_path: Path) -> None:
    few = ["run", *CASES, "--record"]
    for number in (1, 2):
        assert inside(*few, "--shard", f"{number}/2", "--out", f"s{number}").code in (0, 1)
    journal = tmp_path / "s1" / "results.jsonl"
    lines = journal.read_text(encoding="ascii").splitlines(keepends=True)
    last = max(number for number, text in enumerate(lines) if text.startswith('{"record":"recorded"'))
    # A kill leaves it like this: the bits and their line exist, the result does not.
    journal.write_text("".join(lines[: last + 1]), encoding="ascii")
    assert inside(*few, "--shard", "1/2", "--out", "s1", "--resume").code in (0, 1)
    assert not replay(tmp_path / "s1").flaws, "the case is recorded once"
    without = [word for word in few if word != "--record"]
    refused = inside(*without, "--shard", "1/2", "--out", "s1", "--resume")
    assert refused.code == 2
    assert "another keeps outputs" in refused.err
    assert inside("merge", "s1", "s2", "--out", "whole").code in (0, 1)
    whole = replay(tmp_path / "whole")
    assert len(whole.results) == len(whole.probes) == 3
    assert not list(whole.differing())


def test_a_run_of_other_peoples_files_is_not_derived(certified_run: Path, tmp_path: Path) -> None:
    """A package's content must not make the verifier read files of this machine, or draw cases without end."""
    text = (certified_run / "run.json").read_text(encoding="ascii")
    for before, after in (
        ('"case": []', '"case": ["./../../secret"]'),
        ('"case": []', '"case": ["@/etc/passwd"]'),
        ('"directories": []', '"directories": ["/etc"]'),
        ("smoke-nonce-17", "random-99999-seed-1"),
        ("smoke-nonce-17", "nowhere-nonce-1"),
    ):
        assert before in text
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        shutil.copytree(certified_run, folder)
        (folder / "run.json").write_text(text.replace(before, after), encoding="ascii")
        assert read_folder(folder).info is not None
        with pytest.raises(RecordError, match="a run of"):
            replay(folder)


def test_a_cause_that_new_cases_confirmed_stays_confirmed() -> None:
    """No replay runs the new cases, so the run's own number of them counts."""
    finding: Any = {"fault": "clip.ignored", "what": "Ignores clip", "kind": "wrong", "conditions": "", "foretold": 0}
    other = {**finding, "fault": "bias.ignored"}
    confirmed = _confirmed(finding, [{**finding, "foretold": 10, "passing": 0}])
    assert (confirmed["foretold"], confirmed["title"]) == (10, "Ignores clip")
    assert _confirmed(finding, [{**finding, "foretold": 10, "passing": 1}]) is finding
    assert _confirmed(finding, [{**other, "foretold": 10, "passing": 0}]) is finding
