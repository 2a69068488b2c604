"""``onnxspec clauses``, ``targets``, ``report`` and ``site``."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from onnxspec.conformance.cli import clauses as clauses_cli
from onnxspec.conformance.cli.command import targets_of
from onnxspec.conformance.targets.adapters import ADAPTERS, ADAPTERS_FOLDER
from onnxspec.conformance.targets.target import Target, TargetError
from onnxspec.conformance.workers.survey import facts_of, way_to_install
from onnxspec.reference import clauses_of, operator_names

from ..miniatures import Inside, command_line, naming, pick
from ..targets.test_third_party import install

# clauses


def test_one_version_is_listed_a_clause_a_line(inside: Inside) -> None:
    done = inside("clauses", "gru-3")
    rows = [line.split("\t") for line in done.out.splitlines()]
    expected = clauses_of("GRU", 3)
    assert [row[0] for row in rows] == [clause.id for clause in expected]
    by_id = {row[0]: row[1:] for row in rows}
    assert by_id["gru.linear-before-reset"][:2] == ["stated", "3, 7, 14, 22"]
    assert by_id["gru.padding.zero"][2].startswith("Past a row's length Y is zero. [onnxruntime")
    assert by_id["gru.clip.zero"][2].endswith("[interpretation zero_clip]")
    assert (done.code, done.err.split(":")[0]) == (0, f"{len(expected)} clauses")


def test_without_an_operator_all_are_listed(inside: Inside) -> None:
    listed = {line.split("\t")[0] for line in inside("clauses").out.splitlines()}
    assert listed == {c.id for op in operator_names() for c in clauses_of(op)}


@pytest.mark.parametrize("width", [40, 80])
def test_on_a_terminal_nothing_of_a_clause_is_cut(width: int) -> None:
    console = Console(width=width, record=True, file=io.StringIO())
    expected = clauses_of("GRU", 3)
    for part in clauses_cli._paragraphs(expected):
        console.print(part)
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines if line.startswith("gru.")] == [clause.id for clause in expected]
    text = " ".join(" ".join(lines).split())
    for clause in expected:
        assert " ".join(clause.text.split()) in text
        assert clause.source in text


# targets, and their installation hints

MISSING = "ModuleNotFoundError: No module named 'openvino'"


def test_it_lists_what_is_known_and_what_is_there(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", "sample = sample_runtime.onnxspec_adapter\nbad = sample_runtime.none")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    (tmp_path / "targets.toml").write_text(
        '[one]\nadapter = "onnxruntime"\ninterpreter = "venv/bin/python"\n'
        '[two]\nadapter = "external"\ncommand = ["no-such-program"]\n'
        '[three]\nadapter = "nothing"\n'
        '[four]\nadapter = "onnxruntime"\nprovider = "OpenVINOExecutionProvider"\n'
    )
    done = inside("targets")
    assert done.code == 0, done.err
    shipped, rest = done.out.split("from other packages\n")
    others, tables = rest.split("tables of targets.toml\n")
    assert "  onnxruntime\n    onnxruntime 1." in shipped
    assert "CPUExecutionProvider" in shipped
    assert "    tested: onnxruntime 1.19.0, " in shipped
    for name in ADAPTERS:
        assert f"  {name}\n" in shipped or name == "backend"
    assert "  sample\n    sample 1.0, CPU\n    tested: sample-runtime 1.0\n" in others
    assert "  bad\n    not here: adapter 'bad' of sample-runtime 1.0: there is no module" in others
    python = Path("venv/bin/python")
    assert f"    to install: python3 -m venv venv && {python} -m pip install numpy onnxruntime\n" in tables
    assert "  two\n    adapter external, no-such-program\n    not started: 'onnxspec run --target' does\n" in tables
    assert "  three\n    not here: targets.toml:7: [three] adapter: there is no adapter 'nothing'" in tables
    assert "OpenVINOExecutionProvider; it has" in tables
    assert "pip install numpy onnxruntime-openvino" in tables
    assert "backend:package.module" in tables


def test_every_shipped_adapter_says_what_pip_installs_and_what_was_tested() -> None:
    for name, file in ADAPTERS.items():
        package, tested = facts_of((ADAPTERS_FOLDER / file).read_text(encoding="utf-8"))
        assert package or name == "backend"
        assert any(character.isdigit() for character in tested), name


def test_facts_are_taken_from_the_docstring() -> None:
    source = '"""Adapter. Package: my-pkg.\n\nTested: a 1.0,\nb 2.0.\n\nMore.\n"""\n'
    assert facts_of(source) == ("my-pkg", "a 1.0, b 2.0")
    assert facts_of("x = 1") == facts_of("not Python") == ("", "")


@pytest.mark.parametrize(
    ("target", "trouble", "way"),
    [
        (Target("a", "openvino"), MISSING, f"{sys.executable} -m pip install openvino"),
        (
            Target("a", "openvino", command=("python3.9", "{worker}")),
            MISSING,
            "python3.9 -m pip install numpy openvino",
        ),
        (Target("a", "openvino", command=("ssh", "box", "python3", "{stdin}")), MISSING, ""),
        (Target("a", "openvino"), "RuntimeError: OpenVINO has no device GPU", ""),
        (
            Target("a", "onnxruntime", {"provider": "MIGraphXExecutionProvider"}),
            "this onnxruntime 1.31.1 has no MIGraphXExecutionProvider; it has CPUExecutionProvider",
            "AMD's containers and installers bring it: examples/targets/migraphx.toml",
        ),
    ],
)
def test_ways_to_install(target: Target, trouble: str, way: str) -> None:
    assert way_to_install(target, trouble) == way


def test_wildcards_name_tables_of_a_targets_file(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text("".join(f"[{name}]\nadapter = 'onnxruntime'\n" for name in ("board-1", "desk", "board-2")))
    assert [target.name for target in targets_of(["board-*", "board-1"], file)] == ["board-1", "board-2"]
    assert len(targets_of(["*"], file)) == 3
    with pytest.raises(TargetError, match=r"unknown target 'rack-\*'"):
        targets_of(["rack-*"], file)


# report and site

CASES = naming(pick(2, lambda s: s.lengths == "ragged" and s.data == "dense" and "Y" in s.outputs))


@pytest.fixture(scope="module")
def runs(kin: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return two runs of the same cases, on a right backend and on a wrong one. No test changes them."""
    folder = tmp_path_factory.mktemp("runs")
    folders = [folder / name for name in ("conforming", "lengths_ignored")]
    for run_folder in folders:
        command = command_line("run", "-t", f"backend:{run_folder.name}", *CASES, "--out", run_folder)
        subprocess.run(command, env=kin, capture_output=True, check=False, timeout=590)
    return folders


