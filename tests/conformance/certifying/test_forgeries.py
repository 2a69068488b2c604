"""Forged packages: docs/certification.md names the check that finds each forgery, or admits that none does.

A vendor may edit a package and mend its digests, or edit a run before onnxspec's own functions pack it. A run with
missing parts makes a trial package, which certifies nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxspec.conformance.certifying.package import ENVELOPE
from onnxspec.conformance.certifying.replay import Replay, replay
from onnxspec.conformance.certifying.trial import reported_in, trial_of

from ..miniatures import Finished, naming, pick
from .conftest import (
    RESULTS,
    RUN,
    STATEMENT,
    WAIVERS,
    Change,
    Files,
    claimed,
    documented,
    edited,
    forged,
    mended,
    packed,
    verified,
)

Inside = Callable[..., Finished]
Rows = list[dict[str, Any]]
Record = dict[str, Any]

NPU = "NpuExecutionProvider"


def passing(rows: Rows) -> Record:
    """Return the first result that passes with judged numbers."""
    return next(row for row in rows if row.get("verdict") == "pass" and row["judged"] > 20)


def unsupported(rows: Rows) -> Record:
    return next(row for row in rows if row.get("verdict") == "unsupported")


def of_passing(rows: Rows) -> Rows:
    """Return the lines about the first passing case."""
    case = passing(rows)["case"]
    return [row for row in rows if row.get("case") == case]


def without(rows: Rows, others: Rows) -> Rows:
    return [row for row in rows if row not in others]


def again(rows: Rows) -> Rows:
    """Return the lines of runs that were repeated in a fresh process."""
    return [row for row in rows if row.get("purpose") == "fresh-process"]


def jobs_of(rows: Rows, *purposes: str) -> Rows:
    """Return the recorded jobs of these lines, of all purposes if none is named."""
    purposes = purposes or ("case", "fresh-process")
    return [job for row in rows if row.get("purpose") in purposes for job in row["jobs"]]


# Edits of a package, which verify finds


def outcome_of_another(rows: Rows) -> None:
    other = next(
        row["case"] for row in rows[::-1] if row["record"] == "result" and row["case"] != passing(rows)["case"]
    )
    for row in rows:
        if row["record"] == "recorded" and row["case"] == other:
            row["jobs"] = jobs_of(of_passing(rows), "case")


def outputs_left_out(rows: Rows) -> None:
    for row in of_passing(rows):
        for job in row.get("jobs", [])[:1]:
            job["outputs"] = [[] for _ in job["outputs"]]


def third_repeat(rows: Rows) -> None:
    for job in jobs_of(of_passing(rows)):
        job["returned"] = [[*repeats, 0] for repeats in job["returned"]]


def bits_name(files: Files) -> str:
    return next(name for name in files if name.endswith(".bits"))


def output_changed_with_its_digest(files: Files) -> None:
    """Change the first number of a passing case, in every tensor that has it, with matching digests."""
    content = bytearray(files[bits_name(files)])

    def change(rows: Rows) -> Any:
        tensor = jobs_of(of_passing(rows), "case")[0]["outputs"][0][0][0]
        span = slice(tensor["offset"], tensor["offset"] + tensor["size"])
        numbers = np.frombuffer(bytes(content[span]), np.uint32).copy()
        numbers[0] ^= 0x40000000
        content[span] = numbers.tobytes()
        return json.loads(json.dumps(rows).replace(tensor["sha256"], hashlib.sha256(numbers.tobytes()).hexdigest()))

    files.update(edited(files, RESULTS, change))
    files[bits_name(files)] = bytes(content)


def nonce_replaced(files: Files) -> None:
    for name in (RESULTS, RUN):
        files[name] = files[name].replace(b"nonce-17", b"nonce-18")
    files[STATEMENT] = files[STATEMENT].replace(b'"nonce": "17"', b'"nonce": "18"')


def level_raised(statement: Record) -> None:
    claim = statement["predicate"]
    claim["kind"], claim["trial_because"] = "certificate", []
    claim["rows"][0].update(status="certified", level="complete")


def signed_by_words(files: Files) -> None:
    """Name a signer that everybody trusts, which the page would then show."""
    trusted = "of the ONNX project, which has verified it"
    files.update(edited(files, STATEMENT, claimed(signer=trusted)))
    keys = b'{"keyid":"%b","sig":"AAAA"}' % trusted.encode()
    payload = base64.b64encode(files[STATEMENT])
    payload_type = b"application/vnd.in-toto+json"
    files[ENVELOPE] = b'{"payload":"%b","payloadType":"%b","signatures":[%b]}\n' % (payload, payload_type, keys)


FOUND: dict[str, tuple[str, Change]] = {
    "a case removed": (RESULTS, lambda rows: without(rows, of_passing(rows))),
    "a case doubled": (RESULTS, lambda rows: rows + of_passing(rows)),
    "a case's outcome replaced by another case's": (RESULTS, outcome_of_another),
    "a verdict or a number of a result": (RESULTS, lambda rows: passing(rows).update(worst=0.001)),
    "a reported verdict": (RESULTS, lambda rows: unsupported(rows).update(verdict="pass", reason=None)),
    # The first result counts, but a hasty reader sees the second one last.
    "a second result with another verdict": (RESULTS, lambda rows: [*rows, {**unsupported(rows), "verdict": "pass"}]),
    "a key that stands twice": (
        "",
        lambda files: files.update(
            {RESULTS: files[RESULTS].replace(b'"verdict":"uns', b'"verdict":"pass","verdict":"uns', 1)}
        ),
    ),
    "an output": ("", lambda files: files.update({bits_name(files): b"?" + files[bits_name(files)][1:]})),
    "an output, with its digest": ("", output_changed_with_its_digest),
    "outputs left out": (RESULTS, outputs_left_out),
    "a repeat more or less than there are": (RESULTS, third_repeat),
    "bytes behind the outputs": ("", lambda files: files.update({bits_name(files): files[bits_name(files)] + b"a"})),
    "words in the place of a key": ("", signed_by_words),
    "the runs in a fresh process left out of a package": (RESULTS, lambda rows: without(rows, again(rows))),
    "a level": (STATEMENT, level_raised),
    "a finding removed": (RUN, lambda run: run["targets"][0].update(findings=[])),
    "a waiver": (WAIVERS, lambda content: content.replace(b"rnn.equations", b"rnn.*")),
    "a day before that of the run, on which a waiver held": (STATEMENT, claimed(date="2020-01-01")),
    "a version in other digits, 1.2.0 as 1.2.00": (
        STATEMENT,
        lambda statement: statement["predicate"].update(
            runtime_version=statement["predicate"]["runtime_version"] + "0"
        ),
    ),
    "the suite's digest": (STATEMENT, lambda s: s["predicate"]["suite"].update(sources="0" * 64)),
    "a digest of cases": (STATEMENT, lambda s: s["predicate"]["suite"]["cases"].update({"RNN-7": "0" * 64})),
    "the nonce": ("", nonce_replaced),
    "a page added": ("", lambda files: files.update({"certificate.html": b"<p>certified</p>"})),
    "a file removed": ("", lambda files: files.pop(RUN)),
    "a file of another kind": ("", lambda files: files.update({"run/notes.txt": b"certified"})),
}
"""Name of the forgery, the file and its change. The document names the check that finds it."""


@pytest.mark.parametrize("name", FOUND)
def test_a_forgery_is_found_though_digests_were_mended(name: str, certified_files: Files, tmp_path: Path) -> None:
    files, check = edited(certified_files, *FOUND[name]), documented("yes")[name]
    assert files != certified_files
    outcome = verified(mended(tmp_path / "p.zip", files))
    assert check in outcome.differing


# Edits of a run that make a trial


def others_in_their_place(rows: Rows) -> None:
    first = {row["case"]: row for row in rows if row.get("purpose") == "case"}
    due = {row["case"] for row in again(rows)}
    for row, case in zip(again(rows), [case for case in first if case not in due], strict=False):
        row.update(case=case, jobs=first[case]["jobs"])


def not_run_there(rows: Rows) -> None:
    for job in jobs_of(rows, "fresh-process"):
        job.update(status="not-run", outputs=[[] for _ in job["outputs"]], returned=[])


def counts_left_out(rows: Rows) -> None:
    for job in jobs_of(rows):
        del job["returned"]


NOT_REPEATED = "not run once more in a fresh process"
TRIALS: dict[str, tuple[str, Change, str]] = {
    "all runs in a fresh process left out": (RESULTS, lambda rows: without(rows, again(rows)), NOT_REPEATED),
    "all but one of them left out": (RESULTS, lambda rows: without(rows, again(rows)[1:]), NOT_REPEATED),
    "other cases in their place": (RESULTS, others_in_their_place, NOT_REPEATED),
    "not run, retold of all of them": (RESULTS, not_run_there, NOT_REPEATED),
    "what each repeat returned left out": (RESULTS, counts_left_out, "it is not recorded how often"),
    "another provider than was asked for": (
        RUN,
        lambda run: run["targets"][0].update(options={"provider": NPU}),
        f"the provider {NPU}, and the runtime names",
    ),
    "cases that another version has run": (
        RUN,
        lambda run: run.update(onnxspec="0.1"),
        "the cases were run by onnxspec 0.1, and packed by",
    ),
}
"""Name of the forgery: the file, its change, and the reason for which its package is a trial."""

UNFILLED = "cases that follow left out, as by --no-extra"


def reasons(folder: Path, provider: str = "") -> str:
    """Return the reasons why the package of a run folder would grant nothing."""
    return "; ".join(trial_of(replay(folder), provider))


@pytest.mark.parametrize("name", TRIALS)
def test_a_run_that_lacks_parts_or_contradicts_itself_makes_a_trial(
    name: str, certified_run: Path, tmp_path: Path
) -> None:
    file, change, reason = TRIALS[name]
    assert reason not in reasons(certified_run)
    assert reason in reasons(forged(certified_run, tmp_path / "f", file, change))


@pytest.mark.long
def test_a_run_of_a_whole_operator_grants_unless_cases_that_follow_are_left_out(
    whole_run: Path, tmp_path: Path
) -> None:
    """The edited journal is as run --no-extra leaves it."""
    assert reasons(whole_run) == ""
    filled = {probe.id for probe in replay(whole_run).plan.filled["onnxruntime"]}
    assert len(filled) > 10

    def unfilled(rows: Rows) -> Rows:
        named = [row.get("case", row.get("result", {}).get("case")) for row in rows]
        return [r for r, case in zip(rows, named, strict=True) if r["record"] != "cases" and case not in filled]

    def retold(run: Record) -> None:
        run["targets"][0]["filling"].update(left_out="it was not asked for", cases=[])

    bare = forged(whole_run, tmp_path / "a", RESULTS, unfilled)
    assert any("cases follow from the results" in flaw for flaw in replay(bare).flaws)
    bare = forged(bare, tmp_path / "b", RUN, retold)
    assert "cases that its results ask for were left out" in reasons(bare)


def test_a_device_needs_proof_of_where_models_ran(certified_run: Path) -> None:
    assert "without proof of where" in reasons(certified_run, NPU)


# Edits of a run that nobody can find: the statement says that this rests on the vendor's word

COPIED = "outcomes of the first run copied as those of a fresh process"
DECLINED = "that what was declined, crashed or took too long returned nothing wrong"
DEVICE = "that the device made the outputs, in the environment that is named"


def fresh_copied(rows: Rows) -> None:
    first = {row["case"]: row["jobs"] for row in rows if row.get("purpose") == "case"}
    for row in again(rows):
        row["jobs"] = first[row["case"]]


def refused(job: Record) -> None:
    job.update(status="refused", phase="load", message="not now", returned=[])
    job["outputs"] = [[] for _ in job["outputs"]]


def retold_as_unsupported(rows: Rows) -> Rows:
    """Report the first case that passes with judged numbers as unsupported."""
    for job in jobs_of(of_passing(rows)):
        refused(job)
    return without(rows, again(of_passing(rows)))


def proof_invented(rows: Rows) -> None:
    for job in jobs_of(rows, "case"):
        job["proof"] = f"assignment record: {NPU}: RNN rnn"


def environment_of_another(run: Record) -> None:
    description = run["targets"][0]["description"]
    description.update(version="99.0")
    description["measured"]["packages"][0].update(version="99.0", sha256="0" * 64)


ADMITTED: dict[str, tuple[str, Change, str]] = {
    COPIED: (RESULTS, fresh_copied, "that the outputs of a fresh process came from one"),
    "a wrong result retold as unsupported": (RESULTS, retold_as_unsupported, DECLINED),
    "an invented proof of where models ran": (RESULTS, proof_invented, DEVICE),
    "a version or a digest in the environment": (RUN, environment_of_another, DEVICE),
}
"""Name of the forgery: the file, its change, and the words of the statement that admit it."""


def reported(run: Replay) -> dict[str, int]:
    """Return the numbers of cases that, by the package of a derived run, rest on the vendor's report."""
    return {item.what: item.cases for item in reported_in(run)}


