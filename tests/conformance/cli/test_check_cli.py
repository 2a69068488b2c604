"""``onnxspec check``: output in every format, and exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest

import onnxspec
from onnxspec.cases import CaseSpec
from onnxspec.conformance.checking.rule import rules

from ..checking.nodes import T, model_of, one_node, recurrent, weights_of
from ..miniatures import Inside

LSTM = weights_of("LSTM")


@pytest.fixture
def run(inside: Inside) -> Inside:
    """Return the command ``check``, in the folder of models."""
    return lambda *words: inside("check", *words)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of models: right, wrong (an error), padded (warnings), open (partly checked), bad (garbage)."""
    models = {
        "right": one_node("LSTM", 14),
        "wrong": one_node("GRU", 14, direction="sideways"),
        "padded": one_node("LSTM", 14, lengths=[T, 1]),
        "open": model_of([recurrent("LSTM")], {"X": None}, {"W": LSTM["W"], "R": LSTM["R"]}),
    }
    for name, model in models.items():
        onnx.save(model, tmp_path / f"{name}.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"nonsense")
    return tmp_path


def test_exit_codes(run: Inside, folder: Path) -> None:
    for names, code, strict in (
        (["right"], 0, 0),
        (["padded"], 0, 1),
        (["open"], 0, 1),
        (["right", "wrong"], 1, 1),
        (["wrong", "bad"], 2, 2),
    ):
        models = [f"{name}.onnx" for name in names]
        assert run(*models).code == code, names
        assert run(*models, "--strict").code == strict, names


def test_text(run: Inside, folder: Path) -> None:
    done = run("right.onnx", "wrong.onnx", "open.onnx", "bad.onnx")
    assert done.out.splitlines() == [
        "right.onnx: 1 recurrent node: nothing wrong",
        "wrong.onnx: 1 recurrent node: 1 error",
        "  /rnn  GRU-14",
        "    error  gru.direction: direction is 'sideways', none of forward, reverse and bidirectional",
        f"      summary: {rules()['gru.direction'].text}",
        "      what to do: Write forward, reverse or bidirectional.",
        "open.onnx: 1 recurrent node: 1 node not wholly checked",
        "  /rnn  LSTM-14",
        "    not checked  lstm.shapes: the shape of X: the graph declares none for its input X",
        "bad.onnx: is no ONNX model, or cut off",
        "4 models, 3 recurrent nodes, 1 errors, 1 that cannot be read",
    ]
    assert done.err == ""


def test_json(run: Inside, folder: Path) -> None:
    done = run("wrong.onnx", "open.onnx", "bad.onnx", "--format", "json")
    content = json.loads(done.out)
    wrong, open_, bad = content["models"]
    (problem,) = wrong["problems"]
    assert (problem["rule"], problem["level"], problem["node"]) == ("gru.direction", "error", "/rnn")
    assert [unchecked["rule"] for unchecked in open_["unchecked"]] == ["lstm.shapes"]
    assert bad["unreadable"].startswith("is no ONNX model")
    assert wrong["nodes"] == [{"node": "/rnn", "operator": "GRU-14"}]


def sarif_of(run: Inside, *words: str) -> dict[str, Any]:
    from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Log

    done = run(*words, "--format", "sarif")
    Log.model_validate_json(done.out)  # classes that were generated from the schema
    log: dict[str, Any] = json.loads(done.out)
    return log


def test_sarif_is_what_the_schema_says(run: Inside, folder: Path) -> None:
    (folder / "a folder").mkdir()
    (folder / "wrong.onnx").rename(folder / "a folder" / "wrong.onnx")
    log = sarif_of(run, "a folder/wrong.onnx", "padded.onnx", "open.onnx", "bad.onnx")
    assert log["version"] == "2.1.0"
    (only,) = log["runs"]
    ids = [rule["id"] for rule in only["tool"]["driver"]["rules"]]
    assert ids == ["gru.direction", "lstm.padding.zero"]
    wrong, padded = only["results"]
    assert ids[wrong["ruleIndex"]] == wrong["ruleId"] == "gru.direction"
    assert (wrong["level"], padded["level"]) == ("error", "warning")
    (location,) = wrong["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "a%20folder/wrong.onnx"
    assert location["physicalLocation"]["region"]["startLine"] == 1
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "/rnn"
    again = sarif_of(run, "a folder/wrong.onnx")["runs"][0]["results"][0]
    assert again["partialFingerprints"] == wrong["partialFingerprints"] != padded["partialFingerprints"]
    (invocation,) = only["invocations"]
    assert invocation["executionSuccessful"] is False
    (unreadable,) = invocation["toolExecutionNotifications"]
    assert unreadable["level"] == "error"


def test_annotations(run: Inside, folder: Path) -> None:
    done = run("wrong.onnx", "padded.onnx", "bad.onnx", "--format", "github")
    first, second, third = done.out.splitlines()
    assert first.startswith("::error file=wrong.onnx,title=gru.direction::/rnn (GRU-14): direction is 'sideways'")
    assert second.startswith("::warning file=padded.onnx,title=lstm.padding.zero::")
    assert not any(".." in line for line in (first, second))
    assert third.startswith("::error file=bad.onnx,title=onnxspec::is no ONNX model")


def test_suppressions(run: Inside, folder: Path) -> None:
    entries = folder / "accepted.toml"
    entries.write_text(
        '[[suppress]]\nrule = "gru.*"\nnode = "/rnn"\nfile = "wrong.onnx"\nreason = "never deployed"\n'
        '[[suppress]]\nrule = "lstm.shapes"\nnode = "/other/*"\nreason = "masked"\n',
        encoding="utf-8",
    )
    done = run("wrong.onnx", "--suppress", entries)
    assert done.code == 0
    assert "1 suppressed" in done.out
    assert done.err == "this suppression covers nothing: lstm.shapes of /other/*\n"
    assert run("wrong.onnx", "--suppress", entries, "--strict").code == 1
    (result,) = sarif_of(run, "wrong.onnx", "--suppress", str(entries))["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "external", "justification": "never deployed"}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[suppress]]\n", "missing required field `rule`"),
        ('[[suppress]]\nrule = "lstm.shapes"\nnode = "*"\n', "missing required field `reason`"),
        (
            '[[suppress]]\nrule = "lstm.shape"\nnode = "*"\nreason = "x"\n',
            ":1: entry 1 of suppress: rule: unknown rule",
        ),
        (
            '[[suppress]]\nrule = "*"\nnode = "*"\nreason = "x"\nnodes = "y"\n',
            ":1: entry 1 of suppress: nodes: unknown key",
        ),
        ("suppressed = 1\n", ": [suppressed] unknown key"),
        ("nonsense", "is not TOML"),
    ],
)
def test_a_wrong_file_of_suppressions_is_told_in_a_line(run: Inside, folder: Path, text: str, words: str) -> None:
    (folder / "bad.toml").write_text(text, encoding="utf-8")
    done = run("right.onnx", "--suppress", "bad.toml")
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1


