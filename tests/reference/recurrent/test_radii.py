"""Tests of radii: they cover every order, stored sum and image, are never NaN, and widen with the class."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onnxspec.reference import (
    ACCURACY_CLASSES,
    ACTIVATIONS,
    FORMATS,
    Node,
    budget,
    expect,
)
from onnxspec.reference.kernels.activations import EVALUATIONS
from onnxspec.reference.kernels.kernel import STYLES, run_kernel
from onnxspec.reference.numbers import Bounded, Bounding
from onnxspec.reference.numbers.activations import Activation, Coefficient
from onnxspec.reference.numbers.bounded import RADIUS_SLACK

from ..operators import second_derivation
from ..situations import OPERATORS, TWO_TYPES, Arrays, functions_of, inputs_for, optional_of, outputs_of, variants_of

TYPES = tuple(FORMATS)
CLASSES = tuple(ACCURACY_CLASSES)
quiet = settings(derandomize=True, deadline=None, database=None)


# Sums.


def trees(terms: list[Any]) -> Iterator[Any]:
    """Yield every way to bracket a sum, as nested pairs."""
    if len(terms) == 1:
        yield terms[0]
    for cut in range(1, len(terms)):
        yield from itertools.product(trees(terms[:cut]), trees(terms[cut:]))


def added(tree: Any) -> Any:
    if not isinstance(tree, tuple):
        return tree
    left, right = tree
    return added(left) + added(right)


def worst_of_orders(parts: list[Any], exact: NDArray[Any], bound: NDArray[Any]) -> float:
    """Return the largest error, as a share of the bound, of sums in every order and with every bracketing."""
    errors = [
        np.abs(added(tree).astype(float) - exact)
        for order in itertools.permutations(parts)
        for tree in trees(list(order))
    ]
    return float((np.max(errors, axis=0) / bound).max())


def test_gamma_covers_every_order_of_a_sum_of_products_and_is_not_much_too_large() -> None:
    w = budget("fast", "float16")  # accumulates in float16 itself
    random = np.random.default_rng(0)
    for n in (2, 3, 4):
        x, y = (random.uniform(0.5, 2, (400, n)).astype(np.float16) for _ in range(2))
        y *= random.choice([-1, 1], (400, n)).astype(np.float16)
        exact = x.astype(float) * y.astype(float)
        products = x * y
        bound = w.gamma(n) * np.abs(exact).sum(axis=1)
        worst = worst_of_orders([products[:, k] for k in range(n)], exact.sum(axis=1), bound)
        assert 0.3 < worst <= 1


@pytest.mark.parametrize("groups", [1, 2, 3, 4])
def test_a_settled_sum_covers_every_group_and_partial_sum_being_stored(groups: int) -> None:
    arithmetic = Bounding(budget("standard", "float16"))
    random = np.random.default_rng(groups)
    # Groups that are products of one term each: exact in the accumulator, then stored.
    parts = [random.uniform(-2, 2, 3000) for _ in range(groups)]
    total: Any = None
    for part in parts:
        product = arithmetic.product(arithmetic.exact(part[:, np.newaxis]), arithmetic.weights(np.ones((1, 1))))
        total = product if total is None else total + product
    number = total.settled()
    stored = [part.astype(np.float16) for part in parts]
    worst = worst_of_orders(stored, number.value[:, 0], number.radius[:, 0])
    assert 0.25 < worst <= 1


def test_a_gate_times_a_sum_covers_it_multiplied_out_and_not() -> None:
    form = FORMATS["float16"]
    w = budget("standard", "float16")
    arithmetic = Bounding(w)
    random = np.random.default_rng(8)
    single = arithmetic.weights(np.ones((1, 1)))

    def number(values: NDArray[Any]) -> Bounded:
        return arithmetic.exact(values[:, np.newaxis].astype(float))

    def product(values: NDArray[Any]) -> Any:
        return arithmetic.product(number(values), single)

    r, XW, HR, Wb, Rb = (random.uniform(-2, 2, 4000).astype(form.dtype) for _ in range(5))
    close = random.random(4000) < 0.5
    HR[close] *= form.dtype.type(64)
    Rb[close] = -HR[close] + Rb[close]
    # Stored after every addition: the parts themselves are rounded copies of the terms.
    bound = (product(XW) + number(Wb) + number(r) * (product(HR) + number(Rb))).settled()
    exact = [x.astype(float) for x in (r, XW, HR, Wb, Rb)]
    np.testing.assert_array_equal(bound.value[:, 0], exact[1] + exact[3] + exact[0] * (exact[2] + exact[4]))
    for parts in ([XW, Wb, r * HR, r * Rb], [XW, Wb, r * (HR + Rb)]):  # multiplied out, and not
        assert 0.2 < worst_of_orders(parts, bound.value[:, 0], bound.radius[:, 0]) <= 1


def ways(z: Any, h: Any, H: Any, one: Any, flush: Any) -> dict[str, Any]:
    """Return (1 - z) h + z H in every order, with every operation rounded by the arrays' own type."""
    rest = flush(one - z)
    return {
        "complement": flush(flush(rest * h) + flush(z * H)),
        "difference": flush(h + flush(z * flush(H - h))),
        "from-old": flush(H + flush(rest * flush(h - H))),
        "in-turn": flush(flush(h - flush(z * h)) + flush(z * H)),
        "in-turn-from-old": flush(flush(H - flush(rest * H)) + flush(rest * h)),
    }


