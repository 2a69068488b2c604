"""Miniature backends, each with one fault, and helpers that run the command ``onnxspec`` against them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import pytest

from onnxspec.cases import CaseSpec
from onnxspec.conformance.border.strict_json import encode
from onnxspec.conformance.cli.application import main
from onnxspec.conformance.probes.selection import Selection, select
from onnxspec.conformance.results.folder import read_folder

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
needs_cell_output = pytest.mark.skipif(
    tuple(int(part) for part in onnx.__version__.split(".")[:2]) < (1, 23),
    reason="the reference evaluator of this onnx is an older one: it has no Y_c and refuses lengths",
)

ZOO = '''
"""An ONNX backend made of the reference, and the ways in which its kin are wrong."""

import os
import time

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend, BackendRep

from onnxspec.reference import FAULTS, Node, evaluate, format_of, run_fault


class Prepared(BackendRep):
    def __init__(self, model, compute):
        (node,) = model.graph.node
        opset = next(entry.version for entry in model.opset_import if entry.domain == "")
        version = onnx.defs.get_schema(node.op_type, opset).since_version
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        plain = {
            name: value.decode() if isinstance(value, bytes)
            else [v.decode() if isinstance(v, bytes) else v for v in value] if isinstance(value, list)
            else value
            for name, value in attributes.items()
        }
        self.node = Node(node.op_type, version, plain, tuple(name for name in node.output if name))
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self.names = [value.name for value in model.graph.input]
        self.runs = 0
        self.compute = compute

    def run(self, inputs, **options):
        self.runs += 1
        given = {**self.constants, **dict(zip(self.names, inputs))}
        outputs = self.compute(self, given)
        return [outputs[name] for name in self.node.outputs]


class Conforming(Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **options):
        return Prepared(model, cls.compute)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"

    @staticmethod
    def compute(prepared, inputs):
        kind = inputs["X"].dtype
        return {name: value.astype(kind) for name, value in evaluate(prepared.node, inputs).items()}


def faulty(name):
    class Deviating(Conforming):
        @staticmethod
        def compute(prepared, inputs):
            return run_fault(FAULTS[name], prepared.node, inputs)
    return Deviating


def spoiling(spoil):
    """From a function of (prepared, inputs, right outputs) to a backend that returns what that returns."""
    class Spoiling(Conforming):
        @staticmethod
        def compute(prepared, inputs):
            return spoil(prepared, inputs, Conforming.compute(prepared, inputs))
    return Spoiling
'''

KIN = {
    "conforming": "Backend = zoo.Conforming",
    "lengths_ignored": "Backend = zoo.faulty('lengths.ignored')",
    "gates_swapped": "Backend = zoo.faulty('lstm.gates.ifco')",
    "backward_as_forward": "Backend = zoo.faulty('activations.backward-as-forward')",
    "padding_repeated": "Backend = zoo.faulty('padding.state-repeated')",
    "modifying": """
def spoil(prepared, inputs, outputs):
    inputs["X"][...] = 0
    return outputs
""",
    # Each case has one or two feeds, each run twice in turn: the results differ for either.
    "unstable": """
def spoil(prepared, inputs, outputs):
    return {n: a * (prepared.runs not in (2, 3)) for n, a in outputs.items()}
""",
    "jittery": """
from onnxspec.reference.kernels.kernel import run_kernel
from onnxspec.reference.kernels.kernel import STYLES
def spoil(prepared, inputs, outputs):
    style = "library" if prepared.runs in (2, 3) else "forward"
    return run_kernel(prepared.node, inputs, STYLES[style])
""",
    # LSTM-1 may omit Y where output_sequence is 0.
    "sequence_left_out": """
def spoil(prepared, inputs, outputs):
    attributes = prepared.node.attributes
    return outputs if attributes.get("output_sequence", 0) else {**outputs, "Y": None}
""",
    "wrong_type": """
def spoil(prepared, inputs, outputs):
    return {n: a.astype(np.int32) for n, a in outputs.items()}
""",
    "aborting": """
def spoil(prepared, inputs, outputs):
    if prepared.node.attributes.get("direction") == "bidirectional":
        os.abort()
    return outputs
""",
    "refusing": """
