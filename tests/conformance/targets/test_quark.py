"""AMD Quark's custom-op library (built and run), its adapter, and its kernel compared with the recording.

Tests that need the library itself are skipped if the package amd-quark is missing: install it (``pip install --no-deps
amd-quark==0.13``) or set ONNXSPEC_QUARK_PACKAGE to the folder it was unpacked to.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from onnxspec.conformance.targets import adapters as targets
from onnxspec.conformance.targets.adapters import quark_library
from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers import worker
from onnxspec.conformance.workers.job import TargetUnavailable
from onnxspec.conformance.workers.process import TargetProcess

from ...quark import quark_node, run_library, shipped_kernel
from ..checking.nodes import of_quark
from ..miniatures import Finished, read_results

PACKAGE = os.environ.get("ONNXSPEC_QUARK_PACKAGE", "")


@pytest.fixture(scope="session")
def library() -> quark_library.Library:
    try:
        return quark_library.quark_library(package=PACKAGE)
    except quark_library.NoLibrary as error:
        if PACKAGE or os.environ.get("ONNXSPEC_REQUIRE_QUARK"):  # a package that is named must be tested
            raise
        pytest.skip(f"AMD Quark's library: {error}")


@pytest.mark.parametrize("changed", [{}, {"y_zero_point": 32767}, {"y_scale": 0.8 / 65535}], ids=str)
def test_the_recorded_kernel_is_this_one(library: quark_library.Library, changed: Any) -> None:
    """They agree up to one level of Y: the last bit of tanh differs between C libraries."""
    node = quark_node(reach=2 if changed else 1, **changed)
    levels = (run_library(node) - shipped_kernel(node)) / node.attributes["y_scale"]
    assert np.abs(levels).max() < 1.5


def test_the_old_name_is_the_same_operator(library: quark_library.Library) -> None:
    node = quark_node()
    session = ort.InferenceSession(node.model("com.vai.quantize", "VitisLSTM"), session_options(library))
    np.testing.assert_array_equal(run_library(node), session.run(None, dict(node.inputs))[0])


def session_options(library: quark_library.Library) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.register_custom_ops_library(library.path)
    return options


def load(options: dict[str, Any]) -> Any:
    """Return the adapter, from the one source text of its parts that can be sent."""
    return worker.load_adapter(targets.adapter_source("quark"), options)


def test_the_adapter_runs_a_node(library: quark_library.Library) -> None:
    adapter = load({"library": library.path})
    node = quark_node()
    (Y,) = adapter.prepare(node.model()).run(dict(node.inputs))
    assert Y.shape == (*node.inputs["X"].shape[:1], 2, 1, node.attributes["hidden_size"])
    described = adapter.describe()
    assert described["library"] == library.path
    assert described["custom_op_libraries"] == [library.path]


def test_generated_directories_run_on_it_and_on_onnxruntime_with_the_library(
    library: quark_library.Library, tmp_path: Path, inside: Callable[..., Finished]
) -> None:
    """The cases are right, wrong and unsupported ones; they keep their operator, whatever op_type their models use."""
    folder, out, tables = tmp_path / "cases", tmp_path / "run", tmp_path / "targets.toml"
    tables.write_text(f"""
        [plain]
        adapter = "onnxruntime"
        provider = "CPUExecutionProvider"
        options.custom_op_libraries = [{json.dumps(library.path)}]

        [amd]
        adapter = "quark"
        options.library = {json.dumps(library.path)}
    """)
    abouts = ("realistic-input", "old-name", "as-documented", "output-beyond-0.3", "rerun-data", "illegal-layout-one")
    chosen = [word for topic in abouts for word in ("--case", f"*.{topic}.*")]
    generated = inside("generate", "--out", folder, "--op", "ExtendedLSTM", "--all", *chosen)
    assert (generated.code, "--all" in generated.out) == (0, False)
    targets = ("--targets-file", tables, "--target", "plain", "--target", "amd")
    assert inside("run", "--case", folder, *targets, "--out", out).code == 1
    rows = read_results(out)
    assert {(row["domain"], row["op"], row["version"]) for row in rows} == {("com.amd.quark", "ExtendedLSTM", 1)}
    topic = re.compile(r"^test_extendedlstm-1\.float32\.(.*)\.T\d")
    verdicts = {(row["target"], topic.findall(row["case"])[0], row["verdict"]) for row in rows}
    right = ("realistic-input", "old-name", "rerun-data")
    expected = {**dict.fromkeys(right, "pass"), "as-documented": "unsupported", "output-beyond-0.3": "wrong"}
    assert verdicts == {(target, *pair) for target in ("plain", "amd") for pair in expected.items()}


def test_a_model_with_its_own_quantizing_operators_runs_and_is_right(
    library: quark_library.Library, tmp_path: Path, inside: Callable[..., Finished]
) -> None:
    onnx.save(of_quark("com.amd.quark", "Extended"), tmp_path / "model.onnx")
    tables = tmp_path / "targets.toml"
    tables.write_text(f'[amd]\nadapter = "quark"\noptions.library = {json.dumps(library.path)}\n')
    chosen = ("--targets-file", tables, "--target", "amd", "--out", tmp_path / "run")
    assert inside("run", tmp_path / "model.onnx", *chosen).code == 0
    verdicts = {row["case"]: row["verdict"] for row in read_results(tmp_path / "run")}
    assert verdicts == {"rnn": "pass", "rnn~qdq": "pass"}


def test_the_adapter_refuses_unknown_options_and_other_providers() -> None:
    with pytest.raises(ValueError, match=r"unknown option 'libary'; known: .*library.*threads"):
        load({"libary": "x"})
    with pytest.raises(ValueError, match="CPU"):
        load({"provider": "CUDAExecutionProvider"})


def missing(message: str, **options: str) -> None:
    """Check that there is no library, and why."""
    with pytest.raises(quark_library.NoLibrary, match=message):
        quark_library.quark_library(**options)


def test_missing_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ONNXSPEC_QUARK_PACKAGE", raising=False)
    missing("does not hold AMD Quark", package=str(tmp_path))
    missing("there is no file", library=str(tmp_path / "no.so"))
    (tmp_path / "quark").mkdir()
    (tmp_path / "quark" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    missing("is another one")
    monkeypatch.setattr(quark_library.importlib.util, "find_spec", lambda name: None)
    missing(r"amd-quark is not installed.*pip install --no-deps amd-quark")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package that has the names of all sources, as empty files."""
    folder = tmp_path / "site" / "quark"
    for name in quark_library._SOURCES:
        path = folder / quark_library._FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (folder / "version.py").write_text("__version__ = '9.9'\n")
    return folder.parent


