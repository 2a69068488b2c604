"""Cases as subtests of their item, where pytest has them: version 9 and later."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

__all__ = ["Subtests"]


class Subtests:
    """Reports of an item's cases. Where pytest has no subtests nothing is reported, and the item must tell it all."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._kind: Any = getattr(pytest, "SubtestReport", None)
        verbosity = getattr(pytest.Config, "VERBOSITY_SUBTESTS", None)
        self._verbose = verbosity is not None and item.config.get_verbosity(verbosity) > 0

    def tell(self, case: str, error: BaseException | None, properties: list[tuple[str, str]]) -> bool:
        """Report a case by what it would raise, and return whether that was possible.

        Unless pytest is verbose only what fails is worth the cost of a report.
        """
        fails = error is not None and not isinstance(error, (pytest.xfail.Exception, pytest.skip.Exception))
        if self._kind is None or not (fails or self._verbose):
            return False

        def outcome() -> None:
            if error is not None:
                raise error

        call = pytest.CallInfo.from_call(outcome, "call")
        whole = self._item.ihook.pytest_runtest_makereport(item=self._item, call=call)
        report = self._as_subtest(whole, case, properties)
        if not isinstance(report, self._kind):
            return False
        capture = self._item.config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
            self._item.ihook.pytest_runtest_logreport(report=report)
        return True

    def _as_subtest(self, report: pytest.TestReport, case: str, properties: list[tuple[str, str]]) -> Any:
        """The same report as one of a subtest.

        pytest makes such reports for functions only. What a report is sent to other processes as is the one form in
        which it takes them from others too.
        """
        hook, config = self._item.ihook, self._item.config
        data: dict[str, Any] = hook.pytest_report_to_serializable(config=config, report=report)
        data.pop("$report_type", None)
        data["_report_type"] = "SubTestReport"
        data["_subtest.context"] = {"msg": case, "kwargs": {}}
        data["user_properties"] = properties
        # The item's own report holds the time of all its cases.
        data["duration"] = 0.0
        return hook.pytest_report_from_serializable(config=config, data=data)
