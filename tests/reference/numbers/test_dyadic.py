"""Tests of proofs of exactness: a number is called exact if, and only if, no kernel rounds it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxspec.reference import FORMATS

from ..dyadic import Dyadic, Proving

HALF = FORMATS["float16"]

small = st.lists(st.integers(-64, 64), min_size=1, max_size=6)


@settings(deadline=None)  # another process may occupy the processor
@given(small, small, st.integers(-9, 0), st.permutations(range(6)))
def test_a_sum_called_exact_is_exact_in_every_order(
    xs: list[int], ws: list[int], exponent: int, order: list[int]
) -> None:
    count = min(len(xs), len(ws))
    x, w = np.ldexp(np.array(xs[:count], float), exponent), np.array(ws[:count], float)
    proving = Proving(HALF)
    total = proving.product(proving.exact(x[np.newaxis]), proving.weights(w[np.newaxis])).settled()
    if total.exact[0, 0]:
        partial = np.float16(0)
        for k in order:
            if k < count:
                partial = np.float16(partial + np.float16(np.float16(x[k]) * np.float16(w[k])))
        assert float(partial) == float(x @ w) == total.value[0, 0]


def test_one_digit_too_many_is_no_longer_exact() -> None:
    proving = Proving(HALF)
    for last, exact in ((2.0**-10, True), (2.0**-11, False)):
        total = (proving.exact(np.array([1.0])) + proving.exact(np.array([last]))).settled()
        assert bool(total.exact[0]) is exact
        assert (float(np.float16(1 + last)) == 1 + last) is exact


def test_cancelling_sums_are_judged_by_their_partial_sums() -> None:
    """1024 - 1024 + 2^-3 is 2^-3, but the partial sum 1024 + 2^-3 is not representable."""
    proving = Proving(HALF)
    total = proving.exact(np.array([1024.0])) + proving.exact(np.array([2.0**-3])) + proving.exact(np.array([-1024.0]))
    assert not total.settled().exact[0]


def test_beyond_the_range_nothing_is_exact() -> None:
    assert not Dyadic.of(np.array([2.0**16]), np.array([True]), HALF).exact[0]
    assert not Dyadic.of(np.array([2.0**-25]), np.array([True]), HALF).exact[0]
    assert Dyadic.of(np.array([2.0**-24]), np.array([True]), HALF).exact[0]
    assert not Dyadic.of(np.array([np.nan, np.inf]), np.array([True, True]), HALF).exact.any()


def test_a_gate_times_a_sum_is_exact_only_where_it_is_so_multiplied_out() -> None:
    """0.75 (1023 - 1022) is 0.75, but 0.75 * 1023 has twelve digits."""
    proving = Proving(HALF)

    def number(x: float) -> Dyadic:
        return proving.exact(np.array([x]))

    whole = number(1023.0) + number(-1022.0)
    assert whole.settled().exact[0]
    assert not (number(0.75) * whole).settled().exact[0]
    assert (number(0.75) * whole.settled()).settled().exact[0]
    assert float(np.float16(0.75) * np.float16(1023)) != 0.75 * 1023
    assert (number(0.5) * whole).settled().exact[0]


def test_an_interpolation_is_exact_only_where_it_is_so_in_every_way() -> None:
    proving = Proving(HALF)

    def exact(*numbers: float) -> bool:
        z, h, H = (proving.exact(np.array([x])) for x in numbers)
        return bool(proving.interpolation(z, h, H).exact[0])

    assert exact(0.25, 1.5, -2.0)
    assert exact(0.0, 1.5, 2.0)
    assert not exact(0.0, 2.0**-11, 1.0)  # h itself, but H + (h - H) rounds
    assert not exact(1.0, 1.0, 2.0**-11)  # H itself, but h + (H - h) rounds
    assert not exact(2.0**-12, 1.0, 1.0)  # 1 - z rounds
    assert exact(2.0**-10, 0.0, 1.0)
