"""Generated trees: fair to the conforming, the same every time, and found out where a byte is not what it was."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from onnxspec.cases import CaseSpec, Trial, build_case, clauses_exercised, digests_for, operator_versions, profile
from onnxspec.cases.directories import manifest as manifests
from onnxspec.cases.directories.directory import ATOL, RTOL, DataSet, read_directory
from onnxspec.cases.directories.fairness import data_sets_of
from onnxspec.cases.directories.manifest import (
    ManifestError,
    OccupiedTree,
    Origin,
    Problem,
    folder_name,
    generate,
    verify,
)
from onnxspec.reference import configure, expect
from onnxspec.reference.kernels.kernel import run_kernel
from onnxspec.reference.kernels.style import STYLES

CORE = [spec for op, version in operator_versions() for spec in profile("core", op, version)]
SMOKE = [spec for op, version in operator_versions() for spec in profile("smoke", op, version)]
Fair = tuple[CaseSpec, Trial, Sequence[DataSet]]
ORIGIN = Origin("onnxspec generate DIR --profile core", "9.9", "core", digests_for("core", operator_versions()))


Tree = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module", params=[pytest.param(1, marks=pytest.mark.long), 4], ids=["core", "each-fourth"])
def cases(request: pytest.FixtureRequest) -> list[CaseSpec]:
    """Cases of core."""
    return CORE[:: request.param]


@pytest.fixture(scope="module")
def tree(cases: list[CaseSpec], tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The fair ones of them, and their manifest."""
    folder = tmp_path_factory.mktemp("tree") / "cases"
    return folder, generate(folder, cases, ORIGIN)


@pytest.fixture(scope="module")
def fair(cases: list[CaseSpec], tree: Tree) -> list[Fair]:
    """The fair ones, with what was written of them."""
    folder, manifest = tree
    by_id = {spec.id: spec for spec in cases}
    own = [by_id[entry["case"]] for entry in manifest["cases"]]
    return [(spec, build_case(spec).trial, read_directory(folder / folder_name(spec)).data_sets) for spec in own]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_every_case_is_written_or_left_out_with_a_reason(cases: list[CaseSpec], tree: Tree) -> None:
    folder, manifest = tree
    assert json.loads((folder / "manifest.json").read_text()) == manifest
    written, left_out = manifest["cases"], manifest["left_out"]
    assert sorted(e["case"] for e in (*written, *left_out)) == sorted(spec.id for spec in cases)
    assert len(written) > 40
    assert {e["type"] for e in written} >= {"float16", "float32", "float64"}
    assert all(e["reason"] for e in left_out)
    assert manifest["licence"] == "Apache-2.0"
    assert manifest["tolerance"] == {"rtol": 1e-3, "atol": 1e-7}
    made = manifest["made"]
    assert made == {"command": ORIGIN.command, "onnxspec": "9.9", "profile": "core", "digests": dict(ORIGIN.digests)}
    by_id = {spec.id: spec for spec in cases}
    for entry in written:
        spec = by_id[entry["case"]]
        assert CaseSpec.from_json(entry["spec"]) == spec
        assert entry["folder"] == folder_name(spec)
        assert entry["clauses"] == [clause.id for clause in clauses_exercised(spec)]
        assert entry["accuracy"] == "standard"
        assert entry["fair"] is True
        assert 0 <= entry["radius"]["of_tolerance"] <= 1
        assert set(entry["files"]) == {f"{entry['folder']}/{name}" for name in bytes_of(folder / entry["folder"])}


def test_what_is_open_is_left_out(cases: list[CaseSpec], tree: Tree) -> None:
    _, manifest = tree
    reasons = {e["case"]: e["reason"] for e in manifest["left_out"]}
    for spec in (spec for spec in cases if not spec.illegal):
        first = build_case(spec).trial.first
        touched = {name for feed in first.feeds for name in configure(spec.node, feed.inputs).touched}
        open_clauses = {c.id for c in clauses_exercised(spec) if c.status in ("convention", "undefined")}
        if touched or open_clauses:
            assert spec.id in reasons, spec.id
            if spec.course.needs:  # which no directory can say, whatever else there is
                assert "sessions" in reasons[spec.id]
                continue
            if spec.graph != "none":
                assert "several nodes" in reasons[spec.id]
                continue
            assert all(name in reasons[spec.id] for name in touched)
    padded = next(s for s in cases if s.lengths == "ragged" and "Y" in s.outputs and not s.course.needs)
    assert "lstm.padding.zero" in reasons[padded.id]
    assert any("no number that can be expected" in reason for reason in reasons.values())
    assert any("times the tolerance" in reason for reason in reasons.values())


