"""A case of ExtendedLSTM as a probe."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from ..cases.extended_profile import broken_draft, extended_profile, legal_twin
from ..cases.extended_spec import DOMAIN, ExtendedDraft, ExtendedSpec
from ..cases.extended_violations import extended_violation
from ..cases.features import groups_with
from ..reference.extended_lstm import resolve
from .extended_verdict import ExtendedRun, judge_extended
from .judgement import Judgement, judge_forbidden
from .probe import Prepared
from .process import Job, Outcome
from .target import Target

__all__ = ["ExtendedProbe", "extended_probes", "runs_of"]


@dataclass(frozen=True)
class ExtendedProbe:
    """A case of ExtendedLSTM as a probe; see :class:`.probe.Probe`."""

    spec: ExtendedSpec

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def op(self) -> str:
        return self.spec.op

    @property
    def domain(self) -> str:
        return DOMAIN

    @property
    def version(self) -> int:
        return self.spec.version

    @property
    def type(self) -> str:
        return self.spec.type

    @cached_property
    def clauses(self) -> tuple[str, ...]:
        return tuple(clause.id for clause in self.spec.clauses)

    @property
    def features(self) -> frozenset[str]:
        return self.spec.features

    @property
    def groups(self) -> tuple[str, ...]:
        always = {"bidirectional", *(["bias"] if self.spec.bias else [])}
        return tuple(groups_with(self.features & {"illegal"} or self.features | always))

    @cached_property
    def traits(self) -> frozenset[str]:
        words = {f.replace("-", " ") for f in self.features} | {self.type, f"version {self.version}"}
        return frozenset(words | ({"no steps"} if self.spec.T == 0 else set()))

    @property
    def size(self) -> tuple[float, int]:
        spec = self.spec
        return float(math.prod(max(n, 1) for n in (spec.T, spec.N, spec.I, spec.H)) * 2), len(self.features)

    @property
    def graded(self) -> bool:
        return False

    def prepare(self) -> Prepared:
        """Build the case's model and inputs; of a forbidden one those of its legal twin too."""
        spec = self.spec
        if spec.illegal:
            violation = extended_violation(spec.illegal)
            forbidden = _job(spec, spec.id, [broken_draft(spec)], spec.spoils)
            twin = legal_twin(spec)

            def judge_it(outcomes: Sequence[Outcome], accuracy: str) -> Judgement:
                return judge_forbidden(violation.summary, violation.due, violation.clause, *outcomes)

            jobs = forbidden, _job(twin, f"{spec.id}~twin", [twin.draft])
            said = f"{violation.summary}; it must be refused, due at {violation.due}"
            return Prepared(jobs, judge_it, forbidden=said, script=partial(_script, spec))
        drafts = drafts_of(spec)

        def judge(outcomes: Sequence[Outcome], accuracy: str) -> Judgement:
            return judge_extended(spec, runs_of(spec), outcomes[0], accuracy)

        job = _job(spec, spec.id, drafts, spec.spoils)
        return Prepared((job,), judge, numbers=partial(_numbers, spec), script=partial(_script, spec))

    def repeat(self, target: str) -> list[str]:
        """``onnxspec explain``."""
        return ["onnxspec", "explain", self.id, "--target", target]


def _script(spec: ExtendedSpec, target: Target | None) -> str:
    from .extended_script import extended_script

    return extended_script(spec, target)


def _numbers(
    spec: ExtendedSpec, outcomes: Sequence[Outcome], judgement: Judgement | None, accuracy: str
) -> dict[str, Any] | None:
    from .extended_exhibit import extended_numbers

    return extended_numbers(spec, outcomes, judgement, accuracy)


def drafts_of(spec: ExtendedSpec) -> list[ExtendedDraft]:
    """What each run of a legal case's session is fed, in order; the model is the last one's."""
    drafts = [spec.draft]
    if spec.reruns != "none":
        drafts.insert(0, ExtendedDraft(dict(spec.attributes), spec.inputs(1), constants=spec.draft.constants))
    return drafts


def runs_of(spec: ExtendedSpec) -> list[ExtendedRun]:
    """The runs of a legal case, resolved."""
    return [ExtendedRun(resolve(d.attributes, d.inputs), d.attributes, d.inputs) for d in drafts_of(spec)]


def _job(spec: ExtendedSpec, key: str, drafts: Sequence[ExtendedDraft], alone: bool = False) -> Job:
    feeds = tuple({n: a for n, a in draft.inputs.items() if n not in draft.constants} for draft in drafts)
    return Job(key, spec.model(drafts[-1]), feeds, alone)


def extended_probes(profile: str) -> list[ExtendedProbe]:
    """The cases of a profile as probes. Raises KeyError for an unknown profile."""
    return [ExtendedProbe(spec) for spec in extended_profile(profile)]
