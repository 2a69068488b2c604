"""Tests of random cases: they are legal, the same everywhere, and within the requested part of the space."""

import itertools
from typing import Any

import pytest

from onnxspec.cases import CaseSpec, Family, build_case, family_of, features_of, operator_versions, profile
from onnxspec.cases.portable import check_case
from onnxspec.cases.profiles.random_cases import distinct, left_of, random_case, random_specs, traits_of
from onnxspec.cases.profiles.recurrent import LEVELS, supports
from onnxspec.cases.specs.space import space_of
from onnxspec.reference import CELLS, evaluate, open_questions_of, operator_version
from onnxspec.reference.numbers.accuracy import FORMATS


def some(op: str, count: int = 60, seed: Any = 0, **how: Any) -> list[CaseSpec]:
    return list(itertools.islice(distinct(lambda key: random_case(op, key, **how), seed), count))


@pytest.mark.parametrize("op", CELLS)
def test_cases_are_legal_and_stay_in_range(op: str) -> None:
    for spec in some(op):
        check_case(spec)
        first = build_case(spec).trial.first
        for feed in first.feeds if spec.extremes == "none" and not spec.quantized else ():
            assert len(open_questions_of(first.node, feed.inputs)) <= 4
            for array in evaluate(first.node, feed.inputs).values():
                assert abs(array).max(initial=0) < FORMATS["float16"].largest / 2, spec


@pytest.mark.parametrize("op", dict(operator_versions(None)))
def test_the_same_seed_draws_the_same_cases_and_another_one_others(op: str) -> None:
    first = random_specs(40, 5, (op,))
    assert random_specs(40, 5, (op,)) == first
    assert len(set(first)) == 40
    assert not set(first) & set(random_specs(40, 6, (op,)))
    assert not set(first) & {spec for version in {s.version for s in first} for spec in profile("core", op, version)}
    for spec in first:
        check_case(spec)


def test_draws_stay_as_they_are() -> None:
    """Written down once: users repeat --random N --seed S."""
    assert [spec.digest[:6] for spec in random_specs(3, 0)] == ["c326bb", "73e3d9", "328486"]


@pytest.mark.parametrize(("op", "version"), [*operator_versions(None)])
def test_levels_are_nested(op: str, version: int) -> None:
    levels = family_of(op).levels(op, version)
    specs = [spec for spec in profile("core", op, version) if not spec.illegal]
    for level in levels if op in CELLS else ():
        drawn = some(op, 20, version=version, supported=LEVELS[level.name])
        assert all(map(level.holds, drawn))
        specs += drawn
    held = [{spec for spec in specs if level.holds(spec)} for level in levels]
    assert all(narrow <= wide for narrow, wide in itertools.pairwise(held))
    assert held[0] < held[-1] == {*specs}


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
        random_case("LSTM", "0", type="bfloat8")
    with pytest.raises(ValueError, match="LSTM has no version and type that are 14 and bfloat16"):
        random_case("LSTM", "0", 14, "bfloat16")
    with pytest.raises(ValueError, match="op is one of LSTM, GRU, RNN, not 'LSMT'"):
        random_case("LSMT", "0")
    with pytest.raises(ValueError, match="nothing is left of RNN without layout=0, layout=1"):
        left_of("RNN", ("layout=0", "layout=1"))


@pytest.mark.parametrize("op", CELLS)
def test_every_axis_is_drawn_from(op: str) -> None:
    specs = some(op, 300)
    space = space_of(operator_version(op, 22))
    drawn = {name: {getattr(s, name) for s in specs} for name in ("type", "direction", "lengths", "reruns")}
    assert all(values == {*space[name].values} for name, values in drawn.items())
    assert any(s.alpha and not s.beta for s in specs)
    assert any(s.beta and not s.alpha for s in specs)
    assert any(s.H % 16 == 0 and s.T > 6 for s in specs)
    functions = {name.lower() for s in specs for name in s.activations or ()}
    assert len(functions) == 11
    assert {s.outputs for s in specs} >= {operator_version(op, 14).outputs, ("Y",)}


LACKING = ("type=float16", "layout=1", "clip", "uses-Elu", "version=1", "symbolic", "no-rows")


@pytest.mark.parametrize(
    ("op", "lacks"),
    [
        *((op, lacks) for op in CELLS for lacks in (LACKING, ("activations",))),
        ("ExtendedLSTM", ("several-rows", "bias-absent", "float-output")),
    ],
)
def test_what_targets_lack_is_not_drawn(op: str, lacks: tuple[str, ...]) -> None:
    specs = random_specs(30, "s", (op,), lacks=lacks)
    assert len(specs) == 30
    assert not {*lacks} & {trait for spec in specs for trait in traits_of(spec, features_of(spec))}


def test_no_cases_are_drawn_where_every_one_has_what_targets_lack() -> None:
    assert random_specs(3, "s", ("ExtendedLSTM",), lacks=("bidirectional", "bias=True", "bias=False")) == ()


def test_an_operator_that_draws_no_cases_itself_has_crossed_ones() -> None:
    family = family_of("RNN")
    crossed = [Family.random_case(family, "RNN", str(number), 14, "float32") for number in range(20)]
    assert {spec.type for spec in crossed if spec is not None} == {"float32"}
