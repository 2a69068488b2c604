"""Random cases that follow the cases of a profile on a target that declines some. They depend on the results alone.

Cases of features that a target lacks test nothing else of it. So :data:`MOST` random cases of an operator follow
that use only what the target supports. In a run for a certificate, failing cases are also tried in the other versions
of their operator.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from ...cases import Spec
from ...cases.profiles.random_cases import random_stream, traits_of
from ...cases.specs.family import drawn_operators
from ...cases.specs.wrapping import can_wrap
from ...reference.errors import RecordError, UserError
from ..judging.judgement import DECLINED, FAILING, UNTRIED, Verdict
from ..probes.drawn import split_nonce
from ..probes.naming import portable_probes
from ..probes.probe import Probe, SpecProbe
from ..results.folder import RunFolder
from ..results.records import FillingRecord
from ..results.result import Result
from ..targets.target import Target
from .run import Plan

NOT_ASKED = "it was not asked for"
SHARDS = "parts of a run are not filled up; the merged run is, when it is gone on with (--resume)"

MOST = 100
"""Maximum number of random cases of an operator."""

SISTERS = 16
"""Failing cases that are tried in another version, for each version and type in which no case fails."""

_SISTERS_FAIL = FAILING - DECLINED - {Verdict.NOT_REJECTED, Verdict.UNSTABLE}  # this one may need a fresh process

_MOST_FOLLOWING = 5000  # of all operators: a file that names more is none of ours

_SEED = "fill"
_DRAWS = 50 * MOST  # in which cases that a wrap takes are looked for


def lacks_by_operator(plan: Plan, target: Target, results: Iterable[Result]) -> dict[str, tuple[str, ...]]:
    """Return the traits that the target lacks, for each operator of which some case was declined and another passes:
    traits of declined cases that no passing case has."""
    verdicts = {result.case: result.verdict for result in results}
    passed: dict[str, set[str]] = defaultdict(set)
    declined: dict[str, list[frozenset[str]]] = defaultdict(list)
    for probe in plan.pinned_of(target):
        verdict = verdicts.get(probe.id)
        if isinstance(probe, SpecProbe) and not probe.spec.illegal:
            if verdict is Verdict.PASS:
                passed[probe.op] |= traits_of(probe.spec, probe.features)
            elif verdict in DECLINED:
                declined[probe.op].append(traits_of(probe.spec, probe.features))
    drawn = drawn_operators()
    return {op: _explaining(some, passed[op]) for op, some in declined.items() if op in drawn and passed[op]}


def _explaining(declined: Iterable[frozenset[str]], passed: Collection[str]) -> tuple[str, ...]:
    """Return the traits that no passing case has and that may be why cases were declined. If one reason of a case is
    sure, because another case has no other reason, its other traits are not blamed."""
    left = [traits - set(passed) for traits in declined]
    places = {trait: frozenset(k for k, traits in enumerate(left) if trait in traits) for trait in set().union(*left)}
    lacks = set[str]()
    while True:
        unexplained = [traits for traits in left if not traits & lacks]
        # Traits that always occur together, such as a feature and the field's value, are one reason.
        sure = [traits for traits in unexplained if len({places[trait] for trait in traits}) == 1]
        if not sure:
            return tuple(sorted(lacks.union(*unexplained)))
        lacks |= set[str]().union(*sure)


def cases_to_add(plan: Plan, target: Target, results: Sequence[Result]) -> tuple[Probe, ...]:
    """Return the cases that follow and that the plan does not have; none while some case has not been tried."""
    if any(result.verdict in UNTRIED for result in results):
        return ()
    known = {probe.id for probe in (*plan.probes, *plan.filled.get(target.name, ()))}
    lacks = lacks_by_operator(plan, target, results)
    added = (SpecProbe(spec, fresh=True) for op in lacks for spec in _specs(op, target, lacks[op]))
    sisters = _sister_cases(plan, target, results) if split_nonce(plan.selection.profile)[1] else ()
    return tuple({probe.id: probe for probe in (*added, *sisters) if probe.id not in known}.values())


def _sister_cases(plan: Plan, target: Target, results: Iterable[Result]) -> Iterator[SpecProbe]:
    """Yield failing cases in the versions of their operator in which nothing fails, because these may have the same
    defect and no case that shows it."""
    verdicts = {result.case: result.verdict for result in results}
    failing: dict[tuple[str, str], dict[int, list[SpecProbe]]] = defaultdict(lambda: defaultdict(list))
    for probe in plan.pinned_of(target):
        if isinstance(probe, SpecProbe) and not probe.spec.illegal:
            of_version = failing[probe.op, probe.type][probe.version]
            if verdicts.get(probe.id) in _SISTERS_FAIL:
                of_version.append(probe)
    for versions in failing.values():
        smallest = sorted(itertools.chain(*versions.values()), key=lambda probe: (probe.size, probe.id))
        for version, some in versions.items():
            if not some:
                yield from islice(_in_version(smallest, version, target), SISTERS)


def _in_version(probes: Iterable[SpecProbe], version: int, target: Target) -> Iterator[SpecProbe]:
    """Yield the same cases in another version, if they are valid there."""
    for probe in probes:
        spec: Any = probe.spec
        try:
            sister = SpecProbe(replace(spec, version=version), fresh=True)
            sister.prepare()
            _ = sister.traits  # reading them validates the node
        except (ValueError, KeyError, IndexError):  # an IllegalNode too
            continue
        if not target.wrap or can_wrap(sister.spec, target.wrap):
            yield sister


def _specs(op: str, target: Target, lacks: Sequence[str]) -> Iterator[Spec]:
    try:
        drawn = islice(random_stream(_SEED, (op,), lacks=lacks), _DRAWS if target.wrap else MOST)
    except ValueError:  # nothing is left of the operator
        return iter(())
    return islice((spec for spec in drawn if not target.wrap or can_wrap(spec, target.wrap)), MOST)


def filling_record(plan: Plan, target: Target, results: Sequence[Result], left_out: str = "") -> FillingRecord:
    """Return the entry of run.json on cases that followed. `left_out` is the reason if none were to follow."""
    texts = [probe.text for probe in plan.filled.get(target.name, ())]
    lacks = {op: list(traits) for op, traits in lacks_by_operator(plan, target, results).items()}
    return {"lacks": lacks, "cases": texts, "digest": digest_of_cases(texts), "left_out": left_out}


def digest_of_cases(texts: Iterable[str]) -> str:
    """Return SHA-256 of the lines that rebuild cases, in order."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def with_filled(plan: Plan, target: Target, cases: Iterable[Probe | str]) -> Plan:
    """Return the plan with more cases for a target, as probes or as lines that rebuild them. Raise UserError for a line
    that is no case."""
    given = list(cases)
    if len(given) > _MOST_FOLLOWING:
        raise UserError(f"{len(given)} cases followed on {target.name}: no run adds more than {_MOST_FOLLOWING}")
    for each in given:
        if isinstance(each, str) and not each.startswith("{"):  # nothing that lies on this machine
            raise UserError(f"no case: {each[:60]!a}")
    probes = [probe for each in given for probe in (portable_probes([each]) if isinstance(each, str) else [each])]
    present = plan.filled.get(target.name, ())
    ids = {probe.id for probe in present}
    added = (*present, *(probe for probe in probes if probe.id not in ids))
    return replace(plan, filled={**plan.filled, target.name: added}) if added else plan


def filled_again(plan: Plan, run: RunFolder) -> Plan:
    """Return the plan with the random cases that followed in a run. Raise RecordError for a line that is no case."""
    try:
        for target in plan.targets:
            plan = with_filled(plan, target, run.filled.get(target.name, ()))
    except ValueError as error:
        raise RecordError(f"{run.path}: a case that followed on {target.name} cannot be had again: {error}") from None
    return plan
