"""Proof of where models ran."""

from __future__ import annotations

import pytest

from onnxspec.conformance.certifying.trial import placement_of, unproved
from onnxspec.conformance.workers.job import Outcome

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
    assert placement_of("CPUExecutionProvider", False, {"a": ran("")}).proof == "not needed"
    assert placement_of("", False, {"a": ran("")}).proof == "not needed"
    assert not list(unproved(EP, False, {"a": ran("", "refused")}))


def test_records_and_profiles_together_are_told_as_that() -> None:
    both = {"a": ran(f"profile: {EP}: LSTM x"), "b": ran(f"assignment record: {EP}: LSTM x")}
    record = placement_of(EP, False, both)
    assert (record.proof, record.cases) == ("mixed", 2)