def test_a_tolerance_of_1e_3_is_too_narrow_for_bfloat16(cases: list[CaseSpec], tree: Tree) -> None:
    _, manifest = tree
    reasons = {e["case"]: e["reason"] for e in manifest["left_out"] if e["type"] == "bfloat16"}
    assert sum("a conforming" in reason for reason in reasons.values()) > 20
    # What is left has no numbers, or only numbers that nobody rounds.
    for spec in cases:
        if spec.type == "bfloat16" and spec.id not in reasons:
            untouched = spec.data == "exact" or 0 in (spec.T, spec.N)
            # Numbers of X below the least normal one differ from 0 by less than any tolerance.
            assert untouched or spec.extremes == "subnormal", spec.id


@pytest.mark.parametrize("style", STYLES)
def test_no_conforming_kernel_is_accused(style: str, fair: list[Fair]) -> None:
    # Sums term by term are slow: small cases in every style, large ones in one.
    for spec, trial, written in fair:
        if style not in ("library", "wide") and spec.H > 9:
            continue
        for feed, data in zip(trial.feeds, written, strict=True):
            outputs = run_kernel(trial.node, feed.inputs, STYLES[style])
            for name, must in data.outputs.items():
                got, wanted = outputs[name].astype(np.float64), must.astype(np.float64)
                np.testing.assert_allclose(got, wanted, rtol=RTOL, atol=ATOL, err_msg=spec.id)


def test_the_others_are_left_out_with_cause(cases: list[CaseSpec], tree: Tree) -> None:
    """Among those whose radius is said to be too wide there are some in which a conforming kernel would be accused."""
    _, manifest = tree
    ids = {e["case"] for e in manifest["left_out"] if e["reason"].startswith("a conforming")}
    accused = set()
    for spec in cases:
        if spec.id not in ids or spec.H > 9:
            continue
        trial = build_case(spec).trial
        for feed, data in zip(trial.feeds, data_sets_of(trial), strict=True):
            outputs = run_kernel(trial.node, feed.inputs, STYLES["stored-sums-edge"])
            for name, must in data.outputs.items():
                one, other = outputs[name].astype(float), must.astype(float)
                if not np.allclose(one, other, rtol=RTOL, atol=ATOL):
                    accused.add(spec.type)
    assert accused >= {"float16", "bfloat16"}


def test_the_largest_radius_is_that_of_a_free_run(cases: list[CaseSpec], tree: Tree) -> None:
    _, manifest = tree
    specs = {spec.id: spec for spec in cases}
    for entry in manifest["cases"]:
        spec = specs[entry["case"]]
        if spec.reruns != "none" or spec.type != "float32" or 0 in (spec.T, spec.N):
            continue
        trial = build_case(spec).trial
        (feed,) = trial.feeds
        shares = {
            e.output: (e.number.radius / (1e-7 + 1e-3 * np.abs(e.number.value))).max()
            for e in expect(trial.node, feed.inputs, {})
        }
        # Beside the radius there is the rounding of the expected number, up to half a unit in the last place.
        rounding = 2.0**-24 / 1e-3
        share = entry["radius"]["of_tolerance"]
        assert share == pytest.approx(max(shares.values()), rel=0.02, abs=rounding)
        assert shares[entry["radius"]["output"]] == pytest.approx(share, rel=0.02, abs=rounding)


def test_all_of_them(tmp_path: Path) -> None:
    manifest = generate(tmp_path, SMOKE, ORIGIN, everything=True)
    assert [e["case"] for e in manifest["cases"]] == [spec.id for spec in SMOKE]
    assert manifest["left_out"] == []
    unfair = [e for e in manifest["cases"] if not e["fair"]]
    assert unfair
    assert all(e["reason"] for e in unfair)
    assert verify(tmp_path) == []


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("one", "other"):
        generate(tmp_path / name, SMOKE, ORIGIN, everything=True)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "other")


