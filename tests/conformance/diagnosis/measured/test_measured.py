"""A target's own functions and sums, measured by nodes of one step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[3]))  # benchmarks are no part of the package

from benchmarks.staging import Opened, findings_on, of_faults, on_zoo, staged
from onnxspec.cases import CaseSpec, profile
from onnxspec.conformance.diagnosis.measured.deviations import Deviation, deviations_of
from onnxspec.conformance.diagnosis.measured.sources import Source, sources_of
from onnxspec.reference import Fault, fault_named, versions_of

Array = NDArray[Any]
BOTH = {"direction": "bidirectional"}


def rnn(
    function: Callable[[Array], Array] = np.tanh,
    product: Callable[[Array, Array], Array] = lambda x, w: x @ w.T,
    bias: Callable[[Array, int], Array] = lambda b, d: b,
    initial: Callable[[Array], Array] = lambda h: h,
) -> Opened:
    """A kernel of RNN in layout 0 and all directions, whose parts can be replaced."""

    def opened(model: bytes) -> Any:
        graph = onnx.load_model_from_string(model).graph
        (node,) = graph.node
        assert node.op_type == "RNN"
        names, asked = list(node.input), [value.name for value in graph.output]
        backward = {a.name: a.s for a in node.attribute}.get("direction", b"forward")

        def run(feeds: dict[str, Any]) -> list[Any]:
            given = {n: np.asarray(a).astype(np.float64) for n, a in feeds.items()}
            X, W, R = (given[name] for name in names[:3])
            (T, N, _), (D, H, _) = X.shape, W.shape
            B = given.get("B", np.zeros((D, 2 * H)))
            Y, last = np.zeros((T, D, N, H)), initial(given.get("initial_h", np.zeros((D, N, H)))).copy()
            for d in range(D):
                wb, rb = np.split(bias(B[d], d), 2)
                reverse = backward == b"reverse" or d == 1
                for t in range(T)[::-1] if reverse else range(T):
                    last[d] = Y[t, d] = function(product(X[t], W[d]) + product(last[d], R[d]) + wb + rb)
            dtype = feeds["X"].dtype
            return [{"Y": Y, "Y_h": last}[name].astype(dtype) for name in asked]

        return run

    return opened


def deviations(opened: Opened, spec: CaseSpec) -> list[Deviation]:
    return deviations_of(spec, staged(opened).run, ("standard",))


def sources(opened: Opened, spec: CaseSpec) -> list[Source]:
    return sources_of(spec, staged(opened).run, ("standard",))


@pytest.mark.parametrize("bound", [4.3, 6.0, 7.90531110763549805])
def test_a_bound_of_arguments_is_measured(bound: float) -> None:
    (one,) = deviations(rnn(lambda x: np.tanh(np.minimum(x, bound))), CaseSpec("RNN", 14, type="float64", H=2))
    assert one.words.startswith("one step through Tanh is off by as much as")
    assert "for arguments above " in one.words
    assert [fault.id for fault in one.faults()] == [f"functions.f-argument-above_{bound:.9g}"]


def test_what_is_wrong_on_one_side_is_told_with_an_example() -> None:
    (one,) = deviations(rnn(lambda x: np.where(x < -2.5, -0.5, np.tanh(x))), CaseSpec("RNN", 14))
    assert "wrong for arguments below -2.5, as at -" in one.words
    assert "(Y -0.5 where -" in one.words
    assert not one.ids  # it is none of what a search knows


def test_another_function_is_told_by_its_gates_units_and_direction() -> None:
    id = "functions.g-as-Softsign@units-past-4s@reverse"
    (one,) = deviations(of_faults([id]), CaseSpec("LSTM", 14, H=3, **BOTH))
    assert (one.gates, one.narrow, one.units) == ("c", "reverse", "units-past-4s")
    assert id in [fault.id for fault in one.faults()]


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_what_one_wrong_function_brings_about_is_not_said_of_others(op: str) -> None:
    """The gates' biases go through it too."""
    told = deviations(of_faults(["functions.f-as-HardSigmoid_0.2_0.5"]), CaseSpec(op, 14))
    assert {one.name for one in told} == {"Sigmoid"}
    assert {one.ids for one in told} == {("functions.f-as-HardSigmoid_0.2_0.5",)}


def test_all_functions_in_another_type_are_told_together() -> None:
    told = deviations(of_faults(["functions.all-in-float16"]), CaseSpec("GRU", 22))
    assert {one.ids for one in told} == {("functions.all-in-float16",)}
    assert {one.name for one in told} == {"Sigmoid", "Tanh"}


def test_other_coefficients_are_found_among_those_that_are_given() -> None:
    spec = CaseSpec("RNN", 14, activations=("Affine", "Affine"), alpha=(0.5, 0.25), beta=(0.125, 0.75), **BOTH)
    (one,) = deviations(of_faults(["activations.backward-as-forward"]), spec)
    assert next(fault.id for fault in one.faults()) == "functions.f-as-Affine_0.5_0.125@reverse"


