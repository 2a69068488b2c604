"""Tests of proofs of exactness: a number is called exact if, and only if, no kernel rounds it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxspec.reference import FORMATS

from ..dyadic import Dyadic, Proving

PROVING = Proving(FORMATS["float16"])


def number(x: float) -> Dyadic:
    return PROVING.exact(np.array([x]))


small = st.lists(st.integers(-64, 64), min_size=1, max_size=6)


@settings(deadline=None)  # another process may occupy the processor
@given(small, small, st.integers(-9, 0), st.permutations(range(6)))
def test_a_sum_called_exact_is_exact_in_every_order(
    xs: list[int], ws: list[int], exponent: int, order: list[int]
) -> None:
    count = min(len(xs), len(ws))
    x, w = np.ldexp(np.array(xs[:count], float), exponent), np.array(ws[:count], float)
    total = PROVING.product(PROVING.exact(x[np.newaxis]), PROVING.weights(w[np.newaxis])).settled()
    if total.exact[0, 0]:
        partial = np.float16(0)
        for k in order:
            if k < count:
                partial = np.float16(partial + np.float16(np.float16(x[k]) * np.float16(w[k])))
        assert float(partial) == float(x @ w) == total.value[0, 0]


@pytest.mark.parametrize(
    ("terms", "exact"),
    [
        ((1.0, 2.0**-10), True),
        ((1.0, 2.0**-11), False),
        ((1024.0, 2.0**-3, -1024.0), False),  # the sum is 2^-3, but a partial sum is 1024 + 2^-3
        ((2.0**15,), True),
        ((2.0**16,), False),
        ((2.0**-24,), True),
        ((2.0**-25,), False),
        ((np.nan,), False),
        ((np.inf,), False),
    ],
)
def test_a_sum_is_exact_where_all_partial_sums_are_in_the_format(terms: tuple[float, ...], exact: bool) -> None:
    total, *more = (number(term) for term in terms)
    for term in more:
        total = total + term
    assert total.settled().exact.tolist() == [exact]


def test_a_gate_times_a_sum_is_exact_only_where_it_is_so_multiplied_out() -> None:
    """0.75 (1023 - 1022) is 0.75, but 0.75 * 1023 has twelve digits."""
    whole = number(1023.0) + number(-1022.0)
    assert whole.settled().exact[0]
    assert not (number(0.75) * whole).settled().exact[0]
    assert (number(0.75) * whole.settled()).settled().exact[0]
    assert (number(0.5) * whole).settled().exact[0]


@pytest.mark.parametrize(
    ("z", "h", "H", "exact"),
    [
        (0.25, 1.5, -2.0, True),
        (0.0, 1.5, 2.0, True),
        (0.0, 2.0**-11, 1.0, False),  # h itself, but H + (h - H) rounds
        (1.0, 1.0, 2.0**-11, False),  # H itself, but h + (H - h) rounds
        (2.0**-12, 1.0, 1.0, False),  # 1 - z rounds
        (2.0**-10, 0.0, 1.0, True),
    ],
)
def test_an_interpolation_is_exact_only_where_it_is_so_in_every_way(z: float, h: float, H: float, exact: bool) -> None:
    assert bool(PROVING.interpolation(number(z), number(h), number(H)).exact[0]) is exact
