"""Items of pytest: one for each operator version, type and group of clauses."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ...cases import PROFILES
from ...cases.specs.features import GROUPS
from ...reference import fault_named
from ..judging.judgement import UNTRIED, WITHOUT_RUN
from ..models.content import ModelError
from ..probes.probe import Probe
from ..probes.selection import UnknownName, selection_of
from ..probes.wrapped import named_target
from ..results.expected.entries import (
    Entry,
    ExpectedFailureError,
    applying,
    decidable_entries,
    expectations_of,
    read_expected,
)
from ..results.result import Result
from ..results.wording import how_to_mend
from ..running.planning import planned
from ..running.run import Plan
from ..targets.target import Target, TargetError
from ..workers.process import TargetUnavailable
from ..workers.worker import one_line
from .models import nodes_of_models
from .options import PACKAGE, Asked, asked_for
from .session import Judged, Session

_REASONS_SHOWN = 3
_NAMES_SHOWN = 6
_CAUSE, _MESSAGE = 120, 400  # characters of a cause and of a failure's first line


def item_group(probe: Probe) -> str:
    """Return the group whose item holds a case: the most special of its groups, or ``plain``.

    :data:`..cases.features.GROUPS` goes from common to special features.
    """
    return next((name for name in reversed(GROUPS) if name in probe.features and name != "forward"), "plain")


def target_named(name: str, asked: Asked | None) -> Target:
    """Return the target of that name. Raise TargetError."""
    target = named_target(name, asked.targets_file if asked else None)
    if asked is None or not asked.pythonpath or target.command:
        return target
    path = os.pathsep.join([*asked.pythonpath, *filter(None, [os.environ.get("PYTHONPATH")])])
    return replace(target, environment={"PYTHONPATH": path, **target.environment})


class Suite(pytest.Directory):
    """The suite, with one collector for each target."""

    @classmethod
    def from_parent(cls, parent: Any, *, fspath: None = None, path: Path | None = None, **more: Any) -> Any:
        """Make ids begin with the package's name, wherever it is installed."""
        return super().from_parent(parent, path=path, name=PACKAGE, nodeid=PACKAGE, **more)

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield a collector for each target. An impossible request is one error of one line."""
        asked = asked_for(self.config)
        assert asked is not None
        try:
            own = read_expected(asked.expected) if asked.expected is not None else None
            targets = [target_named(name, asked) for name in asked.targets]
            chosen = selection_of(asked.profile, asked.ops, None, asked.types, asked.cases, asked.base)
            if asked.models:
                roots = nodes_of_models(asked.models, self.config)
                chosen = replace(chosen, profile="directories", directories=tuple(map(str, roots)))
            plan = planned(chosen, targets)
            plan = replace(plan, expected=asked.expects, targets_file=asked.targets_file)
            suites = []
            for target in targets:
                listed = expectations_of(target) if plan.expected else ()
                suite: TargetSuite = TargetSuite.from_parent(self, name=target.name)
                suite.hold(Session(target, listed if own is None else own, plan.targets_file), plan)
                suites.append(suite)
        except (UnknownName, TargetError, ExpectedFailureError, ModelError) as error:
            raise self.CollectError(f"onnxspec: {error}") from None
        yield from suites


class TargetSuite(pytest.Collector):
    """The items of one target, which share its process."""

    running: Session

    def hold(self, running: Session, plan: Plan) -> None:
        """Register the cases that a plan has for the target."""
        self.running = running
        self.down = ""
        self._probes = plan.probes_of(running.target)
        self._profile = plan.selection.profile

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each operator version, type and group, and one for the list of known failures."""
        groups: dict[str, list[Probe]] = {}
        for probe in self._probes:
            name = f"{probe.op}-{probe.version}-{probe.type}-{item_group(probe)}"
            groups.setdefault(name, []).append(probe)
        form = _with_subtests if hasattr(pytest, "Subtests") else _alone
        for name, probes in groups.items():
            item: Group = Group.from_parent(self, name=name, callobj=form)
            item.probes = probes
            yield item
        if self._profile not in PROFILES:  # what is no part of a profile cannot tell whether failures still happen
            return
        entries = decidable_entries(self.running.entries, {probe.id for probe in self._probes}, self._profile)
        covered = [(entry, [p for p in self._probes if entry.covers(p)]) for entry in entries]
        if any(probes for _, probes in covered):
            last: Expectations = Expectations.from_parent(self, name="expected-failures")
            last.entries = [(entry, probes) for entry, probes in covered if probes]
            yield last

    def teardown(self) -> None:
        """After the last item."""
        self.running.close()

    def start(self) -> None:
        """Start the target. If it does not start, the first item fails with the reason, and the others are skipped."""
        if not self.down:
            try:
                self.running.start()
                return
            except TargetUnavailable as error:
                self.fail(error)
        pytest.skip(self.down)

    def fail(self, error: TargetUnavailable) -> NoReturn:
        """End an item whose target does not start, with the reason. The others are skipped."""
        self.down = f"the target {self.running.target.name} cannot start: see the error of its first item"
        raise pytest.fail.Exception(how_to_mend(self.running.target, error), pytrace=False) from None