@pytest.mark.parametrize("flushes", [False, True])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_interpolation_covers_every_way_of_computing_it(kind: str, flushes: bool) -> None:
    form, count = FORMATS[kind], 40000
    random = np.random.default_rng(4)

    def flush(x: NDArray[Any]) -> NDArray[Any]:
        return np.where(flushes & (np.abs(x) < form.least_normal), x.dtype.type(0), x)

    z = np.concatenate(
        [random.uniform(0, 1, count), random.uniform(-60, 60, count), 2 ** random.uniform(-20, 0, count)]
    )
    z = np.concatenate([z, 1 - z]).astype(form.dtype)
    h, H = (random.uniform(-1, 1, z.size) * 2.0 ** random.integers(-13, 8, z.size) for _ in range(2))
    near = random.random(z.size)
    H = np.where(near < 0.2, h * (1 + random.uniform(-8, 8, z.size) * form.unit), np.where(near < 0.3, -h, H))
    tiny = np.where(random.random(z.size) < 0.2, form.least_normal, 1.0)
    h, H = flush((h * tiny).astype(form.dtype)), flush((H * tiny).astype(form.dtype))
    z = flush(z)
    arithmetic = Bounding(budget("flushing" if flushes else "strict", kind))
    exact = [Bounded(x.astype(float), np.zeros(x.shape), arithmetic.budget) for x in (z, h, H)]
    number = arithmetic.interpolation(*exact)
    assert number.doubt is None
    for name, got in ways(z, h, H, form.dtype.type(1), flush).items():
        ratio = np.abs(got.astype(float) - number.value) / number.radius
        assert 0.1 < ratio.max() <= 1, name


@pytest.mark.parametrize("kind", FORMATS)
def test_interpolation_covers_what_its_operands_are_off(kind: str) -> None:
    arithmetic = Bounding(budget("standard", kind))
    random = np.random.default_rng(6)

    def number(scale: float) -> Bounded:
        value = scale * random.uniform(-1, 1, 5000)
        return Bounded(value, np.abs(value) * random.uniform(0, 0.1, 5000), arithmetic.budget)

    z, h, H = number(2), number(1), number(3)
    bound = arithmetic.interpolation(z, h, H)
    worst = 0.0
    for signs in itertools.product((-1, 0, 1), repeat=3):
        at = [x.value + sign * x.radius for sign, x in zip(signs, (z, h, H), strict=True)]
        off = np.abs((1 - at[0]) * at[1] + at[0] * at[2] - bound.value)
        worst = max(worst, float((off / bound.radius).max()))
    assert 0.8 < worst <= 1


