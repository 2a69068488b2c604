"""Output of a run for continuous-integration services: files that they can read, and exit codes."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from onnxspec.cases import profile
from onnxspec.conformance.checking.formatters import github_command
from onnxspec.conformance.cli.application import load_command
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.results.result import Result as Judged
from onnxspec.conformance.results.result import result_of
from onnxspec.reports.junit import junit_xml

from ..miniatures import Inside, read_results

EXAMPLES = Path(__file__).parents[3] / "examples" / "github"
SPEC = profile("smoke", "LSTM", 14)[0]
SMOKE = ("--target", "onnx-reference", "--profile", "smoke", "--op", "RNN-14", "--no-extra")
"""Cases whose failures have causes that are found at once."""
FAILING = (*SMOKE, "--expected", "none")


def judged(verdict: Verdict, why: str | None = None, message: str = "so it is") -> Judged:
    return result_of(SpecProbe(SPEC), "there", Judgement(verdict, message=message), 0.25, why, "repeat this")


def outcomes(*results: Judged, required: tuple[Judged, ...] = ()) -> list[tuple[str, str]]:
    """Return (element, message) of each case of a document; a pass has neither."""
    suite = ElementTree.fromstring(junit_xml({"there": results}, required))[0]
    assert suite.get("tests") == str(len(results))
    return [(case[0].tag, case[0].get("message", "")) if len(case) else ("", "") for case in suite]


@pytest.mark.parametrize(
    ("verdict", "why", "element", "message"),
    [
        (Verdict.PASS, None, "", ""),
        (Verdict.WRONG, None, "failure", "wrong: so it is"),
        (Verdict.WRONG, "a kernel's fault", "skipped", "known failure, wrong: so it is; a kernel's fault"),
        (Verdict.UNSUPPORTED, None, "skipped", "unsupported: so it is"),
        (Verdict.FALLBACK, None, "skipped", "fallback (The node runs somewhere else than asked for): so it is"),
        (Verdict.INCONCLUSIVE, None, "skipped", "inconclusive: so it is"),
        (Verdict.UNAVAILABLE, None, "error", "unavailable: so it is"),
        (Verdict.NOT_RUN, None, "error", "not-run: so it is"),
    ],
)
def test_each_verdict_is_what_a_service_takes_it_for(
    verdict: Verdict, why: str | None, element: str, message: str
) -> None:
    assert outcomes(judged(verdict, why)) == [(element, message)]


def test_what_is_required_and_refused_is_a_failure() -> None:
    refused = judged(Verdict.UNSUPPORTED)
    assert outcomes(refused, required=(refused,)) == [("failure", "unsupported: so it is")]


def test_what_xml_cannot_hold_is_spelled_out() -> None:
    ((_, message),) = outcomes(judged(Verdict.WRONG, message="\x00<b>\x1b[31m\ud800"))
    assert message == "wrong: \\u0000<b>\\u001b[31m\\ud800"


def test_each_wrong_case_counts_once_and_a_quiet_run_tells_what_is_new(inside: Inside, tmp_path: Path) -> None:
    done = inside("run", *FAILING, "--out", "run", "--junit", "junit.xml", "--quiet")
    assert done.code == 1
    assert "NEW" in done.out
    assert "Supports" not in done.out
    assert "report:" not in done.out
    target = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["targets"][0]
    lines = read_results(tmp_path / "run")
    failing = {line["case"] for line in lines if line["verdict"] in ("wrong", "not-rejected")}
    assert failing
    assert target["unexpected"] == len(failing)
    assert target["counts"] == Counter(line["verdict"] for line in lines)
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert [case.get("name") for case in suite] == [line["case"] for line in lines]
    assert {case.get("name") for case in suite if case.find("failure") is not None} == failing
    assert suite.get("failures") == str(len(failing))
    failed = next(case for case in suite if case.find("failure") is not None)
    assert "repeat: onnxspec explain" in (failed.findtext("failure") or "")


def test_known_failures_are_skipped_with_their_reason(inside: Inside, tmp_path: Path) -> None:
    done = inside("run", *SMOKE, "--out", "run", "--junit", "junit.xml", "--quiet")
    assert (done.code, done.out) == (0, "")
    assert json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["complete"] is True
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert suite.get("failures") == "0"
    assert any("known failure" in (skipped.get("message") or "") for skipped in suite.iter("skipped"))


def test_a_mark_is_one_line_whatever_a_runtime_said() -> None:
    mark = github_command("error", "50 %\r\n::set-env", title="a: b, c")
    assert mark == "::error title=a%3A b%2C c::50 %25%0D%0A::set-env"


@pytest.mark.parametrize(("file", "names"), [("conformance.yml", ("run", "diff")), ("action.yml", ("run",))])
def test_a_workflow_in_the_examples_uses_options_that_there_are(file: str, names: tuple[str, ...]) -> None:
    text = (EXAMPLES / file).read_text(encoding="utf-8")
    for name in names:
        options = {option for parameter in load_command(name).params for option in parameter.opts}
        # A command of the workflow continues in lines that are indented deeper, until the next step or the next
        # command.
        used = re.findall(rf"onnxspec {name} (.*?)(?:\n\n|\|\|)", text, re.DOTALL)
        assert used
        for arguments in used:
            assert set(re.findall(r"--[a-z-]+", arguments)) <= options


def test_the_action_hands_its_three_inputs_over_as_variables(tmp_path: Path) -> None:
    """A value inserted into the text of a command would be executed as code."""
    text = (EXAMPLES / "action.yml").read_text(encoding="utf-8")
    inputs = re.findall(r"^  (\w+):\n    description:", text, re.MULTILINE)
    assert len(inputs) == 3
    used = dict(re.findall(r"^ +([A-Z]+): \$\{\{ inputs\.(\w+) \}\}$", text, re.MULTILINE))
    assert sorted(used.values()) == sorted(inputs)
    assert text.count("inputs.") == 3
    assert all(f'"${name}"' in text for name in used)
