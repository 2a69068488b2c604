"""Tests of the text of a case: one line, which rebuilds it bit for bit. Any other line is refused with a message."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxspec.cases import CaseSpec, Spec, build_case, profile
from onnxspec.cases.portable import CaseTextError, case_from_json, case_text
from onnxspec.conformance.probes.naming import portable_probes

from ..recurrent import recurrent_versions

SMOKE_BITS = "1cb5f979f90e4d8eeb053403c570d4074f7a04c16f56e5e59ca5a07ac8cf6e73"
"""SHA-256 over the models and inputs of smoke, as every supported version of onnx, NumPy and protobuf makes them."""


def of_profile(name: str) -> list[Spec]:
    plain = [spec for op, version in recurrent_versions() for spec in profile(name, op, version)]
    return [*plain, *profile(name, "ExtendedLSTM", 1)]


def case_from_text(text: str) -> Spec:
    return case_from_json(json.loads(text))


def bits_of(spec: Spec) -> Iterator[bytes]:
    """Yield every byte of a case that a target gets."""
    for trial in build_case(spec).trials:
        yield trial.model
        for feed in trial.feeds:
            for name, array in feed.fed.items():
                yield f"{name}{array.dtype}{array.shape}".encode() + array.tobytes()


def test_the_bits_of_smoke_are_the_same_everywhere() -> None:
    """tox runs this under the oldest and the newest packages. With other bits, the same ids would name other cases."""
    total = hashlib.sha256()
    for spec in of_profile("smoke"):
        for part in bits_of(case_from_text(case_text(spec))):
            total.update(hashlib.sha256(part).digest())
    assert total.hexdigest() == SMOKE_BITS


def test_the_same_numbers_written_otherwise_are_the_same_case() -> None:
    functions: Any = {"activations": ("Elu", "Tanh", "Tanh")}
    first, second = (CaseSpec("LSTM", 14, clip=kind(1), alpha=(kind(2),), **functions) for kind in (int, float))
    assert (first, first.id, list(bits_of(first))) == (second, second.id, list(bits_of(second)))
    assert case_from_text(case_text(first).replace("1.0", "1")) == first


LSTM = '{"op":"LSTM","version":14'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[]", "the JSON of a case is an object, like {"),
        ("{}", "op is LSTM or GRU or RNN or DynamicQuantizeLSTM or ExtendedLSTM"),
        ('{"op":["LSTM"],"version":{}}', "op is LSTM or GRU or RNN or DynamicQuantizeLSTM or ExtendedLSTM"),
        ('{"op":"LSTM","version":15}', "version of LSTM is 1 or 7 or 14 or 22, not 15"),
        ('{"op":"LSTM","version":true}', "version of LSTM is 1 or 7 or 14 or 22, not True"),
        (LSTM + ',"X":1}', "a case of LSTM has no field 'X'; it has op, version, type, "),
        (LSTM + ',"clip":1e999}', "clip of LSTM-14 is None or a finite number, not inf"),
        (LSTM + ',"clip":1e39}', "clip of LSTM-14 is None or a finite number, not 1e+39"),
        (LSTM + ',"T":1.5}', "Expected `int`, got `float` - at `$.T`"),
        (LSTM + ',"T":true}', "Expected `int`, got `bool` - at `$.T`"),
        (LSTM + ',"bias":1}', "Expected `bool`, got `int` - at `$.bias`"),
        (LSTM + f',"seed":{2**70}}}', "seed of LSTM-14 is a whole number from 0 to "),
        (LSTM + ',"H":999999}', "a case has 67108864 numbers at most, not "),
        (LSTM + ',"type":"int8"}', "type of LSTM-14 is "),
        (LSTM + ',"data":"nan-padding"}', "data of LSTM-14 is 'dense' with lengths 'absent', not 'nan-padding'"),
        (LSTM + ',"T":0,"data":"inf-row"}', "data of LSTM-14 is 'dense' with T 0 and N 1, not 'inf-row'"),
        (LSTM + ',"activations":["Sin"]}', "LSTM-14: activations are 3 names, not 1 (lstm.activations)"),
        (LSTM + ',"illegal":"no.such"}', "there is no violation 'no.such'"),
        ('{"op":"GRU","version":14,"illegal":"shapes.B-length"}', "the violation 'shapes.B-length' cannot be made"),
        (
            LSTM + ',"N":0,"initial":"all","illegal":"shapes.initial-h"}',
            "the violation 'shapes.initial-h' cannot be made in it: there is no element of initial_h along axis",
        ),
        ('{"op":"ExtendedLSTM","version":1}', "about of ExtendedLSTM-1 is one to 60 letters, "),
        ('{"op":"ExtendedLSTM","version":1,"about":"../up"}', "about of ExtendedLSTM-1 is one to 60 letters, "),
        ('{"op":"ExtendedLSTM","version":1,"about":"a"}', "x of ExtendedLSTM-1 is any pair of a positive float32 "),
    ],
)
def test_what_is_no_case_is_said_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(CaseTextError) as caught:
        case_from_text(text)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(complaint)


SMALL = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 5), st.floats(), st.sampled_from(("Y", "", "Tanh", "all", "h", "nan-row"))
)
VALUES = SMALL | st.lists(SMALL | st.lists(SMALL, max_size=2), max_size=3)
SPECS: list[Spec] = [*of_profile("smoke"), *(spec for spec in of_profile("core") if spec.illegal)]


@settings(deadline=None)  # another process may occupy the processor
@given(st.data())
def test_a_changed_text_is_a_case_or_is_refused(data: st.DataObject) -> None:
    """Any line gives a case that can be built and described, or raises CaseTextError."""
    spec = data.draw(st.sampled_from(SPECS))
    names = [field.name for field in fields(spec)]
    others = {
        name: getattr(data.draw(st.sampled_from(SPECS)), name, 0)
        for name in data.draw(st.sets(st.sampled_from(names), max_size=3))
    }
    wild = data.draw(st.dictionaries(st.sampled_from(names), VALUES, max_size=1))
    text = json.dumps({**json.loads(case_text(spec)), **others, **wild})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            again = case_from_text(text)
        except CaseTextError:
            return
        assert case_from_text(case_text(again)) == again
        (probe,) = portable_probes([text])
        assert probe.prepare().jobs[0].model
        assert probe.features
        assert probe.clauses
        assert probe.traits
