"""Adapter for emx-onnx-cgen, which writes a model as C; a C compiler makes a library of it. Package: emx-onnx-cgen.

Options:

``compiler`` (default "cc")
    The C compiler, found on PATH or given with its path.
``flags`` (list, default -O1)
    Further flags of the compiler, beside those for a library.

C code that does not compile is a refusal in phase load. Warnings are ignored.

Tested: emx-onnx-cgen 1.4.0 with gcc 12.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import shutil
import subprocess
import tempfile
from importlib import metadata
from typing import Any

import numpy as np
import onnx

cgen: Any = importlib.import_module("emx_onnx_cgen")
compilation: Any = importlib.import_module("emx_onnx_cgen.compiler")

OPTION_DEFAULTS: dict[str, Any] = {"compiler": "cc", "flags": ["-O1"]}
NAME = "model"

SESSIONS = ("weights", "held", "several", "many", "refusals", "sizes")

_PARAMETER = re.compile(r"^(?P<const>const )?(?P<type>[\w ]+?) (?P<name>\w+)(?P<dimensions>(?:\[[^\]]*\])*)$")
_TYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "_Float16": np.float16,
    "int32_t": np.int32,
    "int64_t": np.int64,
    "_Bool": np.bool_,
    "bool": np.bool_,
}


class Adapter:
    """The generator with one C compiler."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.compiler = shutil.which(options["compiler"])
        if self.compiler is None:
            raise RuntimeError("there is no C compiler {}".format(options["compiler"]))
        self.flags = [str(flag) for flag in options["flags"]]
        # Above a threshold, it writes weights to a file that must be loaded before the first run.
        self.generator = cgen.Compiler(compilation.CompilerOptions(model_name=NAME, large_weight_threshold=0))

    def describe(self) -> dict[str, Any]:
        compiler = subprocess.run([str(self.compiler), "--version"], capture_output=True, text=True)
        return {
            "runtime": "emx-onnx-cgen",
            "version": metadata.version("emx-onnx-cgen"),
            "provider": "",
            "device": "CPU",
            "compiler": compiler.stdout.partition("\n")[0],
            "flags": self.flags,
        }

    def prepare(self, model: bytes) -> Session:
        """Write `model` as C, compile that, and load the library."""
        proto = onnx.load_model_from_string(model)
        try:
            text = self.generator.compile(proto)
        except (cgen.UnsupportedOpError, cgen.CodegenError, cgen.ShapeInferenceError) as error:
            raise RuntimeError(str(error).partition(" (while ")[0]) from None  # behind that stands the whole node
        with tempfile.TemporaryDirectory(prefix="onnxspec-") as folder:
            source, library = os.path.join(folder, "model.c"), os.path.join(folder, "model.so")
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            command = [str(self.compiler), "-shared", "-fPIC", "-w", *self.flags, source, "-o", library, "-lm"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError("C compiler: " + _first_error(done.stderr))
            function = ctypes.CDLL(library)[NAME]
        given = {value.name for value in proto.graph.initializer}
        inputs = [value.name for value in proto.graph.input if value.name not in given]
        return Session(function, _parameters(text), inputs)


class Session:
    """A compiled model: a C function whose parameters are sizes, then inputs, then outputs."""

    def __init__(self, function: Any, parameters: list[tuple[str, str, str, bool]], inputs: list[str]) -> None:
        self._function = function
        self._function.restype = None
        self._sizes = [name for _, name, dimensions, _ in parameters if not dimensions]
        arrays = [parameter for parameter in parameters if parameter[2]]
        self._taken = arrays[: len(inputs)]
        self._made = arrays[len(inputs) :]
        self._inputs = inputs
        if [constant for *_, constant in arrays] != [True] * len(inputs) + [False] * len(self._made):
            raise RuntimeError("the C function does not take inputs first and outputs then")

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        if set(feeds) - set(self._inputs):
            raise TypeError("the C function takes nothing in the place of a constant")
        sizes: dict[str, int] = {}
        values: list[Any] = []
        for name, (type_, _, dimensions, _) in zip(self._inputs, self._taken, strict=True):
            array = np.asarray(feeds[name], order="C")
            if array.dtype != _TYPES.get(type_) or getattr(array, "element", None):
                raise TypeError(f"{name} is {array.dtype}, the C function takes {type_}")
            declared = _dimensions(dimensions)
            if len(declared) == array.ndim:
                sizes.update(zip(declared, array.shape, strict=True))
            if tuple(_size(one, sizes) for one in declared) != array.shape:
                raise TypeError(f"{name} has shape {array.shape}, the C function takes {dimensions}")
            values.append(array)
        outputs = [
            _kept_apart([_size(one, sizes) for one in _dimensions(dimensions)], _TYPES[type_])
            for type_, _, dimensions, _ in self._made
        ]
        self._function(
            *[ctypes.c_int(sizes[name]) for name in self._sizes],
            *[ctypes.c_void_p(array.ctypes.data) for array in (*values, *outputs)],
        )
        return outputs


def _parameters(text: str) -> list[tuple[str, str, str, bool]]:
    """Return C type, name, dimensions and whether it is constant of each parameter of the generated function."""
    head = re.search(rf"^void {NAME}\((.*)\) \{{", text, flags=re.MULTILINE)
    if head is None:
        raise RuntimeError("the generated code has no function " + NAME)
    parameters = []
    for part in head[1].split(", "):
        match = _PARAMETER.match(part)
        if match is None:
            raise RuntimeError("a parameter of the generated function cannot be read: " + part)
        parameters.append((match["type"], match["name"], match["dimensions"], bool(match["const"])))
    return parameters


def _kept_apart(shape: list[int], dtype: Any) -> np.ndarray:
    """Return an array for an output, with room before and behind it.

    Otherwise code that writes past the end would change memory of another case, which would then be accused.
    """
    count = int(np.prod(shape))
    margin = count + 4096
    return np.empty(count + 2 * margin, dtype)[margin : margin + count].reshape(shape)


def _dimensions(text: str) -> list[str]:
    return [one.replace("restrict", "").strip() for one in re.findall(r"\[([^\]]*)\]", text)]


def _size(dimension: str, sizes: dict[str, int]) -> int:
    """Return the length of a dimension: a number, or the name of one that an input has."""
    return int(dimension) if dimension.isdigit() else sizes.get(dimension, -1)


def _first_error(text: str) -> str:
    errors = re.findall(r"error: (.*)", text)
    return str(errors[0]) if errors else text.strip()
