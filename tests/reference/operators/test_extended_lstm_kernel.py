"""The model of AMD Quark's CPU kernel: numbers worked out by hand, and a second derivation, element by element in
Python's integers. Equality with the library itself is in tests/conformance/test_quark.py."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference.numbers.affine import Affine

from ...quark_kernel import (
    Factor,
    KernelAttributes,
    foundations,
    levels_of,
    run_kernel,
)
from ...quark_random import libm_tanhf, system_tanhf
from ...tanhf import TANHF, fdlibm, nearest

Arrays = Mapping[str, NDArray[np.float32]]

PLAIN = {
    **{f"{name}_scale": scale for name, scale in zip("xwrby", (1e-4, 3e-5, 2e-5, 1e-3, 2 / 65535), strict=True)},
    **{f"{name}_zero_point": 32768 for name in "xwrby"},
}


def single(value: float) -> float:
    """The nearest float32."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def one_unit(bias: tuple[float, float, float, float], **changed: Any) -> NDArray[np.float32]:
    """Y of T = I = H = 1, W = R = 0, and these biases of the gates i, o, f, c; both directions are the same."""
    attributes = {"hidden_size": 1, **PLAIN, **changed}
    B = np.zeros((2, 8), np.float32)
    B[:, :4] = bias
    inputs = {"X": np.ones((1, 1, 1)), "W": np.zeros((2, 4, 1)), "R": np.zeros((2, 4, 1)), "B": B}
    singles = {name: array.astype(np.float32) for name, array in inputs.items()}
    Y = run_kernel(**singles, parameters=KernelAttributes.of(attributes))
    assert Y.shape == (1, 2, 1, 1)
    assert Y[0, 0] == Y[0, 1]
    return Y[0, 0, 0, 0]


OPEN = (30.0, 30.0, 30.0, 30.0)  # all gates 1 and the cell 1 in float32, so H is tanh(1) = 0.76159416 ...


def test_hand_nothing_is_the_zero_point() -> None:
    assert one_unit((0, 0, 0, 0)) == 0


def test_hand_tanh_of_one_in_levels() -> None:
    # 0.76159416 * 65535/2 = 24955.54; the mantissa of 32767.5 is 65535 and the shift 1, so it is exact: level 24956.
    assert one_unit(OPEN) == single(24956 * single(2 / 65535))


def test_hand_zero_points_of_y_below_32768_are_one_more() -> None:
    unit = single(2 / 65535)
    assert one_unit((0, 0, 0, 0), y_zero_point=32767) == unit
    assert one_unit((0, 0, 0, 0), y_zero_point=0) == unit
    assert one_unit((0, 0, 0, 0), y_zero_point=32769) == 0


def test_hand_what_exceeds_the_range_wraps() -> None:
    # In units of 0.7/32767 tanh(1) is 35650.4, 65536 less is -29886.
    scale = single(0.7 / 32767)
    assert one_unit(OPEN, y_scale=scale) == single(-29886 * scale)
    # In units of 0.34/32767 it is 73398, beyond the bound 65535, whose low 16 bits are -1.
    scale = single(0.34 / 32767)
    assert one_unit(OPEN, y_scale=scale) == -scale


def test_hand_the_mantissa_of_a_power_of_two_has_no_sign() -> None:
    assert Factor.of(2.0**-5) == Factor(-32768, 20)
    assert Factor.of(2.0**-5 * (1 - 2.0**-17)) == Factor(-32768, 20)
    assert Factor.of(2.0**-5 * (1 - 2.0**-15)) == Factor(32767, 20)
    assert Factor.of(-(2.0**-5)) == Factor(-32768, 20)
    assert Factor.of(0.75) == Factor(24576, 15)


def test_hand_a_bias_beyond_128_is_saturated_and_then_wraps() -> None:
    # Twice 100 is cut to 127.99..., and with X*W = 1.8 the sum wraps to -126.2: the gates shut.
    attributes = {"hidden_size": 1, **PLAIN, "b_scale": 0.01}
    B = np.full((2, 8), 100, np.float32)
    X, W = np.full((1, 1, 1), 2, np.float32), np.full((2, 4, 1), 0.9, np.float32)
    parameters = KernelAttributes.of({**attributes})
    arrays = {"X": X, "W": W, "R": np.zeros((2, 4, 1), np.float32), "B": B}
    assert foundations(**arrays, parameters=parameters) == {"overflow"}
    # All gates shut: sigmoid(-126) is 0 in float32.
    assert (run_kernel(**arrays, parameters=parameters) == 0).all()


