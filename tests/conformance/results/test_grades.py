"""Signed errors of a run: the precision that they show, in digits, and the types that they mark as biased."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from onnxspec.cases import Case, build_case, profile
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.conformance.results.grades import biased_types, biases, digits_left, grades
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.reference import FORMATS, Node
from onnxspec.reference.kernels.kernel import STYLES, Style, run_kernel

from ...recurrent import recurrent_versions

Arrays = dict[str, Any]


@cache
def graded() -> list[Case]:
    """Return the one-step accuracy cases of core."""
    specs = [spec for op, version in recurrent_versions() for spec in profile("core", op, version)]
    return [build_case(spec) for spec in specs if spec.graded and spec.op in ("LSTM", "GRU", "RNN")]


def results_of(run: Callable[[Node, Arrays], Arrays]) -> list[Result]:
    return [result_of(SpecProbe(case.spec), "t", judge_staged(case, run), 0.0, None) for case in graded()]


def cut(lost: int, style: str = "forward") -> Callable[[Node, Arrays], Arrays]:
    """Return a kernel that truncates ``lost`` digits of each state that it stores."""

    def run(node: Node, inputs: Arrays) -> Arrays:
        outputs = run_kernel(node, inputs, STYLES[style])
        return {name: _shortened(array, lost) for name, array in outputs.items()}

    return run


def _shortened(array: Any, lost: int) -> Any:
    return _to_digits(array.astype(float), FORMATS[array.dtype.name].precision - lost).astype(array.dtype)


def _to_digits(numbers: Any, digits: int) -> Any:
    fraction, exponent = np.frexp(numbers)
    return np.ldexp(np.trunc(np.ldexp(fraction, digits)), exponent - digits)


@pytest.mark.parametrize("lost", [2, 3])
def test_a_state_cut_by_some_digits_is_graded_in_digits(lost: int) -> None:
    by_type = biases(results_of(cut(lost)))
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        if dtype == "bfloat16" and lost == 3:
            continue  # beyond the bound in places, which fails
        assert by_type[dtype]["biased"], dtype
        assert abs(by_type[dtype]["digits"] - (FORMATS[dtype].precision - lost)) < 0.7, by_type[dtype]
    assert biased_types(results_of(cut(2)))["float32"].endswith(" of 24 digits")


@pytest.mark.parametrize("style", STYLES.values(), ids=lambda s: s.name)
def test_no_conforming_variant_is_graded_so(style: Style) -> None:
    assert biased_types(results_of(lambda node, inputs: run_kernel(node, inputs, style))) == {}


def test_digits_follow_from_the_mean_of_what_is_cut_off() -> None:
    random = np.random.default_rng(1)
    exact = 2 ** random.uniform(-4, 4, 100_000)
    for lost in (0, 1, 2, 5):
        unit = FORMATS["float32"].unit
        off = np.abs(_to_digits(exact, 24 - lost) - exact)
        mean = off.sum() / (unit * exact).sum()
        assert abs(digits_left(float(mean), "float32") - (24 - lost)) < 0.2
    assert digits_left(1e4, "bfloat16") == 0.0  # run.json cannot hold fewer


def test_a_biased_type_is_not_graded_strict() -> None:
    right, leaning = results_of(cut(0, "wide")), results_of(cut(2, "wide"))
    assert grades([r for r in right if r.strict], "standard")["float32"] == "strict"
    assert grades([r for r in leaning if r.strict], "standard")["float32"] == "standard"
