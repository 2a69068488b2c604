"""What radii promise: they cover every order, stored sum and image, are never NaN, and widen with the class."""

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
    Readings,
    budget,
    compare,
    configure,
    expect,
)
from onnxspec.reference.activations import Activation, Coefficient
from onnxspec.reference.bounded import RADIUS_SLACK, Bounded, Bounding
from onnxspec.reference.kernel_activations import EVALUATIONS
from onnxspec.reference.kernels import STYLES, run_kernel

from .situations import OUTPUTS, Arrays, inputs_for

TYPES = tuple(FORMATS)
CLASSES = tuple(ACCURACY_CLASSES)
quiet = settings(derandomize=True, deadline=None, database=None)


# Sums.


def trees(terms: list[Any]) -> Iterator[Any]:
    """Every way to bracket a sum, as nested pairs."""
    if len(terms) == 1:
        yield terms[0]
    for cut in range(1, len(terms)):
        yield from itertools.product(trees(terms[:cut]), trees(terms[cut:]))


def added(tree: Any) -> Any:
    if not isinstance(tree, tuple):
        return tree
    left, right = tree
    return added(left) + added(right)


def test_gamma_covers_every_order_of_a_sum_of_products_and_is_not_much_too_large() -> None:
    w = budget("fast", "float16")  # accumulates in float16 itself
    random = np.random.default_rng(0)
    for n in (2, 3, 4):
        x, y = (random.uniform(0.5, 2, (400, n)).astype(np.float16) for _ in range(2))
        y *= random.choice([-1, 1], (400, n)).astype(np.float16)
        exact = x.astype(float) * y.astype(float)
        products = x * y
        bound = w.gamma(n) * np.abs(exact).sum(axis=1)
        worst = 0.0
        for order in itertools.permutations(range(n)):
            for tree in trees([products[:, k] for k in order]):
                error = np.abs(added(tree).astype(float) - exact.sum(axis=1))
                worst = max(worst, float((error / bound).max()))
        assert 0.3 < worst <= 1


@pytest.mark.parametrize("groups", [1, 2, 3, 4])
def test_a_settled_sum_covers_every_group_and_partial_sum_being_stored(groups: int) -> None:
    arithmetic = Bounding(budget("standard", "float16"))
    random = np.random.default_rng(groups)
    # Groups that are products of one term each: exact in the accumulator, then stored.
    parts = [random.uniform(-2, 2, 3000) for _ in range(groups)]
    total: Any = None
    for part in parts:
        product = arithmetic.product(arithmetic.given(part[:, np.newaxis]), arithmetic.weights(np.ones((1, 1))))
        total = product if total is None else total + product
    number = total.settled()
    stored = [part.astype(np.float16) for part in parts]
    worst = 0.0
    for order in itertools.permutations(range(groups)):
        for tree in trees([stored[k] for k in order]):
            error = np.abs(added(tree).astype(float) - number.value[:, 0])
            worst = max(worst, float((error / number.radius[:, 0]).max()))
    assert 0.25 < worst <= 1


def test_no_bound_is_infinite_and_puts_sums_in_doubt() -> None:
    w = budget("fast", "bfloat16")
    assert w.gamma(32) < np.inf
    assert w.gamma(33) == np.inf
    arithmetic = Bounding(w)
    number = arithmetic.product(arithmetic.given(np.zeros((1, 33))), arithmetic.weights(np.ones((2, 33)))).settled()
    assert number.doubt is not None
    assert number.doubt.all()
    assert np.isfinite(number.radius).all()


# States.


@quiet
@given(st.floats(allow_nan=False, allow_infinity=False, width=64), st.sampled_from(TYPES), st.booleans())
def test_a_shown_state_is_within_its_radius_of_the_wide_one(wide: float, kind: str, flushes: bool) -> None:
    form = FORMATS[kind]
    with np.errstate(over="ignore"):
        shown = np.array([wide]).astype(form.dtype).astype(float)
    if flushes and abs(wide) < form.least_normal:
        shown = np.zeros(1)
    number = Bounding(budget("flushing" if flushes else "standard", kind)).shown(shown)
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
    centre, radius = activation.widen(w).hull(*ends, w)
    assert np.isfinite(radius).all()
    assert (radius >= 0).all()
    assert (np.abs(activation(inside) - centre) <= radius * RADIUS_SLACK).all()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", sorted(EVALUATIONS))
@pytest.mark.parametrize("function", sorted(ACTIVATIONS))
def test_an_honest_evaluation_is_within_the_radius_of_a_point(function: str, name: str, kind: str) -> None:
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


