"""Explanation of a case for people: verdict, node, clauses, and numbers step by step."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from msgspec import structs
from rich.console import Console

from onnxspec.cases import Case, CaseSpec, build_case, clauses_exercised, profile
from onnxspec.conformance.cli.explanation import explanation_of, print_explanation
from onnxspec.conformance.diagnosis.findings import findings_of
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.conformance.results.records import Finding
from onnxspec.conformance.results.result import result_of
from onnxspec.conformance.workers.job import Outcome
from onnxspec.reference import FAULTS, Interpretations, Node, evaluate, operator_for, run_fault
from onnxspec.reference.recurrent.computation import steps_of

Outputs = dict[str, np.ndarray]

PLAIN = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, outputs=("Y", "Y_h", "Y_c"))


def _conforming(node: Node, inputs: Mapping[str, Any], interpretations: Interpretations | None = None) -> Outputs:
    outputs = evaluate(node, inputs, interpretations)
    return {name: array.astype(inputs["X"].dtype) for name, array in outputs.items()}


def _adding(*changes: tuple[str, tuple[int, ...], float]) -> Callable[[Node, Mapping[str, Any]], Outputs]:
    """Return an implementation that adds an amount to some elements of right outputs."""

    def implementation(node: Node, inputs: Mapping[str, Any]) -> Outputs:
        outputs = _conforming(node, inputs)
        for name, index, amount in changes:
            outputs[name][index] += amount
        return outputs

    return implementation


def _printed(case: Case, *outcomes: Outcome, width: int = 100, **options: Any) -> str:
    judgement = judge(case.trials, outcomes) if outcomes else None
    file = io.StringIO()
    print_explanation(SpecProbe(case.spec), outcomes, judgement, Console(file=file, width=width), **options)
    return file.getvalue()


def _explained(spec: CaseSpec, implementation: Callable[[Node, Mapping[str, Any]], Mapping[str, Any]]) -> str:
    case = build_case(spec)
    return _printed(case, *(staged_outcome(trial, implementation) for trial in case.trials))


def _numbers(text: str) -> str:
    """Return the part of the text with numbers, which precedes the clauses."""
    return text[text.index("\nNumbers") : text.index("\nClauses")]


def _tables(text: str) -> list[list[str]]:
    """Return the lines of every step table: its title, its column names, its steps."""
    numbers = _numbers(text)
    blocks = re.findall(r"^Step by step.*?(?=^After)", numbers, re.MULTILINE | re.DOTALL)
    return [block.splitlines() for block in blocks]


def test_without_a_target_all_that_is_expected_is_there() -> None:
    case = build_case(replace(PLAIN, bias=True, initial="all", direction="reverse", weights="initializer"))
    text = _printed(case)
    assert text.startswith(case.spec.id)
    assert 'LSTM <direction: string = "reverse", hidden_size: int = 5>' in text
    assert "LSTM-14 in a model of opset 14" in text
    assert re.search(r"^X +float32 +\(4, 3, 2\) +graph input", text, re.MULTILINE)
    assert re.search(r"^R +float32 +\(1, 20, 5\) +initializer", text, re.MULTILINE)
    assert re.search(r"^sequence_lens +absent", text, re.MULTILINE)
    assert "\nClauses that it exercises: what the document says, summarised\n" in text
    assert "\nthe document itself: https://onnx.ai/onnx/operators/onnx__LSTM.html\n" in text
    for clause in clauses_exercised(case.spec):
        assert re.search(rf"^  {re.escape(clause.id)} +{clause.status} +\w+", text, re.MULTILINE)
    ((title, columns, *steps),) = _tables(text)
    assert title.split() == ["Step", "by", "step,", "reverse,", "row", "0,", "unit", "0"]
    assert columns.split() == ["step", "x", "i", "o", "f", "c", "C", "H", "Y", "must", "be", "error", "bound"]
    assert [line.split()[:2] for line in steps] == [["0", "3"], ["1", "2"], ["2", "1"], ["3", "0"]]
    assert "part" not in _numbers(text)


def test_gates_of_a_single_unit_are_those_computed_by_hand() -> None:
    case = build_case(CaseSpec("LSTM", 14, bias=True, initial="all", type="float64"))
    inputs = {name: array.ravel().tolist() for name, array in case.trial.feeds[0].inputs.items()}
    (x,), W, R, B, (h,), (C,) = (inputs[name] for name in ("X", "W", "R", "B", "initial_h", "initial_c"))
    sums = [x * W[k] + h * R[k] + B[k] + B[4 + k] for k in range(4)]
    i, o, f = (1 / (1 + math.exp(-s)) for s in sums[:3])
    c = math.tanh(sums[3])
    state = f * C + i * c
    ((_, _, step),) = _tables(_printed(case))
    assert step.split()[:8] == ["0", "0", *(f"{v:.4g}" for v in (i, o, f, c, state, o * math.tanh(state)))]
    assert step.split()[8] == f"{o * math.tanh(state):.9g}"


def test_an_conforming_target_parts_nowhere() -> None:
    text = _explained(PLAIN, _conforming)
    assert "\npass\n" in text
    assert "They part nowhere." in text
    ((_, columns, *steps),) = _tables(text)
    assert columns.split()[-2:] == ["got", "error/bound"]
    assert all(float(line.split()[-1]) <= 1 for line in steps)
    assert ">" not in _numbers(text)


def test_the_first_step_that_is_wrong_is_named_and_marked_in_processing_order() -> None:
    spec = replace(PLAIN, T=6, direction="bidirectional", layout=1, lengths="ragged")
    lengths = build_case(spec).trial.feeds[0].inputs["sequence_lens"].tolist()
    row, length = next((row, length) for row, length in enumerate(lengths) if 2 < length < 6)

    # Reverse computes position 1 before position 0, where the error is worst by far; it is also the last state.
    worst = (("Y", (row, 0, 1, 2), 4.0), ("Y_h", (row, 1, 2), 4.0))
    text = _explained(spec, _adding(("Y", (row, 1, 1, 3), 0.25), *worst))
    assert "\nwrong (value): " in text
    sentence = f"First difference at step {length - 2} (reverse, row {row}, unit 3): Y[{row}, 1, 1, 3] is"
    assert sentence in " ".join(text.split())
    (first,) = _tables(text)
    assert first[0].strip() == f"Step by step, reverse, row {row}, unit 3"
    (marked,) = [line for line in first if line.startswith(">")]
    assert marked.split()[1:3] == [str(length - 2), "1"]
    assert re.search(r"^> lstm\.equations +stated", text, re.MULTILINE)


def test_gates_follow_from_what_the_target_reported_the_step_before() -> None:
    case = build_case(PLAIN)
    outcome = staged_outcome(case.trial, _adding(("Y", (0, 0, 0), 1.0)))
    reported = outcome.outputs[0][0][0]
    (local,), (free,) = (steps_of(case.trial.node, case.trial.feeds[0].inputs, Y) for Y in (reported, None))
    gates = [[f"{values[1, 0, 0]:.4g}" for values in steps.numbers.values()] for steps in (local, free)]
    assert gates[0] != gates[1]
    text = _printed(case, outcome)
    table = next(table for table in _tables(text) if table[0].split()[-3:] == ["0,", "unit", "0"])
    assert table[3].split()[2:8] == gates[0]
    assert "computed from the Y that the target reported" in text


def test_ratio_and_radius_are_those_of_the_verdict() -> None:
    case = build_case(PLAIN)
    outcome = staged_outcome(case.trial, _adding(("Y", (2, 0, 1, 4), 1e-3)))
    judgement = judge(case.trials, [outcome])
    ((_, _, *steps),) = _tables(_printed(case, outcome))
    radius = re.search(r"error bound (\S+)", judgement.message)
    assert radius is not None
    assert float(steps[2].split()[-3]) == pytest.approx(float(radius[1]), rel=0.05)
    assert float(steps[2].split()[-1]) == pytest.approx(judgement.worst, rel=0.05)


def test_a_wrong_last_state_is_found_where_y_is_right() -> None:
    text = _explained(PLAIN, _adding(("Y_c", (0, 2, 1), 0.5)))
    assert "First difference at the end (forward, row 2, unit 1): Y_c[0, 2, 1] is" in text
    assert "After the last step, forward, row 2, unit 1" in text


def test_the_interpretation_that_the_target_follows_is_the_one_shown() -> None:
    other = Interpretations(coupled_gate="forget")
    text = _explained(replace(PLAIN, input_forget=1), partial(_conforming, interpretations=other))
    assert "They part nowhere." in text
    assert "coupled_gate: input or forget; here: forget (lstm.input-forget.kept-gate)" in text


def test_padding_that_is_not_zero_breaks_a_convention_only() -> None:
    text = _explained(replace(PLAIN, lengths="short"), _adding(("Y", (3, 0, 1, 2), 7.0)))
    assert "\npass (padding): " in text
    sentence = "row 1, unit 2): Y[3, 0, 1, 2] is 7, must be 0 (lstm.padding.zero; only a convention says so)"
    assert sentence in " ".join(text.split())
    ((_, _, *steps),) = _tables(text)
    assert steps[-1].split() == [">", "padding", "3", "0", "convention", "7", "differs", "(allowed)"]


def test_a_case_without_y_is_shown_by_the_y_of_its_companion() -> None:
    spec = replace(PLAIN, outputs=("", "Y_h", "Y_c"))
    implementation = partial(run_fault, FAULTS["lstm.gates.ifco"])
    text = _explained(spec, implementation)
    assert "The case asks for no Y: this is from a run of the same node with all outputs" in text
    assert "First difference at step 0 (forward, row 0, unit " in text
    alone = _printed(build_case(spec), staged_outcome(build_case(spec).trial, implementation))
    assert "First difference at the end (forward, row 0, unit " in alone


def test_of_several_runs_the_worst_is_shown() -> None:
    calls: list[int] = []

    def implementation(node: Node, inputs: Mapping[str, Any]) -> Outputs:
        calls.append(1)
        outputs = _conforming(node, inputs)
        if len(calls) == 1:
            outputs["Y"][0] += 1
        return outputs

    text = _explained(replace(PLAIN, reruns="data"), implementation)
    assert "Run 1 of 2 of the session" in text
    assert "the same session runs other data first: X of shape (4, 3, 2)" in text


def test_results_that_differ_from_repeat_to_repeat() -> None:
    case = build_case(PLAIN)
    good = staged_outcome(case.trial, _conforming).outputs[0][0]
    bad = tuple(array + np.float32(1) for array in good if array is not None)
    outcome = Outcome(case.trial.key, "ran", "run", ((good, bad),))
    text = _printed(case, outcome)
    assert "\nunstable (value): " in text
    assert "result 2 of 2 that differ" in text


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (replace(PLAIN, T=0, initial="all"), "The sequence has no steps: there are no gates."),
        (replace(PLAIN, T=0, outputs=("", "Y_h")), "The sequence has no steps: there are no gates."),
        (replace(PLAIN, N=0), "The batch has no rows: every output is empty."),
        (
            replace(PLAIN, beside=True, kept=True),
            "its sessions have outputs that are held while the session runs again; sessions of different",
        ),
    ],
)
def test_what_is_special_of_a_case_is_told(spec: CaseSpec, sentence: str) -> None:
    text = _explained(spec, _conforming)
    assert sentence in " ".join(text.split())
    assert "the same session runs other data first" not in text
    if spec.T == 0:
        assert re.search(r"^Y_h\[0, 0, 0\] ", text, re.MULTILINE)
        assert _tables(text) == []


def test_what_is_not_finite_and_what_cannot_be_judged() -> None:
    text = _explained(PLAIN, _adding(("Y", (1, 0, 0), math.nan)))
    assert "\nwrong (nonfinite): " in text
    _, _, *steps = _tables(text)[0]
    assert steps[1].split()[-3:] == ["nan", ">", "1e6"]
    assert steps[1].startswith(">")
    assert "inconclusive" in steps[2]


@pytest.mark.parametrize("form", ["shape", "missing", "count", "type"])
def test_outputs_of_another_form(form: str) -> None:
    case = build_case(PLAIN)
    good = staged_outcome(case.trial, _conforming).outputs[0][0]
    Y = good[0]
    assert Y is not None
    outputs = {
        "shape": (Y[:-1], *good[1:]),
        "missing": (None, *good[1:]),
        "count": good[1:],
        "type": (Y.astype(np.float64), *good[1:]),
    }[form]
    text = _printed(case, Outcome(case.trial.key, "ran", "run", ((outputs,),)))
    assert "\nmalformed (" in text
    ((_, columns, *steps),) = _tables(text)
    assert len(steps) == 4
    assert "got" not in columns


def test_a_crash_tells_what_the_runtime_said() -> None:
    case = build_case(PLAIN)
    captured = "\n".join([*(f"line {k}" for k in range(40)), "\x1b[31mterminate called\x07", ""])
    outcome = Outcome(case.trial.key, "crashed", message="the process died", signal="SIGABRT", captured=captured)
    text = _printed(case, outcome)
    assert "\ncrashed: the process died\n" in text
    assert "SIGABRT" in text
    assert "terminate called" in text
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "line 20" not in text
    ((_, columns, *steps),) = _tables(text)
    assert (len(steps), "got" in columns) == (4, False)


def test_a_refusal_is_shown_with_its_message() -> None:
    case = build_case(PLAIN)
    outcome = Outcome(case.trial.key, "refused", "load", message="not [bold]implemented[/bold]")
    assert "\nunsupported (load): not [bold]implemented[/bold]\n" in _printed(case, outcome)


def test_long_sequences_are_shown_around_the_steps_of_interest() -> None:
    text = _explained(replace(PLAIN, T=120, H=3), _adding(("Y", (70, 0, 1, 1), 1.0)))
    ((_, _, *steps, caption),) = _tables(text)
    shown = [line.replace(">", "").split()[0] for line in steps]
    assert shown == list(map(str, range(62, 78)))
    assert caption.split() == ["16", "of", "120", "steps"]
    assert len(text.splitlines()) < 120


def test_numbers_are_whole_on_a_narrow_terminal() -> None:
    case = build_case(PLAIN)
    outcome = staged_outcome(case.trial, _conforming)
    wide, narrow = (_tables(_printed(case, outcome, width=width)) for width in (200, 40))
    assert [line.split() for line in wide[0]] == [line.split() for line in narrow[0]]


def test_the_accuracy_class_sets_the_radius() -> None:
    case = build_case(replace(PLAIN, type="float16"))
    outcome = staged_outcome(case.trial, _conforming)

    def radius(accuracy: str) -> float:
        table = _tables(_printed(case, outcome, width=150, accuracy=accuracy))[0]
        return float(table[2].split()[9])  # step, seven numbers, must be, error bound

    assert radius("flushing") > radius("standard")
    with pytest.raises(ValueError, match="no accuracy class 'lax'"):
        list(explanation_of(SpecProbe(case.spec), [outcome], accuracy="lax"))


@pytest.mark.parametrize("version", [1, 7, 14, 22])
def test_every_smoke_case_can_be_explained(version: int) -> None:
    for spec in profile("smoke", "LSTM", version):
        text = _explained(spec, _conforming)
        assert re.search(r"\n(pass|inconclusive)", text), spec.id
        assert len(text.splitlines()) < 160, spec.id


@pytest.mark.parametrize(
    ("keys", "texts"),
    [
        ({}, ["consistent with  clip.ignored: Ignores clip\n", "it was not confirmed on new cases."]),
        ({"foretold": 7}, ["explained by  clip.ignored: Ignores clip\n", "predicted 7 new cases correctly."]),
        (
            {"foretold": 5, "conditions": "exactly 1 step", "passing": 1},
            [
                "consistent with  clip.ignored: Ignores clip (with exactly 1 step)\n",
                "predicted 5 new cases correctly, but other new cases that should show it pass.",
            ],
        ),
    ],
)
def test_one_case_alone_proves_no_cause(keys: dict[str, Any], texts: list[str]) -> None:
    probe = SpecProbe(PLAIN)
    wrong = result_of(probe, "t", Judgement(Verdict.WRONG, "value"), 0.0, None)
    (finding,) = findings_of([structs.replace(wrong, diagnosis=("clip.ignored",))], {probe.id: probe})
    parts = explanation_of(probe, findings=[cast(Finding, {**finding, **keys})])
    text = "\n".join(str(part) for part in parts)
    assert all(expected in text for expected in texts)


def test_the_clause_is_that_of_the_explanation_as_a_run_has_it() -> None:
    probe = SpecProbe(replace(PLAIN, lengths="ragged"))
    message = "Y_h[0, 0, 0] is 1, must be 0 (lstm.outputs.last-hidden)"
    wrong = Judgement(Verdict.WRONG, "value", message=message, clause="lstm.outputs.last-hidden")
    result = structs.replace(result_of(probe, "t", wrong, 0.0, None), diagnosis=("lengths.ignored",))
    prepared = probe.prepare()
    outcomes = [staged_outcome(trial, _conforming) for trial in prepared.trials]

    def printed(findings: list[Finding]) -> str:
        file = io.StringIO()
        print_explanation(probe, outcomes, wrong, Console(file=file, width=120), findings=findings)
        return file.getvalue()

    plain, explained = printed([]), printed(findings_of([result], {probe.id: probe}))
    assert "must be 0 (lstm.outputs.last-hidden)" in plain
    assert re.findall(r"^> (\w+\.\S+)", plain, re.MULTILINE) == ["lstm.outputs.last-hidden"]
    assert "must be 0 (lstm.lengths)" in explained
    assert re.findall(r"^> (\w+\.\S+)", explained, re.MULTILINE) == ["lstm.lengths"]


def test_a_quantized_node_is_explained_in_levels() -> None:
    spec = replace(PLAIN, quantization="u8", outputs=("Y", "Y_h"))

    def four_off(node: Node, inputs: Mapping[str, Any]) -> Outputs:
        answer = operator_for(node).answer(node, inputs)
        return {name: array ^ np.uint8(4) for name, array in answer.items()}

    text = _explained(spec, four_off)
    assert re.search(r"^  X: uint8, scale 0\.\d+, zero point \d+$", text, re.MULTILINE)
    assert re.search(r"First difference at .* is\s+level\s+\d+,\s+must\s+be\s+level\s+\d+\s+\(lstm", text)
    assert "levels off" in _tables(text)[0][1]
    assert _tables(text)[0][2].split()[-1] == "4"
    assert "Y: " not in _explained(PLAIN, _conforming)
