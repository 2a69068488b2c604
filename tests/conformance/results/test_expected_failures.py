"""Expected failures: the cases that an entry covers, stale entries, and errors in their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from onnxspec.cases import CaseSpec, build_case, operator_versions, profile
from onnxspec.cases.directories.directory import DataSet, write_directory
from onnxspec.cases.profiles.random_cases import random_stream
from onnxspec.conformance.border.typed_toml import TomlDocument
from onnxspec.conformance.judging.judgement import FAILING, Judgement, Verdict
from onnxspec.conformance.probes.directory import probe_directories
from onnxspec.conformance.probes.probe import Probe, SpecProbe
from onnxspec.conformance.probes.selection import probes_of_profile
from onnxspec.conformance.probes.wrapped import wrapped_probes
from onnxspec.conformance.results.expected.entries import (
    UNWRITTEN,
    Entry,
    applying,
    decidable_entries,
    expectations_of,
    in_range,
    matching,
    parse_expected,
    shipped_for,
    stale,
    suspects,
    unlisted_faults,
)
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.conformance.running.expected_update import updated_text
from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.reference import FAULTS
from onnxspec.reference.errors import UserError

from ..miniatures import Finished, naming, pick

CLIPPED = SpecProbe(CaseSpec("LSTM", 14, type="float16", clip=0.5, bias=True))
PLAIN = SpecProbe(CaseSpec("LSTM", 14))


def failed(verdict: Verdict, clause: str | None = None, *diagnosis: str) -> Judgement:
    return Judgement(verdict, clause=clause, diagnosis=diagnosis)


@pytest.mark.parametrize(
    ("fields", "covered"),
    [
        ({}, [PLAIN, CLIPPED]),
        ({"features": ("clip", "bias")}, [CLIPPED]),
        ({"types": ("float16", "float64")}, [CLIPPED]),
        ({"cases": ("nothing", "lstm-14.float16.*")}, [CLIPPED]),
        ({"versions": (7, 14), "features": ("clip",), "types": ("float16",)}, [CLIPPED]),
        ({"versions": (1, "10-"), "features": ("clip",)}, [CLIPPED]),
        ({"versions": ("7-14",)}, [PLAIN, CLIPPED]),
        ({"versions": ("-14",)}, [PLAIN, CLIPPED]),
        ({"op": "GRU"}, []),
        ({"versions": (7,)}, []),
        ({"versions": ("1-7", "15-")}, []),
        ({"features": ("clip", "layout1")}, []),
    ],
)
def test_an_entry_covers_what_matches_all_that_it_says(fields: dict[str, Any], covered: list[Probe]) -> None:
    entry = Entry(**{"reason": "r", "op": "LSTM", **fields})
    assert [probe for probe in (PLAIN, CLIPPED) if entry.covers(probe)] == covered


def test_only_failing_verdicts_can_be_expected() -> None:
    entry = Entry("r", "LSTM")
    assert {verdict for verdict in Verdict if entry.expects(PLAIN, failed(verdict))} == FAILING
    narrow = Entry("r", "LSTM", verdicts=("crashed", "wrong"))
    assert {v for v in Verdict if narrow.expects(PLAIN, failed(v))} == {Verdict.CRASHED, Verdict.WRONG}


@pytest.mark.parametrize(
    ("fields", "expected", "unexpected"),
    [
        ({"clauses": ("lstm.clip.*",)}, [failed(Verdict.WRONG, "lstm.clip.gates")],
         [failed(Verdict.WRONG, "lstm.gates"), failed(Verdict.WRONG), failed(Verdict.PASS, "lstm.clip.gates")]),
        ({"faults": ("lstm.clip.ignored", "lstm.gates.*")}, [failed(Verdict.WRONG, None, "other", "lstm.clip.ignored")],
         [failed(Verdict.WRONG, "lstm.clip.ignored", "other"), failed(Verdict.WRONG)]),
        ({"flags": ("nondeterministic",)},
         [Judgement(Verdict.WRONG, flags=("unconventional", "nondeterministic"))],
         [Judgement(Verdict.WRONG, flags=("unconventional",)), Judgement(Verdict.PASS, flags=("nondeterministic",))]),
    ],
    ids=["clause", "fault", "flag"],
)  # fmt: skip
def test_an_entry_may_be_about_a_broken_clause_a_fault_or_a_flag(
    fields: dict[str, Any], expected: list[Judgement], unexpected: list[Judgement]
) -> None:
    entry = Entry("r", "LSTM", **fields)
    assert [f for f in (*expected, *unexpected) if entry.expects(CLIPPED, f)] == expected
    assert stale([entry], [(CLIPPED, failure) for failure in unexpected]) == [entry]
    assert stale([entry], [(CLIPPED, failure) for failure in (*unexpected, *expected)]) == []


ANY, OF_CLIP = Entry("any", "LSTM"), Entry("of clip", "LSTM", features=("clip",))
CRASHES = Entry("crashes", "LSTM", verdicts=("crashed",))
CLIP, LENGTHS = (Entry(name, "LSTM", faults=(name,)) for name in ("lstm.clip.ignored", "lengths.*"))
OF_FLOAT64 = Entry("of float64", "LSTM", types=("float64",), faults=("lengths.*",))


@pytest.mark.parametrize(
    ("entries", "verdict", "diagnosis", "matched"),
    [
        ([], Verdict.WRONG, [], None),
        # The first entry that fits gives the reason.
        ([CRASHES, ANY, OF_CLIP], Verdict.WRONG, [], ANY),
        ([CRASHES, ANY, OF_CLIP], Verdict.CRASHED, [], CRASHES),
        ([CRASHES, ANY, OF_CLIP], Verdict.PASS, [], None),
        # A new fault beside a listed one is new.
        ([CLIP], Verdict.WRONG, ["lstm.clip.ignored"], CLIP),
        ([CLIP], Verdict.WRONG, ["lstm.clip.ignored", "lengths.ignored"], None),
        ([LENGTHS], Verdict.WRONG, ["lstm.clip.ignored", "lengths.ignored"], None),
        ([CLIP, LENGTHS], Verdict.WRONG, ["lstm.clip.ignored", "lengths.ignored"], CLIP),
        ([CLIP, OF_CLIP], Verdict.WRONG, ["lstm.clip.ignored", "lengths.ignored"], OF_CLIP),
        ([CLIP, OF_FLOAT64], Verdict.WRONG, ["lstm.clip.ignored", "lengths.ignored"], None),
    ],
)
def test_a_failure_is_known_by_the_first_entry_if_entries_name_all_its_faults(
    entries: list[Entry], verdict: Verdict, diagnosis: list[str], matched: Entry | None
) -> None:
    assert matching(entries, CLIPPED, failed(verdict, None, *diagnosis)) == matched


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (
            ">=1.20, <1.23",
            ("1.20", "1.20.0", "1.22.1", "1.22.9.dev3+gpu"),
            ("1.19.2", "1.23", "1.23.0", "2.0", "", "x"),
        ),
        ("==1.22", ("1.22", "1.22.0"), ("1.22.1",)),
        ("!=1.22.1", ("1.22", "1.9"), ("1.22.1", "1.22.1.0")),
        (">1.9", ("1.10", "v1.10"), ("1.9", "1.9.0")),
        ("<=2", ("2", "1.31"), ("2.0.1",)),
    ],
)
def test_versions_are_compared_as_numbers(text: str, inside: tuple[str, ...], outside: tuple[str, ...]) -> None:
    assert [version for version in (*inside, *outside) if in_range(version, text)] == list(inside)
    entry = Entry("r", "LSTM", runtime=text)
    assert applying([entry], {"version": inside[0]}) == (entry,)
    assert applying([entry], {"version": outside[0]}) == applying([entry], {}) == ()
    assert applying([Entry("r", "LSTM")], {}) != ()


def test_a_file_gives_its_entries_in_order_and_the_versions_of_its_runtime() -> None:
    text = """
    [target]
    adapter = "onnxruntime"
    runtime = "<1.20"
    [[expected]]
    op = "LSTM"
    reason = "one"
    versions = [7, 14]
    features = ["clip"]
    [[expected]]
    op = "LSTM"
    reason = "two"
    runtime = ">=1.22"
    link = "https://example.org/1"
    """
    assert parse_expected(text, "f.toml") == (
        Entry("one", "LSTM", versions=(7, 14), features=("clip",), runtime="<1.20"),
        Entry("two", "LSTM", link="https://example.org/1", runtime=">=1.22"),
    )
    assert parse_expected("", "f.toml") == ()


def test_an_entry_is_stale_when_what_it_covers_ran_and_nothing_failed_as_expected() -> None:
    entry = Entry("r", "LSTM", features=("clip",), verdicts=("wrong",))
    other = SpecProbe(CaseSpec("LSTM", 14, clip=0.25))
    assert stale([entry], [(CLIPPED, failed(Verdict.PASS))]) == [entry]
    assert stale([entry], [(CLIPPED, failed(Verdict.CRASHED))]) == [entry]
    assert stale([entry], [(CLIPPED, failed(Verdict.PASS)), (other, failed(Verdict.WRONG))]) == []
    assert stale([entry], [(PLAIN, failed(Verdict.PASS))]) == []
    assert stale([entry], [(CLIPPED, failed(Verdict.UNSUPPORTED)), (other, failed(Verdict.UNAVAILABLE))]) == []
    assert stale([entry], []) == []


ENTRY = "[[expected]]\nreason = 'r'\n"
LSTM = f"{ENTRY}op = 'LSTM'\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[[expected]", "f.toml"),
        ("[[expect]]\nop = 'LSTM'\nreason = 'r'", "[[expected]]"),
        ("expected = 3", "[[expected]]"),
        ("expected = [3]", "[[expected]]"),
        ("[[expected]]\nop = 'LSTM'", "entry 1 of expected: Object missing required field `reason`"),
        ("[[expected]]\nreason = 'r'", "missing required field `op`"),
        ("[[expected]]\nop = 'LSTM'\nreason = ''", "reason"),
        (f"{LSTM}version = [1]", "version: unknown key; did you mean 'versions'?"),
        (f"{LSTM}versions = 14", "versions"),
        (f"{LSTM}versions = [true]", "versions"),
        (f"{LSTM}types = [1]", "types"),
        (f"{LSTM}verdicts = ['refused']", "unknown failing verdict 'refused'"),
        (f"{LSTM}[[expected]]\nop = 3\nreason = 'r'", "f.toml:4: entry 2 of expected: op"),
        (
            "[[expected]]\nop = 'LSTM'\n\n# why\nreason = 'r'\ntypes = ['float16',\n 3]",
            "f.toml:1: entry 1 of expected: types",
        ),
        (f"{LSTM}types = []", "types"),
        (f"{LSTM}versions = ['x']", "'7-14'"),
        *((f"{LSTM}runtime = '{text}'", "runtime") for text in ("1.20", ">=", ">=1.2,", "~=1.2", ">=1.2 <3", " ")),
        (f"{ENTRY}op = 'LSMT'", "f.toml:1: entry 1 of expected: op: unknown operator 'LSMT'; nearest: LSTM"),
        (f"{ENTRY}op = 'LSMT'\ncases = ['*']\nfeatures = ['clip']", "nearest: LSTM"),
        (
            f"{LSTM}types = ['fp32']",
            "f.toml:1: entry 1 of expected: types: unknown type 'fp32' of LSTM; nearest: float32",
        ),
        (
            f"{LSTM}features = ['clip', 'empty-rwo']",
            "features: unknown feature 'empty-rwo' of LSTM; nearest: empty-row",
        ),
        (f"{LSTM}features = ['reset-before-linear']", "features: unknown feature 'reset-before-linear' of LSTM"),
        (f"{LSTM}features = ['illegal:layuot']", "nearest: illegal:layout"),
        (f"{LSTM}features = ['wrapped-qqd']", "nearest: wrapped-qdq"),
        (f"{LSTM}clauses = ['lstm.clip.*', 'lstm.clpi.*']", "clauses: unknown clause 'lstm.clpi.*' of LSTM; nearest: "),
        (f"{LSTM}clauses = ['gru.clip']", "clauses: unknown clause 'gru.clip' of LSTM; nearest: lstm.clip"),
        (f"{LSTM}faults = ['clip.ignred']", "faults: unknown fault 'clip.ignred' of LSTM; nearest: clip."),
        (f"{LSTM}verdicts = ['worng']", "verdicts: unknown failing verdict 'worng' of LSTM; nearest: wrong"),
        (f"{ENTRY}op = 'ExtendedLSTM'\nfeatures = ['several-row']", "nearest: several-rows"),
        (f"{ENTRY}op = 'ExtendedLSTM'\nfaults = ['clip.*']", "of ExtendedLSTM; none is like it"),
        ("[target]\nruntime = '1.2'", "runtime"),
        ("[target]\nname = 'x'", "[target]"),
        ("target = 3", "[target] Expected `object`"),
    ],
)
def test_a_wrong_file_is_named_with_the_place(text: str, named: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_expected(text, "f.toml")
    (line,) = str(caught.value).splitlines()
    assert line.startswith("f.toml")
    assert named in line


@pytest.mark.parametrize(
    "text",
    [
        "op = 'LSTM'\ntypes = ['bfloat16']\nfeatures = ['no-rows', 'wrapped', 'wrapped-neg', 'rerun', 'exact']",
        "op = 'GRU'\nfeatures = ['illegal', 'illegal:layout']\nclauses = ['gru.*', 'gru.clip']",
        "op = 'LSTM'\nfaults = ['clip.*', 'lstm.gates.ifco']",
        # A fault in one place, as a diagnosis names it.
        "op = 'LSTM'\nfaults = ['lstm.clip.on-cell-state@reverse', 'lengths.ignored@reverse', 'clip.ignored@Y_c']",
        "op = 'ExtendedLSTM'\nfeatures = ['about-no-steps', 'illegal:shapes']\nfaults = ['extended.batch.ignored']",
        "op = 'the_graph'\ncases = ['test_other.*']\ntypes = ['int64']",  # of a directory without an operator
    ],
)
def test_whatever_a_case_can_have_may_be_named(text: str) -> None:
    assert len(parse_expected(f"[[expected]]\nreason = 'r'\n{text}", "f.toml")) == 1


def test_an_empty_shape_is_known_in_whatever_directory_it_stands(tmp_path: Path) -> None:
    for name, sizes in {"nobody": {"N": 0}, "nothing": {"T": 0}}.items():
        trial = build_case(CaseSpec("LSTM", 14, **{"T": 4, "N": 3, "I": 2, "H": 5, **sizes}, initial="all")).trial
        write_directory(tmp_path / name, trial.model, [DataSet(trial.feeds[-1].fed, {})])
    nobody, nothing = probe_directories([tmp_path])
    for target in ("onnxruntime", "openvino"):
        assert matching(shipped_for(parse_target(target)), nobody, Judgement(Verdict.CRASHED)) is not None
        assert matching(shipped_for(parse_target(target)), nothing, Judgement(Verdict.CRASHED)) is None
    assert matching(shipped_for(parse_target("onnxruntime")), nothing, Judgement(Verdict.UNSTABLE)) is not None


def test_only_targets_that_entries_were_written_for_have_them() -> None:
    assert shipped_for(parse_target("onnxruntime")) != ()
    assert shipped_for(parse_target("onnxruntime:CPUExecutionProvider")) == shipped_for(parse_target("onnxruntime"))
    assert shipped_for(parse_target("onnxruntime:CUDAExecutionProvider")) == ()
    assert shipped_for(parse_target("backend:onnxruntime.backend")) == ()
    assert shipped_for(Target("onnxruntime", "/some/adapter.py")) == ()


LISTS = resources.files("onnxspec.conformance.results.expected")
SHIPPED = sorted(file.name for file in LISTS.iterdir() if ".toml" in file.name)


@cache
def _core(op: str, lanes: tuple[str, ...] = ()) -> tuple[Probe, ...]:
    """Return the core cases of an operator and of ExtendedLSTM, optionally with surrounding graphs."""
    versions = [version for name, version in operator_versions(None) if name == op]
    specs = [
        *(spec for version in versions for spec in profile("core", op, version)),
        *profile("core", "ExtendedLSTM", 1),
    ]
    plain = tuple(map(SpecProbe, specs))
    return tuple(probe for lane in lanes for probe in wrapped_probes(plain, lane)) if lanes else plain


def _further(entry: Entry) -> Iterator[Probe]:
    """Yield cases beyond core for an entry: random ones for an entry on quantized nodes."""
    if "quantized" in entry.features:
        for spec in islice(random_stream(1, ops=(entry.op,)), 2000):
            yield from wrapped_probes((SpecProbe(spec),), "qdq-u8")


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_entry_is_about_some_cases_of_core_and_not_about_all(name: str) -> None:
    text = LISTS.joinpath(name).read_text(encoding="utf-8")
    for entry in parse_expected(text, name):  # parsing resolves every name, unlike reading the lists in a run
        if "wrapped" in entry.features:  # about surrounding graphs, whose cases are in no profile
            continue
        core = _core(entry.op, ("qdq-u8", "qdq-u16") if "quantized" in entry.features else ())
        assert any(map(entry.covers, chain(core, _further(entry)))), entry
        assert entry.faults or entry.clauses or entry.flags or not all(map(entry.covers, core)), entry


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_file_is_read_for_the_target_that_it_is_about(name: str) -> None:
    text = LISTS.joinpath(name).read_text(encoding="utf-8")
    about = TomlDocument(text, name, ValueError).content["target"]
    options = {"provider": about.get("provider", "CPUExecutionProvider"), **about.get("options", {})}
    entries = shipped_for(Target("some", about["adapter"], options=options))
    assert {entry.reason for entry in parse_expected(text, name)} <= {entry.reason for entry in entries}


def test_a_target_s_own_file_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("[[expected]]\nop = 'LSTM'\nreason = 'mine'\n")
    assert [e.reason for e in expectations_of(Target("t", "onnxruntime", expected=str(path)))] == ["mine"]
    assert expectations_of(Target("t", "onnxruntime")) == shipped_for(Target("t", "onnxruntime")) != ()
    with pytest.raises(UserError, match="cannot be read"):
        expectations_of(Target("t", "onnxruntime", expected=str(tmp_path / "none.toml")))


# Updated lists

LIST = """# Ours.

