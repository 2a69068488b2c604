"""The pytest plugin: ``pytest --pyargs onnxspec.conformance --onnxspec-target onnxruntime``.

pytest loads this module in every session of every environment that has onnxspec. So it imports nothing heavy, and does
nothing unless an option or an ini value asks for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .options import PACKAGE, add_options, takes_part, target_names

if TYPE_CHECKING:
    from .assertion import RunningTarget

_HOME = Path(__file__).parent.parent
_FIXTURE = "onnxspec_target"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Take part only where that is asked for."""
    if takes_part(config):
        config.pluginmanager.register(_Session(), "onnxspec-session")
    elif PACKAGE in config.args:
        raise pytest.UsageError(f"{PACKAGE}: which runtime? Give --onnxspec-target, e.g. --onnxspec-target onnxruntime")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for the fixture once for each target."""
    if _FIXTURE in metafunc.fixturenames:
        metafunc.parametrize(_FIXTURE, target_names(metafunc.config), indirect=True, scope="session")


@pytest.fixture(scope="session")
def onnxspec_target(request: pytest.FixtureRequest) -> Iterator[RunningTarget]:
    """Running target of --onnxspec-target (default onnxruntime): see :mod:`.assertion`."""
    from .assertion import RunningTarget
    from .items import target_named

    with RunningTarget(target_named(request.param, request.config)) as running:
        yield running


_DECLINED = frozenset({"unsupported", "fallback", "not-tried"})
"""Verdicts as reports spell them: nothing heavy is imported for them."""


def _idle(cases: Iterable[Mapping[str, str]]) -> bool:
    """Return whether a target refused everything, as a broken backend does. Forbidden models have no ratio."""
    declined = judged = False
    for case in cases:
        declined |= case["verdict"] in _DECLINED
        judged |= case["verdict"] not in _DECLINED and bool(case["ratio"] or case["verdict"] != "pass")
    return declined and not judged


class _Session:
    """The hooks of a session that has asked for the suite."""

    def __init__(self) -> None:
        self._runtimes: dict[str, str] = {}
        self._cases: dict[str, list[dict[str, str]]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect the suite for the folder of this package."""
        if path != _HOME:
            return None
        from .items import Suite

        suite: pytest.Collector = Suite.from_parent(parent, path=path)
        return suite

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the properties of cases; where pytest-xdist runs the items, here in the process that reports."""
        if report.when != "teardown" or not report.nodeid.startswith(f"{PACKAGE}::"):
            return
        target = ""
        for name, value in report.user_properties:
            if name == "target":
                target = str(value)
            elif name == "runtime":
                self._runtimes[target] = str(value)
            elif name == "case":
                self._cases.setdefault(target, []).append({})
            if self._cases.get(target):
                self._cases[target][-1][name] = str(value)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print new failures by cause, each with one case, and cases by verdict, for each target."""
        if not self._cases:
            return
        terminalreporter.ensure_newline()
        if any("cause" in case for cases in self._cases.values() for case in cases):
            terminalreporter.section("onnxspec: new failures by cause")
        for target, cases in self._cases.items():
            causes = Counter(case["cause"] for case in cases if "cause" in case)
            if causes:
                terminalreporter.write_line(self._name(target))
            for cause, count in causes.most_common():
                terminalreporter.write_line(f"  {cause}: {count} case{'' if count == 1 else 's'}")
                example = min((case for case in cases if case.get("cause") == cause), key=lambda c: len(c["repeat"]))
                if not example["message"].startswith(cause.removesuffix(" ...")):
                    terminalreporter.write_line(f"      {example['message']}")
                terminalreporter.write_line(f"      {example['repeat']}")
        terminalreporter.section("onnxspec: cases by verdict")
        for target, cases in self._cases.items():
            counts = Counter(case["verdict"] for case in cases).most_common()
            listed = ", ".join(f"{count} {verdict}" for verdict, count in counts)
            terminalreporter.write_line(f"{self._name(target)}: {len(cases)} cases: {listed}")
            if _idle(cases):
                terminalreporter.write_line("  nothing was judged: every case was declined")

    def _name(self, target: str) -> str:
        """Return the name of a target, with its runtime and version."""
        runtime, _, version = self._runtimes.get(target, "").partition(" ")
        return f"{target}{'' if runtime in target else f' ({runtime})'}{f' {version}' if version else ''}"

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail a session in which a target declined every case: skips alone are no success."""
        if exitstatus == pytest.ExitCode.OK and any(map(_idle, self._cases.values())):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
