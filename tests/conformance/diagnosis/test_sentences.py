"""Test of sentences: the findings on faulty targets are true.

This module tries some faults, pairs of faults and kernels on a few cases; ``benchmarks/sentences.py`` tries all faults
(``tox -e sentences``).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))  # benchmarks are not part of the package

from benchmarks.sentences import false_sentences, meets
from benchmarks.staging import Session, findings_on, kernel_names, of_faults, on_kernel
from benchmarks.truths import TRUTHS, Truth
from onnxspec.cases import CaseSpec, profile
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.reference import versions_of

SPECS = [s for version in versions_of("LSTM") for s in profile("smoke", "LSTM", version) if not s.illegal]


def _truth(*ids: str) -> Truth:
    return Truth("staged", {"all": tuple(f"{id}*" for id in ids)})


@pytest.mark.long
@pytest.mark.parametrize(
    "ids",
    [
        ("lengths.ignored",),
        ("bias.recurrent-half-ignored@units-past-4s",),
        ("direction.reverse-runs-forward",),
        ("bias.ignored", "lstm.peepholes.ignored"),
        ("lengths.ignored", "lstm.input-forget.ignored"),
    ],
)
def test_what_findings_say_of_faults_is_true(ids: Sequence[str]) -> None:
    findings, results, probes = findings_on(of_faults(ids), SPECS)
    assert findings
    assert false_sentences(findings, results, probes, _truth(*ids)) == []
    assert {f["fault"].partition("@")[0] for f in findings if f["foretold"]} <= {i.partition("@")[0] for i in ids}


@pytest.mark.long
@pytest.mark.parametrize("kernel", ["library-gru", "vector-tail", "fast-math"])
def test_what_findings_say_of_kernels_is_true(kernel: str) -> None:
    versions = [(op, v) for op in ("GRU", "LSTM", "RNN") for v in versions_of(op) if v in (7, 14)]
    specs = [s for op, version in versions for s in profile("smoke", op, version) if not s.illegal]
    findings, results, probes = findings_on(on_kernel(kernel), specs)
    assert kernel in kernel_names()
    assert findings
    assert false_sentences(findings, results, probes, TRUTHS[kernel]) == []


@pytest.mark.long
def test_a_constant_is_not_what_memory_happened_to_be() -> None:
    right = of_faults([])

    def opened(model: bytes) -> Session:
        session, proto = right(model), onnx.load_model_from_string(model)

        def run(feeds: dict[str, Any]) -> list[Any]:
            names = [value.name for value in proto.graph.output]
            outputs = dict(zip(names, session(feeds), strict=True))
            if "Y_h" in outputs and "sequence_lens" in feeds:
                batch_first = any(a.name == "layout" and a.i for a in proto.graph.node[0].attribute)
                states = outputs["Y_h"].swapaxes(0, 1) if batch_first else outputs["Y_h"]
                states[:, feeds["sequence_lens"] == 0] = 7.25
            return list(outputs.values())

        return run

    specs = [s for s in profile("smoke", "RNN", 14) if not s.illegal]
    (finding,) = findings_on(opened, specs)[0]
    assert (finding["fault"], finding["foretold"]) == ("", 0)
    assert "memory" not in finding["title"]
    assert "a row of length 0" in finding["conditions"]


def _changed_by(change: Callable[[str, Any, Any], Any]) -> Any:
    """Return a target that changes each right output, by its operator's name, its feeds and the output."""
    right = of_faults([])

    def opened(model: bytes) -> Session:
        session, (node,) = right(model), onnx.load_model_from_string(model).graph.node

        def run(feeds: dict[str, Any]) -> list[Any]:
            return [change(node.op_type, feeds, array) for array in session(feeds)]

        return run

    return opened


def _rather_off(by: float) -> Callable[[str, Any, Any], Any]:
    def change(op: str, feeds: Any, array: Any) -> Any:
        exact = array.astype(np.float64)
        return (exact + by * np.sin(9 * exact)).astype(array.dtype)

    return change


@pytest.mark.long
def test_numbers_that_float32_does_not_hold_were_not_computed_in_it() -> None:
    specs = [s for op in ("LSTM", "RNN") for s in profile("smoke", op, 14) if not s.illegal]
    specs += [replace(s, type="float64") for s in specs if s.type == "float32"]
    findings, results, _ = findings_on(_changed_by(_rather_off(1e-7)), specs)
    assert sum(r.failing and r.type == "float64" for r in results) > 8
    assert {f["fault"] for f in findings} == {""}
    assert not any("consistent with" in f["title"].lower() for f in findings)


