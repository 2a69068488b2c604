"""Tests of generated trees: fair to conforming runtimes, the same every time, and any changed byte is found."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxspec.cases import CaseSpec, Trial, build_case, clauses_exercised, digests_for, profile
from onnxspec.cases.directories import manifest as manifests
from onnxspec.cases.directories.directory import ATOL, RTOL, DataSet, read_directory
from onnxspec.cases.directories.manifest import data_sets_of, folder_name, generate
from onnxspec.reference import configure, expect
from onnxspec.reference.errors import UserError
from onnxspec.reference.kernels.kernel import STYLES, run_kernel

from ...recurrent import recurrent_versions

CORE = [spec for op, version in recurrent_versions() for spec in profile("core", op, version)]
SMOKE = [spec for op, version in recurrent_versions() for spec in profile("smoke", op, version)]
Fair = tuple[CaseSpec, Trial, Sequence[DataSet]]
ORIGIN = {
    "command": "onnxspec generate DIR --profile core",
    "onnxspec": "9.9",
    "profile": "core",
    "digests": digests_for("core", recurrent_versions()),
}

Tree = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module", params=[pytest.param(1, marks=pytest.mark.long), 4], ids=["core", "each-fourth"])
def cases(request: pytest.FixtureRequest) -> list[CaseSpec]:
    """Return cases of core."""
    return CORE[:: request.param]


@pytest.fixture(scope="module")
def tree(cases: list[CaseSpec], tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """Generate a tree of the fair ones of them, and return its folder and its manifest."""
    folder = tmp_path_factory.mktemp("tree") / "cases"
    return folder, generate(folder, cases, ORIGIN)


@pytest.fixture(scope="module")
def reasons(tree: Tree) -> dict[str, str]:
    """Return the reason of each case that is left out."""
    return {entry["case"]: entry["reason"] for entry in tree[1]["left_out"]}


@pytest.fixture(scope="module")
def fair(cases: list[CaseSpec], tree: Tree) -> list[Fair]:
    """Return the fair cases with the data sets that were written for them."""
    folder, manifest = tree
    by_id = {spec.id: spec for spec in cases}
    specs = [by_id[entry["case"]] for entry in manifest["cases"]]
    return [(spec, build_case(spec).trial, read_directory(folder / folder_name(spec)).data_sets) for spec in specs]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_every_case_is_written_or_left_out_with_a_reason(cases: list[CaseSpec], tree: Tree, fair: list[Fair]) -> None:
    folder, manifest = tree
    assert json.loads((folder / "manifest.json").read_text()) == manifest
    written, left_out = manifest["cases"], manifest["left_out"]
    assert sorted(e["case"] for e in (*written, *left_out)) == sorted(spec.id for spec in cases)
    assert len(written) > 40
    assert {e["type"] for e in written} >= {"float16", "float32", "float64"}
    assert all(e["reason"] for e in left_out)
    assert manifest["licence"] == "Apache-2.0"
    assert manifest["tolerance"] == {"rtol": 1e-3, "atol": 1e-7}
    assert manifest["made"] == ORIGIN
    for entry, (spec, _, _) in zip(written, fair, strict=True):
        assert CaseSpec.from_json(entry["spec"]) == spec
        assert entry["folder"] == folder_name(spec)
        assert entry["clauses"] == [clause.id for clause in clauses_exercised(spec)]
        assert entry["accuracy"] == "standard"
        assert entry["fair"] is True
        assert 0 <= entry["radius"]["of_tolerance"] <= 1
        assert set(entry["files"]) == {f"{entry['folder']}/{name}" for name in bytes_of(folder / entry["folder"])}


def test_what_is_open_is_left_out(cases: list[CaseSpec], reasons: dict[str, str]) -> None:
    assert all("forbids" in reasons[spec.id] for spec in cases if spec.illegal)
    for spec in (spec for spec in cases if not spec.illegal):
        first = build_case(spec).trial.first
        open_questions = {name for feed in first.feeds for name in configure(spec.node, feed.inputs).open_questions}
        open_clauses = {c.id for c in clauses_exercised(spec) if c.status in ("convention", "undefined")}
        if open_questions or open_clauses:
            # No directory can express sessions and graphs, whatever else the case has.
            beyond = ["sessions"] if spec.script.needs else ["several nodes"] if spec.graph != "none" else []
            assert all(name in reasons[spec.id] for name in beyond or open_questions), spec.id
    padded = next(s for s in cases if s.lengths == "ragged" and "Y" in s.outputs and not s.script.needs)
    assert "lstm.padding.zero" in reasons[padded.id]
    assert any("no number that can be expected" in reason for reason in reasons.values())
    assert any("times the runner's tolerance" in reason for reason in reasons.values())


def test_a_tolerance_of_1e_3_is_too_narrow_for_bfloat16(cases: list[CaseSpec], reasons: dict[str, str]) -> None:
    assert sum(".bfloat16." in id and "a correct" in reason for id, reason in reasons.items()) > 20
    # The remaining cases have no numbers, or only numbers that no kernel rounds.
    for spec in cases:
        if spec.type == "bfloat16" and spec.id not in reasons:
            untouched = spec.data == "exact" or 0 in (spec.T, spec.N)
            # Numbers of X below the least normal one differ from 0 by less than any tolerance.
            assert untouched or spec.extremes == "subnormal", spec.id


def within_tolerance(trial: Trial, written: Sequence[DataSet], style: str) -> bool:
    """Return whether a runner with a fixed tolerance passes a conforming kernel."""
    runs = [run_kernel(trial.node, feed.inputs, STYLES[style]) for feed in trial.feeds]
    return all(
        np.allclose(outputs[name].astype(float), expected.astype(float), rtol=RTOL, atol=ATOL)
        for outputs, data in zip(runs, written, strict=True)
        for name, expected in data.outputs.items()
    )


@pytest.mark.parametrize("style", STYLES)
def test_no_conforming_kernel_is_accused(style: str, fair: list[Fair]) -> None:
    for spec, trial, written in fair:
        # Sums term by term are slow: small cases in every style, large ones in one.
        if spec.H <= 9 or style in ("library", "wide"):
            assert within_tolerance(trial, written, style), spec.id


def test_the_others_are_left_out_with_cause(cases: list[CaseSpec], reasons: dict[str, str]) -> None:
    """Some of the cases with a radius wider than the tolerance would fail in a conforming kernel."""
    ids = {id for id, reason in reasons.items() if reason.startswith("a correct")}
    small = [build_case(spec).trial for spec in cases if spec.id in ids and spec.H <= 9]
    accused = {trial.type for trial in small if not within_tolerance(trial, data_sets_of(trial), "stored-sums-edge")}
    assert accused >= {"float16", "bfloat16"}


def test_the_largest_radius_is_that_of_a_free_run(fair: list[Fair], tree: Tree) -> None:
    for entry, (spec, trial, _) in zip(tree[1]["cases"], fair, strict=True):
        if spec.reruns != "none" or spec.type != "float32" or 0 in (spec.T, spec.N):
            continue
        (feed,) = trial.feeds
        shares = {
            e.output: (e.number.radius / (1e-7 + 1e-3 * np.abs(e.number.value))).max()
            for e in expect(trial.node, feed.inputs, {})
        }
        # Besides the radius, the expected number is rounded, by up to half a unit in the last place.
        rounding = 2.0**-24 / 1e-3
        share = entry["radius"]["of_tolerance"]
        assert share == pytest.approx(max(shares.values()), rel=0.02, abs=rounding)
        assert shares[entry["radius"]["output"]] == pytest.approx(share, rel=0.02, abs=rounding)


def test_all_of_them_but_forbidden_models(tmp_path: Path) -> None:
    illegal = next(spec for spec in CORE if spec.illegal)
    manifest = generate(tmp_path, [*SMOKE, illegal], ORIGIN, everything=True)
    assert [e["case"] for e in manifest["cases"]] == [spec.id for spec in SMOKE]
    ((left_out, reason),) = [(e["case"], e["reason"]) for e in manifest["left_out"]]
    assert left_out == illegal.id
    assert "forbids" in reason
    unfair = [e for e in manifest["cases"] if not e["fair"]]
    assert unfair
    assert all(e["reason"] for e in unfair)


def test_the_same_bytes_every_time_with_their_checksums(tmp_path: Path) -> None:
    for name in ("one", "other"):
        generate(tmp_path / name, SMOKE, ORIGIN, everything=True)
    files = bytes_of(tmp_path / "one")
    assert files == bytes_of(tmp_path / "other")
    sums = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    lines = [f"{sums[path]}  {path}" for path in sums if path not in ("SHA256SUMS", "manifest.json")]
    assert sorted(files["SHA256SUMS"].decode().splitlines()) == sorted(lines)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return a tree of two cases."""
    folder = tmp_path / "small"
    generate(folder, [s for s in CORE if s.type == "float32" and s.data == "dense"][:2], ORIGIN, everything=True)
    return folder


