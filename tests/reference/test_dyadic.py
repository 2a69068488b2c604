"""The exact tier: what it calls exact, nobody rounds; what somebody rounds, it does not call exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxspec.reference import FORMATS, Node, compare, expect
from onnxspec.reference.dyadic import Dyadic, Proving
from onnxspec.reference.kernels import STYLES, run_kernel

HALF = FORMATS["float16"]

small = st.lists(st.integers(-64, 64), min_size=1, max_size=6)


@given(small, small, st.integers(-9, 0), st.permutations(range(6)))
def test_a_sum_called_exact_is_exact_in_every_order(
    xs: list[int], ws: list[int], exponent: int, order: list[int]
) -> None:
    count = min(len(xs), len(ws))
    x, w = np.ldexp(np.array(xs[:count], float), exponent), np.array(ws[:count], float)
    proving = Proving(HALF)
    total = proving.product(proving.given(x[np.newaxis]), proving.weights(w[np.newaxis])).settled()
    if total.exact[0, 0]:
        partial = np.float16(0)
        for k in order:
            if k < count:
                partial = np.float16(partial + np.float16(np.float16(x[k]) * np.float16(w[k])))
        assert float(partial) == float(x @ w) == total.value[0, 0]


def test_one_digit_too_many_is_no_longer_exact() -> None:
    proving = Proving(HALF)
    for last, exact in ((2.0**-10, True), (2.0**-11, False)):
        total = (proving.given(np.array([1.0])) + proving.given(np.array([last]))).settled()
        assert bool(total.exact[0]) is exact
        assert (float(np.float16(1 + last)) == 1 + last) is exact


def test_cancelling_sums_are_judged_by_their_partial_sums() -> None:
    """1024 - 1024 + 2^-3 is 2^-3, but 1024 + 2^-3 is not representable on the way."""
    proving = Proving(HALF)
    total = proving.given(np.array([1024.0])) + proving.given(np.array([2.0**-3])) + proving.given(np.array([-1024.0]))
    assert not total.settled().exact[0]


def test_beyond_the_range_nothing_is_exact() -> None:
    assert not Dyadic.of(np.array([2.0**16]), np.array([True]), HALF).exact[0]
    assert not Dyadic.of(np.array([2.0**-25]), np.array([True]), HALF).exact[0]
    assert Dyadic.of(np.array([2.0**-24]), np.array([True]), HALF).exact[0]
    assert not Dyadic.of(np.array([np.nan, np.inf]), np.array([True, True]), HALF).exact.any()


@pytest.mark.parametrize("style", STYLES)
def test_tolerance_is_zero_and_every_kernel_meets_it(style: str) -> None:
    generator = np.random.default_rng(3)
    quarters = {
        name: generator.integers(-3, 4, shape).astype(np.float32) / 4
        for name, shape in {"X": (2, 3, 2), "W": (1, 12, 2), "R": (1, 12, 3), "initial_c": (1, 3, 3)}.items()
    }
    attributes = {
        "activations": ["HardSigmoid", "Relu", "LeakyRelu"],
        "activation_alpha": [0.25, 0.5],
        "activation_beta": [0.5],
        "clip": 2.0,
    }
    node = Node("LSTM", 14, attributes, ("Y", "Y_h", "Y_c"))
    got = run_kernel(node, quarters, STYLES[style])
    zero = 0
    for expectation in expect(node, quarters, got):
        assert compare(expectation, got[expectation.output]).worst <= 1
        zero += int((expectation.number.radius == 0).sum())
    assert zero >= 12


def test_one_unit_off_fails_where_the_tolerance_is_zero() -> None:
    x = np.full((1, 1, 1), 0.5, np.float32)
    inputs = {"X": x, "W": np.full((1, 4, 1), 0.75, np.float32), "R": np.zeros((1, 4, 1), np.float32)}
    attributes = {"activations": ["HardSigmoid", "Relu", "Relu"], "activation_alpha": [0.25], "activation_beta": [0.5]}
    node = Node("LSTM", 14, attributes, ("Y",))
    # by hand: argument 0.375, gates 0.59375, c 0.375, C 0.22265625, Y 0.1322021484375
    right = np.full((1, 1, 1, 1), 0.1322021484375, np.float32)
    (expectation,) = expect(node, inputs, {"Y": right})
    assert compare(expectation, right).worst == 0
    assert compare(expectation, np.nextafter(right, np.float32(1))).worst == np.inf