[target]
adapter = "onnxruntime"

# Clip is known.
#   https://example.org
[[expected]]
op = "LSTM"
features = ["clip"]
reason = "clip" # because

[[expected]]
op = "LSTM"
cases = ["*"]
runtime = ">=2"
reason = "of another version"

[[expected]]
reason = "gone"
op = "LSTM"
verdicts = ["crashed"]
"""


CAUSE = "lstm.gates.ifco"


def failing(
    probe: SpecProbe, *causes: str, verdict: Verdict = Verdict.WRONG, clause: str | None = "lstm.gates.order"
) -> Result:
    result = result_of(probe, "t", Judgement(verdict, "value", clause=clause), 0.1, None)
    return structs.replace(result, diagnosis=causes)


def update(text: str, *results: Result, stale: Sequence[Entry] = ()) -> str:
    probes = {spec.id: spec for spec in (PLAIN, CLIPPED)}
    return updated_text(text, "f.toml", results, probes, stale, {"runtime": "r", "version": "1.5"})[0]


def test_an_entry_that_is_needed_stays_as_it_stands_and_one_that_is_not_goes() -> None:
    _, _, gone = parse_expected(LIST, "f.toml")
    assert update(LIST, failing(CLIPPED)) == LIST
    assert update(LIST, failing(CLIPPED), stale=[gone]) == LIST[: LIST.rindex("[[expected]]")].rstrip() + "\n"


def test_what_is_new_comes_with_what_is_known_of_it_and_a_second_time_changes_nothing() -> None:
    explained = failing(PLAIN, CAUSE)
    new = update(LIST, failing(CLIPPED), explained)
    assert new.startswith(LIST)
    *_, entry = parse_expected(new, "f.toml")
    assert entry == Entry(UNWRITTEN, "LSTM", versions=(14,), types=("float32",), faults=(CAUSE,), cases=(PLAIN.id,))
    assert "\n# wrong (value): lstm.gates.ifco in 1 case with r 1.5\n[[expected]]" in new
    *_, entry = parse_expected(text := update(LIST, failing(CLIPPED), failing(PLAIN)), "f.toml")
    assert (entry.clauses, entry.faults) == (("lstm.gates.order",), ())
    assert entry.reason == UNWRITTEN
    assert "# wrong (value) against lstm.gates.order in 1 case with r 1.5; not explained yet\n" in text
    assert update(new, failing(CLIPPED), explained) == new
    assert update("", failing(PLAIN), failing(CLIPPED, verdict=Verdict.CRASHED, clause=None)).count("[[expected]]") == 2


def test_every_fault_gets_an_entry_of_its_own_and_all_results_are_known_by_them() -> None:
    clipped, plain = failing(CLIPPED, "clip.ignored", CAUSE), failing(PLAIN, CAUSE)
    entries = parse_expected(update("", clipped, plain), "f.toml")
    assert [entry.faults for entry in entries] == [("clip.ignored",), (CAUSE,)]
    assert [entry.cases for entry in entries] == [(CLIPPED.id,), tuple(sorted((CLIPPED.id, PLAIN.id)))]
    assert matching(entries, CLIPPED, clipped) is not None
    assert matching(entries, PLAIN, plain) is not None


@pytest.mark.parametrize("verdict", [Verdict.WRONG, Verdict.INACCURATE])
def test_a_result_that_is_wrong_or_inaccurate_is_known_by_its_entry(verdict: Verdict) -> None:
    """pytest judges case by case, and may report a case as inaccurate that a whole run finds to be wrong."""
    for result in (failing(PLAIN, CAUSE), failing(PLAIN)):
        entries = parse_expected(update("", result), "f.toml")
        assert matching(entries, PLAIN, structs.replace(result, verdict=verdict)) is not None


@pytest.mark.parametrize(
    ("changed", "expected"),
    [({}, ("LSTM", ("float32",))), ({"op": "the_graph", "type": "int64", "clause": None}, ("the_graph", ()))],
    ids=["operator", "another model"],
)
def test_an_entry_for_failures_without_a_cause_covers_no_case_that_it_does_not_name(
    changed: dict[str, Any], expected: tuple[str, tuple[str, ...]]
) -> None:
    """Other cases may fail for another reason, however many fail without a name now."""
    results = [structs.replace(failing(PLAIN), case=f"test_{k}", **changed) for k in range(40)]
    new, _ = updated_text("", "f.toml", results, {r.case: PLAIN for r in results}, (), {"runtime": "r"})
    (entry,) = parse_expected(new, "f.toml")
    assert (entry.op, entry.types, len(entry.cases)) == (*expected, 40)
    assert not entry.covers(PLAIN)


def test_a_cause_that_no_entry_names_is_known_as_unlisted() -> None:
    explained = failing(PLAIN, CAUSE)
    anything = Entry("r", "LSTM")
    assert matching([anything], PLAIN, explained) is anything
    assert unlisted_faults([anything], PLAIN, explained) == [CAUSE]
    assert unlisted_faults([anything, Entry("r", "LSTM", faults=("lstm.gates.*",))], PLAIN, explained) == []


def test_a_list_that_is_made_holds_for_the_next_run(inside: Callable[..., Finished], tmp_path: Path) -> None:
    cases = naming([*pick(2, lambda s: s.lengths == "ragged" and "Y" in s.outputs), *pick(2, lambda s: s.clip == 0.5)])
    run = ("run", "--target", "backend:lengths_ignored", *cases, "--expected", "l.toml", "--no-extra")
    assert "l.toml: cannot be read" in inside(*run).complaint
    made = inside(*run, "--update-expected")
    assert (made.code, made.err) == (1, "")
    assert "l.toml: 0 kept, 0 removed, 1 added" in made.out
    assert "added: LSTM, lengths.ignored" in made.out
    assert "say in its reason why this is accepted" in made.out
    first = (tmp_path / "l.toml").read_text(encoding="utf-8")
    again = inside(*run)
    assert (again.code, again.err.count("1 entry of l.toml has no reason yet")) == (0, 1)
    again = inside(*run, "--update-expected")
    assert again.code == 0
    assert "l.toml: 1 kept, 0 removed, 0 added" in again.out
    assert (tmp_path / "l.toml").read_text(encoding="utf-8") == first


def test_a_list_goes_with_one_target_that_has_it(inside: Callable[..., Finished]) -> None:
    case = naming(pick(1))
    assert "name one with --expected" in inside("run", *case, "--update-expected").complaint
    both = ("--target", "backend:conforming", "--target", "backend:jittery", "--expected", "l.toml")
    assert "give each its own" in inside("run", *case, *both, "--update-expected").complaint
    assert "--expected", "none" in inside("run", *case, "--expected", "none", "--expected", "l.toml").complaint


def test_a_small_profile_calls_nothing_stale_that_a_larger_one_may_need() -> None:
    """An entry's only smoke case may pass by chance: onnxruntime 1.19.0 leaves memory unwritten."""
    entry = Entry("Y_h of a row of length 0 is left unwritten.", "RNN", features=("empty-row",))
    small, whole = ({p.id for p in probes_of_profile(name)} for name in ("smoke", "core"))
    assert any(entry.covers(p) for p in probes_of_profile("smoke"))
    assert decidable_entries([entry], small, "smoke") == []
    assert decidable_entries([entry], whole, "core") == [entry]


def test_the_faults_that_a_list_names_are_those_that_a_run_tries_first() -> None:
    entries = shipped_for(parse_target("onnxruntime"))
    named = {pattern for entry in entries for pattern in entry.faults}
    assert "coefficients.default-thresholded-relu" in named
    assert named == set(suspects(entries)) <= set(FAULTS)


@pytest.mark.parametrize(
    "fault", ["functions.g-as-Tanh", "products.W-without-last", "clip.ignored@Affine", "bias.ignored@gate-f@reverse"]
)
def test_a_fault_that_is_named_no_more_is_warned_of_and_expects_nothing(fault: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=f"fault '{fault}' is gone"):
        (entry,) = parse_expected(f"{LSTM}faults = ['{fault}']\n", "f.toml")
    probe = probes_of_profile("smoke")[0]
    assert not entry.expects(probe, failed(Verdict.WRONG, None, "bias.ignored"))
