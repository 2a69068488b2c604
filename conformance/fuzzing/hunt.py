"""Search for failures: draw and run cases in batches, shrink and name each new failure, skip known ones.

One search finds several failures. A failing case counts as a known failure if it meets the conditions of that failure
and fails in the same way; all others are shrunk by experiments on the target. Half of the draws are near the passing
cases with the largest errors; the others are like the cases of `run --random`.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from ...cases.portable import CaseTextError, case_from_json, case_text
from ...cases.profiles.random_cases import random_stream
from ...cases.specs.family import drawn_operators
from ...reference import Fault, fault_named
from ...reference.operators.internal_error import format_internal_error
from ..border.strict_json import MalformedJson, parse
from ..diagnosis.confirm import FreshCases, confirm
from ..diagnosis.experiments import Budget, Shrunk, alike, shrink
from ..diagnosis.explainer import Explainer, failing_case_of_tried
from ..diagnosis.failing_case import DIAGNOSED
from ..diagnosis.findings import consistent
from ..diagnosis.match import Matcher, ObservedCases
from ..diagnosis.needs import Need, needs_in_words
from ..diagnosis.target_evidence import TargetEvidence
from ..judging.judgement import FAILING, UNTRIED, Verdict
from ..probes.probe import SpecProbe
from ..probes.stream import CaseRun, tried
from ..probes.wrapped import wrapped_probes
from ..results.expected.entries import Entry, matching
from ..targets.target import Target
from ..workers.pool import Pool
from ..workers.process import BATCH_JOBS, TargetProcess, TargetUnavailable
from .database import Database, Known
from .drawing import altered, drawn

NEAR = 32
_STEERED = 0.5
_FRESH = 0.75  # share of new draws with many features at a time; the others have few, which some failures need
_SHRINK_SECONDS = 30.0
_NAME_SECONDS = 15.0
_EFFORT = 2000
_PASSED_BY = UNTRIED | {Verdict.NOT_TRIED}


@dataclass(frozen=True)
class Limits:
    """The end of a search: after this many seconds or cases, whichever comes first."""

    seconds: float = float("inf")
    cases: int | None = None


@dataclass(frozen=True)
class Discovery:
    """One failure: its smallest case with the target's result, the features it needs, and the faults that explain it.

    drawn
        The case that showed it.
    known
        Whether the database had it.
    predicted
        Number of fresh cases in which the diagnosis, one fault, predicted the target's result. With 0 the diagnosis is
        only consistent with the case.
    """

    one: CaseRun
    needs: tuple[Need, ...]
    diagnosis: tuple[str, ...]
    drawn: Any
    known: bool
    complete: bool
    predicted: int = 0

    @property
    def spec(self) -> Any:
        assert isinstance(self.one.probe, SpecProbe)
        return self.one.probe.spec

    @property
    def title(self) -> str:
        faults = [m.summary.rstrip(".") for m in map(fault_named, self.diagnosis) if m is not None]
        judgement = self.one.judgement
        reason = f" ({judgement.reason})" if judgement.reason else ""
        description = "; ".join(faults)
        if description and not self.predicted:
            description = f"{judgement.verdict.value}{reason}, {consistent(description)}"
        description = description or f"{judgement.verdict.value}{reason}"
        conditions = [w for w in needs_in_words(self.needs) if w.casefold() not in description.casefold()]
        if self.spec.illegal:
            return f"does not reject an invalid model: {self.spec.illegal}"
        return f"{self.spec.op}: {description}" + (f" (with {' and '.join(conditions)})" if conditions else "")


@dataclass
class Hunt:
    """State of a running search.

    batch
        Number of cases drawn at a time.
    pool
        Process pool for judging.
    done
        Number of cases that were run; ``verdicts`` counts their verdicts.
    gone
        Failures of the database that no longer occur.
    listed
        Entries of the target's list of known failures for this runtime.
    internal_errors
        Exceptions in the code of onnxspec or of an operator, each with its number.
    """

    target: Target
    process: TargetProcess
    versions: Sequence[tuple[str, int]]
    types: Sequence[str]
    seed: int
    database: Database
    batch: int = BATCH_JOBS
    pool: Pool = field(default_factory=Pool)
    failures: list[Discovery] = field(default_factory=list)
    gone: list[Known] = field(default_factory=list)
    near: list[tuple[float, Any]] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    done: int = 0
    listed: Sequence[Entry] = field(default=(), init=False)
    internal_errors: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        ops, numbers = {op for op, _ in self.versions}, {version for _, version in self.versions}
        fresh = ops & set(drawn_operators())
        stream = random_stream(self.seed, fresh, numbers, self.types) if fresh else iter(())
        self._fresh = (spec for spec in stream if (spec.op, spec.version) in set(self.versions))
        self.expect(())

    def expect(self, listed: Sequence[Entry]) -> None:
        """Set the entries of the target's list of known failures for this runtime."""
        self.listed = listed
        self._explainer = Explainer(self.target.accuracy, _EFFORT, listed, each=_EFFORT)

    @property
    def new(self) -> list[Discovery]:
        return [failure for failure in self.failures if not failure.known]

    def reason(self, failure: Discovery) -> str:
        """Return the reason for a failure from the target's list of known failures; empty where the list lacks it."""
        diagnosed = replace(failure.one.judgement, diagnosis=failure.diagnosis)
        entry = matching(self.listed, failure.one.probe, diagnosed)
        return "" if entry is None else entry.reason

    def run(self, limits: Limits, observe: Callable[[Hunt], None] = lambda hunt: None) -> None:
        """Search until a limit is reached. Raise TargetUnavailable where the target does not start."""
        deadline = time.monotonic() + limits.seconds
        self._again(deadline)
        while time.monotonic() < deadline and (limits.cases is None or self.done < limits.cases):
            count = self.batch if limits.cases is None else min(self.batch, limits.cases - self.done)
            batch = list(self._batch(count))
            # Run the whole batch first: experiments on the same process must not come between a job and its outcome.
            for result in list(self._tried(batch)):
                self._take(result, deadline)
                observe(self)
                if time.monotonic() >= deadline:
                    break

    def knowledge(self) -> Database:
        """Return the database for the next search."""
        found = [Known(f.title, case_text(f.spec), f.one.judgement.verdict.value) for f in self.failures]
        near = tuple(case_text(spec) for _, spec in self.near)
        return Database(self.database.format, self.database.target, tuple(found), near)

    def _batch(self, count: int) -> Iterator[Any]:
        """Yield cases to run; a failed draw counts as a tried case."""
        for _ in range(count):
            try:
                yield self._next()
            except Exception as error:  # any exception is a bug of onnxspec or the operator, and fails only this draw
                self._record_internal_error("drawing", error)

    def _record_internal_error(self, doing: str, error: Exception) -> None:
        self.internal_errors[f"{doing}: {format_internal_error(error)}"] += 1
        self.done += 1

    def _next(self) -> Any:
        if self.near and self._random.random() < _STEERED:
            return altered(self._random, self._random.choice(self.near)[1], self.types)
        if self._random.random() < _FRESH and (spec := next(self._fresh, None)) is not None:
            return spec
        return drawn(self._random, self.versions, self.types)

    def _tried(self, specs: Sequence[Any]) -> Iterator[CaseRun]:
        probes: Sequence[SpecProbe] = [SpecProbe(spec, fresh=True, answers=False) for spec in specs]
        if self.target.wrap:
            probes = wrapped_probes(probes, self.target.wrap)
            self.done += len(specs) - len(probes)  # counted as tried, like failed draws
        for result in tried(self.process, probes, self.target.accuracy, self.pool):
            if result.judgement.verdict is Verdict.UNAVAILABLE:
                raise TargetUnavailable(result.judgement.message)
            yield result

    def _again(self, deadline: float) -> None:
        """Run the cases of the database first; they are either still failing or gone."""
        specs = {k.case: spec for k in self.database.found if (spec := _spec(k.case)) is not None}
        by_id = {spec.id: text for text, spec in specs.items()}
        titles = {entry.case: entry for entry in self.database.found}
        for result in list(self._tried(list(specs.values()))):
            text = by_id[result.probe.id]
            if result.judgement.verdict in FAILING:
                self._found(result, deadline, known=True)
            else:
                self.gone.append(titles[text])
        self.near = [(0.0, spec) for spec in map(_spec, self.database.near) if spec is not None][:NEAR]

    def _take(self, one: CaseRun, deadline: float) -> None:
        verdict = one.judgement.verdict
        if verdict is Verdict.NOT_JUDGED:
            self.internal_errors[f"{one.judgement.reason}: {one.judgement.message}"] += 1
            self.verdicts[verdict.value] += 1
            self.done += 1
        if verdict in _PASSED_BY:
            return
        assert isinstance(one.probe, SpecProbe)
        spec = one.probe.spec
        self.done += 1
        self.verdicts[verdict.value] += 1
        if verdict in FAILING:
            if not (any(self._same(failure, one, spec) for failure in self.failures) or self._several(one, spec)):
                self._found(one, deadline, known=False)
        elif verdict is Verdict.PASS and one.judgement.judged:
            self._remember(one.judgement.worst, spec)

    def _remember(self, worst: float, spec: Any) -> None:
        """Keep the passing cases with the largest errors."""
        if len(self.near) < NEAR or worst > self.near[-1][0]:
            self.near = sorted([*self.near, (worst, spec)], key=lambda pair: -pair[0])[:NEAR]

    def _same(self, failure: Discovery, one: CaseRun, spec: Any) -> bool:
        """Return whether a failing case repeats a failure that was found before."""
        if spec.illegal or failure.spec.illegal:
            return bool(spec.illegal == failure.spec.illegal)
        if spec.op != failure.spec.op:
            return False
        faults = [m for m in map(fault_named, failure.diagnosis) if isinstance(m, Fault)]
        named = faults and one.judgement.verdict in (Verdict.WRONG, Verdict.INACCURATE, Verdict.MALFORMED)
        # A fault that predicted fresh cases is the cause, even where the conditions are not met.
        met = all(need.met(spec) for need in failure.needs if need.field != "seed")
        if not met and not (named and failure.predicted):
            return False
        return self._explain(faults, one) if named else alike(failure.one)(one)

    def _several(self, one: CaseRun, spec: Any) -> bool:
        """Return whether faults that were found before together explain a failing case."""
        ids = dict.fromkeys(id for f in self.failures if f.spec.op == spec.op and f.predicted for id in f.diagnosis)
        faults = [m for m in map(fault_named, ids) if isinstance(m, Fault) and m.applies(spec.op, spec.version)]
        if len(faults) < 2 or spec.illegal or one.judgement.verdict is not Verdict.WRONG:
            return False
        return self._explain(faults, one)

    def _explain(self, faults: Sequence[Fault], one: CaseRun) -> bool:
        """Return whether faults together explain the target's result in a case."""
        case = failing_case_of_tried(one)
        return case is not None and self._observed()[case].fit(tuple(faults)) is not None

    def _observed(self) -> ObservedCases:
        return ObservedCases(TargetEvidence(self.target.accuracy))

    def _found(self, one: CaseRun, deadline: float, known: bool) -> None:
        assert isinstance(one.probe, SpecProbe)
        first = one.probe.spec
        shrunk = Shrunk(one, (), 0, False)
        failure = Discovery(one, (), (), first, known, False)
        try:
            if not first.illegal:
                budget = Budget(math.inf, until=_until(deadline, _SHRINK_SECONDS))
                shrunk = shrink(self.process, one, alike(one), self.target.accuracy, budget)
                failure = replace(failure, one=shrunk.one, needs=shrunk.needs, complete=shrunk.complete)
            diagnosis, cases = self._named(shrunk, deadline)
            failure = replace(failure, diagnosis=diagnosis, predicted=cases)
        except (TargetUnavailable, OSError):
            raise
        except Exception as error:  # as above: it only affects the smallest case, or the name, of this failure
            self._record_internal_error(f"naming {first.id}", error)
        finally:
            # Runs also after an interruption, or where the target no longer starts: keep the results so far.
            self._keep(failure)

    def _named(self, shrunk: Shrunk, deadline: float) -> tuple[tuple[str, ...], int]:
        """Return the diagnosis of a smallest case, and the number of fresh cases whose results it predicted."""
        diagnosis = self._explainer.explain(shrunk.one)
        if shrunk.one.judgement.verdict not in DIAGNOSED or not shrunk.complete or len(diagnosis) > 1:
            return diagnosis, 0
        hypothesis = fault_named(diagnosis[0]) if diagnosis else None
        budget = Budget(math.inf, until=_until(deadline, _NAME_SECONDS))
        fresh = FreshCases(shrunk.one, lambda probes: tried(self.process, probes, self.target.accuracy))
        confirmation = confirm(fresh, Matcher(self._observed(), _EFFORT), hypothesis, lambda: budget.left <= 0)
        if confirmation.fault is None:
            return diagnosis, 0
        return (confirmation.fault.id,), confirmation.cases

    def _keep(self, failure: Discovery) -> None:
        # Two cases may shrink to the same case, or have one cause that was hidden by another at first.
        if not any(failure.spec == other.spec or _same_cause(failure, other) for other in self.failures):
            self.failures.append(failure)
        if failure.predicted:
            self._settle()

    def _settle(self) -> None:
        """Remove unnamed failures that several named causes together explain."""
        self.failures = [f for f in self.failures if f.diagnosis or f.known or not self._several(f.one, f.spec)]


def _until(deadline: float, seconds: float) -> float:
    """Return the time by which a failure must be shrunk, or named; it stays near the deadline of the search."""
    now = time.monotonic()
    return now + min(seconds, max(2.0, deadline - now))


def _same_cause(failure: Discovery, other: Discovery) -> bool:
    """Return whether two failures, in one operator and type, share a diagnosis that was confirmed for both."""
    named = failure.diagnosis == other.diagnosis and failure.predicted and other.predicted
    return bool(named and (failure.spec.op, failure.spec.type) == (other.spec.op, other.spec.type))


def _spec(text: str) -> Any | None:
    try:
        return case_from_json(parse(text))
    except (CaseTextError, MalformedJson):
        return None