def test_interpolation_of_what_may_overflow_is_in_doubt() -> None:
    arithmetic = Bounding(budget("standard", "float16"))

    def doubt(*numbers: float) -> Any:
        operands = (Bounded(np.array([value]), np.zeros(1), arithmetic.budget) for value in numbers)
        return arithmetic.interpolation(*operands).doubt

    for operands in ((0.5, 4e4, -4e4), (0.5, 7e4, 0.0), (-30.0, 4e3, 0.0), (31.0, 0.0, 4e3)):
        assert doubt(*operands) == [True], operands
    assert doubt(0.5, 3e4, -3e4) is None


# States.


@quiet
@given(st.floats(allow_nan=False, allow_infinity=False, width=64), st.sampled_from(TYPES), st.booleans())
def test_a_shown_state_is_within_its_radius_of_the_wide_one(wide: float, kind: str, flushes: bool) -> None:
    form = FORMATS[kind]
    with np.errstate(over="ignore"):
        shown = np.array([wide]).astype(form.dtype).astype(float)
    if flushes and abs(wide) < form.least_normal:
        shown = np.zeros(1)
    number = Bounding(budget("flushing" if flushes else "standard", kind)).reported_state(shown)
    in_doubt = number.doubt is not None and bool(number.doubt[0])
    assert in_doubt or abs(wide - number.value[0]) <= number.radius[0] * RADIUS_SLACK
    assert in_doubt == (abs(shown[0]) >= form.largest)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("accuracy", CLASSES)
def test_the_scan_of_states_is_the_loop_of_products_and_sums(accuracy: str, kind: str) -> None:
    w = budget(accuracy, kind)
    random = np.random.default_rng(5)

    def number(*shape: int) -> Bounded:
        value = random.uniform(-1.2, 1.2, shape)
        return Bounded(value, random.uniform(0, 4, shape) * w.unit * np.abs(value), w)

    factor, term, start = number(20, 2, 3), number(20, 2, 3), number(2, 3)
    scanned = Bounding(w).recurrence(factor, term, start)
    state, states = start, []
    for t in range(20):
        state = factor[t] * state + term[t]
        states.append(state)
    np.testing.assert_allclose(scanned.value, [s.value for s in states], rtol=1e-12)
    np.testing.assert_allclose(scanned.radius, [s.radius for s in states], rtol=1e-9)


def test_doubt_about_a_state_lasts() -> None:
    w = budget("standard", "float16")
    factor = Bounded(np.full((4, 2), 0.5), np.zeros((4, 2)), w)
    term = Bounded(np.array([[1.0, 1.0], [6e4, 1.0], [6e4, 1.0], [1.0, 1.0]]), np.zeros((4, 2)), w)
    states = Bounding(w).recurrence(factor, term, Bounded(np.zeros(2), np.zeros(2), w))
    assert states.doubt is not None
    np.testing.assert_array_equal(states.doubt, [[False, False], [False, False], [True, False], [True, False]])


# Activations.

names = st.sampled_from(sorted(ACTIVATIONS))
moderate = st.floats(-30, 30, width=32)
coefficients = st.floats(-4, 4, width=16) | st.sampled_from([0.0, 1.0, 100.0, -100.0])


@settings(quiet, max_examples=300)
@given(
    names,
    coefficients,
    coefficients,
    moderate,
    st.floats(0, 8),
    st.floats(0, 1),
    st.sampled_from(CLASSES),
    st.sampled_from(TYPES),
)
def test_a_hull_holds_the_image_of_its_interval(
    name: str, alpha: float, beta: float, low: float, width: float, share: float, accuracy: str, kind: str
) -> None:
    activation = Activation(ACTIVATIONS[name], Coefficient(alpha), Coefficient(beta))
    high, value = low + width, low + share * width
    places = [low, value, high, *(p for p, _ in activation.kind.corners(alpha) if low <= p <= high)]
    inside = np.array([*np.linspace(low, high, 301), *places])
    ends = (np.array([p]) for p in (low, min(max(value, low), high), high))
    w = budget(accuracy, kind)
    centre, radius = activation.widen(w).interval_image(*ends, w)
    assert np.isfinite(radius).all()
    assert (radius >= 0).all()
    assert (np.abs(activation(inside) - centre) <= radius * RADIUS_SLACK).all()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", sorted(EVALUATIONS))
