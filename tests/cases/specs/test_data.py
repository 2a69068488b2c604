"""Tests of the numbers of cases: the generator, patterns of lengths, corrupted rows.

``tests/benchmarks/test_frozen_corpus.py`` pins their bytes.
"""

import hashlib
import itertools

import numpy as np
import onnx
import pytest

from onnxspec.cases import CaseSpec, build_case
from onnxspec.cases.specs.model import inputs_of
from onnxspec.cases.specs.space import settle, space_of
from onnxspec.reference import operator_version


def test_the_generator_by_hand() -> None:
    """Compute the first number of a stream in Python's own integers."""
    key = int.from_bytes(hashlib.sha256(b"LSTM/X/7/0").digest()[:8], "little")
    z = (key + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    z ^= z >> 31
    expected = ((z >> 40) | 1) / 2**24 * (-1 if z & 1 else 1)
    X = inputs_of(CaseSpec("LSTM", 14, T=3, N=2, I=5, H=4, seed=7))["X"]
    assert float(X[0, 0, 0]) == expected


@pytest.mark.parametrize("N", [1, 2, 3, 6])
@pytest.mark.parametrize("T", [2, 3, 9])
def test_ragged_lengths_hold_the_longest_and_a_shorter_row(T: int, N: int) -> None:
    for seed in range(20):
        spec = CaseSpec("LSTM", 14, T=T, N=N, lengths="ragged", seed=seed)
        lengths = inputs_of(spec)["sequence_lens"]
        assert lengths.min() >= 1
        assert lengths.max() == T or N == 1
        assert lengths.dtype == np.int32
        if N > 1:
            assert lengths.min() < T
            assert lengths[0] < T, "rows sorted by length would hide what goes by order"


def test_empty_rows_come_with_a_row_of_one_step() -> None:
    lengths = inputs_of(CaseSpec("LSTM", 14, T=4, N=3, lengths="empty"))["sequence_lens"].tolist()
    assert lengths == [1, 4, 0]


def test_weights_do_not_change_from_run_to_run_and_data_does() -> None:
    spec = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, initial="all", reruns="data")
    first, second = (feed.inputs for feed in build_case(spec).trial.feeds)
    assert all((first[n] == second[n]).all() for n in ("W", "R", "B"))
    assert all((first[n] != second[n]).all() for n in ("X", "initial_h", "initial_c"))


def test_other_sizes_are_other_sizes() -> None:
    spec = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, reruns="sizes", dimensions="symbolic")
    first, second = (feed.inputs["X"].shape for feed in build_case(spec).trial.feeds)
    assert (first, second) == ((6, 4, 2), (4, 3, 2))


def test_only_the_spoilt_row_is_spoilt() -> None:
    X = inputs_of(CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, data="nan-row"))["X"]
    assert np.argwhere(~np.isfinite(X)).tolist() == [[2, 1, 0]]


def test_padding_alone_is_nan() -> None:
    inputs = inputs_of(CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, lengths="ragged", data="nan-padding"))
    beyond = np.arange(4)[:, None] >= inputs["sequence_lens"]
    assert (np.isnan(inputs["X"]).all(-1) == beyond).all()
    assert (np.isnan(inputs["X"]).any(-1) == beyond).all()


def test_what_is_constant_is_judged_as_the_model_holds_it() -> None:
    """Otherwise a correct runtime would fail for using the numbers that it got.

    The test covers axes that draw numbers, in sessions of several runs, with each input that may be constant.
    """
    space = space_of(operator_version("LSTM", 14))
    names = ("constant", "zeros", "data")
    drawn = itertools.product(*((*space[name].values, *space[name].rare) for name in names))
    checked = 0
    for seed, values in enumerate(drawn):
        row = dict(zip(names, values, strict=True))
        beside = {"reruns": "data", "beside": seed % 2 == 0, "reweighed": seed % 3 == 0, "lengths": "ragged"}
        weights = "input" if row["constant"] != "weights" else "initializer"
        sizes = {"T": 4, "N": 3, "I": 5, "H": 2, "seed": seed, "bias": True, "peepholes": True, "initial": "all"}
        spec = CaseSpec("LSTM", 14, **settle({"type": "float32", "weights": weights, **sizes, **beside, **row}))
        trial = build_case(spec).trial
        models = [trial.model, *(trial.course.models if trial.course else ())]
        held = [{t.name: t.raw_data for t in onnx.load_model_from_string(m).graph.initializer} for m in models]
        session = {step.number: step.session for step in trial.course.steps} if trial.course else {}
        for number, feed in enumerate(trial.feeds):
            for name in feed.inputs.keys() - feed.fed.keys():
                assert feed.inputs[name].tobytes() == held[session.get(number, 0)][name], (spec.id, number, name)
                checked += name in ("X", "sequence_lens", "initial_h")
    assert checked > 200