@pytest.mark.parametrize("name", ADMITTED)
def test_a_vendors_invention_is_said_to_rest_on_its_word(
    name: str, certified_run: Path, certified_files: Files, tmp_path: Path
) -> None:
    file, change, words = ADMITTED[name]
    folder = forged(certified_run, tmp_path / "run", file, change)
    assert reported(replay(folder))[words]
    files = packed(folder)
    if name != COPIED:  # the copies may be what the target returned
        assert files != certified_files
    outcome = verified(mended(tmp_path / "p.zip", files))
    assert not outcome.differing, [check.differs for check in outcome.checks.values()]


def second_outputs_dropped(rows: Rows, mended: bool) -> None:
    for job in jobs_of(rows, "case"):
        if any(len(distinct) > 1 for distinct in job["outputs"]):
            job["outputs"] = [distinct[:1] for distinct in job["outputs"]]
            if mended:
                job["returned"] = [[0] * len(repeats) for repeats in job["returned"]]


def changes_emptied(rows: Rows) -> None:
    for job in jobs_of(rows):
        job["changed"] = []


def forbidden_model_run(rows: Rows) -> None:
    """Edit the rows as if the runtime had run a forbidden model."""
    result = next(row for row in rows if row["record"] == "result" and row["reason"] == "refused")
    result["verdict"] = "not-rejected"
    for row in rows:
        if row["record"] == "recorded" and row["case"] == result["case"]:
            job = row["jobs"][0]
            job.update(status="ran", phase="run", message="", returned=[[0, 0] for _ in job["outputs"]])
            job["outputs"] = [[[]] for _ in job["outputs"]]


