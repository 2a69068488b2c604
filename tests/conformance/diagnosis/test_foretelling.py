"""A name must foretell what the target returns in fresh cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, build_case
from onnxspec.conformance.diagnosis.causes import explains
from onnxspec.conformance.diagnosis.foretelling import Foretold, foretold, fresh_specs
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import Tried
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.reference import Fault, Node, evaluate, fault_named, run_recurrent_fault

Arrays = Mapping[str, NDArray[Any]]
SPEC = CaseSpec("LSTM", 14, direction="bidirectional", initial="h")


def _one(probe: SpecProbe, target: Any) -> Tried:
    prepared = probe.prepare()
    outcomes = [staged_outcome(trial, target) for trial in prepared.trials]
    return Tried(probe, prepared, tuple(outcomes), prepared.judge(outcomes, "standard"))


def _named(target: Any, spec: CaseSpec = SPEC) -> Foretold | None:
    def run(probes: Sequence[SpecProbe]) -> Iterator[Tried]:
        return (_one(probe, target) for probe in probes)

    return foretold(_one(SpecProbe(spec), target), run, lambda m, one: explains((m,), "standard")(one))


def test_fresh_cases_are_legal_and_have_other_numbers() -> None:
    fresh = fresh_specs(SPEC)
    assert len({s.seed for s in fresh} - {SPEC.seed}) == len(fresh) == 10
    for spec in fresh:
        build_case(spec)
        assert (spec.direction, spec.initial) == (SPEC.direction, SPEC.initial)


def test_a_fault_of_the_table_is_named() -> None:
    fault = fault_named("bias.ignored")
    assert isinstance(fault, Fault)
    name = _named(fault, CaseSpec("GRU", 14, bias=True))
    assert name is not None
    assert name.fault.id == "bias.ignored"


def test_a_fault_in_one_place_is_named_with_its_place() -> None:
    fault = fault_named("bias.ignored@reverse")
    assert isinstance(fault, Fault)

    def target(node: Node, inputs: Arrays) -> Arrays:
        return run_recurrent_fault(fault, node, inputs)

    name = _named(target, CaseSpec("GRU", 14, direction="bidirectional", bias=True))
    assert name is not None
    assert name.fault.id in ("bias.ignored@reverse", "bias.backward-ignored")


def test_what_fits_one_case_and_not_the_next_is_no_name() -> None:
    def target(node: Node, inputs: Arrays) -> Arrays:
        right = evaluate(node, inputs)
        return {name: (0.9 * array + 0.01).astype(inputs["X"].dtype) for name, array in right.items()}

    assert _named(target, CaseSpec("RNN", 14)) is None
