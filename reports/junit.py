"""Results as JUnit XML, which most continuous integration services read: one test case per case and target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from ..conformance.judging.judgement import UNTRIED, WITHOUT_RUN, Verdict
from ..conformance.judging.vocabulary import outcome_text
from ..conformance.results.result import Result
from .text import printable


def junit_xml(targets: Mapping[str, Sequence[Result]], required: Iterable[Result] = ()) -> bytes:
    """Return the XML, with one suite per target.

    A failing result is a failure; if the target's list of known failures names it, it is skipped, with the reason of
    the list. Unsupported and untried cases are skipped; those in ``required`` are failures. A case that could not be
    run is an error. Characters that XML cannot hold are escapes.
    """
    demanded = {(result.target, result.case) for result in required}
    document = JUnitXml("onnxspec")
    for name, results in targets.items():
        suite = TestSuite(printable(name))
        suite.add_testcases([_case(result, (name, result.case) in demanded) for result in results])
        document.add_testsuite(suite)
    text: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + text


def _case(result: Result, required: bool) -> TestCase:
    case = TestCase(printable(result.case), printable(f"{result.target}.{result.op}-{result.version}.{result.type}"))
    case.time = round(result.seconds, 6)
    outcome = _outcome(result, required)
    if outcome is not None:
        case.result = [outcome]
    if result.printed and result.failing:
        case.system_out = printable(result.printed)
    return case


def _outcome(result: Result, required: bool) -> Failure | Skipped | Error | None:
    verdict = result.verdict.value
    message = printable(
        " ".join(f"{outcome_text(verdict, result.reason or '')}: {result.message}".rstrip(": ").split())
    )
    if result.failing and result.expected:
        return Skipped(printable(f"known failure, {message}; {result.why}"), verdict)
    if result.failing or required:
        failure = Failure(message, verdict)
        lines = [message, f"clause: {result.clause}" if result.clause else ""]
        lines += [f"diagnosis: {', '.join(result.diagnosis)}" if result.diagnosis else "", f"repeat: {result.repeat}"]
        failure.text = printable("\n".join(filter(None, lines)))
        return failure
    if result.verdict in UNTRIED:
        return Error(message, verdict)
    if result.verdict in WITHOUT_RUN or result.verdict is Verdict.INCONCLUSIVE:
        return Skipped(message, verdict)
    return None