def test_findings_of_a_run_are_noted_of_the_nodes_that_they_hit(run: Inside, folder: Path) -> None:
    """Notes depend on the node's own traits, not on those of other cases, and name a change and a right runtime."""
    plain = CaseSpec("LSTM", 14, T=3, N=2, I=2, H=4)
    lacking = [replace(plain, hidden_size=False, seed=seed) for seed in range(6)]
    short = [replace(plain, lengths="ragged", direction="reverse", seed=seed) for seed in range(3)]
    recorded: list[str] = []
    for target in ("onnxruntime", "onnx-reference"):
        onnxspec.run(target, case=[plain, *lacking, *short], out=folder / target)
        recorded += ["--measured", target]
    onnx.save(one_node("LSTM", 14, hidden_size=None), folder / "lacking.onnx")
    onnx.save(one_node("LSTM", 14, lengths=[T, 1], direction="reverse"), folder / "short.onnx")
    noted = {name: run(f"{name}.onnx", *recorded).out.splitlines()[2:] for name in ("lacking", "short")}
    assert run("right.onnx", *recorded).out.splitlines() == ["right.onnx: 1 recurrent node: nothing wrong"]
    assert (run("lacking.onnx", *recorded).code, run("lacking.onnx", *recorded, "--strict").code) == (0, 1)
    (note, do) = noted["lacking"]
    assert "note  model.measured: onnxruntime: refuses nodes with no hidden_size, in 6 recorded cases" in note
    assert "what to do: Write hidden_size down" in do
    assert "onnx-reference passes 6 of these cases." in do
    (note,) = [k for k, line in enumerate(noted["short"]) if "model.measured" in line]
    assert "onnx-reference: Ignores sequence_lens" in noted["short"][note]
    assert "onnxruntime passes 3 of these cases." in noted["short"][note + 1]


def test_a_target_without_a_recorded_case_of_the_operator_is_not_checked(run: Inside, folder: Path) -> None:
    onnxspec.run("onnxruntime", case=CaseSpec("GRU", 14, T=2), out=folder / "run")
    done = run("right.onnx", "--measured", "run")
    missing = "what onnxruntime makes of it: no recorded case is of LSTM-14 in float32"
    assert f"not checked  model.measured: {missing}" in done.out


def test_rules_are_listed_with_what_to_do(run: Inside) -> None:
    listed = [line.split("\t") for line in run("--rules").out.splitlines()]
    assert listed == [[rule.id, rule.level.value, rule.text, rule.advice] for rule in rules().values()]
