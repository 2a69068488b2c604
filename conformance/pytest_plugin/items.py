"""Items of pytest: one for each operator version, type and group of clauses. Failures are diagnosed one by one."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from msgspec import structs

from ...cases import PROFILES
from ...cases.specs.features import GROUPS
from ...reference import fault_named
from ...reference.errors import UserError, format_internal_error
from ..diagnosis.explainer import Explainer
from ..judging.judgement import UNTRIED, WITHOUT_RUN, Verdict
from ..probes.probe import Probe
from ..probes.selection import selection_of
from ..probes.stream import CaseRun, tried
from ..probes.wrapped import named_target
from ..results.expected.entries import (
    Entry,
    applying,
    decidable_entries,
    expectations_of,
    matching,
    stale,
)
from ..results.result import Result
from ..results.wording import failure_text, how_to_mend
from ..running.engine import judged_result
from ..running.planning import planned
from ..running.run import Plan
from ..targets.target import Target
from ..workers.process import TargetProcess, TargetUnavailable
from ..workers.worker import one_line
from .options import PACKAGE, base_folder, option, target_names, targets_file, worker_path

_EFFORT = 3000
"""Hypotheses that are tried on failing cases: some seconds, for a target that fails in ways that nothing explains."""

_REASONS_SHOWN = 3
_NAMES_SHOWN = 6
_CAUSE, _MESSAGE = 120, 400  # characters of a cause and of a failure's first line


def item_group(probe: Probe) -> str:
    """Return the group whose item holds a case: the most special of its groups, or ``plain``.

    :data:`...cases.specs.features.GROUPS` goes from common to special features.
    """
    return next((name for name in reversed(GROUPS) if name in probe.features and name != "forward"), "plain")


def target_named(name: str, config: pytest.Config) -> Target:
    """Return the target of that name. Raise TargetError."""
    target, path = named_target(name, targets_file(config)), worker_path(config)
    if not path or target.command:
        return target
    return replace(target, environment={"PYTHONPATH": path, **target.environment})


class Suite(pytest.Directory):
    """The suite, with one collector for each target."""

    @classmethod
    def from_parent(cls, parent: Any, *, fspath: None = None, path: Path | None = None, **more: Any) -> Any:
        """Make ids begin with the package's name, wherever it is installed."""
        return super().from_parent(parent, path=path, name=PACKAGE, nodeid=PACKAGE, **more)

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield a collector for each target. An impossible request is one error of one line."""
        config = self.config
        profile, op, type, case, expected = (
            option(config, name) for name in ("profile", "op", "type", "case", "expected")
        )
        try:
            targets = [target_named(name, config) for name in target_names(config)]
            if expected and expected != "none":
                file = base_folder(config, "expected") / expected
                targets = [replace(target, expected=str(file)) for target in targets]
            chosen = selection_of(profile or "core", op, type, case, base_folder(config, "case"))
            plan = replace(planned(chosen, targets), expected=expected != "none", targets_file=targets_file(config))
            suites = []
            for target in targets:
                suite: TargetSuite = TargetSuite.from_parent(self, name=target.name)
                suite.hold(target, plan)
                suites.append(suite)
        except UserError as error:
            raise self.CollectError(f"onnxspec: {error}") from None
        yield from suites


class TargetSuite(pytest.Collector):
    """The items of one target, which share its process."""

    def hold(self, target: Target, plan: Plan) -> None:
        """Register the cases that a plan has for the target, and its expected failures. Raise UserError."""
        self.target, self._plan = target, plan
        self.entries = expectations_of(target) if plan.expected else ()
        self.description: dict[str, Any] = {}
        self._process: TargetProcess | None = None
        self._down = ""
        self._results: dict[str, Result] = {}
        self._explainer = Explainer(target.accuracy, _EFFORT, self.entries)

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each operator version, type and group, and one for the list of known failures."""
        groups: dict[str, list[Probe]] = {}
        probes = self._plan.probes_of(self.target)
        for probe in probes:
            name = f"{probe.op}-{probe.version}-{probe.type}-{item_group(probe)}"
            groups.setdefault(name, []).append(probe)
        for name, members in groups.items():
            item: Group = Group.from_parent(self, name=name)
            item.probes = members
            yield item
        profile = self._plan.selection.profile
        if profile not in PROFILES:  # other cases cannot show that failures no longer happen
            return
        entries = decidable_entries(self.entries, {probe.id for probe in probes}, profile)
        covered = {entry: [p for p in probes if entry.covers(p)] for entry in entries}
        if any(covered.values()):
            last: Expectations = Expectations.from_parent(self, name="expected-failures")
            last.entries = {entry: members for entry, members in covered.items() if members}
            yield last

    def teardown(self) -> None:
        """After the last item."""
        if self._process is not None:
            self._process.close()
        self._process = None

    def start(self) -> None:
        """Start the target. If it does not start, the first item fails with the reason, and the others are skipped."""
        if self._down:
            pytest.skip(self._down)
        if self._process is None:
            process = TargetProcess(self.target)
            try:
                self.description = process.start()
            except TargetUnavailable as error:
                self.fail(error)
            self._process = process

    def fail(self, error: TargetUnavailable) -> NoReturn:
        """End an item whose target does not start, with the reason. The others are skipped."""
        self._down = f"the target {self.target.name} cannot start: see the error of its first item"
        raise pytest.fail.Exception(how_to_mend(self.target, error), pytrace=False) from None

    def results_of(self, probes: Iterable[Probe]) -> Iterator[tuple[Result, str]]:
        """Run cases. Yield results in order, each as soon as it is there, with a text about an unexpected failure."""
        assert self._process is not None
        entries = applying(self.entries, self.description)
        try:
            for case_run in tried(self._process, probes, self.target.accuracy):
                result = judged_result(case_run, self.target, entries, self._repeat(case_run.probe))
                # An entry with a fault expects the cases that this explains, even if another entry expects them too.
                if not result.expected or any(e.faults and e.covers(case_run.probe) for e in self.entries):
                    result = self._explained(case_run, result, entries)
                if result.verdict is Verdict.UNAVAILABLE:
                    raise TargetUnavailable(result.message)
                self._results[result.case] = result
                text = ""
                if result.failing and not result.expected:
                    text = failure_text(
                        case_run.prepared,
                        case_run.outcomes,
                        case_run.judgement,
                        accuracy=self.target.accuracy,
                        clauses=result.clauses,
                        diagnosis=result.diagnosis,
                        repeat=result.repeat,
                    )
                yield result, text
        except TargetUnavailable as error:
            self.fail(error)

    def still_fails(self, entry: Entry, probes: Sequence[Probe]) -> bool:
        """Return whether something fails as an entry expects, or nothing that it covers could be tried.

        probes
            All that the entry covers. Those that have not run do, as far as needed.
        """
        for probe in sorted(probes, key=lambda probe: probe.id not in self._results):
            if probe.id not in self._results:
                list(self.results_of([probe]))
            if entry.expects(probe, self._results[probe.id]):
                return True
        return not stale([entry], ((probe, self._results[probe.id]) for probe in probes))

    def _explained(self, case_run: CaseRun, result: Result, entries: Sequence[Entry]) -> Result:
        """Return the result with its diagnosis, which an entry may name."""
        try:
            diagnosis = self._explainer.explain(case_run)
        except Exception as error:  # whatever it is, it is ours or the operator's, and costs this case its diagnosis
            broke = f"its diagnosis broke off, by the suite's fault or the operator's: {format_internal_error(error)}"
            return structs.replace(result, message=f"{result.message}; {broke}")
        if not diagnosis:
            return result
        explained = structs.replace(result, diagnosis=diagnosis)
        entry = matching(entries, case_run.probe, explained)
        return structs.replace(explained, expected=entry is not None, why=entry.reason if entry else "")

    def _repeat(self, probe: Probe) -> str:
        """Return the command that shows a case on the target."""
        command = self._plan.repeat(probe, self.target)
        path = self.target.environment.get("PYTHONPATH") if self.target.adapter == "backend" else None
        return f"PYTHONPATH={shlex.quote(path)} {command}" if path else command