def retold_as_refused(rows: Rows) -> None:
    forbidden = {row["case"] for row in rows if row.get("verdict") == "not-rejected"}
    for row in rows:
        if row["record"] == "recorded" and row["case"] in forbidden:
            refused(row["jobs"][0])


CASES = pick(9, lambda s: s.data == "dense" and "Y" in s.outputs and s.T > 1)
FORBIDDEN = pick(2, lambda s: bool(s.illegal))
HIDDEN: dict[str, tuple[str, list[str], str, Change, str]] = {
    "the wrong one of two outputs dropped, with what each repeat returned": (
        "backend:unstable",
        CASES[:3],
        "unstable",
        partial(second_outputs_dropped, mended=True),
        "that no repeated run returned anything else",
    ),
    "changed inputs dropped": (
        "backend:modifying",
        CASES,
        "input-modified",
        changes_emptied,
        "that no run changed its inputs, or what it had returned",
    ),
    "a forbidden model that ran retold as refused": (
        "onnxruntime",
        FORBIDDEN,
        "not-rejected",
        retold_as_refused,
        DECLINED,
    ),
}
"""Name of the forgery: target, cases, the verdict that it hides, the change, and the words that admit it."""


def count(run: Replay, verdict: str) -> int:
    return sum(result.verdict.value == verdict for result in run.results)


