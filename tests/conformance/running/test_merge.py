"""Shards of a run, and merged runs: no result is lost or doubled, and unrelated runs are not merged."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onnxspec.cases import CaseSpec
from onnxspec.conformance.probes.selection import Shard, parse_shard
from onnxspec.reference.errors import UserError

from ..miniatures import Inside, command_line, naming, pick, read_results


def plain(spec: CaseSpec) -> bool:
    return spec.direction == "forward" and spec.clip is None and 0 not in (spec.T, spec.N) and spec.data == "dense"


CASES = naming([*pick(5, plain), *pick(2, lambda s: s.lengths == "ragged" and s.data == "dense" and "Y" in s.outputs)])
RUN = ["run", "--target", "backend:lengths_ignored", *CASES, "--no-extra"]  # findings depend on the shard


@pytest.fixture(scope="module")
def untouched(kin: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("shards")
    shards = [folder / f"s{number}" for number in (1, 2, 3)]
    for number, shard in enumerate(shards, 1):
        arguments = command_line(*RUN, "--shard", f"{number}/3", "--out", shard)
        done = subprocess.run(arguments, env=kin, capture_output=True, text=True, check=False, timeout=590)
        assert done.returncode in (0, 1), done.stderr
    return shards


@pytest.fixture
def shards(untouched: list[Path], tmp_path: Path) -> list[Path]:
    return [Path(shutil.copytree(shard, tmp_path / shard.name)) for shard in untouched]


def description(folder: Path) -> dict[str, Any]:
    described: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return described


def told(folder: Path) -> list[dict[str, Any]]:
    return sorted(({**r, "seconds": 0} for r in read_results(folder)), key=lambda r: str(r["case"]))


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    info = description(folder)
    change(info)
    (folder / "run.json").write_text(json.dumps(info), encoding="utf-8")


def test_shards_are_disjoint_and_together_everything() -> None:
    items = list(range(17))
    for count in (1, 2, 5, 17, 20):
        parts = [Shard(number, count).of(items) for number in range(1, count + 1)]
        assert sorted(item for part in parts for item in part) == items
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2", "1/9999999", "1 /2", "²/3"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="like 2/8"):
        parse_shard(text)


def test_merged_shards_are_the_run_as_a_whole(inside: Inside, shards: list[Path], tmp_path: Path) -> None:
    assert inside(*RUN, "--out", "whole").code == 1
    merged = inside("merge", *shards, "--out", "merged")
    assert (merged.code, merged.err) == (1, "")
    assert told(tmp_path / "merged") == told(tmp_path / "whole")
    described, whole = description(tmp_path / "merged"), description(tmp_path / "whole")
    for key in ("cases", "counts", "digests", "selection", "complete", "shard", "clauses", "expected_failures"):
        assert described[key] == whole[key], key
    for key in ("findings", "grade", "counts", "unexpected", "bias", "class", "description"):
        assert described["targets"][0][key] == whole["targets"][0][key], key
    assert [origin["shard"] for origin in described["merged"]] == ["1/3", "2/3", "3/3"]
    (folder,) = described["targets"][0]["evidence"]["folders"].values()
    assert (tmp_path / "merged" / folder / "evidence.json").is_file()
    assert (tmp_path / "merged" / "report" / "index.html").is_file()
    assert inside("report", "merged", "whole", "--out", "both").code == 0


def test_what_is_missing_in_a_merged_run_is_told_and_can_be_had(
    inside: Inside, shards: list[Path], tmp_path: Path
) -> None:
    merged = inside("merge", shards[0], shards[2], "--out", "merged")
    assert merged.code == 1
    assert "did not finish" in merged.err
    assert "backend:lengths_ignored lacks 2 of 7 cases" in merged.err
    assert description(tmp_path / "merged")["complete"] is False
    command = merged.err.splitlines()[-1].removeprefix("to have them: onnxspec ")
    assert inside(*shlex.split(command)).code == 1
    assert description(tmp_path / "merged")["complete"] is True
    every = [result for shard in shards for result in told(shard)]
    assert told(tmp_path / "merged") == sorted(every, key=lambda r: str(r["case"]))


def test_a_damaged_line_costs_its_result_and_is_named(inside: Inside, shards: list[Path], tmp_path: Path) -> None:
    every = sum(map(len, map(told, shards)))
    journal = shards[0] / "results.jsonl"
    whole = journal.read_bytes()
    start = whole.rindex(b'{"record":"result"')
    journal.write_bytes(whole[: start + 100])
    done = inside("merge", *shards, "--out", "merged")
    assert done.code == 1
    assert "s1: results.jsonl: ends in an incomplete line of 100 bytes" in done.err
    assert "lacks 1 of 7 cases" in done.err
    assert len(told(tmp_path / "merged")) == every - 1
    assert description(tmp_path / "merged")["complete"] is False


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda info: info.update(profile="smoke"), "profile: 'core' and 'smoke'"),
        (lambda info: info.update(onnxspec="0.0.1"), "onnxspec"),
        (lambda info: info["digests"].update({"LSTM-14": "other"}), r"digests \(LSTM-14\)"),
        (lambda info: info.update(expected_failures=False), "expected failures: True and False"),
        (lambda info: info.update(keeps_outputs=True), "keeps outputs: False and True"),
        (lambda info: info["selection"].update(case=["lstm-*"]), r"selection \(case\)"),
        (lambda info: info["targets"][0].update(name="x"), "targets: backend:lengths_ignored and x"),
        (lambda info: info["targets"][0].update(options={"module": "x"}), r"target .*, options \(module\)"),
        (lambda info: info["targets"][0].update({"class": "tf32"}), "target .*, class: 'standard' and 'tf32'"),
        (lambda info: info["targets"][0]["description"].update(version="9"), "target .*, version: .* and '9'"),
        (lambda info: info.update(schema=7), "in form 7"),
        (lambda info: info.pop("digests"), "missing required field `digests`"),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(
    inside: Inside, shards: list[Path], tmp_path: Path, change: Callable[[dict[str, Any]], None], named: str
) -> None:
    edit(shards[2], change)
    done = inside("merge", *shards, "--out", "merged")
    assert done.code == 2
    assert re.search(named, done.complaint)
    assert "s3" in done.complaint
    assert not (tmp_path / "merged").exists()


def test_what_two_runs_both_have_is_there_once_and_refused_if_it_differs(
    inside: Inside, shards: list[Path], tmp_path: Path
) -> None:
    shutil.copytree(shards[0], tmp_path / "again")
    assert inside("merge", *shards, "again", "--out", "twice").code == 1
    assert len(told(tmp_path / "twice")) == sum(len(told(shard)) for shard in shards)
    journal = tmp_path / "again" / "results.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"verdict":"pass"', b'"verdict":"crashed"', 1))
    done = inside("merge", *shards, "again", "--out", "merged")
    assert done.code == 2
    assert "two results that differ: pass in" in done.complaint
    assert "crashed in" in done.complaint


def test_whether_a_wider_class_is_needed_is_asked_of_all_shards_together(
    inside: Inside, shards: list[Path], tmp_path: Path
) -> None:
    journal = shards[0] / "results.jsonl"
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    coarse = next(l for l in lines if l["record"] == "result" and l["verdict"] == "pass")
    coarse |= {"verdict": "inaccurate", "accuracy": "bf16-math", "worst": 100.0, "message": "off; right by bf16-math"}
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert inside("merge", *shards, "--out", "merged").code == 1
    result = next(r for r in read_results(tmp_path / "merged") if r["case"] == coarse["case"])
    assert (result["verdict"], result["accuracy"]) == ("wrong", None)
    assert "only 1 need it" in result["message"]


def test_what_is_no_run_or_already_one_is_told(inside: Inside, shards: list[Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert (
        "empty: holds neither results.jsonl nor run.json, so it is no run"
        in inside("merge", "empty", "--out", "m").complaint
    )
    lone = tmp_path / "lone"
    lone.mkdir()
    shutil.copy(shards[0] / "results.jsonl", lone)
    assert "lone: run.json is missing" in inside("merge", *shards, lone, "--out", "m").complaint
    assert "already holds a run" in inside("merge", shards[1], "--out", shards[2]).complaint
    assert "is one of the runs" in inside("merge", shards[1], "--out", shards[1]).complaint
    assert len(told(shards[1])) > 0


def test_resume_goes_on_with_the_same_shard_only(inside: Inside, shards: list[Path]) -> None:
    assert "another shard" in inside(*RUN, "--shard", "2/3", "--out", shards[0], "--resume").complaint
    assert "another shard" in inside(*RUN, "--out", shards[0], "--resume").complaint


def test_shards_of_cases_of_another_domain_are_merged(inside: Inside, tmp_path: Path) -> None:
    chosen = ["run", "--op", "ExtendedLSTM", "--profile", "smoke", "--target", "onnxruntime"]
    for number in (1, 2):
        assert inside(*chosen, "--shard", f"{number}/2", "--out", f"e{number}").code == 0
    # No case is supported, so nothing was judged.
    assert inside("merge", "e1", "e2", "--out", "merged").code == 1
    assert description(tmp_path / "merged")["complete"] is True


def test_a_merged_wrap_lane_is_one(inside: Inside, tmp_path: Path) -> None:
    wrapped = [*naming(pick(3, plain)), "--target", "onnxruntime+neg"]
    for number in (1, 2):
        assert inside("run", *wrapped, "--shard", f"{number}/2", "--out", f"w{number}").code == 0
    assert inside("merge", "w1", "w2", "--out", "merged").code == 0
    described = description(tmp_path / "merged")
    assert (described["complete"], described["targets"][0]["wrap"]) == (True, "neg")
    edit(tmp_path / "w2", lambda info: info["targets"][0].update(wrap="cast"))
    assert "wrap: 'neg' and 'cast'" in inside("merge", "w1", "w2", "--out", "other").complaint


def test_a_merge_of_nothing_is_no_success(inside: Inside, shards: list[Path], tmp_path: Path) -> None:
    edit(shards[0], lambda info: info.update(targets=[]))
    journal = shards[0] / "results.jsonl"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    done = inside("merge", shards[0], "--out", "merged")
    assert done.code == 1
    assert "no run has a target" in done.err
    assert description(tmp_path / "merged")["complete"] is False
