"""Profiles of ExtendedLSTM: pinned lists of its cases, made by rule.

``core`` has a budget of 32 models, since every scale is an attribute: its dense block (:mod:`...profiles.pool`), with
cases that share a model, and of plain ones what shows no fault otherwise. ``full`` has all plain ones.

What is varied is what its arithmetic makes interesting: scales whose products are powers of two or leave the range in
which a 16-bit mantissa and a 32-bit shift can hold them, zero points at their ends, outputs at and beyond their range,
pre-activations near and past 128, sizes without length, and each attribute, input and shape as it must not be.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from ...profiles.pool import pinned_dense, quick_dense
from ...specs.illegal import all_violations
from .codec import HIGHEST, Affine, B, R, W, X, Y, calibrated
from .spec import OP_TYPE, VERSION, ExtendedSpec, extended


def _plain(about: str, **fields: Any) -> Any:
    return extended(about, **{"x": X, "w": W, "r": R, "b": B, "y": Y, **fields})


def _two(power: int, zero_point: int = 32768) -> Affine:
    return 2.0**power, zero_point


def _scaled(scale: float, zero_point: int = 32768) -> Affine:
    return float(np.float32(scale)), zero_point


def _realistic() -> Iterator[Any]:
    """Parameters as the producer's calibration makes them."""
    for number, (T, I, H) in enumerate(
        ((1, 1, 1), (1, 3, 2), (2, 1, 5), (5, 4, 3), (7, 13, 9), (16, 33, 24), (24, 64, 16), (9, 17, 65), (3, 128, 40))
    ):
        gain = 1.7 / (I + H) ** 0.5
        parts: dict[str, Any] = {"T": T, "I": I, "H": H, "seed": number}
        weights = {"w": calibrated(-gain, 0.9 * gain), "r": calibrated(-0.8 * gain, 0.85 * gain)}
        yield _plain("realistic", **parts, **weights)
        yield _plain("realistic-input", **parts, **weights, weights="input")
        # After a Relu, with outputs of one sign mostly.
        yield _plain("asymmetric", **parts, x=calibrated(0, 2.7), **weights, y=calibrated(-0.7, 1.02))
        yield _plain("asymmetric-weights", **parts, w=calibrated(-0.3 * gain, gain), r=calibrated(-gain, 0.2 * gain))
    gain = 0.3
    small = {"w": calibrated(-gain, gain * 0.9), "r": calibrated(-gain, 0.85 * gain)}
    yield _plain("long", T=120, I=3, H=4, **small)
    yield _plain("long", T=400, I=2, H=2, **small)
    yield _plain("long", T=80, I=64, H=96, w=calibrated(-0.15, 0.14), r=calibrated(-0.12, 0.13))
    # Beyond the sizes of usual buffers.
    yield _plain("wide", T=2, I=3, H=150, r=calibrated(-0.1, 0.11))
    yield _plain("wide", T=2, I=1500, H=2, w=calibrated(-0.04, 0.05))
    # Forget gates near 1 all along, so that the cell state grows.
    yield _plain("gates-open", T=60, I=2, H=3, b=calibrated(-1, 9), w=calibrated(-4, 4))


def _zero_points() -> Iterator[Any]:
    """Each zero point at its ends and in its middle, the others as usual."""
    spans = {"x": 3.0, "w": 0.8, "r": 0.7, "b": 0.5, "y": 1.03}
    for name, span in spans.items():
        for zero_point in (0, 32767, 32768, 65535):
            scale = float(np.float32(span * (1 if zero_point in (0, HIGHEST) else 2) / HIGHEST))
            yield _plain(f"{name}-zero-point-{zero_point}", **{name: (scale, zero_point)})


