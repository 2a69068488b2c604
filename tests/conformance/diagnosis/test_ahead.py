"""Cases that other processes look at ahead of their turn: the same diagnosis, at the same cost, whatever becomes of
them."""

import os
from dataclasses import dataclass, fields
from typing import Any

import pytest

from onnxspec.conformance.diagnosis.ahead import Ahead
from onnxspec.conformance.diagnosis.explainer import diagnose
from onnxspec.conformance.diagnosis.failing_case import FailingCase
from onnxspec.conformance.workers.pool import Pool

from .test_diagnosis import SPECS, failing, target_with


@dataclass(frozen=True)
class Deadly(FailingCase):
    """A case that ends another process which takes it up."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _taken_up, (os.getpid(), {own.name: getattr(self, own.name) for own in fields(self)})


def _taken_up(here: int, given: dict[str, Any]) -> FailingCase:
    if os.getpid() != here:
        os._exit(3)
    return Deadly(**given)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cases of which an answer is taken that was given ahead of their turn."""
    cases: list[str] = []
    hold = Ahead._hold

    def held(search: Ahead, case: str, observation: Any) -> None:
        if observation is None:
            cases.append(case)
        hold(search, case, observation)

    monkeypatch.setattr(Ahead, "_hold", held)
    return cases


def test_a_diagnosis_is_the_same_at_the_same_cost_whoever_looks_at_the_cases(taken: list[str]) -> None:
    target = target_with("lengths.ignored", "activations.ignored", "initial-h.ignored")
    failing_cases, _ = failing(target, SPECS[:300])
    alone = diagnose(failing_cases, "standard", 3000)
    assert len(failing_cases) > 40
    assert alone.of
    assert alone.spent > 100
    assert not taken
    with Pool(2, alone=0) as pool:
        assert diagnose(failing_cases, "standard", 3000, pool=pool) == alone
    assert len(taken) > len(failing_cases) / 3


def test_a_diagnosing_process_that_dies_costs_no_result(taken: list[str]) -> None:
    failing_cases, _ = failing(target_with("lengths.ignored"), SPECS[:150])
    alone = diagnose(failing_cases, "standard", 3000)
    dying = [
        Deadly(*(getattr(case, own.name) for own in fields(case))) if number % 7 == 6 else case
        for number, case in enumerate(failing_cases)
    ]
    with Pool(2, alone=0) as pool:
        assert diagnose(dying, "standard", 3000, pool=pool) == alone
    assert {*taken} & {case.case for case in dying if isinstance(case, Deadly)}
