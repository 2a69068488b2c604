"""What a run says on a terminal and in a file: findings first, what is refused last and in a line each."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console

from onnxspec.cases import CaseSpec, profile
from onnxspec.conformance.display import summarize
from onnxspec.conformance.findings import findings_of
from onnxspec.conformance.judgement import Judgement, Verdict
from onnxspec.conformance.probe import SpecProbe
from onnxspec.conformance.result import result_of
from onnxspec.conformance.run import Plan, Run, TargetRun
from onnxspec.conformance.selection import Selection
from onnxspec.conformance.target import parse_target

SPECS = tuple(s for op in ("LSTM", "GRU") for s in profile("core", op, 14) if s.type == "float32" and not s.illegal)
PASS = Judgement(Verdict.PASS)
WRONG = Judgement(Verdict.WRONG, "value", message="Y is so wrong", clause="lstm.clip", worst=9.0, judged=1)
LONG = "NotImplemented: no kernel of such a kind was found, however long it was looked for, anywhere at all"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(
    judged: Sequence[tuple[CaseSpec, Judgement, str | None, tuple[str, ...]]], stream: io.StringIO | None = None
) -> list[str]:
    """The summary of results: a case, its judgement, the reason to expect it, the mistakes that explain it."""
    target = TargetRun(parse_target("onnxruntime"))
    for spec, judgement, why, diagnosis in judged:
        result = result_of(SpecProbe(spec), "onnxruntime", judgement, 0.0, why, f"onnxspec explain {spec.id}")
        object.__setattr__(result, "diagnosis", diagnosis)
        target.results.append(result)
    stream = stream or io.StringIO()
    probes = tuple(map(SpecProbe, SPECS))
    target.findings = findings_of(target.results, {probe.id: probe for probe in probes})
    plan = Plan(Selection(), probes, (target.target,))
    run = Run(plan, Path("run"), datetime.now(timezone.utc), [target])
    summarize(run, Console(file=stream, width=60, highlight=False, color_system=None))
    return stream.getvalue().splitlines()[1:]


def refusing_layout(message: str = LONG) -> list[tuple[CaseSpec, Judgement, str | None, tuple[str, ...]]]:
    no = Judgement(Verdict.REFUSED, "load", message=message)
    return [(s, no if s.layout else PASS, None, ()) for s in SPECS]


def test_a_refusal_takes_one_line_and_stands_last() -> None:
    judged = refusing_layout()
    clipped = {s for s in SPECS if s.clip and not s.layout}
    said = lines([(s, WRONG if s in clipped else j, *rest) for s, j, *rest in judged])
    assert said[1].startswith("  NEW      wrong (value)")
    assert said[-1].startswith("  refused  layout 1 (")
    assert "GRU, LSTM, float32" in said[-1]
    assert said[-1].endswith(LONG)
    assert sum("refused  " in line for line in said) == 1


def test_on_a_terminal_a_refusal_is_cut_to_its_line() -> None:
    said = lines(refusing_layout(), Terminal())
    assert all(len(line) <= 60 for line in said)
    assert not any("anywhere at all" in line for line in said)


def test_what_nothing_explains_is_said_to_be_so() -> None:
    spec = next(s for s in SPECS if s.clip)
    (found, said, command) = lines([(spec, WRONG, None, ())])[1:]
    assert "no known mistake explains it" in found
    assert said.strip() == "Y is so wrong"
    assert command.strip() == f"onnxspec explain {spec.id}"
    explained = lines([(spec, WRONG, None, ("clip.ignored",))])[1]
    assert explained.startswith("  NEW      Ignores clip")
    assert "no known mistake" not in explained
    crashed = lines([(spec, Judgement(Verdict.CRASHED, message="SIGABRT"), None, ())])[1]
    assert "no known mistake" not in crashed  # nothing came back that a mistake could explain


def test_what_is_known_is_told_with_its_reason_and_without_a_command() -> None:
    spec = next(s for s in SPECS if s.clip)
    assert lines([(spec, WRONG, "clip is ignored", ("clip.ignored",))])[1:] == [
        f"  known    Ignores clip (1 case, {spec.op}, float32)",
        "           clip is ignored",
    ]