@pytest.mark.long
def test_subnormal_numbers_that_come_back_were_not_flushed() -> None:
    def change(op: str, feeds: Any, array: Any) -> Any:
        small = 0 < np.abs(feeds["X"].astype(np.float64)).max(initial=0.0) < 1e-3
        return (array * np.asarray(1.5 if small else 1).astype(array.dtype)).astype(array.dtype)

    linear = ("Sigmoid", "Relu", "Relu")
    specs = [CaseSpec("LSTM", 14, T=t, H=3, extremes="subnormal", activations=linear, seed=t) for t in range(1, 5)]
    specs += [s for s in profile("smoke", "LSTM", 14) if not s.illegal]
    findings, results, probes = findings_on(_changed_by(change), specs)
    assert any(r.failing for r in results)
    assert false_sentences(findings, results, probes) == []
    assert {f["fault"] for f in findings} == {""}
    assert not any("for zero" in f["title"] for f in findings)


@pytest.mark.long
def test_a_type_is_no_condition_of_an_error_that_others_have() -> None:
    def change(op: str, feeds: Any, array: Any) -> Any:
        factor = 1.01 if array.dtype.itemsize > 2 else 1.25
        return (array * np.asarray(factor).astype(array.dtype)).astype(array.dtype)

    specs = [s for s in profile("smoke", "LSTM", 14) if not s.illegal]
    specs += [replace(s, type=type) for s in specs if s.type == "float32" for type in ("float64", "float16")]
    findings, results, probes = findings_on(_changed_by(change), specs)
    assert {r.verdict.value for r in results if r.failing} == {"wrong", "inaccurate"}
    assert len(findings) == 2
    for finding in findings:
        assert not finding["tried"] or "float" not in finding["conditions"]
    assert false_sentences(findings, results, probes) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", [5, 6, 7, 8])
def test_what_comes_and_goes_has_its_condition(seed: int) -> None:
    dice, right = random.Random(seed), of_faults([])

    def opened(model: bytes) -> Session:
        session = right(model)

        def run(feeds: dict[str, Any]) -> list[Any]:
            off = "sequence_lens" in feeds and dice.random() < 0.15
            return [(a * np.asarray(1.25 if off else 1).astype(a.dtype)).astype(a.dtype) for a in session(feeds)]

        return run

    specs = [s for s in profile("smoke", "GRU", 14) if not s.illegal]
    findings, _, _ = findings_on(opened, [*specs, *(replace(s, seed=s.seed + 1) for s in specs)])
    unstable = [f for f in findings if f["kind"] == "unstable"]
    assert {(f["tried"], f["conditions"], f["fault"]) for f in unstable} == {(True, "sequence_lens", "")}


def _where(chosen: Callable[[Any, dict[str, Any]], bool], id: str) -> Any:
    """Return a target that makes a fault only where ``chosen`` accepts the node and its feeds."""
    right, wrong = of_faults([]), of_faults([id])

    def opened(model: bytes) -> Session:
        (node,), sessions = onnx.load_model_from_string(model).graph.node, (right(model), wrong(model))
        return lambda feeds: sessions[chosen(node, feeds)](feeds)

    return opened


def _small(op: str) -> list[CaseSpec]:
    specs = [s for version in versions_of(op) for s in profile("smoke", op, version)]
    return [s for s in specs if s.type == "float32" and s.T * s.N * s.H < 400 and not s.illegal]


def test_what_must_be_absent_is_a_condition() -> None:
    """Cases with linear_before_reset and B pass: without the condition "no bias" they would contradict the name."""
    target = _where(lambda node, feeds: len(node.input) < 4 or not node.input[3], "gru.linear-before-reset.ignored")
    findings, results, probes = findings_on(target, _small("GRU"))
    (finding,) = findings
    assert (finding["conditions"], finding["passing"]) == ("no bias", 0)
    assert finding["title"].startswith("Ignores linear_before_reset")
    assert false_sentences(findings, results, probes, _truth("gru.linear-before-reset.ignored")) == []


def test_where_a_fault_shows_is_a_condition() -> None:
    """Cases with lengths and layout 0 pass."""

    def in_layout_1(node: Any, feeds: dict[str, Any]) -> bool:
        return any(attribute.name == "layout" and attribute.i for attribute in node.attribute)

    findings, results, probes = findings_on(_where(in_layout_1, "lengths.ignored"), _small("GRU"))
    (finding,) = findings
    assert finding["fault"] == "lengths.ignored"
    assert "layout 1" in finding["conditions"]
    assert false_sentences(findings, results, probes, _truth("lengths.ignored")) == []


def test_a_size_that_the_smallest_case_has_anyway_is_a_condition() -> None:
    """A fault of one step shows in no longer sequence."""
    target = _where(lambda node, feeds: feeds["X"].shape[0] == 1, "gru.update-gate.inverted")
    specs = [s for s in _small("GRU") if s.layout == 0]
    specs = [replace(s, T=T, seed=s.seed + T) for s in specs for T in (1, 2, 3) if s.T > 1 and s.reruns == "none"]
    findings, results, probes = findings_on(target, specs)
    (finding,) = findings
    assert (finding["fault"], finding["conditions"], finding["passing"]) == (
        "gru.update-gate.inverted",
        "exactly 1 step",
        0,
    )
    assert finding["title"].startswith("Weighs the new state by z")
    assert false_sentences(findings, results, probes, _truth("gru.update-gate.inverted")) == []


