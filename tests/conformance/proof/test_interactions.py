"""Interactions are counted exactly, what is pinned of the pool is what is measured, and no pinned list is weaker than
as many dice."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, build_case, family_of, profile
from onnxspec.cases.profiles import Pooled, pool_of
from onnxspec.cases.specs import context_space, pooled_operators
from onnxspec.conformance.cli import interaction_complaints
from onnxspec.conformance.judging import FAILING
from onnxspec.conformance.proof import (
    Shown,
    Tally,
    faults_of,
    judge_staged,
    parts_shown,
    pool_tally,
    runs_shown,
    shown_by,
    space_of,
    tally,
)
from onnxspec.reference import CELLS, Node, operator_names, operator_of, versions_of
from onnxspec.reference.kernels import STYLES, run_kernel


def share(of: tuple[int, int]) -> float:
    return of[0] / of[1]


def models(cases: Sequence[Pooled]) -> int:
    """Models that must be compiled, companions among them."""
    return sum(case.models for case in {case.model: case for case in cases}.values())


def dice(op: str, count: int) -> list[Pooled]:
    """Dense cases as chance has them, in so many models."""
    drawn = sorted((c for c in pool_of(op).cases if c.level == "complete" and not c.sibling), key=lambda c: c.index)
    while models(drawn) > count:
        drawn.pop()
    return drawn


def test_all_that_parts_of_an_operator_need_is_in_its_space() -> None:
    for op in operator_names():
        space = context_space(op)
        if space is not None:
            assert {part.id: space.needs(part.needs) for part in operator_of(op).parts()}, op


def test_a_plain_case_shows_what_is_there_and_nothing_else() -> None:
    shown = parts_shown(CaseSpec("LSTM", 14, T=3, N=2, I=2, H=3, outputs=("Y", "Y_h", "Y_c")))
    assert {"gates.io", "gates.fc", "X.last-step", "Y_c.last-unit", "state.forgotten"} <= shown.keys()
    assert not {"B.dropped", "P.dropped", "reverse.forward", "clip.dropped", "state.kept"} & shown.keys()
    assert shown["gates.io"] == Shown(True, (True,))


def test_operators_of_other_domains_are_counted_too() -> None:
    """By LSTM's parts, as its levels show them, and by contexts of the axes that it has."""
    spec = family_of("DynamicQuantizeLSTM").spec("DynamicQuantizeLSTM", 1, T=3, N=2, I=2, H=3)
    shown = parts_shown(spec)
    assert {"gates.io", "X.last-step", "state.forgotten"} <= shown.keys()
    assert not {"B.dropped", "reverse.forward"} & shown.keys()
    tallied = tally(spec.op, [[(spec, shown)]])
    assert (tallied.pairs[tallied.position["gates.io"]] > 0).any()
    assert "layout=1" not in space_of(spec.op).position


def test_each_direction_is_looked_at_by_itself() -> None:
    spec = CaseSpec("GRU", 14, T=3, N=2, I=2, H=3, direction="bidirectional", outputs=("Y", "Y_h"))
    shown = parts_shown(spec)
    assert shown["reverse.forward"] == Shown(True, (False, True))
    assert shown["W.one-direction"] == Shown(True, (False, True))
    assert shown["gates.zr"] == Shown(True, (True, True))


def test_the_kindest_interpretation_counts() -> None:
    """With the gates coupled the document lets either gate stay: what only exchanges them is excused by neither; what
    clips h(Ct) or does not is."""
    clipped = CaseSpec("LSTM", 14, T=3, N=2, I=2, H=3, clip=8.0, outputs=("Y", "Y_h", "Y_c"))
    assert "clip.dropped" not in parts_shown(clipped)
    both = parts_shown(CaseSpec("LSTM", 14, T=3, N=2, I=2, H=3, input_forget=1, outputs=("Y", "Y_h", "Y_c")))
    assert both["input_forget.dropped"].whole


def test_a_state_that_is_kept_shows_in_a_second_run() -> None:
    spec = CaseSpec("RNN", 14, T=3, N=2, I=2, H=3, reruns="data")
    assert parts_shown(spec)["state.kept"].whole
    assert "state.kept" not in parts_shown(CaseSpec("RNN", 14, T=3, N=2, I=2, H=3))


