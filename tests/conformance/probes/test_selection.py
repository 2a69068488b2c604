"""Selection of cases, and messages where no case is selected."""

from __future__ import annotations

import pytest

from onnxspec.cases import PROFILES, Spec, operator_versions, profile
from onnxspec.cases.profiles.random_cases import random_specs
from onnxspec.conformance.probes.drawn import fresh_profile, fresh_profile_name, some_seed
from onnxspec.conformance.probes.naming import UnknownName
from onnxspec.conformance.probes.selection import Selection, operator_types, select, select_probes
from onnxspec.conformance.results.expected.entries import decidable_entries
from onnxspec.reference.errors import UserError

from ...counting import calls
from ...recurrent import recurrent_versions

OF_VERSION_1 = next(spec.id for spec in profile("core", "LSTM", 1) if spec.type == "float32")


def complaint(selection: Selection) -> str:
    with pytest.raises(UnknownName) as caught:
        select(selection)
    (line,) = str(caught.value).splitlines()
    return line


def test_without_narrowing_it_is_the_profile_in_its_order() -> None:
    everything = [spec for op, version in operator_versions() for spec in profile("core", op, version)]
    # Models that must be refused come last: whatever they do to a process, all other cases have run.
    assert select(Selection()) == sorted(everything, key=lambda spec: bool(spec.illegal))
    assert len(select(Selection("smoke"))) < len(everything)


def test_each_option_narrows_and_together_they_narrow_further() -> None:
    both = select(Selection(versions=(7, 14), types=("float16",)))
    assert {(spec.version, spec.type) for spec in both} == {(7, "float16"), (14, "float16")}
    assert select(Selection(versions=(14, 7, 7), types=("float16",))) == both


def test_patterns_match_whole_ids() -> None:
    specs = select(Selection(versions=(14,), cases=("lstm-14.float32.*.clip.*",)))
    assert specs
    assert all(spec.id.startswith("lstm-14.float32.") and spec.clip is not None for spec in specs)
    name = specs[0].id
    assert [spec.id for spec in select(Selection(cases=(name,)))] == [name]
    assert [spec.id for spec in select(Selection(cases=(f"*{name[5:-1]}?", name)))] == [name]
    assert "unknown case" in complaint(Selection(versions=(14,), cases=(name[:-1],)))


def test_a_case_of_any_profile_can_be_named() -> None:
    smoke = {spec.id for spec in select(Selection("smoke"))}
    other_case = next(spec for spec in select(Selection()) if spec.id not in smoke)
    assert select(Selection("smoke", cases=(other_case.id,))) == [other_case]


def test_profiles_contain_those_before_them() -> None:
    # So a case that is not in the last profile is in none.
    smaller = {spec.id for spec in profile(PROFILES[1], "LSTM", 1)}
    assert {spec.id for spec in profile(PROFILES[0], "LSTM", 1)} <= smaller
    assert smaller <= {spec.id for spec in profile(PROFILES[2], "LSTM", 1)}


def test_a_name_is_not_compared_with_every_case() -> None:
    specs = select(Selection())
    names = tuple(spec.id for spec in specs) * 10
    assert select(Selection(cases=names)) == specs
    assert calls(lambda: select(Selection(cases=names))) < len(names) * len(specs) / 4


@pytest.mark.parametrize(
    ("selection", "named", "nearest"),
    [
        (Selection("smok"), "profile 'smok'", "nearest: smoke"),
        (Selection(ops=("LSTMM",)), "operator 'LSTMM'", "nearest: LSTM"),
        (Selection(versions=(13,)), "operator version '13'", "nearest: 14, 7, 22"),
        (Selection(versions=(2,)), "operator version '2'", "nearest: 1, 3, 7"),
        (Selection(types=("half",)), "type 'half'", "float16"),
        (Selection(types=("FLOAT16",)), "type 'FLOAT16'", "nearest: float16"),
        (Selection(versions=(7,), types=("bfloat16",)), "'*-7:bfloat16' in profile core", "LSTM-22:bfloat16"),
        (Selection(versions=(7,), types=("bfloat16",), cases=("*",)), "'*-7:bfloat16'", "LSTM-22:bfloat16"),
        (Selection("random-5-seed-0", ops=("LSMT",)), "operator 'LSMT'", "nearest: LSTM"),
        (Selection("random-5-seed-0", versions=(15,)), "operator version '15'", "nearest: 14"),
        (Selection("random-5-seed-0", versions=(14,), types=("bfloat16",)), "'*-14:bfloat16'", "of fresh cases"),
        # Other options leave the case out.
        (Selection(versions=(1,), types=("float64",), cases=(OF_VERSION_1,)), f"'{OF_VERSION_1}'", "among *-1:float64"),
    ],
)
def test_what_is_not_there_is_named_with_the_nearest(selection: Selection, named: str, nearest: str) -> None:
    text = complaint(selection)
    assert named in text
    assert nearest in text


def test_requirements_can_be_made_of_every_version_and_type() -> None:
    types = operator_types()
    assert {"LSTM-1:float32", "LSTM-22:bfloat16"} <= set(types)
    assert "LSTM-14:bfloat16" not in types
    assert {f"{s.op}-{s.version}:{s.type}" for s in select(Selection())} == {
        name for name in types if not name.startswith(("ExtendedLSTM", "DynamicQuantizeLSTM", "com.microsoft::"))
    }


# Fresh cases: in no profile, reproducible from the seed, and with the command that draws them again


def fresh(count: int, **narrowed: tuple[object, ...]) -> list[Spec]:
    return select(Selection(f"random-{count}-seed-0", **narrowed))  # type: ignore[arg-type]


def test_no_profile_holds_them() -> None:
    pinned = {spec.id for op, version in recurrent_versions() for spec in profile("core", op, version)}
    assert not pinned & {spec.id for spec in fresh(150)}


def test_operators_take_turns_and_a_selection_narrows_them() -> None:
    assert [spec.op for spec in fresh(6)] == ["LSTM", "GRU", "RNN"] * 2
    chosen = fresh(10, ops=("GRU",), versions=(14,), types=("float16",))
    assert {(spec.op, spec.version, spec.type) for spec in chosen} == {("GRU", 14, "float16")}
    assert {spec.op for spec in fresh(9, versions=(3,))} == {"GRU"}


def test_a_name_stands_for_them_wherever_a_profile_does() -> None:
    name = fresh_profile_name(4, "S.1")
    assert name == "random-4-seed-S.1"
    assert fresh_profile(name) == (4, "S.1")
    probes = select_probes(Selection(name), ())
    assert [probe.id for probe in probes] == [spec.id for spec in random_specs(4, "S.1")]
    assert probes[0].repeat("onnxruntime")[2] == probes[0].text
    assert fresh_profile("core") is None
    assert fresh_profile("random-0-seed-1") is None
    assert fresh_profile(fresh_profile_name(1, some_seed())) is not None
    assert decidable_entries((), set(), name) == []
    with pytest.raises(UserError, match="no seed: 'a b'"):
        fresh_profile_name(4, "a b")
