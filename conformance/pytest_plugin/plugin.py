"""The pytest plugin: ``pytest --pyargs onnxspec.conformance --onnxspec-target onnxruntime``.

pytest loads this module in every session of every environment that has onnxspec. So it imports nothing heavy, and does
nothing unless an option or an ini value asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .options import DEFAULT_TARGET, PACKAGE, add_options, asked_for

if TYPE_CHECKING:
    from .assertion import RunningTarget

_HOME = Path(__file__).parent.parent
_FIXTURE = "onnxspec_target"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Take part only where that is asked for."""
    asked = asked_for(config)
    if asked is not None:
        config.pluginmanager.register(_Session(), "onnxspec-session")
    elif PACKAGE in config.args:
        raise pytest.UsageError(f"{PACKAGE}: which runtime? Give --onnxspec-target, e.g. --onnxspec-target onnxruntime")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for the fixture once for each target."""
    if _FIXTURE in metafunc.fixturenames:
        asked = asked_for(metafunc.config)
        names = asked.targets if asked is not None else (DEFAULT_TARGET,)
        metafunc.parametrize(_FIXTURE, names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def onnxspec_target(request: pytest.FixtureRequest) -> Iterator[RunningTarget]:
    """Running target of --onnxspec-target (default onnxruntime): see :mod:`.assertion`."""
    from .assertion import RunningTarget
    from .items import target_named

    with RunningTarget(target_named(request.param, asked_for(request.config))) as running:
        yield running


_DECLINED = frozenset({"unsupported", "fallback", "not-tried"})
"""Verdicts as reports spell them: nothing heavy is imported for them."""


class _Session:
    """The hooks of a session that has asked for the suite."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}
        self._runtimes: dict[str, str] = {}
        self._declining: set[str] = set()
        self._judged: set[str] = set()
        self._causes: dict[str, dict[str, list[dict[str, str]]]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect the suite for the folder of this package."""
        if path != _HOME:
            return None
        from .items import Suite

        suite: pytest.Collector = Suite.from_parent(parent, path=path)
        return suite

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count verdicts; where pytest-xdist runs the items, here in the process that reports."""
        if report.when != "teardown" or not report.nodeid.startswith(f"{PACKAGE}::"):
            return
        properties = [(name, str(value)) for name, value in report.user_properties]
        target = next((value for name, value in properties if name == "target"), "")
        verdict = cause = ""
        for name, value in properties:
            if name == "runtime":
                self._runtimes[target] = value
            if name == "verdict":
                counts = self._counts.setdefault(target, {})
                counts[value] = counts.get(value, 0) + 1
                verdict = value
                self._declining |= {target} if value in _DECLINED else set()
            if name == "cause":
                self._causes.setdefault(target, {}).setdefault(value, []).append({})
                cause = value
            if name in ("message", "repeat"):
                self._causes[target][cause][-1][name] = value
            # Forbidden models have no ratio.
            if name == "ratio" and verdict not in _DECLINED and (value or verdict != "pass"):
                self._judged.add(target)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print new failures by cause, each with one case, and cases by verdict, for each target."""
        if self._counts:
            terminalreporter.ensure_newline()
        if self._causes:
            terminalreporter.section("onnxspec: new failures by cause")
        for target, causes in self._causes.items():
            terminalreporter.write_line(self._name(target))
            for cause, cases in sorted(causes.items(), key=lambda item: -len(item[1])):
                terminalreporter.write_line(f"  {cause}: {len(cases)} case{'' if len(cases) == 1 else 's'}")
                shown = min(cases, key=lambda case: len(case["repeat"]))
                if not shown["message"].startswith(cause.removesuffix(" ...")):
                    terminalreporter.write_line(f"      {shown['message']}")
                terminalreporter.write_line(f"      {shown['repeat']}")
        if self._counts:
            terminalreporter.section("onnxspec: cases by verdict")
        for target, counts in self._counts.items():
            listed = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items(), key=lambda c: -c[1]))
            terminalreporter.write_line(f"{self._name(target)}: {sum(counts.values())} cases: {listed}")
            if target in self._idle:
                terminalreporter.write_line("  nothing was judged: every case was declined")

    def _name(self, target: str) -> str:
        """Return the name of a target, with its runtime and version."""
        runtime, _, version = self._runtimes.get(target, "").partition(" ")
        return f"{target}{'' if runtime in target else f' ({runtime})'}{f' {version}' if version else ''}"

    @property
    def _idle(self) -> set[str]:
        """Targets that declined every case, as a broken backend does."""
        return self._declining - self._judged

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail a session in which a target declined every case: skips alone are no success."""
        if exitstatus == pytest.ExitCode.OK and self._idle:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