# Verification


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A tree of two cases."""
    folder = tmp_path / "small"
    generate(folder, [s for s in CORE if s.type == "float32" and s.data == "dense"][:2], ORIGIN, everything=True)
    assert verify(folder) == []
    return folder


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def replaced_by_link(path: Path) -> None:
    path.rename(path.parents[3] / "elsewhere")
    path.symlink_to(path.parents[3] / "elsewhere")


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (flip, "changed"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "changed"),
        (lambda path: path.write_bytes(path.read_bytes() + b"\0"), "changed"),
        (replaced_by_link, "changed"),
        (Path.unlink, "missing"),
    ],
)
@pytest.mark.parametrize("name", ["test_data_set_0/input_0.pb", "test_data_set_0/output_0.pb"])
def test_changed_and_missing_bytes_are_found(spoil: Callable[[Path], Any], kind: str, name: str, small: Path) -> None:
    path = sorted(small.glob(f"*/{name}"))[-1]
    spoil(path)
    assert verify(small) == [Problem(kind, path.relative_to(small).as_posix())]


def test_extra_files_and_folders_are_found(small: Path) -> None:
    (folder, *_) = sorted(small.glob("test_*"))
    shutil.copytree(folder, small / "test_other")
    (small / "notes.txt").write_text("")
    (small / "test_link").symlink_to(folder)
    problems = verify(small)
    assert {problem.kind for problem in problems} == {"extra"}
    assert {"notes.txt", "test_link", "test_other/model.onnx"} <= {problem.path for problem in problems}
    assert len(problems) == 2 + len(bytes_of(folder))


def test_a_whole_case_that_is_gone(small: Path) -> None:
    (folder, *_) = sorted(small.glob("test_*"))
    gone = {f"{folder.name}/{name}" for name in bytes_of(folder)}
    shutil.rmtree(folder)
    assert {problem.path for problem in verify(small)} == gone
    assert {problem.kind for problem in verify(small)} == {"missing"}


def test_a_changed_manifest_is_found(small: Path) -> None:
    path = small / "manifest.json"
    path.write_text(path.read_text().replace("Apache-2.0", "Apache-3.0"))
    assert verify(small) == [Problem("changed", "manifest.json")]


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", "{}", '{"schema": 2}', '{"schema": 1}', '{"schema": 1, "cases": [3]}']
)
def test_no_manifest_that_can_be_read(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ManifestError, match=r"manifest\.json"):
        verify(tmp_path)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../b", "", "..\\secret"])
def test_a_manifest_does_not_lead_out_of_its_folder(path: str, small: Path) -> None:
    manifest = json.loads((small / "manifest.json").read_text())
    manifest["cases"][0]["files"][path] = "0"
    (small / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ManifestError, match="not inside the folder"):
        verify(small)
    with pytest.raises(OccupiedTree):
        generate(small, [], ORIGIN, overwrite=True)


# Generating where something is already


def test_a_folder_with_something_in_it_is_refused(small: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years")
    for overwrite in (False, True):
        with pytest.raises(OccupiedTree, match="other things"):
            generate(tmp_path / "other", SMOKE[:1], ORIGIN, overwrite=overwrite)
    before = bytes_of(small)
    with pytest.raises(OccupiedTree, match="--overwrite"):
        generate(small, SMOKE[:1], ORIGIN)
    assert bytes_of(small) == before
    assert (tmp_path / "other" / "thesis.tex").read_text() == "years"


def test_overwriting_replaces_the_tree_and_nothing_else(small: Path, tmp_path: Path) -> None:
    (small / "notes.txt").write_text("mine")
    generate(small, SMOKE[:3], ORIGIN, everything=True, overwrite=True)
    generate(tmp_path / "fresh", SMOKE[:3], ORIGIN, everything=True)
    assert bytes_of(small) == {**bytes_of(tmp_path / "fresh"), "notes.txt": b"mine"}
    assert sorted(p.name for p in small.iterdir()) == sorted(
        [*(p.name for p in (tmp_path / "fresh").iterdir()), "notes.txt"]
    )


def test_a_file_of_somebody_else_in_a_case_is_not_thrown_away(small: Path) -> None:
    folder = sorted(small.glob("test_*"))[0]
    (folder / "test_data_set_0" / "notes.txt").write_text("mine")
    before = bytes_of(small)
    spec = next(s for s in CORE if folder_name(s) == folder.name)
    with pytest.raises(OccupiedTree, match=r"notes\.txt is no generated file"):
        generate(small, [spec], ORIGIN, everything=True, overwrite=True)
    assert bytes_of(small) == before
    (folder / "test_data_set_0" / "notes.txt").unlink()
    (folder / "test_data_set_0" / "empty").mkdir()
    generate(small, [spec], ORIGIN, everything=True, overwrite=True)
    assert verify(small) == []
    assert [p.name for p in small.glob("test_*")] == [folder.name]


def test_what_a_killed_process_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "tree" / ".onnxspec-abc").mkdir(parents=True)
    generate(tmp_path / "tree", SMOKE[:1], ORIGIN, everything=True)
    assert verify(tmp_path / "tree") == []


def test_a_disk_that_fills_leaves_what_was_there(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = bytes_of(small)
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
        generate(small, SMOKE, ORIGIN, everything=True, overwrite=True)
    assert bytes_of(small) == before
    assert verify(small) == []


ODD_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers(-(2**70), 2**70)
    | st.text(max_size=6)
    | st.sampled_from(["", ".", "..", "/", "a/../b", "a\0b", "\ud800", "n" * 5000, "manifest.json", "manifest.json/x"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.just("files"), inner, max_size=3)
    ),
    max_leaves=6,
)
few = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def one_line(error: Exception) -> None:
    assert "\n" not in str(error)


def held(tree: Path, content: bytes) -> None:
    """A tree with that manifest is compared, or refused in one line, and so is one that is to be replaced."""
    (tree / "manifest.json").write_bytes(content)
    try:
        verify(tree)
    except ManifestError as error:
        one_line(error)
    try:
        generate(tree, [], ORIGIN, overwrite=True)
    except (OccupiedTree, OSError) as error:
        one_line(error)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A tree of one file and, beside it, a file of somebody else to which a link in the tree leads."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").write_text("years")
    (tree / "link").symlink_to(tmp_path / "mine")
    return tree


@given(st.sampled_from(["cases", "files", "path", "digest", "entry", "schema"]), ODD_JSON)
@example("path", "\ud800")
@example("path", "link/thesis")
@example("path", "manifest.json")
@few
def test_a_mutated_manifest_is_used_or_refused_in_one_line(outside: Path, place: str, value: Any) -> None:
    row: dict[str, Any] = {"case": "c", "folder": "test_c", "files": {"test_c/model.onnx": "0" * 64}}
    manifest: dict[str, Any] = {"schema": 1, "cases": [row]}
    if place in ("cases", "schema"):
        manifest[place] = value
    elif place == "files":
        row["files"] = value
    elif place == "entry":
        manifest["cases"].append(value)
    elif place == "path":
        row["files"][str(value)] = "0" * 64
    else:
        row["files"]["test_c/model.onnx"] = value
    held(outside, json.dumps(manifest).encode())
    assert (outside.parent / "mine" / "thesis").read_text() == "years"


@given(st.integers(0, 2000), st.integers(0, 20), st.binary(max_size=4))
@few
def test_a_damaged_manifest_is_used_or_refused_in_one_line(outside: Path, at: int, cut: int, put: bytes) -> None:
    text = json.dumps({"schema": 1, "cases": [{"folder": "test_c", "files": {"test_c/model.onnx": "0" * 64}}]}).encode()
    at %= len(text)
    held(outside, text[:at] + put + text[at + cut :])


@pytest.mark.parametrize("depth", [500, 900, 980, 2_000, 100_000])
def test_a_manifest_nested_deeply_is_refused_in_one_line(outside: Path, depth: int) -> None:
    held(outside, b'{"schema": 1, "cases": [], "more": ' + b"[" * depth + b"]" * depth + b"}")


def matrix_library() -> str:
    """The BLAS that NumPy was built with."""
    built: Any = np.show_config(mode="dicts")
    return str(built.get("Build Dependencies", {}).get("blas", {}).get("name", ""))


@pytest.mark.skipif(
    "openblas" not in matrix_library(), reason="only OpenBLAS is told by a variable which kernel to take"
)
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the kernels are those of x86")
def test_no_kernel_of_a_matrix_library_changes_a_file(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from onnxspec.cases import profile; "
        "from onnxspec.cases.directories.manifest import Origin, generate; "
        "cases = [spec for op in ('GRU', 'LSTM') for spec in profile('core', op, 14) if spec.type == 'float64']; "
        "generate(Path(sys.argv[1]), cases[:25], Origin('', '', 'core', {}))"
    )
    trees = [tmp_path / kernel for kernel in ("Haswell", "Prescott")]
    for tree in trees:
        command = [sys.executable, "-c", program, str(tree)]
        subprocess.run(command, env={**os.environ, "OPENBLAS_CORETYPE": tree.name}, check=True)
    first, second = map(bytes_of, trees)
    assert len(first) > 50
    assert first == second