def test_an_earlier_run_that_fails_by_itself_is_no_condition() -> None:
    fields = {"activations": ("ScaledTanh", "Tanh", "Tanh"), "input_forget": 1, "reruns": "sizes"}
    specs = [CaseSpec("LSTM", 14, T=1, N=1, I=1, H=1, seed=seed, **fields) for seed in (1, 2)]
    (finding,) = findings_on(of_faults(["lstm.input-forget.by-negation"]), specs)[0]
    assert finding["fault"] == "lstm.input-forget.by-negation"
    assert finding["foretold"] >= 5
    assert "run" not in finding["conditions"]
    assert "(run " not in finding["message"]


def test_a_wrong_case_that_is_right_by_a_wider_class_alone_is_made_smaller() -> None:
    """The numbers of the smallest failing case are small, and their errors are less than bfloat16's roundings."""
    target = _where(lambda node, feeds: feeds["X"].shape[-1] > 4, "sizes.input-tail-of-4")
    findings, results, probes = findings_on(target, _small("RNN"))
    (finding,) = findings
    assert (finding["fault"], finding["conditions"]) == ("sizes.input-tail-of-4", "5 features of X or more")
    assert finding["foretold"] >= 5
    assert false_sentences(findings, results, probes, _truth("sizes.input-tail-of-4")) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "ids",
    [
        # Past its length the kernel computes the first row on, and reports 0.
        ("alpha.zero-as-default", "rows.share-first-state"),
        # Ignoring alpha has the same effect on Elu, and changes other functions too.
        ("softsign.no-absolute", "elu.no-alpha"),
        # In Y_h alone the second one is the same as ignoring sequence_lens there.
        ("bias.recurrent-half-ignored", "lengths.states-run-on"),
    ],
)
def test_a_fault_beside_another_is_not_taken_for_a_third(ids: Sequence[str]) -> None:
    op = "LSTM" if "lengths.states-run-on" in ids else "RNN"
    specs = [s for version in versions_of(op) for s in profile("smoke", op, version) if not s.illegal]
    findings, results, probes = findings_on(of_faults(ids), specs)
    named = {f["fault"] for f in findings if f["foretold"]}
    assert named
    assert {name.partition("@")[0] for name in named} <= {*ids}
    assert false_sentences(findings, results, probes, _truth(*ids)) == []


def test_sentences_that_are_false_are_seen() -> None:
    findings, results, probes = findings_on(of_faults(["clip.ignored"]), SPECS)
    (finding,) = findings
    wrong = {**finding, "conditions": "both directions", "title": "Ignores clip (with both directions)"}
    lines = false_sentences([wrong], results, probes, _truth("bias.ignored"))  # type: ignore[list-item]
    assert len(lines) >= 2
    assert any("clip.ignored is not what is wrong" in line for line in lines)
    assert any("of its cases lack a condition" in line or "cases that pass meet" in line for line in lines)
    small = SpecProbe(CaseSpec("LSTM", 14, H=5, lengths="short", T=3))
    conditions = ("exactly 5 units", "6 units or more", "a row shorter than the sequence", "2 to 5 units")
    assert [meets(small, w) for w in conditions] == [True, False, True, True]
    assert meets(SpecProbe(CaseSpec("GRU", 1, outputs=("Y", "Y_h"), output_sequence=0)), "output_sequence 0")
    assert not meets(SpecProbe(CaseSpec("GRU", 1, outputs=("", "Y_h"))), "output_sequence")
    with pytest.raises(LookupError):
        meets(small, "some thing nobody knows")


def test_a_fault_that_is_confirmed_on_the_smallest_case_keeps_its_name() -> None:
    """No explanation exists for a case with five faults at once; the shrunk case shows one of them."""
    ids = ("lengths.ignored", "clip.ignored", "activations.ignored", "initial-h.ignored", "lstm.input-forget.ignored")
    spec = CaseSpec(
        "LSTM", 14, T=4, N=3, I=2, H=5, lengths="ragged", clip=0.25, activations=("Tanh", "Relu", "Sigmoid"),
        initial="all", input_forget=1, outputs=("Y", "Y_h", "Y_c"),
    )  # fmt: skip
    findings, results, probes = findings_on(of_faults(ids), [replace(spec, seed=seed) for seed in (1, 2)])
    (finding,) = findings
    assert {result.diagnosis for result in results} == {()}
    assert finding["fault"] in ids
    assert finding["foretold"] >= 5
    assert finding["title"].startswith("Beside other faults: ")
    assert false_sentences(findings, results, probes, _truth(*ids)) == []
