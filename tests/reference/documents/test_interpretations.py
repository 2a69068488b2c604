"""Tests of interpretations and errata: each combination that a document leaves open is right."""

from __future__ import annotations

import itertools
from dataclasses import fields
from functools import lru_cache
from typing import Any

import onnx.defs
import onnx.helper
import pytest

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.reference import CELLS as OPERATORS
from onnxspec.reference import (
    Interpretations,
    Node,
    configure,
    evaluate,
    format_of,
    open_questions_of,
    operator_version,
    versions_of,
)
from onnxspec.reference.documents.interpretations import ERRATA, QUESTIONS, Default, Erratum, corrected
from onnxspec.reference.operators.asking import readings
from onnxspec.reference.recurrent.configuration import Configuration

built = lru_cache(maxsize=None)(build_case)


def opened(op: str, version: int) -> list[tuple[CaseSpec, frozenset[str]]]:
    """Return the legal cases of core that touch an interpretation, each with those that it touches."""
    specs = [spec for spec in profile("core", op, version) if not spec.illegal]
    pairs = ((spec, open_questions_of(spec.node, built(spec).trial.feeds[0].inputs)) for spec in specs)
    return [(spec, open_questions) for spec, open_questions in pairs if open_questions]


OPEN = opened("LSTM", 14)


def test_a_interpretation_that_only_another_one_opens_is_touched() -> None:
    """By position, ScaledTanh is third and gets neither an alpha nor a beta; by use it gets both."""
    names = ("Sigmoid", "LeakyRelu", "ScaledTanh")
    spec = CaseSpec("LSTM", 14, T=2, N=2, I=2, H=2, activations=names, alpha=(-0.5, -1.5), beta=(0.625,))
    assert open_questions_of(spec.node, build_case(spec).trial.feeds[0].inputs) == {"coefficients", "defaults"}


@pytest.mark.parametrize(("op", "version"), [("LSTM", 14), ("GRU", 14), ("RNN", 1), ("DynamicQuantizeLSTM", 1)])
def test_interpretations_that_come_to_the_same_are_one_reading(op: str, version: int) -> None:
    """Readings differ in the resolved configuration of a node, and every combination is equal to one reading."""
    named = [field.name for field in fields(Configuration) if field.name not in ("lengths", "open_questions")]
    saved = 0
    for spec, open_questions in opened(op, version)[::3]:
        node, inputs = spec.node, built(spec).trial.feeds[0].inputs

        def resolved(each: Interpretations, node: Node = node, inputs: Any = inputs) -> tuple[Any, ...]:
            return tuple(getattr(configure(node, inputs, each), name) for name in named)

        every = [resolved(each) for each in Interpretations().alternatives(open_questions)]
        asked = [*map(resolved, readings([(node, inputs)], open_questions))]
        assert len(set(asked)) == len(asked)
        assert set(asked) == set(every)
        assert asked[0] == every[0]
        saved += len(every) - len(asked)
    assert saved


def follow(spec: CaseSpec, interpretations: Interpretations) -> None:
    """Check that a target that computes a case by these interpretations is right."""

    def follower(node, inputs):  # type: ignore[no-untyped-def]
        dtype = format_of(inputs["X"].dtype).dtype
        return {n: a.astype(dtype) for n, a in evaluate(node, inputs, interpretations).items()}

    judgement = judge_staged(built(spec), follower)
    assert judgement.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE), (spec.id, interpretations, judgement.message)


TOGETHER = [
    pair
    for pair in itertools.combinations_with_replacement(QUESTIONS, 2)
    if any(set(pair) <= open_questions for _, open_questions in OPEN)
]


def test_cases_of_core_open_every_question_of_lstm() -> None:
    inside = {"cell_output_clip", "coupled_gate", "zero_clip"}
    assert {name for pair in TOGETHER for name in pair} == inside | {"coefficients", "defaults", "threshold", "empty"}