@pytest.mark.parametrize("function", sorted(ACTIVATIONS))
def test_an_conforming_evaluation_is_within_the_radius_of_a_point(function: str, name: str, kind: str) -> None:
    form = FORMATS[kind]
    random = np.random.default_rng(3)
    x = np.concatenate([random.uniform(-r, r, 400) for r in (2.0**-12, 0.1, 1, 4, 10)]).astype(form.dtype)
    exact = x.astype(float)
    arithmetic = Bounding(budget("standard", kind))
    for alpha, beta in ((0.75, 0.5), (-1.5, 0.3), (100.0, 3.0), (0.01, -2.0)):
        single = (float(np.float32(c)) for c in (alpha, beta))
        activation = Activation(ACTIVATIONS[function], *(Coefficient(c) for c in single))
        number = arithmetic.activate(activation, Bounded(exact, np.zeros_like(exact), arithmetic.budget), None)
        judged = ~number.doubt if number.doubt is not None else np.ones(x.shape, bool)
        for dtype in {form.dtype, np.dtype(np.float32) if form.precision < 24 else form.dtype}:
            with np.errstate(over="ignore"):
                got = EVALUATIONS[name](activation, x.astype(dtype), form).astype(float)
            assert judged.mean() > 0.5
            assert (np.abs(got - number.value) <= number.radius * RADIUS_SLACK)[judged].all()


