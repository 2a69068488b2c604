"""Tests of the cases for runners with one tolerance: such a runner can judge them."""

import pytest

from onnxspec.cases import build_case
from onnxspec.cases.directories.manifest import data_sets_of, fairness_of
from onnxspec.cases.profiles import written_cases
from onnxspec.reference import CELLS, versions_of


@pytest.mark.parametrize("op", CELLS)
def test_they_are_fair(op: str) -> None:
    specs = [spec for version in versions_of(op) for spec in written_cases("fair", op, version)]
    assert len(specs) >= 60
    assert len({spec.digest for spec in specs}) == len(specs)
    for spec in specs[::7]:
        case = build_case(spec)
        assert not fairness_of(case, data_sets_of(case.trial)).reason, spec


def test_an_operator_without_a_list_has_none() -> None:
    assert not list(written_cases("fair", "ExtendedLSTM", 1))