def spoil(prepared, inputs, outputs):
    if "clip" in prepared.node.attributes:
        raise NotImplementedError("[bold]clip[/] is \\u2603 \\x1b[31m not for me :boom: " + "x" * 10000)
    return outputs
""",
    "nonfinite": """
def spoil(prepared, inputs, outputs):
    return {n: np.full_like(a, np.nan) for n, a in outputs.items()}
""",
    "enormous": """
def spoil(prepared, inputs, outputs):
    return {n: np.full_like(a, np.finfo(a.dtype).max) for n, a in outputs.items()}
""",
    # Stops after four cases until a file with the path $GATE exists.
    "gated": """
RUNS = []
def spoil(prepared, inputs, outputs):
    RUNS.append(prepared)
    while len(RUNS) > 8 and not os.path.exists(os.environ.get("GATE", os.devnull)):
        time.sleep(0.01)
    return outputs
""",
    "no_more": """
FOUND = os.path.exists(os.environ["ONCE"])
open(os.environ["ONCE"], "w").close()
if FOUND:
    raise RuntimeError("the licence has expired")
def spoil(prepared, inputs, outputs):
    if prepared.node.attributes.get("direction") == "bidirectional":
        os.abort()
    return outputs
""",
    "broken": "raise ImportError('libdevice.so.7: cannot open\\nshared object file')",
}
"""Module name to source text; ``spoil`` stands for a backend made by ``zoo.spoiling``."""


@dataclass(frozen=True)
class Finished:
    """Result of a finished command."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The only line on standard error."""
        (line,) = complaints(self.err)
        return line


Inside = Callable[..., Finished]
"""The fixture `inside`: the command in this process."""


class Command:
    """Runner of the command in a given folder and environment."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self.environment = environment
        self._folder = folder

    def __call__(self, *arguments: object, environment: Mapping[str, str] | None = None, **options: Any) -> Finished:
        options = {"cwd": self._folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        variables = {**self.environment, **(environment or {})}
        done = subprocess.run(command_line(*arguments), env=variables, check=False, timeout=590, **options)
        out, err = ((stream or b"").decode("utf-8", "backslashreplace") for stream in (done.stdout, done.stderr))
        assert "Traceback" not in err, err
        return Finished(done.returncode, out, err)


def complaints(errors: str) -> list[str]:
    """Return the lines of standard error without progress lines, which a busy machine may print."""
    return [line for line in errors.splitlines() if not re.fullmatch(r".*: [\d,]+ of [\d,]+ cases: .*", line)]


def command_line(*arguments: object) -> list[str]:
    """Return the words that start the command by its entry point's function, independent of PATH."""
    start = "import sys; from onnxspec.conformance.cli.application import main; sys.argv[0] = 'onnxspec'; main()"
    return [sys.executable, "-c", start, *map(str, arguments)]


HEEDING = (
    "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
    "signal.signal(signal.SIGINT, signal.default_int_handler); "
)
"""Prefix of a command that a test will signal.

The caller of the tests may ignore signals, as scripts do for processes started with &.
"""


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process, or none where the system has no such list."""
    try:
        children = [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        ]
    except OSError:
        return []
    return [*children, *(further for child in children for further in descendants(child))]


def run_command(*arguments: object) -> int:
    """Run the command in this process, in the current folder, and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["onnxspec", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)


def read_results(folder: Path) -> list[dict[str, Any]]:
    """Return the results of a run directory."""
    return [json.loads(encode(result)) for result in read_folder(folder).results]


def pick(count: int, wanted: Callable[[CaseSpec], bool] = lambda spec: True, **selection: Sequence[Any]) -> list[str]:
    """Return the ids of `count` cases that satisfy `wanted`, by default of LSTM-14 in float32."""
    chosen = Selection(**{"ops": ("LSTM",), "versions": (14,), "types": ("float32",), **selection})  # type: ignore[arg-type]
    ids = [spec.id for spec in select(chosen) if wanted(spec)]
    assert len(ids) >= count
    return ids[:count]


def naming(ids: Sequence[str]) -> list[str]:
    """Return the options that select cases by id."""
    return [word for name in ids for word in ("--case", name)]