def test_what_ran_before_shows_faults_too() -> None:
    """A kernel that is wrong in a session's first run only fails the case; that run counts with its own sizes."""
    spec = CaseSpec("RNN", 14, T=3, N=2, I=2, H=3, reruns="sizes", dimensions="symbolic")
    (own, _), (earlier, shown) = runs_shown(spec)
    assert own == spec
    assert (earlier.T, earlier.N, earlier.reruns) == (5, 3, "none")
    assert "X.last-step" in shown
    assert "state.kept" not in shown

    def wrong_at_first(node: Node, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        outputs = run_kernel(node, inputs, STYLES["library"])
        if len(inputs["X"]) == earlier.T:
            outputs["Y"][-1] = 0
        return outputs

    assert judge_staged(build_case(spec), wrong_at_first).verdict in FAILING
    # One case, whichever of its runs shows a fault.
    total = Tally("RNN")
    total.add(*runs_shown(spec))
    assert total.pairs.max() == total.triples.max() == 1


def test_what_shows_too_little_is_complained_of() -> None:
    few = [runs_shown(CaseSpec("RNN", 14, T=3, N=2, I=2, H=3))]
    complaints = interaction_complaints(few)
    assert [
        line
        for line in complaints
        if re.fullmatch(r"RNN: [0-9.]+ % of .X when Y and Z. are shown, at least 95.0% must be", line)
    ]
    assert any("no case shows" in line for line in complaints)
    assert not any("impossible" in line for line in complaints)


def test_lengths_that_mean_something_else_in_few_steps_do_not_count() -> None:
    spec = CaseSpec("RNN", 14, T=3, N=2, I=2, H=3, lengths="ragged", reruns="growing", dimensions="symbolic")
    assert len(runs_shown(spec)) == 1
    assert len(runs_shown(replace(spec, T=5, N=4))) == 2


def test_what_a_document_does_not_support_is_no_context() -> None:
    """All that is counted can occur, beside some part that goes wrong."""
    faults = faults_of("ExtendedLSTM")
    assert faults.alone.any(axis=0).all()
    assert not {"direction=forward", "direction=reverse", "layout=1", "input_forget=1"} & set(faults.contexts)


def test_faults_are_counted_as_they_are_defined() -> None:
    """Pair by pair and triple by triple, from the definition: some case shows X where Y and Z hold."""
    pool = pool_of("RNN")
    cases = [case for case in pool.cases if len(case.halves) == 1][:12]
    total, contexts, parts = pool_tally("RNN", cases), space_of("RNN").contexts, pool.parts
    plain = [k for k, context in enumerate(contexts) if not context.half]
    for x in range(0, len(parts), 5):
        for y in plain[::3]:
            for z in plain[1::7]:
                expected = sum(
                    case.whole >> x & 1 and contexts[y].holds(case.spec) and contexts[z].holds(case.spec)
                    for case in cases
                )
                assert total.triples[x, y, z] == expected


@pytest.mark.parametrize("op", pooled_operators())
def test_what_is_pinned_is_what_is_measured(op: str) -> None:
    pool = pool_of(op)
    assert pool.parts == tuple(part.id for part in operator_of(op).parts())
    space = space_of(op)
    for case in (pool.cases[0], pool.cases[len(pool.cases) - 100]):
        assert shown_by(case, pool.parts) == parts_shown(case.spec), case.spec
    for case in pool.cases[::70]:
        bits = tuple(sum(1 << k for k in held.nonzero()[0].tolist()) for held in space.held(case.spec))
        assert (case.held, case.models) == (bits, space.models(case.spec)), case.spec


@pytest.mark.parametrize("op", pooled_operators())
def test_nothing_is_shown_that_is_held_to_be_impossible(op: str) -> None:
    pool = pool_of(op)
    assert pool_tally(op, pool.dense[::2]).contradicting(faults_of(op)) == []


@pytest.mark.parametrize("op", pooled_operators())
def test_the_dense_block_of_core_is_stronger_than_as_many_dice(op: str) -> None:
    pool, faults = pool_of(op), faults_of(op)
    pinned = pool.dense
    ours = pool_tally(op, pinned).score(faults)
    theirs = pool_tally(op, dice(op, models(pinned))).score(faults)
    # What plain cases show as well has made room in it: that `core` as a whole reaches its goal `prove` holds.
    assert share(ours.pairs) >= max(0.985, share(theirs.pairs))
    assert share(ours.twice) >= max(0.975, share(theirs.twice))
    assert share(ours.triples) > share(theirs.triples) + 0.02


@pytest.mark.parametrize("op", CELLS)
def test_core_is_stronger_than_dice_with_as_many_models_as_all_of_it(op: str) -> None:
    """Its dense block alone is, of less than half of those models; what plain cases show comes on top."""
    pool, faults = pool_of(op), faults_of(op)
    core = [spec for version in versions_of(op) for spec in profile("core", op, version) if not spec.illegal]
    whole = len({trial.model for spec in core for trial in build_case(spec).trials})
    ours = pool_tally(op, pool.dense).score(faults)
    theirs = pool_tally(op, dice(op, whole)).score(faults)
    assert share(ours.pairs) > share(theirs.pairs)
    assert share(ours.twice) > share(theirs.twice)
    assert share(ours.triples) > share(theirs.triples)


@pytest.mark.long
@pytest.mark.parametrize("op", pooled_operators())
def test_smoke_is_stronger_than_twenty_dice(op: str) -> None:
    """Of its dense cases by what is pinned of them; the plain ones beside them are measured."""
    faults, pool = faults_of(op), pool_of(op)
    dense = {pool.cases[k].spec: shown_by(pool.cases[k], pool.parts) for k in pool.quick}
    own = [spec for version in versions_of(op) for spec in profile("smoke", op, version)]
    assert dense.keys() <= set(own)
    measured = tally(op, ([(spec, dense.get(spec) or parts_shown(spec))] for spec in own)).score(faults)
    theirs = pool_tally(op, dice(op, 20)).score(faults)
    assert share(measured.pairs) >= share(theirs.pairs)
    assert share(measured.triples) >= share(theirs.triples)


@pytest.mark.parametrize("op", CELLS)
def test_every_part_shows_in_every_type(op: str) -> None:
    pool, position = pool_of(op), space_of(op).position
    shown = dict.fromkeys(("float32", "float64", "float16", "bfloat16"), 0)
    for case in pool.cases:
        for kind in shown:
            shown[kind] |= case.whole if case.held[0] >> position[f"type={kind}"] & 1 else 0
    for kind, bits in shown.items():
        assert [part for k, part in enumerate(pool.parts) if not bits >> k & 1] == [], kind


def test_a_case_counts_once_for_every_pair() -> None:
    spec = CaseSpec("RNN", 14, T=3, N=2, I=2, H=3)
    total = Tally("RNN")
    first = total.add((spec, parts_shown(spec)))
    assert first > 0
    assert total.add((spec, parts_shown(spec))) == 0
    assert total.pairs.max() == 2