@pytest.mark.parametrize("size", [5, 130])
@pytest.mark.parametrize("block", [3, 8])
def test_columns_that_are_left_out_are_told(block: int, size: int) -> None:
    def without(x: Array, w: Array) -> Array:
        kept = w.shape[1] - w.shape[1] % block if w.shape[1] > block else w.shape[1]
        return x[:, :kept] @ w[:, :kept].T

    told = sources(rnn(product=without), CaseSpec("RNN", 14, I=size, H=size))
    assert {(one.name, one.columns) for one in told} == {("W", f"past-{block}s"), ("R", f"past-{block}s")}


def test_a_bias_that_one_direction_lacks_is_told() -> None:
    def halved(b: Array, d: int) -> Array:
        return np.where(np.arange(len(b)) < len(b) // 2, b, b * (d == 0))

    (one,) = sources(rnn(bias=halved), CaseSpec("RNN", 14, I=2, H=3, **BOTH))
    assert one.words == "one step from Rb, all else being zero, is wrong in the reverse direction"


def test_products_of_pairs_are_named_where_a_run_shows_them() -> None:
    def triples(x: Array, w: Array) -> Array:
        kept = w.shape[1] - w.shape[1] % 3 if w.shape[1] > 3 else w.shape[1]
        return x[:, :kept] @ w[:, :kept].T

    specs = [CaseSpec("RNN", 14, T=2, N=2, I=5, H=h, bias=True, seed=h) for h in (4, 7)]
    findings, results, _ = findings_on(rnn(product=triples), specs)
    assert {r.diagnosis for r in results} == {("products.WR-without-past-3s",)}
    assert [f["foretold"] >= 5 for f in findings if f["kind"] in ("wrong", "inaccurate")] == [True]


def test_a_function_without_a_name_is_described_where_a_run_shows_it() -> None:
    def sunk(x: Array) -> Array:
        return np.where(x < -0.5, np.tanh(x) * 0.75, np.tanh(x))

    specs = [CaseSpec("RNN", 14, T=2, N=2, I=2, H=h, bias=True, seed=h) for h in (2, 3)]
    findings, _, _ = findings_on(rnn(sunk), specs)
    (finding,) = [f for f in findings if f["kind"] in ("wrong", "inaccurate")]
    assert "one step through Tanh is wrong for arguments below -0.5" in finding["title"]
    assert finding["place"]


def test_a_tensor_that_was_measured_is_a_condition_all_the_same() -> None:
    def steep(h: Array) -> Array:
        return np.where(h > 0.25, h * 1.5, h)

    specs = [CaseSpec("RNN", 14, N=2, I=2, H=h, initial=i, seed=h) for h in (2, 3, 4) for i in ("h", "none")]
    findings, _, _ = findings_on(rnn(initial=steep), specs)
    (finding,) = [f for f in findings if f["kind"] in ("wrong", "inaccurate")]
    assert "one step from initial_h through R, all else being zero, is wrong" in finding["title"]
    assert "initial_h" in finding["conditions"]


@pytest.mark.parametrize("op", ["RNN", *(pytest.param(op, marks=pytest.mark.long) for op in ("LSTM", "GRU"))])
def test_of_a_right_target_nothing_is_told(op: str) -> None:
    right = of_faults([])
    for version in versions_of(op):
        for spec in profile("smoke", op, version):
            if not spec.illegal:
                assert deviations(right, spec) == [], spec
                assert sources(right, spec) == [], spec


def test_ids_of_what_was_measured_stand_for_faults_and_others_for_none() -> None:
    for id in ("functions.h-unclipped", "functions.f-in-bfloat16@reverse", "products.R-without-beyond-4@gate-z"):
        fault = fault_named(id)
        assert isinstance(fault, Fault), id
        assert fault.summary.endswith("."), id
    for id in ("functions.f-as-Tanh_1", "functions.f-as-Nothing", "functions.x-unclipped", "products.W-without-love"):
        assert fault_named(id) is None, id


def test_a_target_that_answers_nothing_tells_nothing() -> None:
    def opened(model: bytes) -> Any:
        def run(feeds: dict[str, Any]) -> Sequence[Any]:
            return ()

        return run

    assert deviations(opened, CaseSpec("RNN", 14)) == []
    assert sources(opened, CaseSpec("RNN", 14)) == []


def test_a_name_for_the_smallest_case_alone_is_not_told_of_the_others() -> None:
    """Coefficients that are read from the head of a list again are others in each case."""
    specs = [spec for spec in profile("smoke", "RNN", 7) if not spec.illegal]
    findings, results, _ = findings_on(on_zoo("batch_iolite:rnn-backward-restarts-alpha"), specs)
    (finding,) = [f for f in findings if f["kind"] in ("wrong", "inaccurate")]
    assert (finding["fault"], finding["foretold"]) == ("", 0)
    assert "only in the reverse direction" in finding["title"]
    assert not any(r.diagnosis for r in results if r.case in finding["cases"])
