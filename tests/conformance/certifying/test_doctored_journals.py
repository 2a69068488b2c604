"""Journals that a vendor has edited before packing them with onnxspec's own functions, so that all digests fit.

A journal with missing parts makes a trial package, or no package. Forgeries that nobody can find are admitted, in the
statement and in the documentation.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onnxspec.conformance.certifying.replay import Replay, replay
from onnxspec.conformance.certifying.trial import reported_in, trial_of

from ..miniatures import Finished, naming, pick
from .packages import SIGNATURES, Files, forged, mended, packed, verified
from .test_tampering import FORGERIES

Inside = Callable[..., Finished]
Rows = list[dict[str, Any]]

DOCUMENT = Path(__file__).parents[3] / "docs" / "certification.md"
CASES = naming(pick(9, lambda s: s.data == "dense" and "Y" in s.outputs and s.T > 1))
NPU = "NpuExecutionProvider"


def reasons(folder: Path, provider: str = "") -> str:
    """Return the reasons why the package of a run folder would grant nothing."""
    return "; ".join(trial_of(replay(folder), provider))


def reported(run: Replay) -> dict[str, int]:
    """Return the numbers of cases that, by the package of a derived run, rest on the vendor's report."""
    return {item.what: item.cases for item in reported_in(run)}


def count(run: Replay, verdict: str) -> int:
    return sum(result.verdict.value == verdict for result in run.results)


def retold(folder: Path, to: Path, edit: Callable[[dict[str, Any]], None]) -> Path:
    """Copy a run folder, with an edited run.json."""
    shutil.copytree(folder, to)
    info = json.loads((folder / "run.json").read_bytes())
    edit(info)
    (to / "run.json").write_text(json.dumps(info), encoding="ascii")
    return to


def jobs_of(rows: Rows, purpose: str = "case") -> list[dict[str, Any]]:
    return [job for row in rows if row.get("purpose") == purpose for job in row["jobs"]]


def again(rows: Rows) -> Rows:
    """Return the lines of runs that were repeated in a fresh process."""
    return [row for row in rows if row.get("purpose") == "fresh-process"]


# Edits that make a trial


def others_in_their_place(rows: Rows) -> Rows:
    first = {row["case"]: row for row in rows if row.get("purpose") == "case"}
    due = {row["case"] for row in again(rows)}
    for row, case in zip(again(rows), [case for case in first if case not in due], strict=False):
        row.update(case=case, jobs=first[case]["jobs"])
    return rows


def not_run_there(rows: Rows) -> Rows:
    for job in jobs_of(rows, "fresh-process"):
        job.update(status="not-run", outputs=[[] for _ in job["outputs"]], returned=[])
    return rows


def counts_left_out(rows: Rows) -> Rows:
    for job in (*jobs_of(rows), *jobs_of(rows, "fresh-process")):
        del job["returned"]
    return rows


FRESH = "not run once more in a fresh process"
TRIALS: dict[str, tuple[Callable[[Rows], Rows], str]] = {
    "all runs in a fresh process left out": (lambda rows: [row for row in rows if row not in again(rows)], FRESH),
    "all but one of them left out": (lambda rows: [row for row in rows if row not in again(rows)[1:]], FRESH),
    "other cases in their place": (others_in_their_place, FRESH),
    "not run, retold of all of them": (not_run_there, FRESH),
    "what each repeat returned left out": (counts_left_out, "it is not recorded how often"),
}


@pytest.mark.parametrize("name", TRIALS)
def test_a_record_that_lacks_what_is_due_makes_a_trial(name: str, certified_run: Path, tmp_path: Path) -> None:
    edit, reason = TRIALS[name]
    assert reason not in reasons(certified_run)
    assert reason in reasons(forged(certified_run, tmp_path / "f", edit))


RETOLD: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "another provider than was asked for": (
        lambda info: info["targets"][0].update(options={"provider": NPU}),
        f"the provider {NPU}, and the runtime names",
    ),
    "cases that another version has run": (
        lambda info: info.update(onnxspec="0.1"),
        "the cases were run by onnxspec 0.1, and packed by",
    ),
}


@pytest.mark.parametrize("name", RETOLD)
def test_a_run_that_says_two_things_of_one_makes_a_trial(name: str, certified_run: Path, tmp_path: Path) -> None:
    edit, reason = RETOLD[name]
    assert reason in reasons(retold(certified_run, tmp_path / "r", edit))


@pytest.mark.long
def test_a_run_of_a_whole_operator_grants(whole_run: Path) -> None:
    assert reasons(whole_run) == ""


