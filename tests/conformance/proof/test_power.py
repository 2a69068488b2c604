"""The smallest relative error of all outputs that a case rejects."""

from __future__ import annotations

import math

import pytest

from onnxspec.cases import CaseSpec
from onnxspec.conformance.proof.power import least_rejected, power_of

SMALL = CaseSpec("RNN", 22, T=2, N=2, I=2, H=3, outputs=("Y",), weights="initializer")


@pytest.mark.parametrize(("type", "least", "most"), [("float64", 2.0**-53, 2.0**-46), ("float32", 2.0**-24, 2.0**-17)])
def test_a_case_rejects_errors_of_a_few_units_and_more(type: str, least: float, most: float) -> None:
    powers = least_rejected(CaseSpec(**{**vars(SMALL), "type": type}))
    assert powers is not None
    assert least <= powers <= most


def test_a_case_without_numbers_has_no_power() -> None:
    assert least_rejected(CaseSpec(**{**vars(SMALL), "T": 0})) is None


def test_the_power_of_a_type_is_the_median_of_its_cases() -> None:
    *done, powers = power_of([SMALL, SMALL])
    assert done == [1, 2]
    assert isinstance(powers, list)
    (one,) = powers
    assert (one.op, one.type, one.cases) == ("RNN", "float32", 2)
    assert math.isfinite(one.error)