@pytest.mark.parametrize("function", ["Sigmoid", "Tanh", "Softsign"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_a_division_within_two_and_a_half_units_in_the_last_place_is_right_for_every_argument(
    kind: str, function: str
) -> None:
    form = FORMATS[kind]
    x = np.arange(1 << 16, dtype=np.uint16)
    # float32 numbers of every exponent whose upper halves these are; with lower halves that are not zero.
    values = x.view(form.dtype) if kind != "float32" else (x.astype(np.uint32) << 16 | 0x5A5B).view(np.float32)
    with np.errstate(invalid="ignore"):
        values = values[np.isfinite(values.astype(float))]
    wide, w = values.astype(float), budget("standard", kind)
    centre, radius = Activation(ACTIVATIONS[function]).interval_image(wide, wide, wide, w)
    for name in ("divided", "reciprocal"):
        with np.errstate(all="ignore"):
            got = EVALUATIONS[name](Activation(ACTIVATIONS[function]), values, form).astype(float)
        assert (np.abs(got - centre) <= radius * RADIUS_SLACK).all()
        assert (np.abs(got - centre) > 2 * form.unit * np.abs(centre)).any()


@pytest.mark.parametrize("kind", TYPES)
def test_softsign_may_lose_no_more_than_its_division_does(kind: str) -> None:
    unit = FORMATS[kind].unit
    x = np.array([2.0**-4, 0.5, 1.0, 7.0, 100.0])
    for accuracy, least in (("strict", 7), ("standard", 9)):
        centre, radius = Activation(ACTIVATIONS["Softsign"]).interval_image(x, x, x, budget(accuracy, kind))
        share = 2 if kind == "float64" else 1  # where the oracle rounds like the target
        assert (radius < least * 1.1 * share * unit * np.abs(centre)).all()


@pytest.mark.parametrize("function", sorted(ACTIVATIONS))
def test_the_oracle_itself_is_within_the_radius_for_float64(function: str) -> None:
    alpha, beta = 0.75, 0.5
    formula = second_derivation.Activation(function, alpha, beta, threshold_passes=True)
    w = budget("strict", "float64")
    activation = Activation(ACTIVATIONS[function], Coefficient(alpha), Coefficient(beta))
    places = np.concatenate([np.random.default_rng(2).uniform(-s, s, 60) for s in (1e-3, 1.0, 12.0)])
    with mpmath.workdps(40):
        for x in places:
            centre, radius = activation.interval_image(*(np.array([x]) for _ in range(3)), w)
            assert abs(formula(mpmath.mpf(float(x))) - mpmath.mpf(float(centre[0]))) <= float(radius[0])


# Whole nodes.

# float16 has a smaller range than bfloat16, so the two cannot be compared.
WIDENING = [
    ("strict", "standard"), ("standard", "flushing"), ("standard", "tf32"), ("standard", "f16-math"),
    ("standard", "fast"), ("tf32", "f16-math"), ("tf32", "bf16-math"), ("bf16-math", "bf16-storage"),
    ("f16-math", "f16-storage"), ("standard", "f32-math"),
]  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("kind", TWO_TYPES)
@pytest.mark.parametrize(("narrow", "wide"), WIDENING)
def test_radii_widen_with_the_class(narrow: str, wide: str, kind: str, op: str) -> None:
    inputs = inputs_for(kind, (3, 2, 5, 6), op=op, optional=optional_of(op), lengths=[3, 2])
    functions = functions_of(op, "HardSigmoid", "Elu", "ScaledTanh")
    mixed = {"activations": functions, "activation_alpha": [0.3, 0.7, 1.5][: len(functions)], "clip": 0.8}
    for attributes in (*variants_of(op), mixed):
        node = Node(op, 22, attributes, outputs_of(op))
        outputs = run_kernel(node, inputs, STYLES["library"])
        for first, second in zip(
            expect(node, inputs, outputs, narrow), expect(node, inputs, outputs, wide), strict=True
        ):
            np.testing.assert_array_equal(first.number.value, second.number.value)
            assert (first.number.radius <= second.number.radius * RADIUS_SLACK).all()


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("accuracy", CLASSES)
@pytest.mark.parametrize("kind", TWO_TYPES)
def test_a_radius_is_never_nan_nor_negative_nor_infinite(kind: str, accuracy: str, op: str) -> None:
    form = FORMATS[kind]
    hostile: NDArray[Any] = np.array(
        [np.nan, np.inf, -np.inf, form.largest, -form.largest, form.least_subnormal, 0.0, 1.0]
    )
    random = np.random.default_rng(9)
    for names in (("Sigmoid", "Tanh"), ("Relu", "Affine", "Softplus"), ("Elu", "LeakyRelu", "ScaledTanh")):
        coefficients = {"activation_alpha": [2.0, 50.0], "activation_beta": [3.0]} if op != "RNN" else {}
        attributes = {"activations": functions_of(op, *names), **coefficients}
        inputs = inputs_for(kind, (4, 3, 2, 3), op=op, optional=optional_of(op), lengths=[4, 0, 2])
        for array in inputs.values():
            if array.dtype != np.int32:
                spoilt = random.random(array.shape) < 0.15
                with np.errstate(over="ignore"):
                    array[spoilt] = random.choice(hostile, int(spoilt.sum())).astype(form.dtype)
        for variant in [{}] if op == "LSTM" else variants_of(op):
            node = Node(op, 22, {**attributes, **variant}, outputs_of(op))
            reported = run_kernel(node, inputs, STYLES["library"])
            nothing: Arrays = {}
            for observed in (reported, nothing):
                for expectation in expect(node, inputs, observed, accuracy):
                    number = expectation.number
                    assert np.isfinite(number.value).all()
                    assert np.isfinite(number.radius).all()
                    assert (number.radius >= 0).all()


def test_an_unknown_class_is_named() -> None:
    with pytest.raises(ValueError, match=r"no accuracy class 'loose'; there are: strict, standard"):
        budget("loose", "float32")
