"""Adapter for SOFIE, which writes a model as C++; a C++ compiler makes a library of it. Package: sofie onnx.

Options:

``compiler`` (default "g++")
    The C++ compiler, found on PATH or given with its path.
``flags`` (list, default -O1)
    Further flags of the compiler, beside those for a library.
``blas`` (default "libblas.so.3")
    The BLAS whose sgemm_ the generated code calls, by the name of its library.

C++ code that does not compile is a refusal in phase load, and so are weights that it cannot read.

Tested: sofie 0.1.0 with g++ 12.2 and Debian's reference BLAS.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from importlib import import_module, metadata
from typing import Any, NamedTuple

import numpy as np
import onnx

sofie: Any = import_module("sofie")

OPTION_DEFAULTS: dict[str, Any] = {"compiler": "g++", "flags": ["-O1"], "blas": "libblas.so.3"}

SESSIONS = ("weights", "held", "several", "many", "refusals", "sizes")

_FUNCTION = re.compile(r"^inline void doInfer\(Session const &session, (.*?) ?\);$", flags=re.MULTILINE)
_PARAMETER = re.compile(r"^(?P<type>\w+) (?:const)? ?\* ?tensor_(?P<name>\w+)$")
_TYPES: dict[str, Any] = {"float": np.float32, "double": np.float64, "int32_t": np.int32, "int64_t": np.int64}
_WRAPPER = """
#include "model.hxx"
static std::string what;
extern "C" const char *told() { return what.c_str(); }
extern "C" void *opened(const char *weights) {
   try { return new SOFIE_model::Session(weights); } catch (std::exception const &error) { what = error.what(); }
   return nullptr;
}
extern "C" int run(void *session, void **tensors) {
   try { SOFIE_model::doInfer(*static_cast<SOFIE_model::Session *>(session), ARGUMENTS); return 0; }
   catch (std::exception const &error) { what = error.what(); }
   return 1;
}
"""


class GraphTensor(NamedTuple):
    """An input or output of the generated function."""

    name: str
    type: str
    shape: tuple[int, ...]


class Adapter:
    """The generator with one C++ compiler and one BLAS."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.compiler = shutil.which(options["compiler"])
        if self.compiler is None:
            raise RuntimeError("there is no C++ compiler {}".format(options["compiler"]))
        ctypes.CDLL(options["blas"])
        self.blas = options["blas"]
        self.flags = [str(flag) for flag in options["flags"]]

    def describe(self) -> dict[str, Any]:
        compiler = subprocess.run([str(self.compiler), "--version"], capture_output=True, text=True)
        return {
            "runtime": "sofie",
            "version": metadata.version("sofie"),
            "provider": "",
            "device": "CPU",
            "compiler": compiler.stdout.partition("\n")[0],
            "flags": self.flags,
            "blas": self.blas,
        }

    def prepare(self, model: bytes) -> Session:
        """Write `model` as C++, compile that, load the library, and read the weights."""
        graph = onnx.load_model_from_string(model).graph
        constants = {value.name for value in graph.initializer}
        inputs = [value.name for value in graph.input if value.name not in constants]
        with tempfile.TemporaryDirectory(prefix="onnxspec-") as folder:
            path, source, library = (os.path.join(folder, name) for name in ("model.onnx", "model.cpp", "model.so"))
            with open(path, "wb") as file:
                file.write(model)
            parsed = sofie.RModelParser_ONNX().parse(path, False)
            parsed.generate()
            parsed.output_generated(os.path.join(folder, "model.hxx"))
            with open(os.path.join(folder, "model.hxx"), encoding="utf-8") as file:
                parameters = _parameters(file.read())
            names = [*inputs, *(value.name for value in graph.output)]
            if [name for _, name in parameters] != [re.sub(r"\W", "_", name) for name in names]:
                raise RuntimeError("the generated function does not take the graph's inputs and outputs")
            arguments = [f"static_cast<{type_} *>(tensors[{place}])" for place, (type_, _) in enumerate(parameters)]
            with open(source, "w", encoding="utf-8") as file:
                file.write(_WRAPPER.replace("ARGUMENTS", ", ".join(arguments)))
            command = [str(self.compiler), "-std=c++20", "-shared", "-fPIC", "-w", *self.flags]
            done = subprocess.run([*command, source, "-o", library, "-l:" + self.blas], capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError("C++ compiler: " + _first_error(done.stderr))
            loaded = ctypes.CDLL(library)
            loaded.opened.restype, loaded.told.restype = ctypes.c_void_p, ctypes.c_char_p
            opened = loaded.opened(os.path.join(folder, "model.dat").encode())
        if not opened:
            raise RuntimeError(loaded.told().decode(errors="replace").replace(folder, ""))
        tensors = [
            GraphTensor(name, type_, tuple(parsed.get_tensor_shape(name)))
            for name, (type_, _) in zip(names, parameters, strict=True)
        ]
        return Session(loaded, opened, tensors[: len(inputs)], tensors[len(inputs) :])


class Session:
    """A compiled model, with its weights read."""

    def __init__(self, library: Any, opened: int, taken: list[GraphTensor], made: list[GraphTensor]) -> None:
        self._library, self._opened, self._taken, self._made = library, opened, taken, made

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        if set(feeds) != {tensor.name for tensor in self._taken}:
            raise TypeError("the C++ function takes its inputs, and nothing in the place of a constant")
        arrays = []
        for name, type_, shape in self._taken:
            array = np.asarray(feeds[name], order="C")
            if array.dtype != _TYPES[type_] or getattr(array, "element", None):
                raise TypeError(f"{name} is {array.dtype}, the C++ function takes {type_}")
            if array.shape != shape:
                raise TypeError(f"{name} has shape {array.shape}, the C++ function takes {shape}")
            arrays.append(array)
        outputs = [_kept_apart(tensor.shape, _TYPES[tensor.type]) for tensor in self._made]
        places = [array.ctypes.data for array in (*arrays, *outputs)]
        if self._library.run(ctypes.c_void_p(self._opened), (ctypes.c_void_p * len(places))(*places)):
            raise RuntimeError(self._library.told().decode(errors="replace"))
        return outputs


def _parameters(text: str) -> list[tuple[str, str]]:
    """Return C++ type and name of each parameter of the generated function, without its session."""
    head = _FUNCTION.search(text)
    if head is None:
        raise RuntimeError("the generated code has no function doInfer")
    parameters = []
    for part in head[1].split(","):
        match = _PARAMETER.match(part.strip())
        if match is None or match["type"] not in _TYPES:
            raise RuntimeError("a parameter of the generated function cannot be given: " + part)
        parameters.append((match["type"], match["name"]))
    return parameters


def _kept_apart(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return zeros for an output, as in the generated `infer`, with room before and behind it.

    Otherwise code that writes past the end would change memory of another case, which would then be accused.
    """
    count = int(np.prod(shape))
    margin = count + 4096
    return np.zeros(count + 2 * margin, dtype)[margin : margin + count].reshape(shape)


def _first_error(text: str) -> str:
    errors = re.findall(r"error: (.*)", text)
    return str(errors[0]) if errors else text.strip()
