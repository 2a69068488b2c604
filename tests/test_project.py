"""Tests of the project itself: its packages and their imports, its packaging, and statements of its documents."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest

from onnxspec.conformance.cli.application import COMMANDS, load_command
from onnxspec.conformance.judging.judgement import FAILING, Verdict
from onnxspec.conformance.results.result import Result
from onnxspec.reference import CELLS, operator_names, operator_version, versions_of

from .conformance.miniatures import run_command

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PACKAGES = ("reference", "cases", "conformance", "reports")  # in the order in which they may import each other
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

MOST = 22  # modules in a folder: twenty, and a few more where each is a command

# Modules outside folders of operators that name one, and why.
NAMING = {
    "reference/recurrent/rnn.py": "the equations of ONNX's three operators",
    "reference/documents/interpretations.py": "what is wrong with documents, each by its name",
    "conformance/comparing/changes.py": "what frameworks do otherwise, operator by operator",
    "conformance/running/adapter_kit.py": "what an author's adapter runs where nothing else is said",
}
# Modules outside of folders of operators and of axes that compare with the name of an input, output or attribute which
# not all of ONNX's recurrent operators have, and why: each asks whether a version has it.
TELLING = {
    "conformance/comparing/changes.py": "what frameworks do otherwise, tensor by tensor",
    "conformance/comparing/comparison.py": "the layouts in which frameworks return each output",
    "cases/specs/quantizing.py": "a tensor without a dimension for the rows of W and R has no scales by row",
    "reference/recurrent/expectation.py": "radii in float32 are not for sums with peepholes",
}
STANDARD = {*sys.stdlib_module_names, "tomllib"}  # Python 3.10 has no tomllib in its standard library


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def tree(*skipped: str) -> Iterator[Path]:
    """Yield every file that belongs to the project, relative to its root, without files that tools leave behind."""
    for folder, names, files in os.walk(ROOT):
        here = Path(folder)
        names[:] = [
            n
            for n in names
            if n not in ("__pycache__", "build", "dist", "runs", "node_modules", *skipped)
            and not n.endswith(".egg-info")
            and (n == ".ci" or not n.startswith("."))
            and not (here / n / "pyvenv.cfg").exists()
        ]
        yield from (here.relative_to(ROOT) / name for name in files if not name.endswith((".pyc", ".pyo")))


def shipped() -> list[Path]:
    """Return every file in a package."""
    return [path for path in tree() if path.parts[0] in PACKAGES and len(path.parts) > 1]


# Packages


@cache
def imports_of(path: Path) -> tuple[tuple[str, bool], ...]:
    """Return the imports of a module of a package.

    Each has its full name, and whether it runs as soon as the module is loaded.
    """
    package = ["onnxspec", *path.parts[:-1]]
    module = ast.parse(text_of(str(path)))
    later = {id(n) for f in ast.walk(module) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
    imports = []
    for node in ast.walk(module):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            names = [".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "__import__"):
            names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        imports += [(name, id(node) not in later) for name in names]
    return tuple(imports)


def modules(package: str) -> list[Path]:
    return [path for path in shipped() if path.parts[0] == package and path.suffix == ".py"]


def package_of(name: str) -> str | None:
    """Return the package that an import leads to.

    `import reference` would work in a checkout alone, so it counts as well.
    """
    parts = name.split(".")
    first = parts[1] if parts[0] == "onnxspec" and len(parts) > 1 else parts[0]
    return first if first in PACKAGES else None


@pytest.mark.parametrize("package", PACKAGES)
def test_rooms_import_each_other_relatively(package: str) -> None:
    """Editors and type checkers follow relative imports by path; the installed name is for users."""
    for path in modules(package):
        for node in ast.walk(ast.parse(text_of(str(path)))):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert package_of(node.module or "") is None, f"{path}: from {node.module} import ..."


@pytest.mark.parametrize("package", ["reference", "cases", "conformance"])
def test_the_architecture_has_a_row_for_every_sub_package_in_their_order(package: str) -> None:
    (order,) = [c["layers"] for c in PROJECT["tool"]["importlinter"]["contracts"] if c["name"] == package]
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("| sub-package |")[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith(f"| `{package}/")]
    in_table = [name.rpartition("/")[2] for name in re.findall(r"`([^`]+)`", " ".join(rows))]
    assert in_table == [part for part in reversed(order) if (ROOT / package / part).is_dir()]


def test_no_folder_is_crowded() -> None:
    paths = [path for package in PACKAGES for path in modules(package) if path.name != "__init__.py"]
    counts = Counter(path.parent for path in paths)
    assert not {folder: count for folder, count in counts.items() if count > MOST}


def test_shared_code_asks_an_operator_and_never_which_it_is() -> None:
    """No module outside folders of operators names an operator, except in messages for people."""
    names = {name.rpartition("::")[2] for name in operator_names(None)}
    naming = {
        str(path)
        for path in shipped()
        if path.suffix == ".py" and "operators" not in path.parts[:-1]
        for node in ast.walk(ast.parse(text_of(str(path))))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert naming == set(NAMING)


def test_shared_code_tells_operators_apart_by_no_letter_no_tensor_and_no_class() -> None:
    """Shared code compares with no letter of a gate, and with no class of the cases of some operators.

    It compares with a name that not all operators have only in modules of axes and in those of the table above.
    """
    names = [
        {name for v in versions_of(op) for form in [operator_version(op, v)]
         for name in (*form.attributes, *form.inputs, *form.outputs)}
        for op in CELLS
    ]  # fmt: skip
    telling = set.union(*names) - set.intersection(*names)
    assert {"P", "initial_c", "Y_c", "input_forget", "linear_before_reset"} <= telling
    orders = {order for cell in CELLS.values() for order in (cell.gates, cell.peepholes) if len(order) > 1}
    comparing, lettered, classed = set(), set(), set()
    for path in shipped():
        if path.suffix != ".py" or "operators" in path.parts[:-1]:
            continue
        for node in ast.walk(ast.parse(text_of(str(path)))):
            inside = [*ast.walk(node)] if isinstance(node, (ast.Compare, ast.Call)) else [node]
            texts = {n.value for n in inside if isinstance(n, ast.Constant) and isinstance(n.value, str)}
            attributes = {n.attr for n in inside if isinstance(n, ast.Attribute)}
            if isinstance(node, ast.Constant) and texts & orders:
                lettered.add(str(path))
            if isinstance(node, ast.Compare):
                if texts & telling and path.parts[:2] != ("cases", "axes"):
                    comparing.add(str(path))
                if texts and attributes & {"gates", "peepholes", "inner"}:
                    lettered.add(str(path))
                if "operators" in attributes and "CaseSpec" in {n.id for n in inside if isinstance(n, ast.Name)}:
                    classed.add(str(path))
            asks = isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
            if asks and "CaseSpec" in re.findall(r"\w+", ast.unparse(node)):
                classed.add(str(path))
    # One declares the letters, the other has the orders of frameworks.
    assert lettered == {"reference/recurrent/rnn.py", "conformance/comparing/changes.py"}
    assert not classed
    assert comparing == set(TELLING)


def test_what_an_operator_takes_that_extends_another() -> None:
    """An extension of another operator takes at most four files and 600 lines, its clauses included."""
    name = "dynamic_quantize_lstm"
    files = [path for path in shipped() if name in path.as_posix()]
    assert all("operators" in path.parts[:-1] for path in files)
    assert len(files) <= 4
    assert sum(len(text_of(str(path)).splitlines()) for path in files) <= 600


def test_only_adapters_know_runtimes() -> None:
    runtimes = ("onnxruntime", "onnx.reference", "onnx.backend")
    for package in PACKAGES:
        for path in modules(package):
            # Constants of a model under check are computed by onnx.reference, which is NumPy and is loaded late.
            mine = ("onnxruntime", "onnx.backend") if path == Path("conformance/models/folding.py") else runtimes
            if path.parent != Path("conformance/targets/adapters"):
                known = [n for n, _ in imports_of(path) if any(f"{n}.".startswith(f"{r}.") for r in mine)]
                assert not known, f"{path} imports {known}"


def test_what_runs_in_a_worker_stands_alone() -> None:
    """The worker and the adapters are sent as source text to interpreters without this project."""
    for path in [p for p in modules("conformance") if "adapters" in p.parts and p.name != "__init__.py"]:
        assert not [name for name, _ in imports_of(path) if package_of(name)], path
    needed = {name.split(".")[0] for name, _ in imports_of(Path("conformance/workers/worker.py"))}
    assert needed - STANDARD == {"numpy"}


# Packaging


def built(form: str, source: Path) -> Path:
    """Return the wheel or source distribution of a folder."""
    code = f"from setuptools import build_meta; print(build_meta.build_{form}('..'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return source.parent / done.stdout.splitlines()[-1]


def test_a_wheel_holds_every_file_of_the_packages_and_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / "source"  # a copy: leftovers of earlier builds in the tree would be packaged too
    for package in ("src", *PACKAGES):
        copytree(ROOT / package, source / package, ignore=ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    files = [path.relative_to(source) for path in source.rglob("*") if path.is_file()]
    held = {path.as_posix().removeprefix("src/") for path in files if len(path.parts) > 1}
    names = [n for n in zipfile.ZipFile(built("wheel", source)).namelist() if ".dist-info/" not in n]
    assert sorted(names) == sorted(f"onnxspec/{name.removeprefix('onnxspec/')}" for name in held)
    assert {".toml", ".json", ".html", ".css", ".js"} <= {Path(name).suffix for name in names}


def test_every_dependency_gives_its_reason() -> None:
    given = re.findall(r'^ +"([\w.-]+)>=[^\n]*?,\s+# \S', text_of("pyproject.toml"), re.MULTILINE)
    groups = [PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"].values()]
    assert given == [line.partition(">=")[0] for group in groups for line in group]


def test_tests_that_tox_names_exist() -> None:
    named = re.findall(r"\btests/[\w/.]+", text_of("tox.ini"))
    assert named
    assert not [name for name in named if not (ROOT / name).exists()]


# Documents


DOCUMENTS = sorted(path.as_posix() for path in tree() if path.suffix == ".md")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(document: str) -> list[str]:
    """Return the lines that a reader is meant to type."""
    blocks = [body for language, body in FENCED.findall(text_of(document)) if language == "sh"]
    return [line for body in blocks for line in body.splitlines() if line.strip() and not line.startswith("#")]


def test_the_changelog_begins_with_this_version() -> None:
    newest = re.search(r"^## (\S+)( \(in work\))?$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert PROJECT["project"]["version"] == newest[1] + (".dev0" if newest[2] else "")
    minor = newest[1].rpartition(".")[0]
    assert f"**Status: {minor}{', in work' if newest[2] else ''}.**" in text_of("README.md")


def test_ci_runs_the_commands_of_the_readme() -> None:
    newcomers = [line for line in commands("README.md") if line.startswith("python3 -m venv")]
    assert [line.split(" && ")[-1] for line in newcomers] == [".venv/bin/onnxspec run", ".venv/bin/pytest -n auto"]
    assert set(newcomers) <= set(text_of(".ci/run").splitlines())
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_commands_in_documents_exist() -> None:
    known: Mapping[str, Any] = {name: load_command(name) for name in COMMANDS}
    seen = set()
    for document in DOCUMENTS:
        for line in commands(document):
            words = re.sub(r"^\S*/bin/", "", line.split(" && ")[-1].strip()).split()
            if words[0] != "onnxspec":
                continue
            seen.add(words[1])
            assert words[1] in known, f"{document}: {line}"
            options = {o for parameter in known[words[1]].params for o in (*parameter.opts, *parameter.secondary_opts)}
            given = {word.split("=")[0] for word in words[2:] if word.startswith("-")}
            assert given <= {*options, "--help"}, f"{document}: {line}"
    assert seen == set(known)


def test_benchmarks_in_documents_exist() -> None:
    manual = [document for document in DOCUMENTS if document != "CHANGELOG.md"]  # it also tells of former ones
    named = {name for document in manual for name in re.findall(r"-m benchmarks\.(\w+)", text_of(document))}
    assert named
    assert named <= {path.stem for path in (ROOT / "benchmarks").iterdir()}


@pytest.mark.parametrize("package", PACKAGES)
def test_relative_references_of_docstrings_name_a_module_and_what_it_holds(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        for dots, reference in re.findall(r":[a-z]+:`~?(\.+)([^`]+)`", path.read_text(encoding="utf-8")):
            folder, names = path.parents[len(dots) - 1], reference.split(".")
            while names and (folder / names[0]).is_dir():
                folder /= names.pop(0)
            module = folder / f"{names[0] if names else '__init__'}.py"
            assert module.exists() or (folder / "__init__.py").exists(), f"{path}: {reference}"
            held = names[1:2] if module.exists() else names[:1]
            text = (module if module.exists() else folder / "__init__.py").read_text(encoding="utf-8")
            assert all(re.search(rf"\b{name}\b", text) for name in held), f"{path}: {reference}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_of_a_document_lead_somewhere(document: str) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", FENCED.sub("", text_of(document))):
        assert link.startswith("https://") or (ROOT / document).parent.joinpath(link).exists(), link
        # A package index shows README too, so its links to the repository's files are absolute.
        own = re.fullmatch(r"https://[\w.]+/onnxspec/onnxspec/(?:blob/main|main|tree/main)/(.+)", link)
        assert own is None or (ROOT / own[1]).exists(), link


def test_every_word_of_the_glossary_is_linked_from_a_page_that_uses_it() -> None:
    pages = "".join(text_of(document) for document in DOCUMENTS)
    words = re.findall(r"^## (.+)$", text_of("docs/glossary.md"), re.MULTILINE)
    assert len(words) == 10
    assert not [word for word in words if f"glossary.md#{word.lower().replace(' ', '-')})" not in pages]


def test_the_readme_reads_the_same_on_a_package_index() -> None:
    assert not [link for link in re.findall(r"\]\(([^)]+)\)", text_of("README.md")) if not link.startswith("https://")]


def test_a_source_distribution_holds_documents_tests_and_examples(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for path in tree():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes((ROOT / path).read_bytes())
    with tarfile.open(built("sdist", source)) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    wanted = {path.as_posix() for path in tree() if not path.parts[0].startswith(".") or path.parts[0] == ".ci"}
    assert not wanted - names


def test_the_workflow_and_the_hooks_run_what_ci_runs() -> None:
    workflow = text_of(".github/workflows/ci.yml")
    assert "run: .ci/run" in workflow
    declared = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert re.search(r"python: (\[.*\])", workflow)[1] == json.dumps(declared)  # type: ignore[index]
    assert re.findall(r"id: (\S+)", text_of(".pre-commit-config.yaml")) == ["ruff-check", "ruff-format", "mypy"]


def test_nothing_names_the_machine_it_was_made_on_or_a_registry() -> None:
    """Forbidden are paths of homes and of this checkout, and hosts and options of package indexes."""
    telling = re.compile(r"/(?:root|home|Users)/\w|[A-Z]:\\Users|pypi\.|pythonhosted\.|[i]ndex-url|[f]ind-links")
    machine = [str(p) for p in (ROOT, Path(sys.prefix)) if len(p.parts) > 2]
    for path in tree():
        content = (ROOT / path).read_bytes().decode("utf-8", errors="replace")
        assert not telling.search(content), path
        assert not [place for place in machine if place in content], path


# docs/results.md


def table(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading of docs/results.md."""
    below = text_of("docs/results.md").split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in below.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def documented(heading: str) -> set[str]:
    """Return the keys in the first column: `a`, `b`; `a.b` stands for a key of an object."""
    return {key for row in table(heading) for key in re.findall(r"`([^`]+)`", row[0])}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of the real command on a real runtime, with passes, refusals and failures."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert run_command("run", "--op", "LSTM-14", "--type", "float32", "--out", folder) == 0
    return folder


def test_every_key_of_results_is_documented(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    keys = {key for line in lines if line["record"] == "result" for key in line} - {"record"}
    assert keys == set(Result.__struct_fields__)
    assert documented("results.jsonl") == keys


def test_every_key_of_run_json_is_documented(run: Path) -> None:
    content = json.loads((run / "run.json").read_text(encoding="utf-8"))
    keys = set(content)
    keys |= {f"{name}.{key}" for name in ("selection", "environment") for key in content[name]}
    assert documented("run.json") == keys
    (target,) = content["targets"]
    assert documented("A target in run.json") == set(target)
    assert target["findings"]
    assert documented("A finding") == {key for finding in target["findings"] for key in finding}


def test_verdicts_stand_in_their_order_with_what_fails() -> None:
    rows = table("Verdicts")
    assert [row[0].strip("`") for row in rows] == [verdict.value for verdict in Verdict]
    assert {row[0].strip("`") for row in rows if row[1] == "fails"} == {verdict.value for verdict in FAILING}
