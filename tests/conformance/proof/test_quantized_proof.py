"""Quantized cases catch the faults of levels, by the widest class too, and accuse no right kernel."""

from __future__ import annotations

import pytest

from onnxspec.cases import profile
from onnxspec.conformance.proof import Proof, prove
from onnxspec.reference import FAULTS
from onnxspec.reference.operators import ceiling

LOST = {"quantized.truncated", "quantized.state-as-levels-of-X"}
"""A level or two where X and Y are about as coarse: less than what the widest class of 8 bits leaves open."""


@pytest.fixture(scope="module")
def proof() -> Proof:
    cases = profile("quantized", "GRU", 14)[:26]
    steps = [step for step in prove(cases) if isinstance(step, Proof)]
    return steps[0]


def test_two_cases_catch_each_fault_and_none_accuses_a_right_kernel(proof: Proof) -> None:
    assert not proof.accusations
    assert not proof.mishaps
    of_levels = {id for id, fault in FAULTS.items() if fault.layer == "levels" and "GRU" in fault.operators}
    assert {row.fault for row in proof.rows} == of_levels
    assert not proof.survivors


@pytest.mark.parametrize("bits", [8, 16])
def test_by_the_widest_class_two_cases_catch_them_still(proof: Proof, bits: int) -> None:
    lost = {reach.fault for reach in proof.reaches if reach.bits == bits and reach.levels <= ceiling(bits)}
    assert lost <= LOST
