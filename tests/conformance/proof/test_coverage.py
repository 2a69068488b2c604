"""What cases have shown on a target is counted as interactions are, and what a target lacks is told from what merely
stood beside it."""

import numpy as np
import pytest
from msgspec.structs import astuple

from onnxspec.cases.profiles import pool_of
from onnxspec.conformance.proof import CaseTable, Cover, Shares, faults_of, lacking_of, named, pool_tally, space_of

RNN = space_of("RNN")


def evidence(*cases: tuple[str, ...], features: tuple[frozenset[str], ...] = ()) -> CaseTable:
    held = np.array([[context.id in case for context in RNN.contexts] for case in cases])
    return CaseTable(held, features or tuple(frozenset() for _ in cases), np.ones(len(cases), bool))


def lacks(seen: CaseTable, ran: int) -> list[str]:
    """What is lacking where the first cases ran and the others did not."""
    number = np.arange(len(seen.held))
    return named(RNN, lacking_of(RNN, seen, number < ran, number >= ran))


@pytest.mark.parametrize("without", [(), ("clip", "type=float64"), ("direction=reverse", "direction=bidirectional")])
def test_cases_count_as_in_a_tally(without: tuple[str, ...]) -> None:
    places = frozenset((RNN.position[id],) for id in without)
    cases = pool_of("RNN").cases[:40:3]
    cover = Cover("RNN", places)
    for case in cases:
        assert cover.worth(case) >= 0
        cover.add(case)
    assert cover.shares == Shares.of(pool_tally("RNN", cases).score(faults_of("RNN", places)))


def test_what_a_case_is_worth_is_what_it_adds() -> None:
    cover, cases = Cover("RNN"), pool_of("RNN").cases[:400:9]
    for case in cases:
        before, other = cover.shares, cover.copy()
        if len(case.held) == 1:  # what both directions show counts for each of them
            worth = cover.worth(case)
            cover.add(case)
            gained = [now[0] - then[0] for now, then in zip(astuple(cover.shares), astuple(before), strict=True)]
            assert worth == 10 * gained[0] + 4 * gained[1] + gained[2]
        assert other.shares == before


def test_what_there_is_not_takes_faults_away_and_brings_none() -> None:
    whole, left = faults_of("RNN"), faults_of("RNN", frozenset({(RNN.position["clip"],)}))
    assert not (left.alone & ~whole.alone).any()
    assert not (left.together & ~whole.together).any()
    assert not left.alone[:, [RNN.position["clip"], RNN.position["clip<1"]]].any()
    assert not left.alone[list(left.parts).index("clip.dropped")].any()


def test_two_contexts_that_do_not_go_together_take_their_pair_away() -> None:
    y, z = RNN.position["version=7"], RNN.position["type=float16"]
    left = faults_of("RNN", frozenset({(y, z)}))
    assert left.alone[:, [y, z]].any(axis=0).all()
    assert not left.together[:, min(y, z), max(y, z)].any()


def test_a_context_with_which_nothing_ran_is_lacking() -> None:
    assert lacks(evidence(("T=1",), ("clip", "T=1"), ("layout=1", "T=1")), ran=1) == ["layout=1", "clip"]


def test_what_stood_beside_it_is_not() -> None:
    """Dimensions with names were tried with another thing that is lacking alone: nobody knows of them."""
    seen = evidence(("T=1",), ("clip", "T=1"), ("clip", "dimensions=symbolic"))
    assert lacks(seen, ran=1) == ["clip"]


def test_of_several_that_may_be_the_reason_the_one_that_explains_most_is() -> None:
    seen = evidence(("T=1",), ("activations", "function=Relu"), ("activations", "function=Elu"))
    assert lacks(seen, ran=1) == ["activations"]
    assert lacks(evidence(("T=1",), ("activations", "function=Relu")), ran=1) == []


def test_a_pair_takes_several_cases() -> None:
    pair = ("direction=reverse", "lengths=ragged")
    seen = evidence(pair[:1], pair[1:], *[pair] * 4)
    assert lacks(seen, ran=2) == ["direction=reverse with lengths=ragged"]
    assert lacks(evidence(pair[:1], pair[1:], *[pair] * 3), ran=2) == []


def test_features_explain_what_no_context_does() -> None:
    both, one = frozenset({"softplus", "clip"}), frozenset({"clip"})
    seen = evidence(*[("T=1",)] * 4, features=(one, both, both, both))
    assert lacks(seen, ran=1) == ["softplus"]


def test_a_case_of_odd_numbers_proves_nothing() -> None:
    seen = evidence(("T=1",), ("clip", "T=1"))
    ran, without = np.array([True, False]), np.array([False, True])
    assert not lacking_of(RNN, seen._replace(plain=np.array([True, False])), ran, without).places


def test_where_much_is_lacking_a_few_models_more_show_what_is_owed() -> None:
    """What onnxruntime lacks. What sessions do is owed, too, and shows in siblings, which need no further models."""
    lacks = ("version=1", "type=float64", "type=bfloat16", "layout=1", "hidden_size=False")
    places = [RNN.position[id] for id in lacks]
    pool = pool_of("RNN")
    there = [case for case in pool.cases if not any(held >> place & 1 for held in case.held for place in places)]
    dense = [case for case in there if case in pool.dense]
    cover = Cover("RNN", frozenset((place,) for place in places))
    cover.add(*dense)
    followed = cover.choose([case for case in there if case not in dense], 60, {case.model for case in dense})
    assert cover.shares.reached
    assert len(followed) <= 60
