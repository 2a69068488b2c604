"""Adapters of other packages, found without importing them and sent as source text; and the test kit for adapters."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import zipfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from onnxspec.cases import CaseSpec, build_case
from onnxspec.conformance.running.adapter_kit import AdapterContract
from onnxspec.conformance.showing.script.script import script_of
from onnxspec.conformance.targets.adapters import adapter_names, adapter_source
from onnxspec.conformance.targets.target import Target, TargetError, parse_target
from onnxspec.conformance.targets.third_party import source_of, third_parties
from onnxspec.conformance.workers.job import TargetUnavailable
from onnxspec.conformance.workers.process import TargetProcess
from onnxspec.reference.errors import UserError

from ..miniatures import needs_cell_output

ROOT = Path(__file__).parents[3]

ADAPTER = '''"""Adapter for the sample. Package: sample-runtime.

Tested: sample-runtime 1.0.
"""

import itertools

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

COUNT = itertools.count()


class Bits(np.ndarray):
    element = "bfloat16"


class Adapter:
    def __init__(self, options):
        if options:
            raise ValueError("unknown option {!r}; there are none".format(sorted(options)[0]))

    def describe(self):
        return {"runtime": "sample", "version": "1.0", "provider": "", "device": "CPU", "platform": ""}

    def prepare(self, model):
        return Session(ReferenceEvaluator(onnx.load_model_from_string(model)))


class Session:
    def __init__(self, evaluator):
        self.evaluator = evaluator

    def run(self, feeds):
        import ml_dtypes

        given = {
            name: a.view(np.ndarray).view(ml_dtypes.bfloat16) if getattr(a, "element", "") == "bfloat16" else a
            for name, a in feeds.items()
        }
        results = self.evaluator.run(None, given)
        return [a.view(np.uint16).view(Bits) if a.dtype.name == "bfloat16" else a for a in results]
'''


def install(folder: Path, points: str, name: str = "sample-runtime", adapter: str = ADAPTER) -> None:
    """Write a distribution as an installer does: a package whose import fails, an adapter in it, and metadata."""
    package = folder / "sample_runtime"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("raise ImportError('the parent must not import this')\n")
    (package / "onnxspec_adapter.py").write_text(adapter)
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[onnxspec.targets]\n{points}\n")


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    install(folder, "sample = sample_runtime.onnxspec_adapter")
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.mark.usefixtures("sample")
def test_it_is_found_and_nothing_of_it_imported() -> None:
    (adapter,) = third_parties()["sample"]
    assert (adapter.module, adapter.attribute) == ("sample_runtime.onnxspec_adapter", "Adapter")
    assert (adapter.distribution, adapter.version) == ("sample-runtime", "1.0")
    assert source_of("sample") == adapter_source("sample") == ADAPTER
    assert "sample" in adapter_names()
    assert not [name for name in sys.modules if name.startswith("sample_runtime")]


def test_names_that_stand_here_never_look_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxspec.conformance.targets.target.third_parties", lambda: pytest.fail("looked"))
    assert parse_target("onnxruntime").adapter == "onnxruntime"


@pytest.mark.usefixtures("sample")
def test_it_is_a_target_by_its_name_and_an_adapter_of_tables(tmp_path: Path) -> None:
    assert parse_target("sample") == Target("sample", "sample")
    file = tmp_path / "targets.toml"
    file.write_text('[far]\nadapter = "sample"\ncommand = ["ssh", "box", "python3", "{stdin}"]\n')
    assert parse_target("far", file).adapter == "sample"
    with pytest.raises(TargetError, match="nearest: sample"):
        parse_target("sampel")


class Sample(AdapterContract):
    target = "sample"


# Every test of the kit is a test here, of a right adapter.
@pytest.mark.usefixtures("sample")
class TestSample(Sample):
    @needs_cell_output
    def test_it_runs_some_type(self, process: TargetProcess) -> None:
        super().test_it_runs_some_type(process)


@pytest.mark.usefixtures("sample")
def test_a_script_carries_it(tmp_path: Path) -> None:
    spec = CaseSpec("LSTM", 14, T=2, N=2, I=3, H=2)
    (tmp_path / "reproduce.py").write_text(
        script_of(build_case(spec), Target("sample", "sample")) or "", encoding="utf-8"
    )
    command = [sys.executable, str(tmp_path / "reproduce.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=590)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "inside" in done.stdout


def test_a_class_of_another_name_and_a_package_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    install(folder, "sample = sample_runtime.onnxspec_adapter:Other", adapter=ADAPTER.replace("Adapter:", "Other:"))
    archive = tmp_path / "site.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in folder.rglob("*"):
            file.write(path, path.relative_to(folder))
    monkeypatch.syspath_prepend(str(archive))
    with TargetProcess(parse_target("sample")) as process:
        assert process.start()["runtime"] == "sample"


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ("sample_runtime.none", "adapter 'sample' of sample-runtime 1.0: there is no module sample_runtime.none"),
        ("no_package.at_all", "there is no module no_package.at_all"),
        ("sample_runtime.onnxspec_adapter.deeper", "there is no module"),
        ("math", "has no source text"),
    ],
)
def test_an_adapter_without_source_is_refused(
    point: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", f"sample = {point}")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with pytest.raises(TargetError, match=re.escape(said)):
        parse_target("sample")
    file = tmp_path / "targets.toml"
    file.write_text('[x]\nadapter = "sample"\n')
    with pytest.raises(TargetError, match=re.escape(f"{file}:1: [x] adapter: ")):
        parse_target("x", file)


@pytest.mark.usefixtures("sample")
def test_two_adapters_of_one_name_are_refused_and_shipped_ones_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path / "other",
        "sample = sample_runtime.onnxspec_adapter\nonnxruntime = sample_runtime.onnxspec_adapter",
        "rival",
    )
    monkeypatch.syspath_prepend(str(tmp_path / "other"))
    with pytest.raises(UserError, match=r"several packages bring an adapter 'sample': .*rival 1\.0"):
        source_of("sample")
    assert adapter_source("onnxruntime") != ADAPTER


# The kit finds faults


def kit_of(target: Target) -> AdapterContract:
    kit = Sample()
    kit.__dict__["configuration"] = target
    return kit


def checked(kit: AdapterContract, test: str, **arguments: Any) -> None:
    """Run a test of the kit."""
    check: Any = getattr(kit, f"test_{test}")
    if "process" not in inspect.signature(check).parameters:
        check()
        return
    with TargetProcess(kit.configuration) as process:
        process.start()
        check(process, **arguments)


ARRAYS, ORDER, CANNOT = (
    "arrays_go_in_and_come_out",
    "inputs_go_by_name_and_outputs_by_the_graphs_order",
    "what_cannot_run_is_refused_and_nothing_is_lost",
)
ALONE, DESCRIBES = "its_source_stands_alone", "it_describes_itself"
RUN, SESSION = "def run(self, feeds):", "        return Session("
RESULTS = "        results = self.evaluator.run(None, given)\n"


@pytest.mark.parametrize(
    ("test", "old", "new", "said"),
    [
        (ARRAYS, RUN, f"{RUN}\n        return [1.0]", "1 outputs, must be Y, Y_h"),
        (ARRAYS, RESULTS, f"{RESULTS}        results[0] = 'text'\n        return results\n", "form of the outputs"),
        (ARRAYS, RESULTS, f"{RESULTS}        results = [a.astype('f8') for a in results]\n", "must be float32"),
        (ARRAYS, RESULTS, f"{RESULTS}        results = [a[..., None] for a in results]\n", "Y is .*, must be"),
        (ARRAYS, RESULTS, f"{RESULTS}        results[0] = results[0] * 300\n", "misread on its way"),
        (ARRAYS, RESULTS, f"{RESULTS}        results[0] = results[0] + next(COUNT) * 1e-5\n", "different bits"),
        # Without its mark, bfloat16 is taken for uint16.
        (ARRAYS, ".view(Bits)", "", "Y is uint16, must be bfloat16"),
        (ORDER, RESULTS, f"{RESULTS}        results.sort(key=lambda a: -a.ndim)\n", "in another order"),
        (ORDER, "given = {", "given = dict(zip(('X', 'W', 'R'), feeds.values())) if 0 else {", ""),
        (CANNOT, SESSION, f"        import os\n        os.abort() if b'NoSuch' in model else 0\n{SESSION}",
         "an operator that does not exist: crashed"),
        (CANNOT, SESSION, f"        if b'NoSuch' in model:\n            raise ValueError()\n{SESSION}", ""),
        ("it_runs_some_type", SESSION, "        if len(onnx.load_model_from_string(model).graph.input) > 1:\n"
         f"            raise ValueError('W is no constant')\n{SESSION}",
         "refuses LSTM-14 in every type .*W is no constant"),
        (DESCRIBES, '"version": "1.0"', '"version": ""', "describe\\(\\) has no version"),
        (DESCRIBES, '"device": "CPU", ', "", "describe\\(\\) says no device"),
        (DESCRIBES, '"platform": ""', '"platform": "", "now": __import__("time").time()', "something else each time"),
        (DESCRIBES, '"platform": ""', '"platform": "", "share": float("nan")', "NaN is no JSON"),
        (DESCRIBES, "        if options:", "        if True:\n            options = {'a': 1}", "unknown option 'a'"),
        ("it_refuses_an_unknown_option", "        if options:", "        if False:", "ignores an option"),
        ("it_refuses_an_unknown_option", "unknown option {!r}; there are none", "no {:.0}", "does not name the option"),
        *[(ALONE, "import numpy as np\n", f"import numpy as np\n{line}\n", "import")
          for line in ("from . import part", "import onnxspec", "from onnxspec.conformance import worker")],
    ],
)  # fmt: skip
def test_the_kit_finds_faults_of_adapters(test: str, old: str, new: str, said: str, tmp_path: Path) -> None:
    """Two adapters without a message do nothing wrong."""
    assert old in ADAPTER
    (tmp_path / "broken.py").write_text(ADAPTER.replace(old, new))
    kit = kit_of(Target("broken", str(tmp_path / "broken.py")))
    arguments = {"type": "bfloat16" if "bfloat16" in said else "float32"} if test == ARRAYS else {}
    expected = pytest.raises((AssertionError, TargetUnavailable), match=said) if said else nullcontext()
    with expected:
        checked(kit, test, **arguments)


# The how-to


def test_the_adapter_of_the_how_to_is_right(tmp_path: Path) -> None:
    """The test provides a runtime with the name that the how-to uses."""
    text = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
    source = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0]
    ast.parse(source, feature_version=(3, 8))
    (tmp_path / "mine.py").write_text(
        "import onnx\nfrom onnx.reference import ReferenceEvaluator\n__version__ = '2.3'\n"
        "class Compiled:\n"
        "    def __init__(self, model):\n"
        "        self.evaluator = ReferenceEvaluator(onnx.load_model_from_string(model))\n"
        "        self.output_names = self.evaluator.output_names\n"
        "        self.output_types = dict.fromkeys(self.output_names, 'float32')\n"
        "    def run(self, feeds):\n"
        "        return dict(zip(self.output_names, self.evaluator.run(None, feeds)))\n"
        "def compile(model, fast):\n"
        "    return Compiled(model)\n"
    )
    (tmp_path / "adapter.py").write_text(source)
    kit = kit_of(Target("mine", str(tmp_path / "adapter.py"), environment={"PYTHONPATH": str(tmp_path)}))
    for test in (DESCRIBES, "it_refuses_an_unknown_option", ALONE, ORDER):
        checked(kit, test)
    checked(kit, ARRAYS, type="float32")
