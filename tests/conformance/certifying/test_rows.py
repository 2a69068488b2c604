"""Certification levels: conditions to reach them, reasons to deny them, waivers, and proofs of where models ran."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest
from msgspec import structs

from onnxspec.cases import family_of, operator_versions
from onnxspec.conformance.certifying.records import RowRecord, WaiverRecord
from onnxspec.conformance.certifying.rows import most_open, rows_of
from onnxspec.conformance.certifying.trial import placement_of, unproved
from onnxspec.conformance.certifying.waivers import LONGEST, expired, read_waivers
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import Probe, SpecProbe
from onnxspec.conformance.probes.selection import Selection, select_probes
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.conformance.workers.job import Outcome
from onnxspec.reference import operator_version
from onnxspec.reference.errors import RecordError

DAY = datetime.date(2026, 11, 22)
WAIVER = WaiverRecord(reason="known", owner="Jo", expires="2026-12-31", clause="rnn.*")


@cache
def probes() -> dict[str, Probe]:
    selection = Selection("core-nonce-5", ("RNN",), (14,), ("float32",))
    return {probe.id: probe for probe in select_probes(selection, ("RNN",))}


def results(**verdicts: Callable[[Probe], bool]) -> list[Result]:
    """Return a result for each case: a pass, unless one of ``verdicts`` holds for it."""
    by_case = []
    for probe in probes().values():
        named = next((name for name, holds in verdicts.items() if holds(probe)), "pass")
        verdict = Verdict(named.replace("_", "-"))
        clause = "rnn.equations" if verdict is Verdict.WRONG else None
        judgement = Judgement(verdict, clause=clause, judged=8, elements=8)
        by_case.append(result_of(probe, "t", judgement, 0.0, None))
    return by_case


def row(
    given: Iterable[Result], waivers: tuple[WaiverRecord, ...] = (), accuracy: str = "standard", **more: Any
) -> RowRecord:
    (certified,) = rows_of(more.pop("selected", probes()), list(given), accuracy, waivers, DAY, **more)
    return certified


def legal(*features: str) -> Callable[[Probe], bool]:
    return lambda probe: set(features) <= probe.features and "illegal" not in probe.features


OTHER_TYPE = structs.replace(WAIVER, types=("float64",))
EXPIRED = structs.replace(WAIVER, expires="2026-11-21")


@pytest.mark.parametrize(
    ("verdict", "features", "waivers", "reached"),
    [
        ("pass", (), (), ("certified", "complete")),
        ("unsupported", (), (), ("none", "")),
        ("wrong", ("clip",), (), ("none", "")),
        ("wrong", ("clip",), (WAIVER,), ("exceptions", "sequence")),
        ("wrong", ("clip",), (EXPIRED,), ("none", "")),
        ("wrong", ("clip",), (OTHER_TYPE,), ("none", "")),
        # A waiver gives no level that requires what it waives.
        ("wrong", ("bias",), (WAIVER,), ("none", "")),
    ],
)
def test_a_level_is_denied_by_failures_and_granted_with_exceptions_by_a_waiver(
    verdict: str, features: tuple[str, ...], waivers: tuple[WaiverRecord, ...], reached: tuple[str, str]
) -> None:
    given = results(**{verdict: legal(*features)})
    certified = row(given, waivers)
    assert (certified.status, certified.level) == reached
    excepted = [(exception.waiver, exception.cases) for exception in certified.exceptions]
    covered = [(1, sum(r.verdict is Verdict.WRONG for r in given))]
    assert excepted == (covered if waivers == (WAIVER,) else [])


@pytest.mark.parametrize(
    ("lacking", "level"), [("layout1", "sequence"), ("clip", "sequence"), ("reverse", "basic"), ("short-row", "basic")]
)
@pytest.mark.parametrize("how", ["unsupported", "fallback", "not_run"])
def test_a_level_ends_where_something_that_it_requires_does_not_run(lacking: str, level: str, how: str) -> None:
    certified = row(results(**{how: legal(lacking)}))
    assert certified.level == level
    assert lacking in certified.unshown


def test_the_reason_against_a_level_names_the_defect() -> None:
    failing = results(wrong=legal("clip"))
    causes = {result.case: "Ignores clip" for result in failing if result.verdict is Verdict.WRONG}
    assert (
        row(failing, causes=causes)
        .levels[0]
        .against[0]
        .startswith(f"{len(causes)} cases beyond it fail (Ignores clip): rnn-14")
    )


def test_forbidden_models_that_ran_are_told_and_deny_nothing() -> None:
    certified = row(results(not_rejected=lambda probe: "illegal" in probe.features))
    assert (certified.status, certified.level) == ("certified", "complete")
    assert certified.not_rejected > 0


def test_a_feature_without_a_case_that_says_something_is_not_shown() -> None:
    certified = row(results(inconclusive=legal("reverse")))
    (sequence,) = (level for level in certified.levels if level.level == "sequence")
    assert sequence.status == "denied"
    assert any("reverse" in line for line in sequence.against)


def test_too_many_open_elements_deny_a_level() -> None:
    assert row(structs.replace(result, judged=5) for result in results()).status == "none"


def test_more_may_be_open_where_the_arithmetic_is_coarser() -> None:
    shares = [most_open("standard", type) for type in ("float32", "float16", "bfloat16")]
    assert shares == sorted(set(shares))
    assert shares[-1] < 1
    assert most_open("f16-storage", "float32") == most_open("standard", "float16")
    assert most_open("standard", "float64") == most_open("standard", "float32")


def test_two_answers_to_one_question_deny_every_level() -> None:
    first, second, *rest = results()
    answers = zip((first, second), "ab", strict=True)
    answered = [structs.replace(result, interpretations={"clip": option}) for result, option in answers]
    assert row([*answered, *rest]).status == "none"


@pytest.mark.parametrize(("right", "status"), [(63, "none"), (64, "certified"), (200, "certified")])
def test_a_level_takes_64_fresh_cases_that_are_right(right: int, status: str) -> None:
    random_cases = [id for id, probe in probes().items() if isinstance(probe, SpecProbe) and probe.fresh]
    assert len(random_cases) >= 112
    certified = row(results(not_tried=lambda probe: probe.id in random_cases[right:]), asked=random_cases)
    assert certified.status == status
    if status == "none":
        assert "63 fresh cases of the nonce are right, 64 must be" in certified.levels[-1].against


def test_a_case_without_result_was_not_run() -> None:
    assert row(results()[1:]).levels[-1].status == "denied"


def test_levels_are_nested_and_fresh_cases_show_all_that_they_require_of_every_operator_version_and_type() -> None:
    for op, version in [*operator_versions(None)][::3]:
        family = family_of(op)
        for dtype in operator_version(op, version).types:
            cases = family.challenge(op, version, dtype, "some nonce")
            assert len({spec.id for spec in cases}) == len(cases)
            levels = family.levels(op, version)
            assert all(sorted(held) == held for held in ([level.holds(spec) for level in levels] for spec in cases))
            for level in levels:
                shown = frozenset[str]().union(*(family.features(spec) for spec in cases if level.holds(spec)))
                assert shown >= set(level.requires), (op, version, dtype, level.name)
    assert family_of("RNN").challenge("RNN", 14, "float32", "a") != family_of("RNN").challenge(
        "RNN", 14, "float32", "b"
    )


def test_errors_that_lean_are_told_and_deny_only_the_class_that_excludes_them() -> None:
    # 100 elements, each of them off by -2.67u: the effect of cutting off two of 24 digits.
    biased = [
        structs.replace(r, elements=100, judged=100, error_sums=(-267.0, -267.0, 800.0, 100.0)) for r in results()
    ]
    for accuracy, status in (("standard", "certified"), ("strict", "none")):
        certified = row(biased, accuracy=accuracy)
        assert (certified.status, certified.leaning) == (status, "22 of 24 digits")
    against = [line for level in certified.levels for line in level.against]
    assert "errors lean to one side, which leaves 22 of 24 digits; class strict excludes that" in against
    right = row(results(), accuracy="strict")
    assert (right.status, right.leaning) == ("certified", "")


# Files of waivers

GOOD = b"""
[[waiver]]
op = "LSTM"
clause = "lstm.activations*"
types = ["float32"]
reason = "known"
owner = "Jo"
expires = 2027-03-31
"""


def test_a_waiver_is_read_and_holds_to_the_end_of_its_last_day() -> None:
    (waiver,) = read_waivers(GOOD, "w.toml")
    assert (waiver.op, waiver.clause, waiver.types) == ("LSTM", "lstm.activations*", ("float32",))
    assert not expired(waiver, datetime.date(2027, 3, 31))
    assert expired(waiver, datetime.date(2027, 4, 1))


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (b'reason = "known"', b'reason = " "', "reason is a text"),
        (b'owner = "Jo"', b"", "owner"),
        (b"2027-03-31", b'"soon"', "no day"),
        (b"lstm.activations*", b"lstm.nothing", "no clause is"),
        (b'op = "LSTM"', b'op = "LSMT"', "no operator"),
        (b"float32", b"float33", "no type"),
        (b'owner = "Jo"', b'owner = "Jo"\nseverity = 1', "unknown key"),
        (b"clause = ", b'verdict = "crashed"\nclause = ', "one of them"),
        (b'clause = "lstm.activations*"', b'verdict = "pass"', "no failing verdict"),
        (b"[[waiver]]", b"[[waivers]]", "nothing else"),
        (b"[[waiver]]", b"[[waiver]", "w.toml"),
        (b"known", b"\xff", "w.toml"),
        (b"known", b"#" * (LONGEST + 1), "KiB"),
        (GOOD, GOOD * 101, "at most"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_line(before: bytes, after: bytes, why: str) -> None:
    with pytest.raises(RecordError, match=why) as error:
        read_waivers(GOOD.replace(before, after), "w.toml")
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("w.toml")


# Proofs of where models ran

EP = "OpenVINOExecutionProvider"


def ran(proof: str, status: str = "ran") -> tuple[Outcome, ...]:
    return (Outcome("a", status, proof=proof),)


@pytest.mark.parametrize(
    ("proof", "wrapped", "kind"),
    [
        (f"assignment record: {EP}: LSTM lstm", False, "record"),
        (f"assignment record: {EP}: GRU gru; [graph of QNN: 2 Gru in float32]", False, "record"),
        (f"profile: {EP}: OpenVINO-subgraph_1 x", False, "profile"),
        (f"assignment record: {EP}: LSTM a; CPUExecutionProvider: LSTM b", False, "none"),
        ("assignment record: CPUExecutionProvider: LSTM lstm", False, "none"),
        ("assignment record: no node", False, "none"),
        (f"trust me: {EP}: LSTM lstm", False, "none"),
        ("", False, "none"),
        # The nodes around a wrapped one may be anywhere, but they prove nothing.
        (f"assignment record: CPUExecutionProvider: Neg n; {EP}: LSTM lstm", True, "record"),
        (f"assignment record: CPUExecutionProvider: Neg n; {EP}: LSTM lstm", False, "none"),
        ("assignment record: CPUExecutionProvider: Neg n", True, "none"),
    ],
)
def test_a_proof_names_the_provider_for_every_node(proof: str, wrapped: bool, kind: str) -> None:
    record = placement_of(EP, wrapped, {"a": ran(proof)})
    assert (record.proof, record.cases) == (kind, int(kind != "none"))
    assert list(unproved(EP, wrapped, {"a": ran(proof)})) == ([] if kind != "none" else ["a"])


def test_a_target_in_one_place_and_a_case_that_did_not_run_need_no_proof() -> None:
    assert {placement_of(name, False, {"a": ran("")}).proof for name in ("", "CPUExecutionProvider")} == {"not needed"}
    assert not list(unproved(EP, False, {"a": ran("", "refused")}))
    assert not list(unproved("CPUExecutionProvider", False, {"a": ran("")}))


def test_records_and_profiles_together_are_told_as_that() -> None:
    both = {"a": ran(f"profile: {EP}: LSTM x"), "b": ran(f"assignment record: {EP}: LSTM x")}
    record = placement_of(EP, False, both)
    assert (record.proof, record.cases) == ("mixed", 2)
