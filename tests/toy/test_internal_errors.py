"""Tests of an exception in an operator's own code: it costs one case, and the report says where it was raised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from .several import commands, results
from .test_commands import targets

__all__ = ["targets"]  # the fixture

LEGAL = ("--case", "leaky-1.float32.b2-i3-n1-s?.??????")
PLACE = "(tests/toy/raising.py, line "


@pytest.fixture(scope="module")
def became(targets: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, Any]]]:
    """Return the result of every command by its name, and the folder of the files that they wrote."""
    folder = tmp_path_factory.mktemp("mishaps")
    node = helper.make_node("Leaky", ["X"], ["Y"], domain="toy.example", decay=0.5)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "XY"]
    graph = helper.make_graph([node], "leaky", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("toy.example", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), folder / "model.onnx")
    several = {
        "right": ("run", *LEGAL, "--target", "right", *targets, "--record",
                  "--out", folder / "right", "--junit", folder / "right.xml"),
        "wrong": ("run", *LEGAL, "--target", "wrong", *targets, "--out", folder / "wrong"),
        "certify": ("certify", folder / "right", "--out", folder / "package.zip", "--product", "toy",
                    "--vendor", "nobody"),
        "prove": ("prove", "--op", "Leaky", "--out", folder / "proof.csv"),
        "fuzz": ("fuzz", "--op", "Leaky", "--target", "right", *targets, "--examples", "8:1",
                 "--out", folder / "fuzz"),
        "check": ("check", folder / "model.onnx"),
        "generate": ("generate", "--out", folder / "cases", "--op", "Leaky", "--all"),
        "explain": ("explain", "leaky-1.float32.b2-i3-n1-s1.", "--target", "right", *targets),
        "unlisted": ("run", "--op", "Leaky", "--profile", "full", "--target", "right", *targets,
                     "--out", folder / "unlisted"),
        "nonce": ("run", "--op", "Leaky", "--profile", "smoke", "--target", "right", *targets, "--nonce", "4",
                  "--out", folder / "nonce"),
        "model": ("run", folder / "model.onnx", "--target", "right", *targets, "--out", folder / "of-model"),
        "script": ("explain", "leaky-1.float32.b2-i3-n1-s1.", "--emit", "script"),
        "list": ("list", "--op", "Leaky", "--profile", "full"),
    }  # fmt: skip
    return folder, dict(zip(several, commands("tests.toy.raising", *several.values()), strict=True))


def test_a_case_that_cannot_be_built_or_judged_is_not_judged(became: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    folder, done = became
    assert done["right"]["code"] == 1
    rows = {row["case"].split(".")[2][-2:]: row for (_, _), row in results(folder / "right").items()}
    assert {steps: row["verdict"] for steps, row in rows.items()} == {
        "s1": "not-judged", "s2": "not-judged", "s4": "pass", "s7": "pass",
    }  # fmt: skip
    assert rows["s1"]["reason"] == "building"
    assert "the suite's fault or the operator's: RuntimeError: no such model " + PLACE in str(rows["s1"]["message"])
    assert rows["s2"]["reason"] == "judging"
    assert "ZeroDivisionError: division by zero " + PLACE in str(rows["s2"]["message"])
    assert "2 could not be judged" in done["right"]["printed"], done["right"]["printed"]
    assert "not judged   2 cases, e.g. leaky-1.float32.b2-i3-n1-s1." in done["right"]["printed"]
    assert "2 could not be judged" in (folder / "right" / "report" / "index.html").read_text(encoding="utf-8")
    assert (folder / "right.xml").read_text(encoding="utf-8").count("<error ") == 2
    assert json.loads((folder / "right" / "run.json").read_text())["targets"][0]["findings"] == []


@pytest.mark.parametrize(
    ("command", "error"),
    [("list", "LookupError: no such cases " + PLACE), ("unlisted", "LookupError: "), ("nonce", "no-such-draw")],
)
def test_cases_that_cannot_be_listed_end_the_command(
    became: tuple[Path, dict[str, dict[str, Any]]], command: str, error: str
) -> None:
    done = became[1][command]
    printed = " ".join(done["printed"].split())
    assert done["code"] == 2
    assert "the cases of Leaky-1 cannot be listed, which is the suite's fault or the operator's: " in printed
    assert error in printed


def test_an_error_in_a_diagnosis_costs_that_diagnosis(became: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    folder, done = became
    assert done["wrong"]["code"] == 1
    rows = {row["case"].split(".")[2][-2:]: row for (_, _), row in results(folder / "wrong").items()}
    assert (rows["s4"]["verdict"], rows["s4"]["diagnosis"]) == ("wrong", [])
    assert (rows["s7"]["verdict"], rows["s7"]["diagnosis"]) == ("wrong", ["leaky.start.one"])
    (target,) = json.loads((folder / "wrong" / "run.json").read_text())["targets"]
    internal_errors = [line for line in target["mishaps"] if line.startswith(f"diagnosis of {rows['s4']['case']}: ")]
    assert len(internal_errors) == 1
    assert "KeyError: 'start' " + PLACE in internal_errors[0]
    assert "this is not a failure of the target" in done["wrong"]["printed"]
    page = (folder / "wrong" / "report" / "index.html").read_text(encoding="utf-8")
    assert "tests/toy/raising.py" in page


def test_no_level_is_certified(became: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    printed = became[1]["certify"]["printed"]
    assert "2 cases could not be judged" in printed
    assert "certified" not in printed.replace("not certified", "")


def test_other_commands_tell_it(became: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    done = became[1]
    codes = {name: one["code"] for name, one in done.items() if name != "certify"}
    failing = ("right", "wrong", "prove", "fuzz", "check", "generate", "model")
    assert codes == dict.fromkeys(failing, 1) | {"explain": 0, "list": 2, "script": 2, "unlisted": 2, "nonce": 2}
    assert "RuntimeError: no such model " + PLACE in done["prove"]["printed"]
    assert "fault leaky.start.one in leaky-1.float32.b2-i3-n1-s4." in done["prove"]["printed"]
    assert "; this is not a failure of the target" in done["fuzz"]["printed"]
    assert "IllegalNode: no such clause " + PLACE in done["check"]["printed"]
    assert "not built, which is the suite's fault or the operator's: " in done["generate"]["printed"]
    assert "not-judged (building): " in done["explain"]["printed"]
    assert "IllegalNode: no such clause " + PLACE in done["model"]["printed"]
    assert "error in the code of Leaky: RuntimeError: no such model " + PLACE in done["script"]["printed"]
