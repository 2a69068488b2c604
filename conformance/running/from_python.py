"""A run from Python: ``onnxspec.run``, for notebooks and other tools.

::

    import onnxspec

    print(onnxspec.run("onnxruntime", op="LSTM", profile="smoke"))
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from ...cases import Spec
from ...cases.portable import case_text
from ..judging.judgement import Verdict
from ..probes.selection import Selection, selection_of
from ..probes.wrapped import named_target
from ..results.lines import Line
from ..results.records import Finding
from ..results.result import Result
from ..results.sections import sections_of, summary_text
from ..results.summary import Summary
from ..results.writer import RunWriter
from ..targets.target import ACCURACY, Target
from ..workers.in_process import OwnProcess, Runner, is_runner
from ..workers.process import TargetUnavailable
from ..workers.worker import one_line
from .conclusion import summary_on
from .engine import execute
from .planning import planned
from .run import Plan, TargetRun

Named = str | Spec
"""An operator, a type, or a case: its id, its JSON, a directory, or its spec."""

_COMMAND = ("onnxspec.run",)


@dataclass(frozen=True, repr=False)
class RunOutcome:
    """Outcome of a run on one target.

    target
        Its name.
    runtime
        Its description of itself: ``runtime``, ``version``, ``device``, ...; empty for a function.
    results
        A result for each case, in the order of the run; docs/results.md has the fields.
    findings
        Failures, refusals and remarks, as in run.json.
    seconds
        Duration of the run.
    answer
        The first lines of a report: whether it conforms, failures, supported features.
    folder
        The run folder, or None.

    ``print`` shows the first screen of a report, so does a notebook; ``repr`` is one line.
    """

    target: str
    runtime: Mapping[str, Any]
    results: tuple[Result, ...]
    findings: tuple[Finding, ...]
    seconds: float
    answer: Summary
    folder: Path | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Cases by verdict, in the order of the command line: passes first."""
        counts = Counter(result.verdict for result in self.results)
        return {verdict.value: counts[verdict] for verdict in reversed(Verdict) if counts[verdict]}

    @property
    def unexpected(self) -> tuple[Result, ...]:
        """The failing results that are on no list of known failures."""
        return tuple(result for result in self.results if result.failing and not result.expected)

    @property
    def conforms(self) -> bool | None:
        """Whether nothing failed, known or not; None if unknown: nothing was judged, a case was not run, or a refusal
        was not clean."""
        return self.answer.conforming

    def records(self) -> list[dict[str, Any]]:
        """Return the results as dictionaries of plain values with the keys of results.jsonl: rows of a table."""
        rows: list[dict[str, Any]] = msgspec.to_builtins(self.results)
        return [{key: row[key] for key in Result.__struct_fields__} for row in rows]

    def __repr__(self) -> str:
        return f"<RunOutcome of {self._heading}; conforms: {self.answer.conforms}; {len(self.findings)} findings>"

    def __str__(self) -> str:
        return summary_text(self._heading, self.answer, sections_of(self.answer, self.findings, self.results))

    def _repr_html_(self) -> str:
        """Return the first screen, for a notebook."""
        return f"<pre>{escape(str(self))}</pre>"

    @property
    def _heading(self) -> str:
        """``onnxruntime 1.32.0: 9 pass, 14 unsupported``"""
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        name = f"{self.target} {self.runtime.get('version', '')}".rstrip()
        return f"{one_line(name, 200)}: {counts or 'no case ran'}"


def run(
    target: str | Target | Runner = "onnxruntime",
    *,
    profile: str = "core",
    op: Named | Iterable[Named] = (),
    type: Named | Iterable[Named] = (),
    case: Named | Iterable[Named] = (),
    expected: bool | str | Path = True,
    fill: bool = True,
    accuracy: str = ACCURACY,
    targets_file: str | Path | None = None,
    out: str | Path | None = None,
    each: Callable[[Result], None] = lambda result: None,
) -> RunOutcome:
    """Run cases on a target, judge and diagnose the results, as ``onnxspec run`` does.

    target
        A name, a :class:`Target`, or the source of outputs: a function of a serialized model and a dictionary of its
        inputs that returns the outputs by name or in the graph's order; or a class or module with the functions of
        ``onnx.backend.base.Backend``. A named target works in a process of its own, where a crash costs one case. A
        function works in this process, where a crash ends Python.
    profile, op, type, case
        Selection of cases, each one value or several (one profile); ``op`` may name a version, like GRU-22.
    expected
        List of known failures in place of the target's own: a file, or False for none. A function has none.
    fill
        Whether random cases follow that use only what a named target supports.
    accuracy
        The accuracy class for a function. A named target has its own.
    targets_file
        File of named targets.
    out
        A new run folder; None: nothing stays on disk. Not for a function, whose results no command could repeat.
    each
        Called with every result as it comes; some are updated at the end, when all failures are explained together.

    Raise UnknownName and TargetError, both ValueErrors, for unknown names; RecordError for a folder with a run;
    and TargetUnavailable if the target does not start.
    """
    cases = (c if isinstance(c, str) else case_text(c) for c in _several(case))
    selection = selection_of(profile, map(str, _several(op)), map(str, _several(type)), cases)
    file = Path(targets_file) if targets_file is not None and isinstance(target, str) else None
    if isinstance(target, str):
        target = named_target(target, file)
    if isinstance(target, Target):
        if not isinstance(expected, bool):
            target = replace(target, expected=str(expected))
        plan = planned(selection, [target])
        plan = replace(plan, command=_COMMAND, expected=expected is not False, targets_file=file, fills=fill)
        return _carried_out(plan, out, each)
    if not is_runner(target):
        raise TypeError(f"target is a name, a Target, a function or an ONNX backend, not {target!r}")
    if out is not None:
        raise ValueError(
            "out is for named targets: results of a function in this process cannot be repeated from a folder"
        )
    return _carried_out(_plan_of_function(target, selection, accuracy), None, each)


def _several(given: Named | Iterable[Named]) -> tuple[Named, ...]:
    return (given,) if isinstance(given, str) or hasattr(given, "to_json") else tuple(given)  # type: ignore[return-value]


def _carried_out(plan: Plan, out: str | Path | None, each: Callable[[Result], None]) -> RunOutcome:
    """Return the outcome of a plan with one target."""

    def observe(target: TargetRun, line: Line) -> None:
        if isinstance(line, Result):
            each(line)

    with tempfile.TemporaryDirectory(prefix="onnxspec-") as temporary, RunWriter(Path(out or temporary)) as writer:
        finished = execute(plan, writer, observe)
    (target,) = finished.targets
    if target.unavailable and not target.description:
        raise TargetUnavailable(f"{target.target.name} cannot start: {target.unavailable}")
    for internal_error in target.internal_errors:
        warnings.warn(f"{internal_error}; that is onnxspec's fault or the operator's", RuntimeWarning, stacklevel=3)
    return RunOutcome(
        target.target.name,
        target.description,
        tuple(target.results),
        tuple(target.findings),
        target.seconds,
        summary_on(target, finished),
        Path(out) if out is not None else None,
    )


def _plan_of_function(runner: Runner, selection: Selection, accuracy: str) -> Plan:
    name = getattr(runner, "__name__", runner.__class__.__name__)
    named = name.isidentifier()
    target = Target(name if named else "your function", "backend", accuracy=accuracy)
    return replace(
        planned(selection, [target]),
        command=_COMMAND,
        expected=False,
        process=partial(OwnProcess, runner),
        function=name if named else "f",
    )
