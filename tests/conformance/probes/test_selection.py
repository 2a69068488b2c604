"""Selection of cases by options, and by name: an id, its JSON, a directory, or a line of a file."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onnxspec import NotConforming, assert_conforms
from onnxspec.cases import PROFILES, CaseSpec, Spec, build_case, operator_versions, profile
from onnxspec.cases.portable import case_text
from onnxspec.cases.profiles.random_cases import random_specs
from onnxspec.conformance.probes.drawn import fresh_profile, fresh_profile_name
from onnxspec.conformance.probes.naming import UnknownName, expanded, portable_probes
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.selection import Selection, operator_types, select, select_probes
from onnxspec.conformance.results.expected.entries import decidable_entries
from onnxspec.reference import operator_names
from onnxspec.reference.errors import UserError

from ...counting import calls
from ...recurrent import recurrent_versions
from ..miniatures import Inside, naming, read_results

pytest_plugins = "pytester"

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


def test_only_operators_with_the_attribute_lack_hidden_size() -> None:
    absent = {spec.op for spec in select(Selection("smoke")) if "no hidden_size" in SpecProbe(spec).traits}
    assert absent <= {"LSTM", "GRU", "RNN", "ExtendedLSTM", "DynamicQuantizeLSTM"}
    assert "no hidden_size" in SpecProbe(CaseSpec("GRU", 14, hidden_size=False)).traits


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
    assert decidable_entries((), set(), name) == []
    with pytest.raises(UserError, match="no seed: 'a b'"):
        fresh_profile_name(4, "a b")


# Names of cases


FRESH = CaseSpec("GRU", 14, T=3, N=2, H=4, lengths="ragged", seed=77)
PINNED = next(spec for spec in profile("core", "LSTM", 14) if spec.marks == ())
EXTENDED_CASE = profile("smoke", "ExtendedLSTM", 1)[3]


def chosen(*names: str, **narrowing: tuple[object, ...]) -> list[str]:
    return [p.id for p in select_probes(Selection("smoke", cases=names, **narrowing), operator_names(""))]  # type: ignore[arg-type]


def test_an_id_and_its_json_are_one_case() -> None:
    assert chosen(PINNED.id, case_text(PINNED)) == [PINNED.id]
    assert chosen(case_text(FRESH), EXTENDED_CASE.id, PINNED.id) == [PINNED.id, EXTENDED_CASE.id, FRESH.id]
    assert chosen(case_text(EXTENDED_CASE)) == [EXTENDED_CASE.id]


def test_cases_of_all_operators_are_named_together() -> None:
    names = [spec.id for spec in (*profile("smoke", "GRU", 7), *profile("smoke", "ExtendedLSTM", 1)[:2], PINNED)]
    assert sorted(chosen(*names)) == sorted(names)
    for wrong in ("extendedlstm-1.no", "gru-7.no", "no"):
        with pytest.raises(UnknownName, match=f"'{wrong}'"):
            chosen(*names, wrong)


def test_a_fresh_case_repeats_by_its_json_and_a_pinned_one_by_its_id() -> None:
    (fresh,) = portable_probes([case_text(FRESH)])
    assert fresh.repeat("t") == ["onnxspec", "explain", case_text(FRESH), "--target", "t"]
    (pinned,) = select_probes(Selection(cases=(PINNED.id,)), operator_names(""))
    assert pinned.repeat("t") == ["onnxspec", "explain", PINNED.id, "--target", "t"]
    assert pinned.text == case_text(PINNED)


def test_the_id_of_a_case_in_no_profile_leads_to_its_json() -> None:
    with pytest.raises(UnknownName, match="in no profile: give the JSON"):
        select_probes(Selection(cases=(FRESH.id,)), operator_names(""))
    with pytest.raises(UnknownName) as mistyped:
        select_probes(Selection(cases=("gru-7.no",)), operator_names(""))
    assert "JSON" not in str(mistyped.value)


def test_options_narrow_given_cases_as_they_narrow_others() -> None:
    assert chosen(case_text(FRESH), ops=("GRU",)) == [FRESH.id]
    with pytest.raises(UnknownName, match="unknown operator 'LSTM' among the cases given"):
        chosen(case_text(FRESH), ops=("LSTM",))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "no case: no JSON: "),
        ('{"op":"LSTM","version":14,"T":' + "9" * 5000 + "}", "no case: "),
        ('{"op":"LSTM","version":14' + " " * 70000 + "}", "no case: its JSON has 65536 characters at most"),
        ('{"op":"GRU"}', "no case: version of GRU is "),
        ("./nowhere", "nowhere is no folder"),
    ],
)
def test_what_is_no_case_is_said_in_a_line(text: str, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        portable_probes([text])
    (line,) = str(caught.value).splitlines()
    assert line.startswith(complaint)
    assert len(line) < 300


@pytest.fixture
def directory(inside: Inside, tmp_path: Path) -> Path:
    """Return the test-case directory of a fresh case."""
    assert inside("generate", "--out", "cases", "--case", case_text(FRESH), "--all").code == 0
    (folder,) = (tmp_path / "cases").glob("test_*")
    return folder


def test_two_cases_of_one_id_are_not_taken_for_each_other(directory: Path, inside: Inside, tmp_path: Path) -> None:
    assert inside("generate", "--out", "b", "--case", case_text(replace(FRESH, seed=78)), "--all").code == 0
    (other,) = (tmp_path / "b").glob("test_*")
    other = other.rename(other.with_name(directory.name))
    with pytest.raises(UserError, match="two cases that differ have the id"):
        portable_probes([str(directory), str(other)])


# Files of cases


def test_a_file_of_cases_is_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "cases.txt"
    file.write_text(f"# mine\n\n  {PINNED.id}  \n{case_text(FRESH)}\n./here\n", encoding="utf-8")
    assert expanded(["gru-*", f"@{file}"]) == ("gru-*", PINNED.id, case_text(FRESH), str(tmp_path / "here"))


@pytest.mark.parametrize(
    ("file", "complaint"),
    [
        ("binary", "binary: no list of cases: it is not text in UTF-8"),
        ("gone", "gone: no list of cases: No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_said(inside: Inside, tmp_path: Path, file: str, complaint: str) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for command in (("list", "--case"), ("run", "--case"), ("explain",)):
        done = inside(*command, f"@{file}")
        assert done.code == 2
        assert complaint in done.complaint


# Commands


def test_what_list_writes_as_json_is_run_as_it_was(inside: Inside, tmp_path: Path) -> None:
    names = [PINNED.id, EXTENDED_CASE.id]
    listed = inside("list", *naming(names), "--json")
    assert [json.loads(line)["op"] for line in listed.out.splitlines()] == ["LSTM", "ExtendedLSTM"]
    (tmp_path / "cases.txt").write_text(listed.out, encoding="utf-8")
    assert inside("list", "--case", "@cases.txt").out.split() == names


def test_a_fresh_case_is_run_explained_and_written(directory: Path, inside: Inside, tmp_path: Path) -> None:
    text = case_text(FRESH)
    assert inside("run", "--case", text, "--out", "o").code == 0
    (result,) = read_results(tmp_path / "o")
    assert (result["case"], result["verdict"]) == (FRESH.id, "pass")
    assert inside("run", "--case", text, "--out", "o", "--resume").code == 0
    assert inside("merge", "o", "--out", "m").code == 0
    assert inside("explain", text).out.startswith(FRESH.id)
    assert FRESH.id in inside("explain", text, "--emit", "script").out
    manifest = json.loads((tmp_path / "cases" / "manifest.json").read_text())
    assert shlex.split(manifest["made"]["command"])[-3:] == ["--case", text, "--all"]
    assert (directory / "model.onnx").read_bytes() == build_case(FRESH).trial.model


def test_a_directory_is_a_case_beside_others(directory: Path, inside: Inside, tmp_path: Path) -> None:
    path = f"./cases/{directory.name}"
    names = ["--case", path, "--case", PINNED.id]
    assert inside("run", *names, "--out", "o").code == 0
    assert [r["case"] for r in read_results(tmp_path / "o")] == [PINNED.id, directory.name]
    assert inside("explain", path).out.startswith(directory.name)
    assert inside("explain", path, "--emit", "script").complaint.endswith("are files already")
    assert inside("generate", "--out", "again", "--case", path).complaint.endswith("is a directory already")
    # A directory that was changed since is another case.
    output = directory / "test_data_set_0" / "output_0.pb"
    output.write_bytes(output.read_bytes()[:-1] + b"\x01")
    assert "another digests" in inside("run", *names, "--out", "o", "--resume").complaint


def test_a_folder_of_the_name_that_is_unknown_is_hinted_at(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert inside("list", "--case", "mine").complaint.endswith("a folder of that name is ./mine")


def test_several_candidates_stand_one_a_line(inside: Inside) -> None:
    done = inside("explain", "lstm-14.float32.")
    first, *rest = done.err.splitlines()
    assert (done.code, first.split()[2:]) == (2, ["cases", "begin", "like", "'lstm-14.float32.':"])
    assert all(line.startswith("  lstm-14.float32.") for line in rest[:-1])
    assert rest[-1].strip() == f"... and {int(first.split()[1]) - 10} more"


# assert_conforms and pytest


def zeros(model: bytes, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [np.zeros((3, 1, 2, 4), np.float32)]


def test_assert_conforms_takes_the_text_that_it_says(directory: Path) -> None:
    with pytest.raises(NotConforming) as caught:
        assert_conforms(FRESH, zeros)
    repeat = next(line for line in str(caught.value).splitlines() if line.startswith("  repeat"))
    with pytest.raises(NotConforming):
        assert_conforms(repeat.split(maxsplit=1)[1], zeros)
    for subject in (directory, str(directory)):
        with pytest.raises(NotConforming, match=rf"repeat +{directory}"):
            assert_conforms(subject, zeros)
    with pytest.raises(UserError, match="no case: "):
        assert_conforms('{"op":1}', zeros)


def test_pytest_takes_it_too(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("cases.txt").write_text(f"{PINNED.id}\n{case_text(FRESH)}\n")
    pytester.makeini("[pytest]\nonnxspec_case = @cases.txt\n")
    done = pytester.runpytest("--pyargs", "onnxspec.conformance", "-p", "no:hypothesispytest")
    done.stdout.fnmatch_lines(["onnxruntime *: 2 cases: 2 pass"])
