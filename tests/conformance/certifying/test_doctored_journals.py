"""Journals that a vendor has doctored before packing them with onnxspec's own functions: what they lack is found, and
what nobody can find is owned up to in the statement."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onnxspec.conformance.certifying import derived, reported_in, trial_of

from ..miniatures import Finished, naming, pick
from .packages import forged

Inside = Callable[..., Finished]
Rows = list[dict[str, Any]]

CASES = naming(pick(9, lambda s: s.data == "dense" and "Y" in s.outputs and s.T > 1))


def reasons(folder: Path) -> str:
    """Why the package of a run folder would grant nothing."""
    return "; ".join(trial_of(derived(folder), ""))


def reported(folder: Path) -> dict[str, int]:
    """What the package of a run folder says to rest on the vendor's word."""
    return {each.what: each.cases for each in reported_in(derived(folder))}


def without_fresh(keep: int) -> Callable[[Rows], Rows]:
    """All but some of what was run again in a fresh process left out."""

    def edit(rows: Rows) -> Rows:
        again = [row for row in rows if row.get("purpose") == "fresh-process"]
        return [row for row in rows if row not in again[keep:]]

    return edit


@pytest.mark.parametrize("keep", [0, 1])
def test_runs_in_a_fresh_process_that_are_left_out_make_a_trial(certified_run: Path, tmp_path: Path, keep: int) -> None:
    assert "fresh process" not in reasons(certified_run)
    assert "were not run once more in a fresh process" in reasons(
        forged(certified_run, tmp_path / "f", without_fresh(keep))
    )


def test_what_must_be_run_again_follows_from_nonce_and_plan(certified_run: Path, tmp_path: Path) -> None:
    """Other cases in their place are none of those that are due."""
    due = derived(certified_run).due
    assert due == derived(certified_run).fresh.keys()

    def edit(rows: Rows) -> Rows:
        first = {row["case"]: row for row in rows if row.get("purpose") == "case"}
        others = [case for case in first if case not in due]
        again = [row for row in rows if row.get("purpose") == "fresh-process"]
        for row, case in zip(again, others, strict=False):
            row.update(case=case, jobs=first[case]["jobs"])
        return rows

    assert "were not run once more in a fresh process" in reasons(forged(certified_run, tmp_path / "f", edit))


def differing_jobs(rows: Rows) -> list[dict[str, Any]]:
    """Jobs of which repeats returned different outputs."""
    jobs = [job for row in rows if row["record"] == "recorded" for job in row["jobs"]]
    return [job for job in jobs if any(len(distinct) > 1 for distinct in job["outputs"])]


def second_outputs_dropped(rows: Rows) -> Rows:
    for job in differing_jobs(rows):
        job["outputs"] = [distinct[:1] for distinct in job["outputs"]]
    return rows


def second_outputs_dropped_and_counts_mended(rows: Rows) -> Rows:
    for job in differing_jobs(rows):
        job["outputs"] = [distinct[:1] for distinct in job["outputs"]]
        job["returned"] = [[0] * len(each) for each in job["returned"]]
    return rows


def counts_left_out(rows: Rows) -> Rows:
    for row in rows:
        for job in row.get("jobs", ()):
            del job["returned"]
    return rows


def changes_emptied(rows: Rows) -> Rows:
    for row in rows:
        for job in row.get("jobs", ()):
            job["changed"] = []
    return rows


def test_a_second_output_that_was_dropped_is_found_or_owned_up_to(inside: Inside, tmp_path: Path) -> None:
    assert inside("run", "--target", "backend:unstable", *CASES, "--record", "--no-shrink", "--out", "r").code == 1
    unstable = derived(tmp_path / "r").counts["unstable"]
    assert unstable
    dropped = derived(forged(tmp_path / "r", tmp_path / "dropped", second_outputs_dropped))
    assert sum("other things of what came back" in flaw for flaw in dropped.flaws) >= unstable
    assert "it is not recorded how often" in reasons(forged(tmp_path / "r", tmp_path / "uncounted", counts_left_out))
    mended = forged(tmp_path / "r", tmp_path / "mended", second_outputs_dropped_and_counts_mended)
    assert not derived(mended).counts["unstable"]  # which nobody can find
    told = "that no repeated run returned anything else"
    assert reported(mended)[told] == reported(tmp_path / "r").get(told, 0) + unstable


def test_changes_of_inputs_that_were_dropped_are_owned_up_to(inside: Inside, tmp_path: Path) -> None:
    assert inside("run", "--target", "backend:modifying", *CASES, "--record", "--no-shrink", "--out", "r").code == 1
    modified = derived(tmp_path / "r").counts["input-modified"]
    assert modified
    emptied = forged(tmp_path / "r", tmp_path / "emptied", changes_emptied)
    assert not derived(emptied).counts["input-modified"]
    told = "that no run changed its inputs"
    assert reported(emptied)[told] == reported(tmp_path / "r").get(told, 0) + modified


def retold(folder: Path, to: Path, edit: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a run folder in which run.json says other things of its target."""
    shutil.copytree(folder, to)
    told = json.loads((folder / "run.json").read_bytes())
    edit(told["targets"][0])
    (to / "run.json").write_text(json.dumps(told), encoding="ascii")
    return to


def test_a_run_of_a_whole_operator_grants_and_one_that_is_not_filled_up_does_not(
    whole_run: Path, tmp_path: Path
) -> None:
    """As run --no-fill leaves it: the rule of 90 % of the pairs is not evaded by not counting them."""
    assert reasons(whole_run) == ""

    def unfilled(rows: Rows) -> Rows:
        texts = [text for row in rows if row["record"] == "filled" for text in row["cases"]]
        filled = {probe.id for probe in derived(whole_run).plan.filled["onnxruntime"]}
        assert len(filled) == len(texts) > 10
        return [
            row
            for row in rows
            if row["record"] != "filled" and row.get("case", row.get("result", {}).get("case")) not in filled
        ]

    def told(target: dict[str, Any]) -> None:
        target["coverage"].update(left_out="it was not asked for", cases=[])

    folder = retold(forged(whole_run, tmp_path / "a", unfilled), tmp_path / "b", told)
    assert "cases that its results ask for were left out: it was not asked for" in reasons(folder)


def test_what_runs_cannot_be_declared_away(whole_run: Path, tmp_path: Path) -> None:
    def edit(target: dict[str, Any]) -> None:
        target["coverage"]["operators"][0]["declared"] = ["direction=reverse"]

    folder = retold(whole_run, tmp_path / "r", edit)
    assert "it is declared that direction=reverse is lacking in RNN, and" in reasons(folder)


def test_a_provider_that_was_not_asked_for_and_another_version_make_a_trial(
    certified_run: Path, tmp_path: Path
) -> None:
    def other(target: dict[str, Any]) -> None:
        target["options"] = {"provider": "NpuExecutionProvider"}

    asked = reasons(retold(certified_run, tmp_path / "a", other))
    assert "asked for was the provider NpuExecutionProvider, and the runtime names CPUExecutionProvider" in asked
    shutil.copytree(certified_run, tmp_path / "b")
    told = json.loads((certified_run / "run.json").read_bytes())
    (tmp_path / "b" / "run.json").write_text(json.dumps({**told, "onnxspec": "0.1"}), encoding="ascii")
    assert "the cases were run by onnxspec 0.1, and packed by" in reasons(tmp_path / "b")


def test_outcomes_of_a_fresh_process_that_were_copied_are_owned_up_to(certified_run: Path) -> None:
    told = "that the outputs of a fresh process came from one"
    assert reported(certified_run)[told] == len(derived(certified_run).due)