class _TargetItem(pytest.Item):
    """An item that a target works for."""

    @property
    def suite(self) -> TargetSuite:
        assert isinstance(self.parent, TargetSuite)
        return self.parent

    def setup(self) -> None:
        """Have the target at work."""
        super().setup()
        self.suite.start()

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the name of the item in headings."""
        return self.path, None, f"{self.suite.name}: {self.name}"


class Group(_TargetItem):
    """The cases of one operator version, type and group."""

    probes: Sequence[Probe]

    def runtest(self) -> None:
        """Run the cases; then fail, be expected to, be skipped, or pass."""
        suite = self.suite
        described = (str(suite.description.get(key) or "") for key in ("runtime", "version"))
        self.user_properties += [("target", suite.target.name), ("runtime", " ".join(described).strip())]
        results: list[Result] = []
        failures: dict[str, str] = {}
        for result, text in suite.results_of(self.probes):
            results.append(result)
            ratio = "" if result.worst is None else f"{result.worst:.6g}"
            self.user_properties += [("case", result.case), ("verdict", result.verdict.value)]
            self.user_properties += [("clause", result.clause or ""), ("ratio", ratio)]
            if failure := self._failure(result, text):
                failures[result.case] = failure
                self.user_properties += _cause(result, failure)
                if self.config.getoption("maxfail") == 1:
                    break
        self._conclude(results, failures)

    def _failure(self, result: Result, text: str) -> str:
        """Return a message about an unexpected failure; empty for other cases."""
        if result.verdict in UNTRIED:
            words = result.verdict.value.replace("-", " ")
            return f"{words}: {result.message.removeprefix(f'{words}: ')}"
        if result.expected and self.config.getoption("runxfail"):
            return f"{result.verdict.value}: {result.message} (expected: {result.why})\n  repeat    {result.repeat}"
        return text

    def _conclude(self, results: Sequence[Result], failures: Mapping[str, str]) -> None:
        """End the item. `failures` are messages on the cases that failed."""
        if failures:
            names = f"{', '.join([*failures][:_NAMES_SHOWN])}{', ...' if len(failures) > _NAMES_SHOWN else ''}"
            untried = all(result.verdict in UNTRIED for result in results if result.case in failures)
            heading = f"{len(failures)} of {len(results)} cases {'are not judged' if untried else 'fail'}: {names}"
            verbose = self.config.option.verbose > 0
            details = [f"{case}\n{failure}" for case, failure in failures.items()] if verbose else []
            pytest.fail("\n\n".join([heading, *details]), pytrace=False)
        failing = [result for result in results if result.failing]
        if failing:
            reasons = list(dict.fromkeys(result.why for result in failing))
            pytest.xfail(f"{len(failing)} of {len(results)} cases fail as expected: {' | '.join(reasons)}")
        if results and all(result.verdict in WITHOUT_RUN for result in results):
            messages = Counter(one_line(result.message, 240) for result in results).most_common(_REASONS_SHOWN)
            pytest.skip(f"{results[0].verdict.value}: {' | '.join(message for message, _ in messages)}")


class Expectations(_TargetItem):
    """Test that every expected failure still happens."""

    entries: Mapping[Entry, Sequence[Probe]]

    def runtest(self) -> None:
        """Fail if an entry covers cases that ran, and none of them fails as it expects."""
        applied = set(applying(self.entries, self.suite.description))
        outdated = [e for e, probes in self.entries.items() if e in applied and not self.suite.still_fails(e, probes)]
        if outdated:
            lines = [f"  {entry.op}: {entry.reason}" for entry in outdated]
            heading = "expected failures that no longer happen, to be taken from the list:"
            pytest.fail("\n".join([heading, *lines]), pytrace=False)


def _cause(result: Result, failure: str) -> list[tuple[str, str]]:
    """Return the properties of a case with a new failure: its cause, the first line of its message, and the command
    that repeats it."""
    names = [fault.summary.rstrip(".") for id in result.diagnosis if (fault := fault_named(id)) is not None]
    headline = failure.splitlines()[0]
    if names:
        cause = f"{'; '.join(names)} ({', '.join(result.diagnosis)})"
    elif result.clause is not None:
        cause = f"cause unknown, {result.verdict.value} by {result.clause}"
    else:
        cause = one_line(headline, _CAUSE)
    return [("cause", cause), ("message", one_line(headline, _MESSAGE)), ("repeat", result.repeat)]
