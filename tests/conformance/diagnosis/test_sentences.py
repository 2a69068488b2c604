"""Test of sentences: the findings on faulty targets are true.

This module tries some faults, pairs of faults and kernels on a few cases; ``python -m benchmarks.sentences`` tries all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

from benchmarks.sentences import false_sentences, meets
from benchmarks.staging import Opened, Session, findings_on, kernel_names, of_faults, on_kernel
from benchmarks.truths import TRUTHS, Truth
from onnxspec.cases import CaseSpec, profile
from onnxspec.conformance.diagnosis.stating import mentions
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.results.records import Finding
from onnxspec.reference import versions_of

from .in_process import Feeds, running


def _legal(*ops: str, versions: Sequence[int] = ()) -> list[CaseSpec]:
    """Return the legal cases of smoke of operators, by default of all versions."""
    pairs = [(op, version) for op in ops for version in versions_of(op) if not versions or version in versions]
    return [s for op, version in pairs for s in profile("smoke", op, version) if not s.illegal]


def _truth(*ids: str) -> Truth:
    return Truth("staged", {"all": tuple(f"{id}*" for id in ids)})


def _true_findings(target: Opened, specs: Sequence[CaseSpec], *ids: str) -> list[Finding]:
    """Return the findings on a target with these faults. Assert that all that they say is true."""
    findings, results, probes = findings_on(target, specs)
    assert findings
    assert false_sentences(findings, results, probes, _truth(*ids)) == []
    return findings


@pytest.mark.long
@pytest.mark.parametrize(
    ("op", "ids"),
    [
        ("LSTM", ("lengths.ignored",)),
        ("LSTM", ("bias.recurrent-half-ignored@units-past-4s",)),
        ("LSTM", ("direction.reverse-runs-forward",)),
        ("LSTM", ("bias.ignored", "lstm.peepholes.ignored")),
        ("LSTM", ("lengths.ignored", "lstm.input-forget.ignored")),
        # A fault beside another is not taken for a third. Past its length the kernel computes the first row on, and
        # reports 0.
        ("RNN", ("alpha.zero-as-default", "rows.share-first-state")),
        # Ignoring alpha has the same effect on Elu, and changes other functions too.
        ("RNN", ("softsign.no-absolute", "elu.no-alpha")),
        # In Y_h alone the second one is the same as ignoring sequence_lens there.
        ("LSTM", ("bias.recurrent-half-ignored", "lengths.states-run-on")),
    ],
)
def test_what_findings_say_of_faults_is_true(op: str, ids: Sequence[str]) -> None:
    named = {f["fault"].partition("@")[0] for f in _true_findings(of_faults(ids), _legal(op), *ids) if f["foretold"]}
    assert named
    assert named <= {id.partition("@")[0] for id in ids}


@pytest.mark.long
@pytest.mark.parametrize("kernel", ["library-gru", "vector-tail", "fast-math"])
def test_what_findings_say_of_kernels_is_true(kernel: str) -> None:
    assert kernel in kernel_names()
    findings, results, probes = findings_on(on_kernel(kernel), _legal("GRU", "LSTM", "RNN", versions=(7, 14)))
    assert findings
    assert false_sentences(findings, results, probes, TRUTHS[kernel]) == []


def _changed_by(change: Callable[[Feeds, Any], Any]) -> Opened:
    """Return a target that changes each right output, by its feeds and the output."""
    return running(lambda graph, session, feeds: [change(feeds, array).astype(array.dtype) for array in session(feeds)])


@pytest.mark.long
def test_numbers_that_float32_does_not_hold_were_not_computed_in_it() -> None:
    specs = _legal("LSTM", "RNN", versions=(14,))
    specs += [replace(s, type="float64") for s in specs if s.type == "float32"]
    target = _changed_by(lambda feeds, a: a.astype(np.float64) + 1e-7 * np.sin(9 * a.astype(np.float64)))
    findings, results, _ = findings_on(target, specs)
    assert sum(r.failing and r.type == "float64" for r in results) > 8
    assert {f["fault"] for f in findings} == {""}
    assert not any("consistent with" in f["title"].lower() for f in findings)


@pytest.mark.long
def test_subnormal_numbers_that_come_back_were_not_flushed() -> None:
    def change(feeds: Feeds, array: Any) -> Any:
        small = 0 < np.abs(feeds["X"].astype(np.float64)).max(initial=0.0) < 1e-3
        return array * np.asarray(1.5 if small else 1).astype(array.dtype)

    linear = ("Sigmoid", "Relu", "Relu")
    specs = [CaseSpec("LSTM", 14, T=t, H=3, extremes="subnormal", activations=linear, seed=t) for t in range(1, 5)]
    findings = _true_findings(_changed_by(change), [*specs, *_legal("LSTM", versions=(14,))])
    assert {f["fault"] for f in findings} == {""}
    assert not any("for zero" in f["title"] for f in findings)


@pytest.mark.long
def test_a_type_is_no_condition_of_an_error_that_others_have() -> None:
    def change(feeds: Feeds, array: Any) -> Any:
        return array * np.asarray(1.01 if array.dtype.itemsize > 2 else 1.25).astype(array.dtype)

    specs = _legal("LSTM", versions=(14,))
    specs += [replace(s, type=type) for s in specs if s.type == "float32" for type in ("float64", "float16")]
    findings = _true_findings(_changed_by(change), specs)
    assert {f["verdict"] for f in findings} == {"wrong", "inaccurate"}
    assert len(findings) == 2
    assert not any(f["tried"] and "float" in f["conditions"] for f in findings)


@pytest.mark.long
@pytest.mark.parametrize("seed", [5, 6, 7, 8])
def test_what_comes_and_goes_has_its_condition(seed: int) -> None:
    dice = random.Random(seed)

    def target(graph: Any, session: Session, feeds: Feeds) -> list[Any]:
        off = "sequence_lens" in feeds and dice.random() < 0.15
        return [(a * np.asarray(1.25 if off else 1).astype(a.dtype)).astype(a.dtype) for a in session(feeds)]

    specs = _legal("GRU", versions=(14,))
    findings, _, _ = findings_on(running(target), [*specs, *(replace(s, seed=s.seed + 1) for s in specs)])
    unstable = [f for f in findings if f["kind"] == "unstable"]
    assert {(f["tried"], f["conditions"], f["fault"]) for f in unstable} == {(True, "sequence_lens", "")}


def _where(chosen: Callable[[Any, Feeds], bool], id: str) -> Opened:
    """Return a target that makes a fault only where ``chosen`` accepts the node and its feeds."""
    right, wrong = of_faults([]), of_faults([id])

    def opened(model: bytes) -> Session:
        node, sessions = onnx.load_model_from_string(model).graph.node[0], (right(model), wrong(model))
        return lambda feeds: sessions[chosen(node, feeds)](feeds)

    return opened


def _small(op: str) -> list[CaseSpec]:
    return [s for s in _legal(op) if s.type == "float32" and s.T * s.N * s.H < 400]


@pytest.mark.parametrize(
    ("op", "fault", "chosen", "condition"),
    [
        # Cases with linear_before_reset and B pass: without this condition they would contradict the name.
        (
            "GRU",
            "gru.linear-before-reset.ignored",
            lambda node, feeds: len(node.input) < 4 or not node.input[3],
            "no bias",
        ),
        # The numbers of the smallest failing case are small, and their errors are less than bfloat16's roundings.
        (
            "RNN",
            "sizes.input-tail-of-4",
            lambda node, feeds: feeds["X"].shape[-1] > 4,
            "5 features of X or more",
        ),
    ],
    ids=["absence", "size"],
)
def test_where_a_fault_shows_is_a_condition(op: str, fault: str, chosen: Any, condition: str) -> None:
    (finding,) = _true_findings(_where(chosen, fault), _small(op), fault)
    assert (finding["fault"], finding["conditions"], finding["passing"]) == (fault, condition, 0)
    assert finding["foretold"] >= 5


@pytest.mark.parametrize(
    ("sentence", "words", "said"),
    [
        ("Ignores P", "peepholes P", True),
        ("Takes Y_h from the last time step of Y", "outputs Y_h", True),
        ("Ignores the second half of B", "no bias B", False),
        ("Leaves the product of X with W out", "subnormal numbers in X", False),
    ],
)
def test_only_the_name_of_a_tensor_says_that_it_is_there(sentence: str, words: str, said: bool) -> None:
    assert mentions(sentence, words) == said


def test_a_layout_is_a_condition_beside_others() -> None:
    """Cases with lengths and layout 0 pass."""
    fault = "lengths.ignored"
    target = _where(lambda node, feeds: any(a.name == "layout" and a.i for a in node.attribute), fault)
    (finding,) = _true_findings(target, _small("GRU"), fault)
    assert finding["fault"] == fault
    assert "layout 1" in finding["conditions"]


def test_a_size_that_the_smallest_case_has_anyway_is_a_condition() -> None:
    """A fault of one step shows in no longer sequence."""
    fault = "gru.update-gate.inverted"
    specs = [s for s in _small("GRU") if s.layout == 0 and s.T > 1 and s.reruns == "none"]
    specs = [replace(s, T=T, seed=s.seed + T) for s in specs for T in (1, 2, 3)]
    (finding,) = _true_findings(_where(lambda node, feeds: len(feeds["X"]) == 1, fault), specs, fault)
    assert (finding["fault"], finding["conditions"], finding["passing"]) == (fault, "exactly 1 step", 0)
    assert finding["title"].startswith("Weighs the new state by z")


def test_an_earlier_run_that_fails_by_itself_is_no_condition() -> None:
    fields = {"activations": ("ScaledTanh", "Tanh", "Tanh"), "input_forget": 1, "reruns": "sizes"}
    specs = [CaseSpec("LSTM", 14, T=1, N=1, I=1, H=1, seed=seed, **fields) for seed in (1, 2)]
    (finding,) = findings_on(of_faults(["lstm.input-forget.by-negation"]), specs)[0]
    assert finding["fault"] == "lstm.input-forget.by-negation"
    assert finding["foretold"] >= 5
    assert "run" not in finding["conditions"]
    assert "(run " not in finding["message"]


def test_sentences_that_are_false_are_seen() -> None:
    findings, results, probes = findings_on(of_faults(["clip.ignored"]), _legal("LSTM"))
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