def _scales() -> Iterator[Any]:
    """Scales at the edges that a 16-bit mantissa and a 32-bit shift have."""
    yield _plain("xw-power-of-two", x=_two(-13), w=_two(-15), seed=1)
    yield _plain("xw-power-of-two", x=_two(-14, 30000), w=_two(-15, 33000), seed=2)
    yield _plain("xw-power-of-two-by-chance", x=_scaled(2.0**-13 * 1.5), w=_scaled(2.0**-15 / 1.5))
    yield _plain("xw-below-power-of-two", x=_scaled(2.0**-13 * (1 - 2.0**-18)), w=_two(-15))
    yield _plain("xw-below-power-of-two-enough", x=_scaled(2.0**-13 * (1 - 2.0**-14)), w=_two(-15))
    yield _plain("yr-power-of-two", y=_two(-14), r=_two(-15))
    yield _plain("all-power-of-two", T=1, I=1, H=1, x=_two(-13), w=_two(-15), r=_two(-15), b=_two(-16), y=_two(-15))
    yield _plain("all-power-of-two", T=6, I=5, H=4, x=_two(-13), w=_two(-15), r=_two(-15), b=_two(-16), y=_two(-14))
    yield _plain("tilt-power-of-two", x=_two(-13), w=(float(np.float32(2.0**-15 * 1.3)), 32768 + 4096))
    for power in (-38, -39, -40, -41, -45):
        half = power // 2
        yield _plain(
            f"xw-small-{-power}", x=_scaled(1.2 * 2.0**half), w=_scaled(2.0 ** (power - half) / 1.2 * 0.97), seed=-power
        )
    yield _plain("xw-small-40", I=6, x=_scaled(1.1 * 2.0**-20), w=_scaled(2.0**-20 / 1.1 * 0.9), seed=7)
    yield _plain("yr-small", r=_scaled(2.0**-26 * 1.1))
    for power in (-12, -11, -10, -9, -8, -5):
        yield _plain(
            f"xw-large-{-power}",
            x=_scaled(1.3 * 2.0**-3),
            w=_scaled(2.0 ** (power + 3) / 1.3 * 0.98),
            fill=(("X", 0.0005), ("W", 0.02)),
            seed=-power,
        )
    yield _plain("large-inputs", x=calibrated(0, 1000), w=calibrated(-1.0, 0.0), fill=(("X", 0.01),))
    yield _plain("large-bias", b=calibrated(-100, 100), fill=(("B", 0.02),))
    yield _plain("bias-power-of-two", b=_two(-16))
    yield _plain("small-bias", b=calibrated(-1e-6, 1e-6))
    # So coarse that it shows how weights become levels.
    yield _plain("coarse-recurrent-weights", T=5, H=4, r=_scaled(0.11), fill=(("R", 0.0002),))
    yield _plain("coarse-recurrent-weights", T=3, I=2, H=7, r=_scaled(0.07, 33000), fill=(("R", 0.0003),))
    yield _plain("coarse-bias", T=5, H=4, b=_scaled(0.13), fill=(("B", 0.0002),))
    for power in (-18, -16, -15, -12, -9, -8, -7, -5):
        yield _plain(f"y-power-of-two-{-power}", T=5, y=_two(power))
    yield _plain("y-coarse", T=5, y=_scaled(2.0**-8 * 1.4))
    yield _plain("y-coarse", T=5, y=_scaled(2.0**-7 * 1.4))
    yield _plain("y-fine", T=5, y=_scaled(2.0**-22))


def _outputs() -> Iterator[Any]:
    """Outputs that reach and exceed what can be represented."""
    strong = {"b": calibrated(-6, 6), "T": 6}
    yield _plain("output-at-range", y=_scaled(2 / 65535), **strong)
    yield _plain("output-at-range", y=_scaled(2 / 65535), T=6, x=calibrated(-12, 12))
    for half in (0.95, 0.6, 0.3, 0.05):
        yield _plain(f"output-beyond-{half}", y=calibrated(-half, half * 1.01), **strong)
    yield _plain("output-beyond-negative", y=calibrated(0, 1.02), **strong)
    yield _plain("output-beyond-positive", y=calibrated(-1.02, 0), **strong)
    yield _plain("output-beyond-little", T=1, I=1, H=1, y=calibrated(-0.4, 0.4), b=calibrated(-6, 6), seed=3)


def _pre_activations() -> Iterator[Any]:
    """Pre-activations near and past the limits of their format."""
    for size in (16, 60, 120, 127, 130, 160, 300, 2000):
        # Sums of four products of that size at most, dense below it.
        yield _plain(f"pre-activation-{size}", T=3, I=4, H=2, x=calibrated(-size, size), w=calibrated(-1, 0.97))
    yield _plain("pre-activation-40-fine", I=4, H=8, x=calibrated(-40, 40), y=_two(-22))
    yield _plain("pre-activation-one", T=1, I=1, H=1, x=calibrated(-300, 300), w=calibrated(-1, 0.97), seed=9)
    # The terms are large and their sum is small.
    yield _plain("terms-large", T=2, I=100, H=2, x=calibrated(0, 6), w=calibrated(0, 1), fill=(("X", 0.02), ("W", 0.3)))
    yield _plain(
        "terms-large", T=2, I=400, H=2, x=calibrated(-8, 0), w=calibrated(0, 1), fill=(("X", 0.002), ("W", 0.5))
    )