def unfilled(folder: Path) -> Callable[[Rows], Rows]:
    """Return an edit that removes the cases which were added after the first results."""
    filled = {probe.id for probe in replay(folder).plan.filled["onnxruntime"]}
    assert len(filled) > 10

    def edit(rows: Rows) -> Rows:
        named = [row.get("case", row.get("result", {}).get("case")) for row in rows]
        return [r for r, case in zip(rows, named, strict=True) if r["record"] != "cases" and case not in filled]

    return edit


@pytest.mark.long
def test_cases_that_follow_are_not_left_out(whole_run: Path, tmp_path: Path) -> None:
    """The journal is as run --no-extra leaves it."""

    def told(info: dict[str, Any]) -> None:
        info["targets"][0]["filling"].update(left_out="it was not asked for", cases=[])

    bare = forged(whole_run, tmp_path / "a", unfilled(whole_run))
    assert any("cases follow from the results" in flaw for flaw in replay(bare).flaws)
    told_so = reasons(retold(bare, tmp_path / "b", told))
    assert "cases that its results ask for were left out" in told_so


OF_WHOLE = {"cases that follow left out, as by --no-extra"}


# Edits that nobody can find


def differing_jobs(rows: Rows) -> Rows:
    """Return the jobs whose repeats returned different outputs."""
    return [job for job in jobs_of(rows) if any(len(distinct) > 1 for distinct in job["outputs"])]


def second_outputs_dropped(rows: Rows) -> Rows:
    for job in differing_jobs(rows):
        job["outputs"] = [distinct[:1] for distinct in job["outputs"]]
    return rows


def second_outputs_dropped_and_repeats_mended(rows: Rows) -> Rows:
    for job in differing_jobs(rows):
        job["returned"] = [[0] * len(repeats) for repeats in job["returned"]]
    return second_outputs_dropped(rows)


def changes_emptied(rows: Rows) -> Rows:
    for job in (*jobs_of(rows), *jobs_of(rows, "fresh-process")):
        job["changed"] = []
    return rows


@pytest.mark.long
def test_a_second_output_that_was_dropped_is_found_or_owned_up_to(inside: Inside, tmp_path: Path) -> None:
    few = CASES[:6]  # three cases
    assert inside("run", "--target", "backend:unstable", *few, "--record", "--no-extra", "--out", "r").code == 1
    honest = replay(tmp_path / "r")
    unstable = count(honest, "unstable")
    assert unstable
    dropped = replay(forged(tmp_path / "r", tmp_path / "dropped", second_outputs_dropped))
    assert sum("other things of what came back" in flaw for flaw in dropped.flaws) >= unstable
    both = replay(forged(tmp_path / "r", tmp_path / "both", second_outputs_dropped_and_repeats_mended))
    assert not count(both, "unstable")
    word = "that no repeated run returned anything else"
    assert reported(both)[word] == reported(honest).get(word, 0) + unstable


def test_changes_of_inputs_that_were_dropped_are_owned_up_to(inside: Inside, tmp_path: Path) -> None:
    assert inside("run", "--target", "backend:modifying", *CASES, "--record", "--no-extra", "--out", "r").code == 1
    honest = replay(tmp_path / "r")
    modified = count(honest, "input-modified")
    assert modified
    emptied = replay(forged(tmp_path / "r", tmp_path / "emptied", changes_emptied))
    assert not count(emptied, "input-modified")
    word = "that no run changed its inputs, or what it had returned"
    assert reported(emptied)[word] == reported(honest).get(word, 0) + modified


def fresh_copied(rows: Rows) -> Rows:
    first = {row["case"]: row["jobs"] for row in rows if row.get("purpose") == "case"}
    for row in again(rows):
        row["jobs"] = first[row["case"]]
    return rows


def one_retold_as_unsupported(rows: Rows) -> Rows:
    """Report the first case that passes with judged numbers as unsupported."""
    passing = next(r["case"] for r in rows if r["record"] == "result" and r["judged"] > 20)
    for row in rows:
        if row["record"] == "recorded" and row["case"] == passing:
            for job in row["jobs"]:
                job.update(status="refused", phase="load", message="not now", returned=[])
                job["outputs"] = [[] for _ in job["outputs"]]
    return [row for row in rows if row not in again(rows) or row["case"] != passing]


def taken(rows: Rows) -> Rows:
    """Edit the rows as if the runtime had run a forbidden model."""
    forbidden = next(r["case"] for r in rows if r["record"] == "result" and r["reason"] == "refused")
    for row in rows:
        if row["record"] == "recorded" and row["case"] == forbidden:
            job = row["jobs"][0]
            job.update(status="ran", phase="run", message="", returned=[[0, 0] for _ in job["outputs"]])
            job["outputs"] = [[[]] for _ in job["outputs"]]
        elif row["record"] == "result" and row["case"] == forbidden:
            row["verdict"] = "not-rejected"
    return rows


