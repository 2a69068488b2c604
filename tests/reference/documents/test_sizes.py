"""Tests of schemas of operators, and of the sizes of a node from its inputs' shapes."""

from __future__ import annotations

import pytest

from onnxspec.conformance.probes.naming import UnknownName
from onnxspec.reference import UnknownOperator, document_of, operator_version
from onnxspec.reference.documents import Extent, TensorForm, operators
from onnxspec.reference.documents.operators import MISSING, has_schema
from onnxspec.reference.documents.tensors import ONE, ShapeError, by_name, shape_of, sizes_of_shapes

B, T, KEY = Extent("batch_size"), Extent("seq_length"), Extent("d_k", factor="heads")
FORMS = by_name([
    TensorForm("key", ((B, T, KEY),)),
    TensorForm("decay", ((B, T, KEY), (B, T, Extent("heads")))),
    TensorForm("weight", ((Extent("channels"), ONE, Extent("k")),)),
    TensorForm("past", ((Extent("channels"), Extent("k", plus=-1)),)),
])  # fmt: skip


@pytest.mark.parametrize(
    ("extent", "text", "value"),
    [
        (Extent("k"), "k", 4),
        (Extent("k", 3), "3*k", 12),
        (Extent("k", plus=-1), "k - 1", 3),
        (Extent("k", 2, 1), "2*k + 1", 9),
        (Extent("k", factor="heads"), "heads*k", 8),
        (ONE, "1", 1),
    ],
)
def test_an_extent_is_a_size_times_factors_plus_a_constant(extent: Extent, text: str, value: int) -> None:
    assert str(extent) == text
    assert extent.value({"k": 4, "heads": 2}) == value
    assert extent.solved(value, {"heads": 2}) == (4 if extent.size else None)


@pytest.mark.parametrize(
    ("extent", "actual"), [(Extent("k", 3), 4), (Extent("k", plus=1), 0), (Extent("k", factor="heads"), 4)]
)
def test_what_no_size_makes_is_not_solved(extent: Extent, actual: int) -> None:
    assert extent.solved(actual, {"heads": 3}) is None


def test_sizes_follow_from_shapes_and_from_what_is_said() -> None:
    shapes = {"key": (2, 5, 6), "weight": (7, 1, 4), "past": (7, 3)}
    sizes = {"batch_size": 2, "seq_length": 5, "heads": 2, "d_k": 3, "channels": 7, "k": 4}
    assert sizes_of_shapes(FORMS, shapes, {"heads": 2}) == sizes


@pytest.mark.parametrize("width", [6, 2])
def test_an_axis_may_have_one_of_several_extents(width: int) -> None:
    assert sizes_of_shapes(FORMS, {"decay": (2, 5, width), "key": (2, 5, 6)}, {"heads": 2})["d_k"] == 3


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"weight": (7, 1, 4), "past": (7, 4)}, "past has shape (7, 4): dimension 1 must be k - 1 = 3"),
        ({"weight": (7, 2, 4)}, "weight has shape (7, 2, 4): dimension 1 must be 1"),
        ({"weight": (7, 1)}, "weight has 2 dimensions, not 3"),
        ({"key": (2, 5, 7)}, "dimension 2 of key is 7, which cannot be heads*d_k"),
        ({"key": (2, 5, 6), "decay": (2, 5, 3)}, "decay has shape (2, 5, 3): dimension 2 must be"),
        ({"decay": (2, 5, 2)}, "nothing says how large d_k is, a size of decay"),
    ],
)
def test_shapes_that_do_not_agree_are_told(shapes: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(ShapeError) as raised:
        sizes_of_shapes(FORMS, shapes, {"heads": 2})
    assert message in str(raised.value)


def test_a_size_that_nothing_says_is_an_error_and_not_one() -> None:
    assert shape_of(FORMS["past"], {"channels": 7, "k": 1}) == (7, 0)
    with pytest.raises(ShapeError, match="nothing says how large k is"):
        shape_of(FORMS["past"], {"channels": 7})


def test_an_operator_that_the_installed_onnx_lacks_is_missing_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "MISSING", {})
    assert not has_schema("OfTomorrow")
    with pytest.raises(UnknownOperator, match=r"onnx \S+ has no schema of OfTomorrow: install a newer one"):
        document_of("OfTomorrow")


def test_a_schema_says_types_kinds_and_defaults() -> None:
    version = operator_version("LSTM", 22)
    assert dict(version.kinds) == {"T1": ("int32",)}
    assert version.kind_of("sequence_lens") == "T1"
    assert version.kind_of("X") == "T"


def test_a_command_that_names_a_missing_operator_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "onnx 1.0 has no schema of OfTomorrow: install a newer one"
    monkeypatch.setitem(MISSING, "OfTomorrow", sentence)
    assert str(UnknownName("operator", "OfTomorrow", ["LSTM"])) == f"unknown operator 'OfTomorrow'; {sentence}"