def _with_subtests(subtests: Any) -> None:
    """Replace a group: for pytest it is a function whose argument is the fixture for subtests."""


def _alone() -> None:
    """Replace a group if pytest has no subtests: before version 9."""


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


class Group(_TargetItem, pytest.Function):
    """The cases of one operator version, type and group. A function to pytest, so that it can have subtests."""

    probes: Sequence[Probe]

    def runtest(self) -> None:
        """Report each case as it is judged; then fail, be expected to, be skipped, or pass."""
        running = self.suite.running
        self.user_properties.append(("target", running.target.name))
        described = (str(running.description.get(key) or "") for key in ("runtime", "version"))
        self.user_properties.append(("runtime", " ".join(described).strip()))
        results: list[Result] = []
        failed: list[str] = []
        details: list[str] = []
        verbose = self.config.option.verbose > 0
        try:
            for judged in running.results_of(self.probes):
                results.append(judged.result)
                self.user_properties += _properties(judged.result)
                failure = self._failure(judged)
                reported = verbose and self._tell(judged.result.case, _error(judged.result, failure))
                if failure:
                    failed.append(judged.result.case)
                    self.user_properties += _cause(judged.result, failure)
                    details += [f"{judged.result.case}\n{failure}"] if verbose and not reported else []
                if self.session.shouldfail or (failed and self.config.getoption("maxfail") == 1):
                    break
        except TargetUnavailable as error:
            self.suite.fail(error)
        self._conclude(results, failed, details)

    def _tell(self, case: str, error: BaseException | None) -> bool:
        """Report a case as a subtest, by its exception, and return whether that was possible."""
        subtests: Any = self.funcargs.get("subtests")
        if subtests is None:
            return False
        # With -x it comes through once it is reported; the item then ends with its own words.
        with contextlib.suppress(pytest.fail.Exception), subtests.test(msg=case):
            if error is not None:
                raise error
        return True

    def _failure(self, judged: Judged) -> str:
        """Return a message about an unexpected failure; empty for other cases."""
        result = judged.result
        if result.verdict in UNTRIED:
            words = result.verdict.value.replace("-", " ")
            return f"{words}: {result.message.removeprefix(f'{words}: ')}"
        if result.expected and self.config.getoption("runxfail"):
            return f"{result.verdict.value}: {result.message} (expected: {result.why})\n  repeat    {result.repeat}"
        return judged.text

    def _conclude(self, results: Sequence[Result], failed: Sequence[str], details: Sequence[str]) -> None:
        """End the item: `failed` are the ids of cases that failed, `details` the texts that no subtest has shown."""
        if failed:
            names = f"{', '.join(failed[:_NAMES_SHOWN])}{', ...' if len(failed) > _NAMES_SHOWN else ''}"
            untried = all(result.verdict in UNTRIED for result in results if result.case in failed)
            heading = f"{len(failed)} of {len(results)} cases {'are not judged' if untried else 'fail'}: {names}"
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

    entries: Sequence[tuple[Entry, Sequence[Probe]]]

    def runtest(self) -> None:
        """Fail if an entry covers cases that ran, and none of them fails as it expects."""
        try:
            running = self.suite.running
            applied = set(applying((entry for entry, _ in self.entries), running.description))
            stale = [e for e, probes in self.entries if e in applied and not running.still_fails(e, probes)]
        except TargetUnavailable as error:
            self.suite.fail(error)
        if stale:
            lines = [f"  {entry.op}: {entry.reason}" for entry in stale]
            heading = "expected failures that no longer happen, to be taken from the list:"
            pytest.fail("\n".join([heading, *lines]), pytrace=False)


def _properties(result: Result) -> list[tuple[str, str]]:
    """Return the properties of a case in JUnit files, in this order: case, verdict, clause, ratio."""
    ratio = "" if result.worst is None else f"{result.worst:.6g}"
    clause = result.clause or ""
    return [("case", result.case), ("verdict", result.verdict.value), ("clause", clause), ("ratio", ratio)]


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


def _error(result: Result, failure: str) -> BaseException | None:
    """Return the exception that a subtest of the case raises."""
    if failure:
        return pytest.fail.Exception(failure, pytrace=False)
    if result.failing:
        return pytest.xfail.Exception(result.why)
    if result.verdict in WITHOUT_RUN:
        return pytest.skip.Exception(f"{result.verdict.value}: {result.message}")
    return None
