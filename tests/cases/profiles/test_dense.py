"""Dense cases are legal, the same everywhere, and within the part of the space that they are drawn from."""

import itertools
from typing import Any

import pytest

from onnxspec.cases import CaseSpec, build_case
from onnxspec.cases.profiles import LEVELS, dense_specs, levels_of, pool_of, sibling, supports, turns
from onnxspec.reference import CELLS, evaluate, interpretations_touched, operator_version
from onnxspec.reference.numbers import FORMATS


def some(op: str, count: int = 60, **how: Any) -> list[CaseSpec]:
    return list(itertools.islice(dense_specs(op, **how), count))


@pytest.mark.parametrize("op", CELLS)
def test_cases_are_legal_and_stay_in_range(op: str) -> None:
    for spec in some(op):
        for feed in build_case(spec).trial.feeds:
            assert len(interpretations_touched(spec.node, feed.inputs)) <= 4
            for array in evaluate(spec.node, feed.inputs).values():
                assert abs(array).max(initial=0) < FORMATS["float16"].largest / 2, spec


def test_the_same_seed_draws_the_same_cases_and_another_one_others() -> None:
    assert some("LSTM", seed=5) == some("LSTM", seed=5)
    assert not set(some("LSTM", seed=5)) & set(some("LSTM", seed=6))
    assert len(set(some("GRU"))) == 60


@pytest.mark.parametrize("op", CELLS)
@pytest.mark.parametrize("level", LEVELS)
def test_levels_are_nested(op: str, level: str) -> None:
    wider = list(LEVELS)[list(LEVELS).index(level) :]
    for spec in some(op, supported=LEVELS[level]):
        assert set(wider) <= set(levels_of(spec))


def test_cases_keep_to_what_is_supported() -> None:
    supported: dict[str, Any] = {
        "type": ("float16",),
        "T": (3, 12),
        "layout": (0,),
        "activations": ("Relu", "Tanh"),
        "outputs": (("", "Y_h"),),
        "reruns": ("none", "data"),
        "lengths": ("absent", "ragged"),
        "dimensions": ("static",),
    }
    for spec in some("GRU", supported=supported):
        assert supports(spec, supported)
        assert (spec.type, spec.outputs, spec.dimensions) == ("float16", ("", "Y_h"), "static")
        assert {name.lower() for name in spec.activations or ()} <= {"relu", "tanh"}
    assert {spec.version for spec in some("LSTM", version=7)} == {7}


def test_what_the_space_does_not_hold_is_said() -> None:
    with pytest.raises(ValueError, match="LSTM has no version and type that are any and bfloat8"):
        next(dense_specs("LSTM", type="bfloat8"))
    with pytest.raises(ValueError, match="LSTM has no version and type that are 14 and bfloat16"):
        next(dense_specs("LSTM", 14, "bfloat16"))
    with pytest.raises(ValueError, match="op is one of LSTM, GRU, RNN, not 'LSMT'"):
        next(dense_specs("LSMT"))


@pytest.mark.parametrize("op", CELLS)
def test_every_axis_is_drawn_from(op: str) -> None:
    specs = some(op, 300)
    drawn = {name: {getattr(s, name) for s in specs} for name in ("version", "type", "direction", "lengths", "reruns")}
    assert drawn["type"] == {"float16", "float32", "float64", "bfloat16"}
    assert drawn["direction"] == {"forward", "reverse", "bidirectional"}
    assert drawn["lengths"] == {"absent", "full", "short", "ragged", "empty"}
    assert drawn["reruns"] == {"none", "data", "sizes", "growing"}
    assert any(s.alpha and not s.beta for s in specs)
    assert any(s.beta and not s.alpha for s in specs)
    assert any(s.H % 16 == 0 and s.T > 6 for s in specs)
    functions = {name.lower() for s in specs for name in s.activations or ()}
    assert len(functions) == 11
    assert {s.outputs for s in specs} >= {operator_version(op, 14).outputs, ("Y",)}


def test_a_sibling_shares_the_model() -> None:
    for spec in some("LSTM", 40):
        other = sibling(spec, 1)
        assert other != spec
        assert build_case(other).trial.model == build_case(spec).trial.model


@pytest.mark.parametrize("op", CELLS)
def test_the_version_of_a_pooled_case_is_known_before_it_is_drawn(op: str) -> None:
    for case in pool_of(op).cases[::150]:
        assert case.version == case.spec.version


@pytest.mark.parametrize("op", CELLS)
def test_sessions_of_what_devices_take_do_more_for_no_other_model_or_numbers(op: str) -> None:
    """What such a sibling shows is not measured: it is what the case shows that it is a sibling of."""
    by_place = {(case.level, case.index, case.sibling): case for case in pool_of(op).cases}
    eventful = [case for case in by_place.values() if case.sibling >= turns.FIRST_EVENT]
    assert {"device", "partial"} <= {case.level for case in eventful}
    for case in eventful[::40]:
        first = by_place[case.level, case.index, 0]
        assert (case.whole, case.halves, case.model) == (first.whole, first.halves, first.model)
        own, other = build_case(first.spec).trial, build_case(case.spec).trial
        assert (own.model, own.course) != (other.model, other.course)
        assert own.model == other.model
        for name, array in own.feeds[-1].fed.items():
            assert array.tobytes() == other.feeds[-1].fed[name].tobytes()
