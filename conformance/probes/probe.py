"""Probes: whatever can be run on a target and judged, and what results and findings say of it.

The run knows nothing else: a case of a profile is one, a test-case directory another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

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
    from .unlisted import UnlistedProbe

Answer = TypeVar("Answer")


def _no_script(target: Target | None) -> None:
    return None


@dataclass(frozen=True)
class Prepared:
    """A probe made ready to run.

    jobs
        What the target has to do, at least one.
    judge
        From the outcomes of the jobs, in their order, and the name of an accuracy class to the verdict.
    trials
        What the jobs run, in their order; none where no document speaks of the model.
    forbidden
        What the document forbids in the model, and when it must be refused; empty where it is legal.
    script
        From a target, or None for any, to a script that shows the case, or None where there is none.
    """

    jobs: tuple[Job, ...]
    judge: Callable[[Sequence[Outcome], str], Judgement]
    trials: tuple[Trial, ...] = ()
    forbidden: str = ""
    script: Callable[[Target | None], str | None] = _no_script


Probe: TypeAlias = "SpecProbe | DirectoryProbe | UnlistedProbe"
"""Something that can be run on a target and judged.

id
    Stable, readable, a safe file name, and no other probe's of the run.
text
    One line that names it anywhere, where an id is taken: the JSON of a case's spec, or the path of a directory.
op, domain, version, type
    The operator version and the type that it is about.
clauses
    Ids of the clauses that it exercises.
features
    What it contains, as clause tables and files of expected failures name it; ``groups`` are its report columns.
traits
    What can be said of it in words, to find out what failing ones have in common.
size
    Smaller is simpler to look at.
graded
    Whether its errors count for the target's bias.
prepare()
    Build what is to be run; the same every time.
repeat(target)
    The words of a command that shows what becomes of it on the target of that name.
"""


def traits_of(node: Node, features: frozenset[str], type: str) -> frozenset[str]:
    """Return the description of a node with its inputs: its features in words, its type and its version."""
    words = {f.replace("-", " ") for f in features} | {type, f"version {node.since_version}"}
    names = node.attributes.get("activations")
    words |= {f"activations {'/'.join(names)}"} if names else set()
    words |= {"no hidden_size"} if "hidden_size" not in node.attributes else set()
    return frozenset(words)


@cache
def _words() -> dict[str, str]:
    """Traits as readers are told of them: a trait is a feature without hyphens."""
    return {feature.replace("-", " "): words for feature, words in WORDS.items()}


def worded(trait: str) -> str:
    """Return a trait as a reader is told of it."""
    return _words().get(trait) or trait.removeprefix("uses ").removeprefix("about ")


def job_of(trial: Trial) -> Job:
    """Return the job of running a trial."""
    return Job(trial.key, trial.model, tuple(feed.fed for feed in trial.feeds), trial.alone, course=trial.course)


def prepared_trials(trials: tuple[Trial, ...], answers: bool = True) -> Prepared:
    """Return a trial, and its companion if it has one, to be judged by its document."""
    broken = trials[0].violation
    forbidden = f"{broken.summary}; it must be refused, due at {broken.due}" if broken is not None else ""
    return Prepared(tuple(map(job_of, trials)), partial(judge, trials, answers=answers), trials, forbidden)


def prepared_case(case: Case, answers: bool = True) -> Prepared:
    """Return a case, to be judged by its document, with the script that shows it."""
    prepared = prepared_trials(case.trials, answers)
    # A script runs one feed after the other.
    return replace(prepared, script=partial(_script, case)) if case.trial.course is None else prepared


@dataclass(frozen=True)
class SpecProbe:
    """A case as a probe.

    fresh
        Whether its id alone may not name it, since no profile has it: it is shown as a line of text then.
    answers
        Whether the verdict also says what the case tells of a target that passes it (:func:`..judging.verdict.judge`).
    wrap
        The name of the nodes around its node (:mod:`..cases.specs.wrapping`); empty without any. It has the id and the
        clauses of the case alone.
    """

    spec: Spec
    fresh: bool = field(default=False, compare=False)
    answers: bool = field(default=True, compare=False)
    wrap: str = ""

    def like(self, spec: Spec) -> SpecProbe:
        """Return another case to try in its place, in the same wrap, of which no more than the verdict is asked. Raise
        ValueError where the wrap does not fit."""
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
        return tuple(clause.id for clause in clauses_of(self.op, self.version, self._of_case))

    @cached_property
    def features(self) -> frozenset[str]:
        return self._of_case | ({"wrapped", f"wrapped-{self.wrap}", *_of_levels(self.wrap)} if self.wrap else set())

    @cached_property
    def _of_case(self) -> frozenset[str]:
        """Features of the case without its wrap."""
        return self._asked(lambda: features_of(self.spec), frozenset())

    @cached_property
    def groups(self) -> tuple[str, ...]:
        of_case: tuple[str, ...] = self._asked(lambda: tuple(group_of(self.spec)), ())
        return (*of_case, *groups_with(_of_levels(self.wrap)))

    @cached_property
    def traits(self) -> frozenset[str]:
        return self._asked(lambda: traits_of(self.spec.node, self._of_case, self.type), frozenset())

    def _asked(self, what: Callable[[], Answer], otherwise: Answer) -> Answer:
        """Ask an operator's own code about the case. Where it raises, the case cannot be made ready."""
        try:
            return what()
        except Exception as error:  # whatever it is, it is theirs, and costs this case alone
            self._mishaps.append(error)
            return otherwise

    @cached_property
    def _mishaps(self) -> list[Exception]:
        return []

    @property
    def size(self) -> tuple[float, int]:
        return self.spec.size

    @property
    def graded(self) -> bool:
        return self.spec.graded

    def prepare(self) -> Prepared:
        """Build the case's models and inputs. Raise whatever the operator's own code raises."""
        _ = self.features, self.groups, self.traits
        if self._mishaps:
            raise self._mishaps[0]
        case = build_case(self.spec)
        return prepared_case(wrap(case, self.wrap) if self.wrap else case, self.answers)

    def repeat(self, target: str) -> list[str]:
        """``onnxspec explain``; the target's name has its wrap."""
        return ["onnxspec", "explain", self.text if self.fresh else self.id, "--target", target]


def _of_levels(wrap: str) -> frozenset[str]:
    """Return features that a wrap has in common with cases that are quantized themselves."""
    return features_of_levels(int(wrap.removeprefix("qdq-")[1:]) if wrap in QUANTIZED else 0)


def _script(case: Case, target: Target | None) -> str | None:
    from ..showing.script.script import script_of

    return script_of(case, target)