def test_missing_compiler_or_sources(monkeypatch: pytest.MonkeyPatch, package: Path, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    missing(r"no C\+\+ compiler.*install one", package=str(package))
    (package / "quark" / quark_library._FOLDER / "src" / "custom_op_lstm.cc").unlink()
    missing(r"amd-quark 9\.9 .*custom_op_lstm\.cc", package=str(package))


def test_a_compiler_that_fails(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo mine 1.0 && exit\necho 'a.cc:1: error: no' >&2\nexit 1\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    missing(r"cannot build .*error: no", package=str(package))
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]  # no partial build is left


def test_a_library_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "library.so"
    path.write_text("not a library")
    with pytest.raises(Exception, match=r"library\.so"):
        load({"library": str(path)})


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform == "win32", reason="needs a C compiler")
def test_a_library_that_crashes_at_registration(tmp_path: Path) -> None:
    source, path = tmp_path / "crash.c", tmp_path / "crash.so"
    source.write_text("#include <stdlib.h>\nvoid *RegisterCustomOps(void *o, const void *a) { abort(); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(path)], check=True)
    target = Target("quark", "quark", {"library": str(path)})
    with TargetProcess(target) as process, pytest.raises(TargetUnavailable, match="SIGABRT") as raised:
        process.start()
    assert re.search(r"registering .*crash\.so in onnxruntime \d", raised.value.captured)
