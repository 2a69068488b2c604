"""Probes: anything that can be run on a target and judged, with the facts that results and findings report.

A case of a profile is a probe, and a test-case directory is another. A run handles nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

from ...cases import Case, Spec, Trial, build_case, features_of, group_of
from ...cases.axes.quantized import features_of_levels
from ...cases.portable import case_text
from ...cases.specs.features import WORDS, groups_with
from ...cases.specs.quantizing import QUANTIZED
from ...cases.specs.wrapping import can_wrap, wrap
from ...reference import Node, clauses_of, operator_of
from ..judging.judgement import Judgement
from ..judging.verdict import judge
from ..targets.target import Target
from ..workers.process import Job, Outcome

if TYPE_CHECKING:
    from .directory import DirectoryProbe


def _no_script(target: Target | None) -> None:
    return None


@dataclass(frozen=True)
class Prepared:
    """A probe that is ready to run.

    jobs
        The jobs of the target; none if they cannot be built.
    judge
        Function from the outcomes of the jobs, in their order, and the name of an accuracy class to the verdict.
    trials
        The trials of the jobs, in their order; none where no document covers the model.
    forbidden
        The violation in the model, and when it must be refused; empty where the model is legal.
    script
        Function from a target, or None for any, to a script that reproduces the case, or None where there is none.
    """

    jobs: tuple[Job, ...]
    judge: Callable[[Sequence[Outcome], str], Judgement]
    trials: tuple[Trial, ...] = ()
    forbidden: str = ""
    script: Callable[[Target | None], str | None] = _no_script


Probe: TypeAlias = "SpecProbe | DirectoryProbe"
"""A test that can be run on a target and judged.

id
    Stable, readable, a safe file name, and unique in the run.
text
    One line that names the probe wherever an id is accepted: the JSON of a case's spec, or the path of a directory.
op, domain, version, type
    The operator version and type under test.
clauses
    Ids of the clauses that it exercises.
features
    Its features, as in clause tables and files of expected failures; ``groups`` are its report columns.
traits
    Descriptions of the probe, used to find what failing probes have in common.
size
    Sort key for simplicity: smaller is simpler.
graded
    Whether its errors count for the target's bias.
prepare()
    Build the jobs; the same every time.
repeat(target)
    The arguments of a command that reproduces its result on the target of that name.
"""


def traits_of(node: Node, features: frozenset[str], type: str) -> frozenset[str]:
    """Return the traits of a node with its inputs: its features in words, its type and its version."""
    traits = {f.replace("-", " ") for f in features} | {type, f"version {node.since_version}"}
    names = node.attributes.get("activations")
    traits |= {f"activations {'/'.join(names)}"} if names else set()
    traits |= {"no hidden_size"} if "hidden_size" in {*node.operator.attributes} - {*node.attributes} else set()
    return frozenset(traits)


def worded(trait: str) -> str:
    """Return the description of a trait for readers."""
    feature = trait.replace(" ", "-")  # a trait is a feature without hyphens
    return WORDS.get(feature) or trait.removeprefix("uses ").removeprefix("about ")


def job_of(trial: Trial) -> Job:
    """Return the job that runs a trial."""
    return Job(trial.key, trial.model, tuple(feed.fed for feed in trial.feeds), trial.alone, course=trial.course)


def prepared_trials(trials: tuple[Trial, ...], answers: bool = True) -> Prepared:
    """Return a trial, and its companion if it has one, prepared to be judged by its document."""
    violation = trials[0].violation
    forbidden = f"{violation.summary}; it must be refused, due at {violation.due}" if violation is not None else ""
    return Prepared(tuple(map(job_of, trials)), partial(judge, trials, answers=answers), trials, forbidden)


@dataclass(frozen=True)
class SpecProbe:
    """A case as a probe.

    fresh
        Whether no profile has the case, so that its id does not identify it; it is then shown as a line of text.
    answers
        Whether the verdict also reports what a passing result tells about the target (:func:`..judging.verdict.judge`).
    wrap
        Name of the nodes around its node (:mod:`...cases.specs.wrapping`); empty without any. Id and clauses are those
        of the case itself.
    """

    spec: Spec
    fresh: bool = field(default=False, compare=False)
    answers: bool = field(default=True, compare=False)
    wrap: str = ""

    def like(self, spec: Spec) -> SpecProbe:
        """Return a probe of another case in the same wrap, of which only the verdict is needed.

        Raise ValueError where the wrap does not fit.
        """
        if self.wrap and not can_wrap(spec, self.wrap):
            raise ValueError(f"{spec.id} cannot be put in the wrap {self.wrap!r}")
        return SpecProbe(spec, fresh=True, answers=False, wrap=self.wrap)

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def text(self) -> str:
        return case_text(self.spec)

    @property
    def op(self) -> str:
        return self.spec.op

    @property
    def domain(self) -> str:
        return operator_of(self.op).document.domain

    @property
    def version(self) -> int:
        return self.spec.version

    @property
    def type(self) -> str:
        return self.spec.type

    @cached_property
    def clauses(self) -> tuple[str, ...]:
        return tuple(clause.id for clause in clauses_of(self.op, self.version, self._of_case[0]))

    @cached_property
    def features(self) -> frozenset[str]:
        features = self._of_case[0]
        if not self.wrap:
            return features  # a copy for each case would cost memory in large runs
        return features | {"wrapped", f"wrapped-{self.wrap}"} | _of_levels(self.wrap)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        return (*self._of_case[1], *groups_with(_of_levels(self.wrap)))

    @property
    def traits(self) -> frozenset[str]:
        return self._of_case[2]

    @cached_property
    def _of_case(self) -> tuple[frozenset[str], tuple[str, ...], frozenset[str], Exception | None]:
        """Features, groups and traits of the case without its wrap, and the error if an operator's own code raises."""
        try:
            features = features_of(self.spec)
            return features, tuple(group_of(self.spec)), traits_of(self.spec.node, features, self.type), None
        except Exception as error:  # any error of the operator's code costs only this case
            return frozenset(), (), frozenset(), error

    @property
    def size(self) -> tuple[float, int]:
        return self.spec.size

    @property
    def graded(self) -> bool:
        return self.spec.graded

    def prepare(self) -> Prepared:
        """Build the case's models and inputs. Raise whatever the operator's own code raises."""
        if (error := self._of_case[3]) is not None:
            raise error
        case = build_case(self.spec)
        case = wrap(case, self.wrap) if self.wrap else case
        prepared = prepared_trials(case.trials, self.answers)
        # A script runs one feed after the other.
        return replace(prepared, script=partial(_script, case)) if case.trial.course is None else prepared

    def repeat(self, target: str) -> list[str]:
        """Return the arguments of ``onnxspec explain``; the target's name includes its wrap."""
        return ["onnxspec", "explain", self.text if self.fresh else self.id, "--target", target]


def _of_levels(wrap: str) -> frozenset[str]:
    """Return features that a wrap shares with quantized cases."""
    return features_of_levels(int(wrap.removeprefix("qdq-")[1:]) if wrap in QUANTIZED else 0)


def _script(case: Case, target: Target | None) -> str | None:
    from ..showing.script.script import script_of

    return script_of(case, target)
