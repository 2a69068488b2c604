"""Tests of the site: runs of several releases become runtimes, findings with since and until, pages and badges."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from onnxspec.conformance.cli.application import app
from onnxspec.reports.run import read_runs
from onnxspec.reports.site.history import FindingHistory, histories_of, runtimes_of
from onnxspec.reports.site.writing import write_site

from .conftest import editing, run_of, sample_info, sample_results, write_run

RELEASES = ("1.9", "1.10", "1.11")
COUPLED = "input_forget keeps the input gate where the document keeps the forget gate"


def release(place: Path, version: str, wrong: bool | None = None, fault: str = "coupled.input") -> Path:
    """Return a run on one release, which couples the gates wrongly, as 1.10 does, or correctly."""
    rows = sample_results()
    info = sample_info(rows)
    findings = {one["title"]: one for one in info["targets"][0]["findings"]}
    findings[COUPLED]["fault"] = fault
    if not (version == "1.10" if wrong is None else wrong):
        del findings[COUPLED]
        mended = {"verdict": "pass", "message": "", "where": None, "diagnosis": [], "worst": 0.1}
        rows = [row | mended if row["clauses"] == ["lstm.input_forget.couple"] else row for row in rows]
    info["targets"][0] |= {
        "findings": list(findings.values()),
        "description": {"runtime": "some runtime", "version": version},
    }
    return write_run(place / version, rows, info)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    runs, problems = read_runs([release(place, version) for version in RELEASES])
    assert problems == []
    page, remarks = write_site(runs, place / "site", "onnxspec site runs --out site")
    assert (page, remarks) == (place / "site" / "index.html", [])
    return place / "site"


def findings_in(runs: Sequence[Path]) -> dict[str, FindingHistory]:
    """Return the findings of the only runtime of some runs."""
    ((runtime,), _) = runtimes_of(read_runs(runs)[0])
    return {history.title: history for history in histories_of(runtime)}


def test_releases_are_in_order_of_their_versions_and_not_of_their_letters(folder: Path) -> None:
    page = (folder / "runtimes" / "some-runtime.html").read_text(encoding="utf-8")
    assert "3 releases, 1.9 to 1.11." in page
    assert re.findall(r'<th scope="row">(1\.\d+) ', page) == [*reversed(RELEASES)]


def test_a_finding_says_since_when_and_until_when(folder: Path) -> None:
    findings = findings_in([folder.parent / version for version in RELEASES])
    coupled = findings[COUPLED]
    assert coupled.states == {"1.9": "right", "1.10": "fails", "1.11": "right"}
    assert coupled.sentence == "since 1.10 (1.9: right); last in 1.10 (1.11: right)"
    clip = next(history for title, history in findings.items() if title.startswith("Clip"))
    assert clip.sentence == "in 1.9, the oldest release tested; still in 1.11"
    path, _, anchor = clip.page.partition("#")
    page = (folder / path).read_text(encoding="utf-8").partition(f'id="{anchor}"')[2]
    assert "In 1.9, the oldest release tested; still in 1.11." in page
    assert ">onnxspec " in page
    assert not any(title.startswith("Layout 1 is not supported") for title in findings)
    changed = (folder / "index.html").read_text(encoding="utf-8").partition('id="changed"')[2]
    assert coupled.page in changed
    assert clip.page not in changed.partition("</section>")[0]


def test_every_link_leads_to_a_file(folder: Path) -> None:
    pages = sorted(folder.rglob("*.html"))
    assert len(pages) > 5
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for link in text.split('href="')[1:]:
            address = link.partition('"')[0].partition("#")[0]
            if address and not address.startswith(("data:", "https:")):
                assert (page.parent / address).is_file(), f"{page}: {address}"
    index = (folder / "index.html").read_text(encoding="utf-8").partition('id="index">')[2].partition("</script>")[0]
    entries = json.loads(index)
    found = {entry["page"].partition("#")[0] for entry in entries}
    assert found == {p.relative_to(folder).as_posix() for p in pages} - {"index.html"}


def test_badges_are_json_for_shields(folder: Path) -> None:
    badge = json.loads((folder / "badges" / "some-runtime" / "lstm-14.json").read_text(encoding="utf-8"))
    assert badge["schemaVersion"] == 1
    assert badge["label"] == "LSTM-14 on some runtime 1.11"
    assert badge["message"].startswith("fails ")


def test_cells_tell_refusals_from_failures(folder: Path) -> None:
    def cells(page: str) -> list[str]:
        text = (folder / page).read_text(encoding="utf-8")
        return re.findall(r'<td data-label="LSTM-14">.*?<span class="cell-label">(.*?)</span>', text)

    assert cells("index.html") == ["fails 9 of 60"]
    assert cells("runtimes/some-runtime.html") == ["fails 9 of 60", "fails 12 of 60", "fails 9 of 60"]
    assert cells("features/layout-1.html") == ["not supported"]
    assert cells("features/clip.html") == ["fails 9 of 9"]
    assert cells("features/reverse.html")


def test_of_two_runs_of_one_release_the_larger_counts_and_it_is_said(tmp_path: Path) -> None:
    rows = sample_results()
    runs, _ = read_runs([run_of(tmp_path / "small", rows[:10]), run_of(tmp_path / "large", rows)])
    _, remarks = write_site(runs, tmp_path / "site", "")
    assert len(remarks) == 1
    assert remarks[0].startswith("small: left out, large has more on onnxruntime")


def test_a_run_that_did_not_finish_praises_nobody(tmp_path: Path) -> None:
    runs, _ = read_runs([run_of(tmp_path / "half", sample_results(), complete=False)])
    page, remarks = write_site(runs, tmp_path / "site", "")
    assert remarks == ["half: left out, the run did not finish"]
    assert not (page.parent / "runtimes").exists()


def test_the_command_replaces_a_site_and_nothing_else(tmp_path: Path) -> None:
    run, out = release(tmp_path, "1.9"), tmp_path / "site"
    for _ in range(2):
        done = CliRunner().invoke(app, ["site", str(run), "--out", str(out)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept.txt").write_text("kept")
    done = CliRunner().invoke(app, ["site", str(run), "--out", str(other)])
    assert done.exit_code == 2
    assert (other / "kept.txt").read_text() == "kept"
    assert CliRunner().invoke(app, ["site", str(tmp_path / "none"), "--out", str(out)]).exit_code == 2


def test_a_case_that_fails_by_another_fault_says_nothing_of_this_one(tmp_path: Path) -> None:
    """1.11 has fixed the gates, but one of the cases fails there for another reason, which has a name."""
    runs = [release(tmp_path, "1.10"), release(tmp_path, "1.11")]
    results = runs[1] / "results.jsonl"
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    mended = [row for row in rows if row.get("clauses") == ["lstm.input_forget.couple"]]
    assert len(mended) > 1
    mended[0] |= {"verdict": "wrong", "diagnosis": ["clip.ignore"]}
    results.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert findings_in(runs)[COUPLED].states == {"1.10": "fails", "1.11": "right"}


def test_what_a_release_between_does_rightly_is_said(tmp_path: Path) -> None:
    runs = [release(tmp_path, version, wrong=version != "1.2") for version in ("1.1", "1.2", "1.3")]
    assert findings_in(runs)[COUPLED].sentence == "in 1.1, the oldest release tested; not in 1.2; still in 1.3"


def test_memory_that_nobody_wrote_may_be_right_by_chance(tmp_path: Path) -> None:
    runs = [release(tmp_path, version, fault="empty.uninitialized") for version in RELEASES]
    assert findings_in(runs)[COUPLED].sentence.endswith("; a release without it may be right by chance")


def test_findings_of_one_reason_on_a_list_are_one(tmp_path: Path) -> None:
    """The finding has another title in the other release, because other cases showed it there."""
    runs = [release(tmp_path, "1.9"), release(tmp_path, "1.11")]
    for run, conditions in zip(runs, ("", "both directions"), strict=True):
        with editing(run) as info:
            (finding,) = (f for f in info["targets"][0]["findings"] if f["title"].startswith("clip"))
            finding |= {"why": "Clip is not applied.", "conditions": conditions, "title": f"clip {conditions}"}
    (clip,) = [history for title, history in findings_in(runs).items() if title.lower().startswith("clip")]
    assert clip.states == {"1.9": "fails", "1.11": "fails"}