# Generating into a folder that is not empty


def test_a_folder_with_something_in_it_is_refused(small: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years")
    before = bytes_of(tmp_path)
    for folder in (tmp_path / "other", small):
        with pytest.raises(UserError, match="give a new or empty folder"):
            generate(folder, SMOKE[:1], ORIGIN)
    assert bytes_of(tmp_path) == before


def test_what_a_killed_process_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "tree" / ".onnxspec-abc").mkdir(parents=True)
    generate(tmp_path / "tree", SMOKE[:1], ORIGIN, everything=True)
    assert (tmp_path / "tree" / "manifest.json").is_file()


def test_a_disk_that_fills_leaves_the_folder_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    def full(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(*arguments)

    whole = manifests.write_directory
    monkeypatch.setattr(manifests, "write_directory", full)
    with pytest.raises(OSError, match="No space"):
        generate(tmp_path / "tree", SMOKE, ORIGIN, everything=True)
    assert list((tmp_path / "tree").iterdir()) == []


def matrix_library() -> str:
    """Return the BLAS library that NumPy was built with."""
    built: Any = np.show_config(mode="dicts")
    return str(built.get("Build Dependencies", {}).get("blas", {}).get("name", ""))


@pytest.mark.skipif(
    "openblas" not in matrix_library(), reason="only OpenBLAS is told by a variable which kernel to take"
)
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the kernels are those of x86")
def test_no_kernel_of_a_matrix_library_changes_a_file(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from onnxspec.cases import profile; "
        "from onnxspec.cases.directories.manifest import generate; "
        "cases = [spec for op in ('GRU', 'LSTM') for spec in profile('core', op, 14) if spec.type == 'float64']; "
        "generate(Path(sys.argv[1]), cases[:25], {})"
    )
    trees = [tmp_path / kernel for kernel in ("Haswell", "Prescott")]
    for tree in trees:
        command = [sys.executable, "-c", program, str(tree)]
        subprocess.run(command, env={**os.environ, "OPENBLAS_CORETYPE": tree.name}, check=True)
    first, second = map(bytes_of, trees)
    assert len(first) > 50
    assert first == second
