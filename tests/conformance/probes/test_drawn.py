"""Random cases: reproducible from the seed, in no profile, and with the command that draws them again."""

import pytest

from onnxspec.cases import profile
from onnxspec.conformance.probes.drawn import drawn_probes, fresh_profile, fresh_profile_name, some_seed
from onnxspec.conformance.probes.naming import UnknownName
from onnxspec.conformance.probes.selection import Selection, select_probes
from onnxspec.conformance.results.expected.entries import decidable_entries
from onnxspec.reference.errors import UserError

from ...recurrent import recurrent_versions


def ids(count: int, seed: str, **narrowed: tuple[str, ...]) -> list[str]:
    return [probe.id for probe in drawn_probes(count, seed, **narrowed)]  # type: ignore[arg-type]


def test_no_profile_holds_them() -> None:
    pinned = {spec.id for op, version in recurrent_versions() for spec in profile("core", op, version)}
    assert not pinned & set(ids(150, "0"))


def test_operators_take_turns_and_a_selection_narrows_them() -> None:
    assert [probe.op for probe in drawn_probes(6, "0")] == ["LSTM", "GRU", "RNN"] * 2
    chosen = drawn_probes(10, "0", ("GRU",), (14,), ("float16",))
    assert {(p.op, p.version, p.type) for p in chosen} == {("GRU", 14, "float16")}
    assert {p.op for p in drawn_probes(9, "0", (), (3,))} == {"GRU"}


@pytest.mark.parametrize(
    ("narrowed", "complaint"),
    [
        ({"ops": ("LSMT",)}, "unknown operator 'LSMT' of fresh cases; nearest: LSTM"),
        ({"versions": (15,)}, "unknown operator version '15' of fresh cases; nearest: 14"),
        ({"versions": (14,), "types": ("bfloat16",)}, "unknown combination '.-14:bfloat16' of fresh cases"),
    ],
)
def test_what_cannot_be_drawn_is_said(narrowed: dict[str, tuple[str, ...]], complaint: str) -> None:
    with pytest.raises(UnknownName, match=f"^{complaint}"):
        drawn_probes(5, "0", **narrowed)  # type: ignore[arg-type]


def test_a_name_stands_for_them_wherever_a_profile_does() -> None:
    name = fresh_profile_name(4, "S.1")
    assert name == "random-4-seed-S.1"
    assert fresh_profile(name) == (4, "S.1")
    assert [p.id for p in select_probes(Selection(name), ())] == ids(4, "S.1")
    assert fresh_profile("core") is None
    assert fresh_profile("random-0-seed-1") is None
    assert fresh_profile(fresh_profile_name(1, some_seed())) is not None
    assert decidable_entries((), set(), name) == []
    with pytest.raises(UserError, match="no seed: 'a b'"):
        fresh_profile_name(4, "a b")


def test_each_is_repeated_by_its_own_text() -> None:
    (probe,) = drawn_probes(1, "0")
    assert probe.repeat("onnxruntime")[2] == probe.text