def _numbers() -> Iterator[Any]:
    yield _plain("saturating-x", fill=(("X", 1.6),))
    yield _plain("saturating-weights", fill=(("W", 1.5), ("R", 1.4), ("B", 1.7)))
    yield _plain("ties", data="ties")
    yield _plain("infinite", data="inf")
    yield _plain("infinite-one", data="inf", T=1, I=1, H=1)
    yield _plain("far", data="far", x=_scaled(1e-4))
    yield _plain("nan", data="nan", T=5)


def _forms() -> Iterator[Any]:
    """The node as it may be written, and the session as it may be used."""
    yield _plain("as-documented", y=None)
    yield _plain("no-bias", bias=False)
    yield _plain("no-bias", bias=False, T=2, I=4, H=5, weights="input")
    yield _plain("no-hidden-size", hidden_size=False)
    yield _plain("explicit-defaults", explicit=True)
    yield _plain("old-name", old=True)
    yield _plain("old-name", old=True, T=7, I=5, H=6, weights="input")
    yield _plain("rerun-data", reruns="data", weights="input")
    yield _plain("rerun-data", reruns="data", weights="input", T=3, I=4, H=5)
    yield _plain("rerun-sizes", reruns="sizes")
    yield _plain("no-steps", T=0)
    yield _plain("no-steps", T=0, I=5, H=6, weights="input")
    yield _plain("no-inputs", I=0)
    yield _plain("one-row", N=1, T=6, I=6, H=6)


def _extremes() -> Iterator[Any]:
    """Two models with scales that no dense case has, which are fed until all faults of such scales have shown."""
    small: dict[str, Any] = {"x": _scaled(1.2 * 2.0**-20), "w": _scaled(2.0**-20 / 1.2 * 0.97), "r": _scaled(0.11)}
    small |= {"I": 5, "H": 4, "weights": "input", "open": True, "fill": (("R", 0.0002),)}
    for seed in (1, 2):
        yield _plain("scales-small", **small, seed=seed)
        yield _plain("scales-small-no-steps", **small, T=0, seed=seed)
    large: dict[str, Any] = {"x": _scaled(1.3 * 2.0**-3), "w": _scaled(2.0**-6 / 1.3 * 0.98), "weights": "input"}
    for seed, fill in enumerate(((0.0005, 0.02), (0.0005, 0.02), (0.003, 0.05), (0.01, 0.05))):
        yield _plain("scales-large", **large, T=3, I=4, fill=tuple(zip("XW", fill, strict=True)), seed=seed)


def _batches() -> Iterator[Any]:
    yield _plain("batch", T=1, N=2, I=1, H=1)
    yield _plain("batch", T=3, N=2)
    yield _plain("batch", T=4, N=3, I=5, H=8)
    yield _plain("batch-empty", N=0)


@cache
def extended_profile(name: str) -> tuple[Any, ...]:
    """The cases of a profile, in a fixed order: what may spoil an implementation's memory comes last.

    Raises KeyError for an unknown profile.
    """
    plain, dense = tuple(_extremes()), tuple(pinned_dense(OP_TYPE, VERSION))
    wide = (_realistic, _zero_points, _scales, _outputs, _pre_activations, _numbers, _forms, _batches)
    cases = {
        "smoke": (*plain[::4], *quick_dense(OP_TYPE, VERSION)),
        "core": (*plain, *dense, *_illegal()),
        "full": (*plain, *dense, *(spec for part in wide for spec in part()), *_illegal()),
    }[name]
    return tuple(sorted(dict.fromkeys(cases), key=lambda spec: spec.spoils))


def _illegal() -> Iterator[Any]:
    for violation in all_violations(ExtendedSpec):
        yield _plain("illegal", T=3, I=4, H=4, illegal=violation)