@pytest.mark.parametrize("name", HIDDEN)
def test_a_defect_that_was_hidden_is_said_to_rest_on_the_vendors_word(
    name: str, inside: Inside, tmp_path: Path
) -> None:
    target, cases, verdict, change, words = HIDDEN[name]
    run = tmp_path / "run"
    assert inside("run", "--target", target, *naming(cases), "--record", "--no-extra", "--out", run).code in (0, 1)
    if verdict == "not-rejected":  # onnxruntime rejects these models
        run = forged(run, tmp_path / "ran", RESULTS, forbidden_model_run)
    honest, hidden = replay(run), replay(forged(run, tmp_path / "hidden", RESULTS, change))
    defects = count(honest, verdict)
    assert defects
    assert not count(hidden, verdict)
    assert reported(hidden)[words] == reported(honest).get(words, 0) + defects
    if verdict == "unstable":
        dropped = forged(run, tmp_path / "dropped", RESULTS, partial(second_outputs_dropped, mended=False))
        found = [flaw for flaw in replay(dropped).flaws if "other things of what came back" in flaw]
        assert len(found) >= defects
    if verdict == "not-rejected":  # each case rests on its outputs, or on the word that it was refused
        for kept in (honest, hidden):
            assert reported(kept).get(DEVICE, 0) + reported(kept).get(DECLINED, 0) == len(kept.results)


ADMITTED_ELSEWHERE = {
    "a nonce that the vendor chose among many",
    "outputs that another implementation computed rightly",
    "an output changed to another right one, with its digest",
    "the product's or vendor's name in an unsigned package",
}
"""Forgeries that need no test, or have it in test_packages.py."""


def test_the_document_names_every_forgery() -> None:
    signatures = {name for name, check in documented("yes").items() if check == "signature"}  # see test_signing.py
    assert set(documented("yes")) == {*FOUND, *signatures, "the wrong one of two outputs dropped"}
    assert set(documented("trial")) == {*TRIALS, UNFILLED}
    assert set(documented("no")) == {*ADMITTED, *HIDDEN, *ADMITTED_ELSEWHERE}