def test_runs_stand_side_by_side_without_those_that_cannot_be_read(
    inside: Inside, runs: list[Path], tmp_path: Path
) -> None:
    done = inside("report", *runs, "missing", "--out", tmp_path / "both")
    assert (done.code, done.err) == (1, "warning: missing: no such directory; left out.\n")
    assert done.out.splitlines() == ["2 runs, 4 results", f"report: {tmp_path / 'both' / 'index.html'}"]
    page = (tmp_path / "both" / "index.html").read_text(encoding="utf-8")
    assert "backend:conforming" in page
    assert "backend:lengths_ignored" in page
    assert list((tmp_path / "both" / "findings" / "files").rglob("model.onnx"))


def test_an_earlier_report_is_replaced_and_nothing_else(inside: Inside, runs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    inside("report", runs[0], "--out", out)
    before = (out / "index.html").read_bytes()
    (out / "notes.txt").write_text("mine")
    assert inside("report", *runs, "--out", out).code == 0
    assert (out / "index.html").read_bytes() != before
    assert (out / "notes.txt").read_text() == "mine"
    (tmp_path / "file").write_text("x")
    assert "is no folder" in inside("report", runs[0], "--out", tmp_path / "file").complaint
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("my page")
    assert "something other than a report" in inside("report", runs[0], "--out", tmp_path / "mine").complaint
    assert (tmp_path / "mine" / "index.html").read_text() == "my page"


def test_a_site_shows_each_finding_with_its_clause_case_and_command_and_names_no_folder_of_this_machine(
    inside: Inside, tmp_path: Path
) -> None:
    """The runtime ignores sequence_lens, among other faults."""
    inside("run", "--target", "onnx-reference", "--profile", "smoke", "--op", "LSTM-14", "--no-extra", "--out", "run")
    done = inside("site", tmp_path / "run", "--out", tmp_path / "site")
    assert (done.code, done.err) == (0, "")
    (page,) = (tmp_path / "site" / "runtimes").glob("*.html")
    entries = page.read_text(encoding="utf-8").split('<article class="finding"')[1:]
    assert all(re.search(r">onnxspec explain \S+ --target onnx-reference</pre>", entry) for entry in entries)
    (entry,) = (entry for entry in entries if "Consistent with: ignores sequence_lens" in entry)
    assert "<code>lstm.lengths" in entry
    text = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert ">onnxspec site run --out site</pre>" in text
    assert str(tmp_path) not in text