def test_hand_levels() -> None:
    scale = np.float32(0.5)
    x = np.array([0.25, 0.75, -0.25, 1e9, -1e9, np.inf, -np.inf, np.nan, 1e30], np.float32)
    # Ties to even; saturation; and all that no int64 holds is the lowest level.
    assert levels_of(x, scale, 100).tolist() == [100, 102, 100, 65535, 0, 0, 0, 0, 0]
    assert Affine(0.5, 100).levels(x).tolist() == [100, 102, 100, 65535, 0, 65535, 0, 100, 65535]


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, set()),
        ({"x_scale": 2.0**-30}, {"shift"}),
        ({"y_scale": 2.0**-7}, {"shift"}),
        ({"w_scale": math.nan}, {"conversion"}),
        ({"y_scale": 0.0}, {"conversion"}),
    ],
)
def test_foundations(changed: dict[str, float], found: set[str]) -> None:
    arrays, attributes = random_case(np.random.default_rng(1))
    assert foundations(**arrays, parameters=KernelAttributes.of({**attributes, **PLAIN, **changed})) == found


def test_shapes_that_do_not_fit_are_refused() -> None:
    arrays, attributes = random_case(np.random.default_rng(1))
    two_rows = np.repeat(arrays["X"], 2, 1)
    with pytest.raises(ValueError, match="takes X of shape"):
        run_kernel(**{**arrays, "X": two_rows}, parameters=KernelAttributes.of(attributes))
    with pytest.raises(ValueError, match="takes W of shape"):
        run_kernel(**{**arrays, "W": arrays["W"][:1]}, parameters=KernelAttributes.of(attributes))


# A second derivation: one element at a time, Python's integers and floats, as one would do it on paper.


def random_case(rng: np.random.Generator) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
    T, I, H = (int(n) for n in rng.integers(1, 7, size=3))
    shapes = {"X": (T, 1, I), "W": (2, 4 * H, I), "R": (2, 4 * H, H), "B": (2, 8 * H)}
    arrays, attributes = {}, {"hidden_size": H}
    for name, shape in shapes.items():
        size = 2.0 ** rng.uniform(-2, 3)
        arrays[name] = (rng.normal(size=shape) * size).astype(np.float32)
        attributes[f"{name.lower()}_scale"] = single(size * 2.0 ** rng.uniform(-16, -13))
        attributes[f"{name.lower()}_zero_point"] = int(rng.choice([0, 32767, 32768, 65535, rng.integers(65536)]))
    attributes["y_scale"] = single(2.0 ** rng.uniform(-17, -14))
    attributes["y_zero_point"] = int(rng.choice([0, 32767, 32768, 65535, rng.integers(65536)]))
    return arrays, attributes


def away(numerator: int, bits: int) -> int:
    """numerator / 2^bits to the nearest integer, halves away from zero."""
    size = (2 * abs(numerator) + (1 << bits)) >> (bits + 1)
    return -size if numerator < 0 else size


def cut(value: int, bits: int) -> int:
    """The low bits of an integer, as a signed one."""
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


def saturated(value: int) -> int:
    return max(-(2**31), min(2**31 - 1, value))


def mantissa_of(number: float) -> tuple[int, int]:
    if number == 0:
        return 0, 0
    power = 15 - math.ceil(math.log2(abs(number)))
    scaled = number * 2.0**power
    return cut(int(scaled + math.copysign(0.5, scaled)), 16), power


