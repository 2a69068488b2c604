"""``onnxspec targets``, and its installation hints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from onnxspec.conformance.cli.command import targets_of
from onnxspec.conformance.targets.adapters import ADAPTERS, ADAPTERS_FOLDER
from onnxspec.conformance.targets.target import Target, TargetError
from onnxspec.conformance.workers.survey import facts_of, way_to_install

from ..miniatures import Inside
from ..targets.test_third_party import install

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
