"""Output of a run on a terminal and in a file: findings first, refused cases last with one line each."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from msgspec import structs
from rich.console import Console

from onnxspec.cases import CaseSpec, profile
from onnxspec.conformance.cli.display import RunDisplay, could_not_start, summarize
from onnxspec.conformance.cli.terminal import LINE, console_on, say
from onnxspec.conformance.diagnosis.findings import findings_of
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import SpecProbe, worded
from onnxspec.conformance.probes.selection import Selection
from onnxspec.conformance.results.lines import CasesAdded
from onnxspec.conformance.results.result import result_of
from onnxspec.conformance.running.run import Plan, Run, TargetRun
from onnxspec.conformance.targets.target import Target, parse_target

SPECS = tuple(s for op in ("LSTM", "GRU") for s in profile("core", op, 14) if s.type == "float32" and not s.illegal)
PASS = Judgement(Verdict.PASS)
WRONG = Judgement(Verdict.WRONG, "value", message="Y is so wrong", clause="lstm.clip", worst=9.0, judged=1)
LONG = "NotImplemented: no kernel of such a kind was found, however long it was looked for, anywhere at all"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


Judged = Sequence[tuple[CaseSpec, Judgement, str | None, tuple[str, ...]]]
"""Results: a case, its judgement, the reason to expect it, and the faults that explain it."""


def summary(judged: Judged, stream: io.StringIO, *, searched: bool = False, only_new: bool = False) -> str:
    """Return the summary of results. `searched`: all known faults were tried on the unexplained ones."""
    target = TargetRun(parse_target("onnxruntime"))
    for spec, judgement, reason, diagnosis in judged:
        result = result_of(SpecProbe(spec), "onnxruntime", judgement, 0.0, reason, f"onnxspec explain {spec.id}")
        target.results.append(structs.replace(result, diagnosis=diagnosis))
    probes = tuple(map(SpecProbe, dict.fromkeys([*SPECS, *(spec for spec, *_ in judged)])))
    target.findings = findings_of(target.results, {probe.id: probe for probe in probes})
    for finding in target.findings:
        finding["searched"] = searched
    run = Run(Plan(Selection(), probes, (target.target,)), Path("run"), datetime.now(timezone.utc), [target])
    summarize(run, Console(file=stream, width=60, highlight=False, color_system=None), only_new=only_new)
    return stream.getvalue()


def lines(judged: Judged, stream: io.StringIO | None = None, *, searched: bool = False) -> list[str]:
    """Return the heading of a summary and the lines below "What is wrong"."""
    shown = summary(judged, stream or io.StringIO(), searched=searched).splitlines()[1:]
    last = next((k for k, line in enumerate(shown) if line.startswith("  What is wrong:")), 0)
    return shown[:1] + shown[last + 1 :]


def refusing_layout(message: str = LONG) -> list[tuple[CaseSpec, Judgement, str | None, tuple[str, ...]]]:
    no = Judgement(Verdict.UNSUPPORTED, "load", message=message)
    return [(s, no if s.layout else PASS, None, ()) for s in SPECS]


def test_a_refusal_takes_one_line_and_stands_last() -> None:
    judged = refusing_layout()
    clipped = {s for s in SPECS if s.clip and not s.layout}
    shown = lines([(s, WRONG if s in clipped else j, *rest) for s, j, *rest in judged])
    assert shown[1].startswith("  NEW          Wrong values (seen only with clip")
    assert shown[-1].startswith("  unsupported  layout 1 (")
    assert "GRU, LSTM, float32" in shown[-1]
    assert shown[-1].endswith(LONG)
    assert sum("unsupported " in line for line in shown) == 1


def test_on_a_terminal_a_refusal_is_cut_to_its_line() -> None:
    shown = lines(refusing_layout(), Terminal())
    assert all(len(line) <= 60 for line in shown)
    assert not any("anywhere at all" in line for line in shown)


def test_refusals_with_nothing_in_common_are_named_by_their_message() -> None:
    no = Judgement(Verdict.UNSUPPORTED, "load", message="rejected for good")
    judged = [(s, no if int(s.digest, 16) % 3 == 0 else PASS, None, ()) for s in SPECS]
    assert lines(judged)[-1].startswith("  unsupported  rejected for good (")
    narrow = lines([(s, replace(no, message=LONG) if j is no else j, w, d) for s, j, w, d in judged], Terminal())
    refusal = " ".join(" ".join(narrow[-narrow[::-1].index("  It does not support:") :]).split())
    assert refusal.startswith(f"unsupported {LONG} (")
    assert all(len(line) <= 60 for line in narrow)


def test_of_many_messages_of_refusals_a_few_are_shown_and_the_others_counted() -> None:
    some = [spec for spec in SPECS if int(spec.digest, 16) % 3 == 0][:8]
    reasons = ("scan", "cast", "split", "fusion", "stack", "memory", "loop", "slice")
    no = {
        spec: Judgement(Verdict.UNSUPPORTED, "load", message=f"{reason} failed")
        for spec, reason in zip(some, reasons, strict=True)
    }
    shown = [line for line in lines([(s, no.get(s, PASS), None, ()) for s in SPECS]) if "unsupported  " in line]
    assert all(" failed (1 case, " in line for line in shown[:4])
    assert shown[4].startswith("  unsupported  4 other messages (4 cases, ")
    assert shown[4].endswith(": see the report")
    assert len(shown) == 5


def test_a_narrow_terminal_cuts_the_counts_and_neither_progress_nor_time() -> None:
    stream = Terminal()
    console = Console(file=stream, width=60, force_terminal=True, color_system=None)
    target, probes = TargetRun(parse_target("onnxruntime")), tuple(map(SpecProbe, SPECS[:100]))
    verdicts = (Verdict.PASS, Verdict.UNSUPPORTED, Verdict.INCONCLUSIVE, Verdict.NOT_RUN)
    with RunDisplay(console, Plan(Selection(), probes[:99], (target.target,))) as display:
        display.observe(target, CasesAdded(target="onnxruntime", cases=[probes[99].text]))
        for probe, verdict in zip(probes, verdicts * 25, strict=True):
            target.results.append(result_of(probe, "onnxruntime", Judgement(verdict), 0.0, None))
            display.observe(target, target.results[-1])
    last = [line for line in stream.getvalue().splitlines() if "100/100" in line][-1]
    assert "0:00:0" in last
    assert "25 pass" in last
    assert last.rstrip().endswith("…")


def test_what_a_case_is_about_is_said_in_its_own_words() -> None:
    assert worded("about batch empty") == "batch empty"


def test_a_runtime_that_is_not_installed_comes_with_a_hint() -> None:
    missing = "ModuleNotFoundError: No module named 'openvino'"
    assert could_not_start(parse_target("openvino"), missing).endswith("'onnxspec targets' says what installs it")
    assert could_not_start(parse_target("openvino"), "OSError: x") == "could not start: OSError: x"
    assert could_not_start(parse_target("backend:mine"), missing) == f"could not start: {missing}"
    assert could_not_start(Target("own", "/lab/own.py"), missing) == f"could not start: {missing}"


def test_what_nothing_explains_is_said_to_be_so() -> None:
    spec = next(s for s in SPECS if s.clip)
    (headline, message, command) = lines([(spec, WRONG, None, ())], searched=True)[1:]
    assert "cause unknown" in headline
    (unsearched, *_) = lines([(spec, WRONG, None, ())])[1:]
    assert "cause unknown, not all faults were tried" in unsearched
    assert message.strip() == "Y is so wrong"
    assert command.strip() == f"onnxspec explain {spec.id}"
    explained = lines([(spec, WRONG, None, ("clip.ignored",))])[1]
    assert explained.startswith("  NEW          Consistent with: ignores clip")
    assert "cause unknown" not in explained
    crashed = lines([(spec, Judgement(Verdict.CRASHED, message="SIGABRT"), None, ())])[1]
    assert "cause unknown" not in crashed  # no outputs came back that a fault could explain


def test_what_is_known_is_told_with_its_reason_and_without_a_command() -> None:
    spec = next(s for s in SPECS if s.clip)
    assert lines([(spec, WRONG, "clip is ignored", ("clip.ignored",))])[1:] == [
        f"  known        Consistent with: ignores clip (1 case, {spec.op}, float32)",
        "               Listed as known: clip is ignored",
    ]


def test_every_verdict_is_counted() -> None:
    text = summary([(s, Judgement(v), None, ()) for s, v in zip(SPECS, Verdict, strict=False)], io.StringIO())
    counts = " ".join(text.partition("Conforms")[0].split())
    assert all(f"1 {verdict.value}" in counts for verdict in Verdict)


def test_forbidden_models_that_ran_have_a_section_of_their_own() -> None:
    spec = next(s for s in profile("core", "LSTM", 14) if s.illegal and s.type == "float32")
    ran = Judgement(Verdict.NOT_REJECTED, "load", message="accepted, but invalid", clause="lstm.clip")
    for only_new in (False, True):
        text = summary([(SPECS[0], WRONG, None, ()), (spec, ran, None, ())], io.StringIO(), only_new=only_new)
        before, after = text.split("  Invalid models that were ")
        assert before.count("NEW") == after.count("NEW") == 1
        assert "wrong values" in before.lower()
        assert after.startswith("accepted:")


def test_foreign_text_stays_in_the_line_that_it_is_part_of(capsys: pytest.CaptureFixture[str]) -> None:
    say("  NEW    a\n1000 pass\x1b[2J\u202e", "       " + "n" * 100_000, "")
    first, second, third, rest = capsys.readouterr().out.split("\n")
    assert first == "  NEW a 1000 pass\\x1b[2J\\u202e"
    assert len(second) < LINE + 20
    assert second.endswith(" ...")
    assert third == rest == ""


def test_what_is_a_readable_line_is_said_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["", "  gone   clip [red] :smile:  two blanks", "/" + "folder/" * 100, "n" * LINE]
    say(*lines)
    assert capsys.readouterr().out == "".join(f"{line}\n" for line in lines)


def test_nothing_that_is_printed_can_control_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console_on(sys.stdout).print("a\x1b[2J\u202eb", markup=False)
    assert capsys.readouterr().out == "a\\x1b[2J\\u202eb\n"
