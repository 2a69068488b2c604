"""Expected failures: what an entry covers, when it is stale, and what is wrong with a file of them."""

from __future__ import annotations

from importlib import resources

import pytest

from onnxspec.cases import CaseSpec, profile
from onnxspec.conformance.expected_failures import (
    Entry,
    ExpectedFailureError,
    matching,
    parse_expected,
    shipped_for,
    stale,
)
from onnxspec.conformance.target import Target, parse_target
from onnxspec.conformance.verdict import FAILING, Judgement, Verdict

CLIPPED = CaseSpec("LSTM", 14, type="float16", clip=0.5, bias=True)
PLAIN = CaseSpec("LSTM", 14)


def test_an_entry_covers_what_matches_all_that_it_says() -> None:
    everything = Entry("r", "LSTM")
    assert everything.covers(PLAIN)
    assert everything.covers(CLIPPED)
    for narrower in (
        Entry("r", "LSTM", features=("clip", "bias")),
        Entry("r", "LSTM", types=("float16", "float64")),
        Entry("r", "LSTM", cases=("nothing", "lstm-14.float16.*")),
        Entry("r", "LSTM", versions=(7, 14), features=("clip",), types=("float16",)),
    ):
        assert narrower.covers(CLIPPED)
        assert not narrower.covers(PLAIN)
    for other in (
        Entry("r", "GRU"),
        Entry("r", "LSTM", versions=(7,)),
        Entry("r", "LSTM", features=("clip", "layout1")),
    ):
        assert not other.covers(CLIPPED)


def test_only_failing_verdicts_can_be_expected() -> None:
    entry = Entry("r", "LSTM")
    assert {verdict for verdict in Verdict if entry.expects(PLAIN, verdict)} == FAILING
    narrow = Entry("r", "LSTM", verdicts=("crashed", "wrong"))
    assert {v for v in Verdict if narrow.expects(PLAIN, v)} == {Verdict.CRASHED, Verdict.WRONG}


def test_the_first_entry_that_fits_gives_the_reason() -> None:
    entries = [Entry("a", "LSTM", verdicts=("crashed",)), Entry("b", "LSTM"), Entry("c", "LSTM")]
    assert matching(entries, PLAIN, Judgement(Verdict.WRONG)) == entries[1]
    assert matching(entries, PLAIN, Judgement(Verdict.CRASHED)) == entries[0]
    assert matching(entries, PLAIN, Judgement(Verdict.PASS)) is None
    assert matching([], PLAIN, Judgement(Verdict.WRONG)) is None


def test_an_entry_is_stale_when_what_it_covers_ran_and_nothing_failed_as_expected() -> None:
    entry = Entry("r", "LSTM", features=("clip",), verdicts=("wrong",))
    other = CaseSpec("LSTM", 14, clip=0.25)
    assert stale([entry], [(CLIPPED, Verdict.PASS)]) == [entry]
    assert stale([entry], [(CLIPPED, Verdict.CRASHED)]) == [entry]
    assert stale([entry], [(CLIPPED, Verdict.PASS), (other, Verdict.WRONG)]) == []
    assert stale([entry], [(PLAIN, Verdict.PASS)]) == []
    assert stale([entry], [(CLIPPED, Verdict.REFUSED), (other, Verdict.UNAVAILABLE)]) == []
    assert stale([entry], []) == []


def test_a_file_gives_its_entries_in_order() -> None:
    text = """
    [[expected]]
    op = "LSTM"
    reason = "one"
    versions = [7, 14]
    features = ["clip"]
    [[expected]]
    op = "LSTM"
    reason = "two"
    link = "https://example.org/1"
    """
    one, two = parse_expected(text, "f.toml")
    assert one == Entry("one", "LSTM", versions=(7, 14), features=("clip",))
    assert two == Entry("two", "LSTM", link="https://example.org/1")
    assert parse_expected("", "f.toml") == ()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[[expected]", "f.toml"),
        ("[[expect]]\nop = 'LSTM'\nreason = 'r'", "[[expected]]"),
        ("expected = 3", "[[expected]]"),
        ("expected = [3]", "[[expected]]"),
        ("[[expected]]\nop = 'LSTM'", "entry 1: reason is missing"),
        ("[[expected]]\nreason = 'r'", "op is missing"),
        ("[[expected]]\nop = 'LSTM'\nreason = ''", "reason"),
        ("[[expected]]\nop = 'LSTM'\nreason = 'r'\nversion = [1]", "'version'"),
        ("[[expected]]\nop = 'LSTM'\nreason = 'r'\nversions = 14", "versions"),
        ("[[expected]]\nop = 'LSTM'\nreason = 'r'\nversions = [true]", "versions"),
        ("[[expected]]\nop = 'LSTM'\nreason = 'r'\ntypes = [1]", "types"),
        ("[[expected]]\nop = 'LSTM'\nreason = 'r'\nverdicts = ['refused']", "refused"),
        ("[[expected]]\nop = 'LSTM'\nreason = 'r'\n[[expected]]\nop = 3\nreason = 'r'", "entry 2: op"),
    ],
)
def test_a_wrong_file_is_named_with_the_place(text: str, named: str) -> None:
    with pytest.raises(ExpectedFailureError) as caught:
        parse_expected(text, "f.toml")
    (line,) = str(caught.value).splitlines()
    assert line.startswith("f.toml")
    assert named in line


def test_only_targets_that_entries_were_written_for_have_them() -> None:
    assert shipped_for(parse_target("onnxruntime")) != ()
    assert shipped_for(parse_target("onnxruntime:CPUExecutionProvider")) == shipped_for(parse_target("onnxruntime"))
    assert shipped_for(parse_target("onnxruntime:CUDAExecutionProvider")) == ()
    assert shipped_for(parse_target("backend:onnxruntime.backend")) == ()
    assert shipped_for(Target("onnxruntime", "/some/adapter.py")) == ()


@pytest.mark.parametrize("name", ["onnxruntime.toml", "onnx-reference.toml"])
def test_every_shipped_entry_is_about_some_case_of_core(name: str) -> None:
    text = resources.files("onnxspec.conformance").joinpath("expected").joinpath(name).read_text(encoding="utf-8")
    core = [spec for version in (1, 7, 14, 22) for spec in profile("core", "LSTM", version)]
    for entry in parse_expected(text, name):
        assert any(entry.covers(spec) for spec in core), entry
        assert not all(entry.covers(spec) for spec in core if spec.version == 14), entry