@pytest.mark.parametrize("function", sorted(ACTIVATIONS))
def test_the_oracle_itself_is_within_the_radius_for_float64(function: str) -> None:
    alpha, beta = 0.75, 0.5
    formulas = {
        "Relu": lambda x: max(x, 0),
        "Tanh": mpmath.tanh,
        "Sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
        "Affine": lambda x: alpha * x + beta,
        "LeakyRelu": lambda x: x if x >= 0 else alpha * x,
        "ThresholdedRelu": lambda x: x if x >= alpha else 0,
        "ScaledTanh": lambda x: alpha * mpmath.tanh(beta * x),
        "HardSigmoid": lambda x: max(0, min(1, alpha * x + beta)),
        "Elu": lambda x: x if x >= 0 else alpha * mpmath.expm1(x),
        "Softsign": lambda x: x / (1 + abs(x)),
        "Softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    }
    w = budget("strict", "float64")
    activation = Activation(ACTIVATIONS[function], Coefficient(alpha), Coefficient(beta))
    places = np.concatenate([np.random.default_rng(2).uniform(-s, s, 60) for s in (1e-3, 1.0, 12.0)])
    with mpmath.workdps(40):
        for x in places:
            centre, radius = activation.hull(*(np.array([x]) for _ in range(3)), w)
            assert abs(formulas[function](mpmath.mpf(float(x))) - mpmath.mpf(float(centre[0]))) <= float(radius[0])


# Whole nodes.

# float16 has a smaller range than bfloat16, so the two are not to be compared.
WIDENING = [
    ("strict", "standard"), ("standard", "flushing"), ("standard", "tf32"), ("standard", "f16-math"),
    ("standard", "fast"), ("tf32", "f16-math"), ("tf32", "bf16-math"), ("bf16-math", "bf16-storage"),
    ("f16-math", "f16-storage"), ("standard", "f32-math"),
]  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("narrow", "wide"), WIDENING)
def test_radii_widen_with_the_class(narrow: str, wide: str, kind: str) -> None:
    inputs = inputs_for(kind, (3, 2, 5, 6), optional=("B", "P", "initial_h", "initial_c"), lengths=[3, 2])
    mixed = {"activations": ["HardSigmoid", "Elu", "ScaledTanh"], "activation_alpha": [0.3, 0.7, 1.5], "clip": 0.8}
    for attributes in ({}, {"input_forget": 1}, mixed):
        node = Node("LSTM", 22, attributes, OUTPUTS)
        outputs = run_kernel(node, inputs, STYLES["library"])
        for first, second in zip(
            expect(node, inputs, outputs, narrow), expect(node, inputs, outputs, wide), strict=True
        ):
            np.testing.assert_array_equal(first.number.value, second.number.value)
            assert (first.number.radius <= second.number.radius * RADIUS_SLACK).all()


@pytest.mark.parametrize("accuracy", CLASSES)
@pytest.mark.parametrize("kind", TYPES)
def test_a_radius_is_never_nan_nor_negative_nor_infinite(kind: str, accuracy: str) -> None:
    form = FORMATS[kind]
    hostile: NDArray[Any] = np.array(
        [np.nan, np.inf, -np.inf, form.largest, -form.largest, form.least_subnormal, 0.0, 1.0]
    )
    random = np.random.default_rng(9)
    for functions in (["Sigmoid", "Tanh", "Tanh"], ["Relu", "Affine", "Softplus"], ["Elu", "LeakyRelu", "ScaledTanh"]):
        node = Node(
            "LSTM", 22, {"activations": functions, "activation_alpha": [2.0, 50.0], "activation_beta": [3.0]}, OUTPUTS
        )
        inputs = inputs_for(kind, (4, 3, 2, 3), optional=("B", "P", "initial_h", "initial_c"), lengths=[4, 0, 2])
        for array in inputs.values():
            if array.dtype != np.int32:
                spoilt = random.random(array.shape) < 0.15
                with np.errstate(over="ignore"):
                    array[spoilt] = random.choice(hostile, int(spoilt.sum())).astype(form.dtype)
        reported = run_kernel(node, inputs, STYLES["library"])
        nothing: Arrays = {}
        for observed in (reported, nothing):
            for expectation in expect(node, inputs, observed, accuracy):
                number = expectation.number
                assert np.isfinite(number.value).all()
                assert np.isfinite(number.radius).all()
                assert (number.radius >= 0).all()


@pytest.mark.parametrize(("T", "N"), [(0, 2), (3, 0), (0, 0)])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("layout", [0, 1])
def test_sizes_of_zero(layout: int, kind: str, T: int, N: int) -> None:
    lengths = [T] * N
    inputs = inputs_for(
        kind, (T, N, 2, 3), directions=2, layout=layout, optional=("B", "P", "initial_h", "initial_c"), lengths=lengths
    )
    node = Node("LSTM", 22, {"direction": "bidirectional", "layout": layout}, OUTPUTS)
    for accuracy in CLASSES:
        for readings in Readings().alternatives(configure(node, inputs).touched):
            outputs = run_kernel(node, inputs, STYLES["library"], readings)
            for expectation in expect(node, inputs, outputs, accuracy, readings):
                agreement = compare(expectation, outputs[expectation.output])
                assert agreement.worst <= 1
                assert expectation.number.value.shape == outputs[expectation.output].shape


def test_an_unknown_class_is_named() -> None:
    with pytest.raises(ValueError, match=r"no accuracy class 'loose'; there are: strict, standard"):
        budget("loose", "float32")