def second(arrays: Arrays, attributes: Mapping[str, Any]) -> NDArray[np.float64]:
    """Levels of Y, less the zero point: (T, 2, H)."""
    H, (T, _, I) = attributes["hidden_size"], arrays["X"].shape
    scale = {n: attributes[f"{n}_scale"] for n in "xwrby"}
    zero = {n: attributes[f"{n}_zero_point"] - 32768 for n in "xwrby"}

    def held(name: str, value: float) -> int:
        level = round(single(value / scale[name])) + zero[name]
        return max(-32768, min(32767, level))

    ints = {n: np.vectorize(lambda v, n=n: held(n.lower(), float(v)), otypes=[object])(a) for n, a in arrays.items()}
    one = 2.0**24
    units = {"x": single(scale["x"] * scale["w"]) * one, "h": single(scale["y"] * scale["r"]) * one}
    m_x, m_h = mantissa_of(units["x"]), mantissa_of(units["h"])
    t_x, t_h = mantissa_of(units["x"] * zero["w"]), mantissa_of(units["h"] * zero["r"])
    halvings = {"x": math.ceil(math.log2(I)), "h": math.ceil(math.log2(H))}
    inverse = 1 / scale["y"]
    out_power = 16 - math.ceil(math.log2(inverse))
    out = min(65535, int(inverse * 2.0**out_power + 0.5))
    y_zero = int(zero["y"] + 1e-9)
    Y = np.zeros((T, 2, H))

    def product(values: Any, weights: Any, factor: tuple[int, int], halved: int) -> int:
        total = saturated(away(sum(int(a) * int(b) for a, b in zip(values, weights, strict=True)), halved))
        return saturated(away(total * factor[0], factor[1] - halved))

    def half_away(x: float) -> int:
        return int(x + 0.5) if x > -1 else int(x - 0.5)

    for d in range(2):
        constants = []
        for row in range(4 * H):
            c = I * (units["x"] * zero["w"]) * zero["x"] + H * (units["h"] * zero["r"]) * zero["y"]
            c -= units["x"] * zero["x"] * float(sum(ints["W"][d, row]))
            c -= units["h"] * zero["y"] * float(sum(ints["R"][d, row]))
            c += scale["b"] * one * (float(ints["B"][d, row]) + float(ints["B"][d, 4 * H + row]) - 2.0 * zero["b"])
            constants.append(saturated(half_away(c)))
        h, cell = [y_zero] * H, [0.0] * H
        for t in range(T) if d == 0 else reversed(range(T)):
            x = ints["X"][t, 0]
            tilt = saturated(away(sum(x) * t_x[0], t_x[1])), saturated(away(sum(h) * t_h[0], t_h[1]))
            sums = [
                cut(
                    product(x, ints["W"][d, row], m_x, halvings["x"])
                    + product(h, ints["R"][d, row], m_h, halvings["h"])
                    - sum(tilt)
                    + constants[row],
                    32,
                )
                for row in range(4 * H)
            ]
            after = []
            for unit in range(H):
                i, o, f, g = (
                    single(math.tanh(single(sums[k * H + unit] / one / (1 if k == 3 else 2)))) for k in range(4)
                )
                i, o, f = (single(v * 0.5 + 0.5) for v in (i, o, f))
                cell[unit] = single(single(i * g) + single(f * cell[unit]))
                hidden = single(o * single(math.tanh(cell[unit])))
                level = away(half_away(hidden * one) * out + (y_zero << (24 + out_power)), 24 + out_power)
                after.append(cut(max(-65536, min(65535, level)), 16))
            h = after
            Y[t, d] = np.array(h, float) - zero["y"]
    return Y


def test_second_derivation() -> None:
    rng = np.random.default_rng(7)
    compared = 0
    while compared < 60:
        arrays, attributes = random_case(rng)
        parameters = KernelAttributes.of(attributes)
        if foundations(**arrays, parameters=parameters) - {"overflow"}:
            continue
        Y = run_kernel(**arrays, parameters=parameters, tanhf=nearest)
        expected = second(arrays, attributes).astype(np.float32) * np.float32(attributes["y_scale"])
        np.testing.assert_array_equal(Y[:, :, 0], expected, err_msg=str(attributes))
        compared += 1


# tanhf


@pytest.mark.skipif(system_tanhf() is None, reason="this machine's C library has a tanhf of its own")
def test_tanhf_is_the_c_librarys() -> None:
    rng = np.random.default_rng(3)
    bits = np.concatenate([rng.integers(0x3C000000, 0x41200000, 20000), rng.integers(0, 0x7F800000, 5000)])
    x = bits.astype(np.uint32).view(np.float32)
    x = np.concatenate([x, -x, np.array([0.0, -0.0, np.inf, -np.inf, 1.0, -1.0], np.float32)])
    name = system_tanhf()
    assert name is not None
    np.testing.assert_array_equal(TANHF[name](x).view(np.uint32), libm_tanhf(x).view(np.uint32))


def test_tanhf_of_nan_is_nan() -> None:
    x = np.array([np.nan, 1.0], np.float32)
    assert np.isnan(fdlibm(x)).tolist() == np.isnan(nearest(x)).tolist() == [True, False]


def test_tanhfs_differ_in_last_bits_only() -> None:
    x = np.linspace(-9, 9, 50001, dtype=np.float32)
    apart = np.abs(fdlibm(x).view(np.int32).astype(np.int64) - nearest(x).view(np.int32))
    assert 0 < apart.max() <= 3