def retold_as_refused(rows: Rows) -> Rows:
    forbidden = {r["case"] for r in rows if r["record"] == "result" and r["verdict"] == "not-rejected"}
    for row in rows:
        if row["record"] == "recorded" and row["case"] in forbidden:
            row["jobs"][0].update(status="refused", phase="load", message="no such model", returned=[])
            row["jobs"][0]["outputs"] = [[] for _ in row["jobs"][0]["outputs"]]
    return rows


def test_a_forbidden_model_that_ran_can_be_retold_as_refused(inside: Inside, tmp_path: Path) -> None:
    forbidden = naming(pick(2, lambda s: bool(s.illegal)))
    assert inside("run", "--target", "onnxruntime", *forbidden, "--record", "--no-extra", "--out", "r").code in (0, 1)
    ran_folder = forged(tmp_path / "r", tmp_path / "ran", taken)
    ran = replay(ran_folder)
    assert count(ran, "not-rejected") == 1
    assert reported(ran).get(DEVICE, 0) + reported(ran).get(DECLINED, 0) == len(ran.results)
    refused = replay(forged(ran_folder, tmp_path / "refused", retold_as_refused))
    assert not count(refused, "not-rejected")
    assert reported(refused)[DECLINED] == reported(ran).get(DECLINED, 0) + 1
    assert reported(refused).get(DEVICE, 0) + reported(refused)[DECLINED] == len(refused.results)


def test_an_environment_can_be_another(certified_run: Path, tmp_path: Path) -> None:
    def edit(info: dict[str, Any]) -> None:
        info["targets"][0]["description"]["version"] = "99.0"

    folder = retold(certified_run, tmp_path / "run", edit)
    assert reported(replay(folder))[DEVICE]
    assert not verified(mended(tmp_path / "p.zip", packed(folder))).differs


def placed_by_word(rows: Rows) -> Rows:
    for job in jobs_of(rows):
        job["proof"] = f"assignment record: {NPU}: RNN rnn"
    return rows


DECLINED = "that what was declined, crashed or took too long returned nothing wrong"
DEVICE = "that the device made the outputs, in the environment that is named"
OWNED: dict[str, tuple[Callable[[Rows], Rows], str]] = {
    "outcomes of the first run copied as those of a fresh process": (
        fresh_copied,
        "that the outputs of a fresh process came from one",
    ),
    "a wrong result retold as unsupported": (one_retold_as_unsupported, DECLINED),
    "an invented proof of where models ran": (placed_by_word, DEVICE),
}


@pytest.mark.parametrize("name", OWNED)
def test_what_a_vendors_machine_can_invent_is_said_to_rest_on_its_word(
    name: str, certified_run: Path, certified_files: Files, tmp_path: Path
) -> None:
    edit, word = OWNED[name]
    folder = forged(certified_run, tmp_path / "run", edit)
    assert reported(replay(folder))[word]
    files = packed(folder)
    if edit is not fresh_copied:  # the fresh copies may be what the target returned
        assert files["run/results.jsonl"] != certified_files["run/results.jsonl"]
    outcome = verified(mended(tmp_path / "p.zip", files))
    assert not outcome.differs, [check.differs for check in outcome.checks.values()]


def test_proofs_by_word_are_not_needed_for_what_is_known_not_to_be_there(certified_run: Path) -> None:
    assert "without proof of where" in reasons(certified_run, NPU)


# The documentation

OWNED_ELSEWHERE = {
    "a forbidden model that ran retold as refused",
    "an environment that was another",
    "the wrong one of two outputs dropped, with what each repeat returned",
    "changed inputs dropped",
    "a nonce that the vendor chose among many",
    "outputs that another implementation computed rightly",
    "an output changed to another right one, with its digest",
    "the product's or vendor's name in an unsigned package",
}
"""Forgeries that are admitted elsewhere: the first four are tested above, the nonce with the commands."""


def test_the_document_names_every_forgery_and_who_finds_it() -> None:
    below = DOCUMENT.read_text(encoding="utf-8").split("| forged, with all that follows mended | found | by |", 1)[1]
    rows = re.findall(r"^\| (.+?) \| (yes|trial|no) \| (.*?) \|$", below, re.MULTILINE)
    tabled = {column: {name: by.strip("`") for name, k, by in rows if k == column} for column in ("yes", "trial", "no")}
    assert tabled["yes"] == {
        **{name: check for name, (_, check) in FORGERIES.items()},
        **dict.fromkeys(SIGNATURES, "signature"),
        "the wrong one of two outputs dropped": "cases",
    }
    assert set(tabled["trial"]) == {*TRIALS, *RETOLD, *OF_WHOLE}
    assert set(tabled["no"]) == {*OWNED, *OWNED_ELSEWHERE}