@pytest.mark.parametrize(("first", "second"), TOGETHER)
def test_whoever_follows_any_two_interpretations_is_right(first: str, second: str) -> None:
    """A pair of a question with itself covers the cases that touch only that question."""
    pair = {first, second}
    both = [spec for spec, open_questions in OPEN if pair <= open_questions]
    choices = itertools.product(QUESTIONS[first].options, QUESTIONS[second].options)
    for choice in dict.fromkeys(Interpretations(**dict(zip((first, second), each, strict=True))) for each in choices):
        for spec in both[:: 1 if pair == {"coefficients", "defaults"} else 7]:
            follow(spec, choice)


@pytest.mark.parametrize(("op", "version", "each"), [
    ("GRU", 1, 2), ("GRU", 3, 3), ("GRU", 14, 5), ("RNN", 1, 2), ("RNN", 14, 5),
])  # fmt: skip
def test_whoever_follows_any_interpretations_of_a_case_is_right(op: str, version: int, each: int) -> None:
    chosen = opened(op, version)[::each]
    assert len(chosen) > 5
    for spec, open_questions in chosen:
        for interpretations in Interpretations().alternatives(open_questions):
            follow(spec, interpretations)


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_what_is_touched_is_the_same_by_every_combination(op: str) -> None:
    """The fast way asks only for questions that may open another one; the slow way goes through all combinations."""
    for version in versions_of(op)[::2]:
        for spec in [spec for spec in profile("core", op, version) if not spec.illegal][::3]:
            inputs = build_case(spec).trial.feeds[0].inputs
            previous: frozenset[str] = frozenset()
            open_questions = configure(spec.node, inputs).open_questions
            while previous != open_questions:
                previous = open_questions
                every = Interpretations().alternatives(previous)
                open_questions = previous.union(
                    *(configure(spec.node, inputs, interpretations).open_questions for interpretations in every)
                )
            assert open_questions_of(spec.node, inputs) == previous, spec.id


ENTRIES = [(erratum, version) for erratum in ERRATA for version in erratum.versions]
ALL = [(op, version) for op in OPERATORS for version in versions_of(op)]


def registered(op: str, version: int, attribute: str) -> Default | None:
    default = onnx.defs.get_schema(op, version, "").attributes[attribute].default_value
    value = onnx.helper.get_attribute_value(default)
    if isinstance(value, list):
        return tuple(v.decode() for v in value)
    return value.decode() if isinstance(value, bytes) else value  # type: ignore[no-any-return]


@pytest.mark.parametrize(("erratum", "version"), ENTRIES, ids=lambda e: e.op_type if isinstance(e, Erratum) else str(e))
def test_each_entry_is_what_onnx_registers_and_its_document_contradicts(erratum: Erratum, version: int) -> None:
    assert registered(erratum.op_type, version, erratum.attribute) == erratum.registered
    assert erratum.meant != erratum.registered
    says = onnx.defs.get_schema(erratum.op_type, version, "").attributes[erratum.attribute].description
    excerpts = {"direction": "Must be one of forward (default)", "activations": "One (or two if bidirectional)"}
    assert excerpts[erratum.attribute] in says


@pytest.mark.parametrize(("op", "version"), ALL)
def test_defaults_and_required_outputs_are_those_of_the_documents(op: str, version: int) -> None:
    defaults: dict[str, Default] = {"direction": "forward"}
    if version < 7:
        defaults["output_sequence"] = 0
    if version >= 14:
        defaults["layout"] = 0
    if op == "LSTM":
        defaults["input_forget"] = 0
    if op == "GRU" and version > 1:
        defaults["linear_before_reset"] = 0
    operator = operator_version(op, version)
    assert operator.defaults == defaults
    assert operator.required_outputs == ({"Y_h"} if (op, version) == ("GRU", 1) else set())


def test_what_onnx_has_mended_is_not_corrected() -> None:
    assert corrected("GRU", 1, "direction", "foward") == "forward"
    assert corrected("GRU", 1, "direction", "reverse") == "reverse"
    assert corrected("GRU", 3, "direction", "foward") == "foward"
    assert corrected("LSTM", 1, "direction", "foward") == "foward"
    assert corrected("RNN", 7, "activations", ("Tanh", "Tanh")) is None
    assert corrected("RNN", 7, "activations", ("Tanh",)) == ("Tanh",)
