"""AMD Quark's custom-op library for onnxruntime: found, or built from the package's sources.

The package ``amd-quark`` has the operators of the domain ``com.amd.quark`` as C++ sources. When it is imported, it
compiles them with PyTorch. Here neither is needed: a compiler builds the sources for the CPU in seconds, with the flags
and the headers of onnxruntime that the package has.

The source of this module is sent with that of the adapter ``quark``: only the standard library, and Python 3.8.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

FLAGS = ("-O3", "-std=c++17", "-DNO_GPU", "-fPIC", "-shared", "-w")
"""Flags with which the package itself compiles for the CPU (quark/common/torch_cpp_ext.py)."""

PACKAGE = "amd-quark"
TESTED = "0.13"
BUILD_LIMIT = 600.0
"""Seconds."""

_FOLDER = Path("onnx", "operators", "custom_ops")
_SOURCES = (
    *(f"src/custom_op_{part}.cc" for part in ("library", "qdq", "in", "bfp", "mx", "lstm")),
    *(f"src/{part}/cpu/{part}{kernel}.cc" for part in ("bfp", "mx") for kernel in ("", "_kernel")),
)
_SUFFIX = {"Darwin": ".dylib"}.get(platform.system(), ".so")
_INSTALL = f"pip install --no-deps {PACKAGE}=={TESTED}"


class NoLibrary(RuntimeError):
    """No usable library; the message has the reason and the remedy."""


class Library(NamedTuple):
    """A custom-op library: path, ``given`` or ``built``, and version of amd-quark and compiler if it was built."""

    path: str
    origin: str
    version: str = ""
    compiler: str = ""


def quark_library(library: str = "", package: str = "") -> Library:
    """Return the custom-op library. Raise NoLibrary.

    library
        Path of a library that was built elsewhere.
    package
        Folder of the package (the one named ``quark``, or its parent); default: the environment's
        ONNXSPEC_QUARK_PACKAGE, else the installed package.
    """
    if library:
        path = Path(library).expanduser()
        if not path.is_file():
            raise NoLibrary(f"there is no file {path}: option library names AMD Quark's custom-op library")
        return Library(str(path.resolve()), "given")
    package_folder = _package_folder(package or os.environ.get("ONNXSPEC_QUARK_PACKAGE", ""))
    folder, version = package_folder / _FOLDER, _version_of(package_folder)
    missing = [name for name in _SOURCES if not (folder / name).is_file()]
    if missing:
        raise NoLibrary(f"{PACKAGE} {version} in {folder} has no {missing[0]}; tested with {TESTED}: {_INSTALL}")
    command = _compiler()
    compiler = _version_text(command)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "onnxspec", "quark")
    built = cache / f"custom_ops-{version or 'unknown'}-{_digest(folder, command, compiler)[:16]}{_SUFFIX}"
    if not built.is_file():
        _compile(folder, command, built)
    return Library(str(built), "built", version, compiler)


def _package_folder(package: str) -> Path:
    """Return the folder ``quark`` of the package, without importing it, which would start a compilation."""
    if package:
        given = Path(package).expanduser()
        folders = [given, given / "quark"]
        message = f"{given} does not hold AMD Quark: there is no {_FOLDER.as_posix()} in it"
    else:
        spec = importlib.util.find_spec("quark")
        folders = [Path(path) for path in spec.submodule_search_locations or ()] if spec is not None else []
        other = " (the module quark that is installed is another one)" if spec is not None else ""
        message = f"{PACKAGE} is not installed for {sys.executable}{other}: {_INSTALL}"
    for folder in folders:
        if (folder / _FOLDER).is_dir():
            return folder
    raise NoLibrary(message)


def _version_of(folder: Path) -> str:
    try:
        text = (folder / "version.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    match = re.search(r"__version__\s*=\s*['\"]([^'\"]+)", text)
    return match.group(1) if match else ""


def _compiler() -> list[str]:
    if platform.system() == "Windows":
        raise NoLibrary(
            "on Windows the library is not built here: let amd-quark do it, and name the path in option library"
        )
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        command = shlex.split(name)
        if command and shutil.which(command[0]):
            return command
    raise NoLibrary(
        "AMD Quark's library must be built once, and there is no C++ compiler (CXX, c++, g++, clang++): install one "
        "(apt-get install g++), or name a library that was built elsewhere in option library"
    )


def _version_text(command: list[str]) -> str:
    done = subprocess.run([*command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    return done.stdout.decode("utf-8", "replace").partition("\n")[0].strip()


def _digest(folder: Path, command: list[str], compiler: str) -> str:
    """Return the digest of everything that the library depends on."""
    digest = hashlib.sha256("\0".join((*FLAGS, *command, compiler, platform.machine())).encode())
    for part in ("src", "include"):
        for path in sorted(p for p in (folder / part).rglob("*") if p.is_file()):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _compile(folder: Path, command: list[str], path: Path) -> None:
    """Build in a folder beside the path and move the result: several workers may do so at the same time."""
    include = folder / "include"
    headers = [include, folder / "src"]
    for runtime in sorted(include.glob("onnxruntime-*")):
        headers += [runtime / "onnxruntime", runtime / "onnxruntime" / "core" / "session"]
    headers += sorted(include.glob("gsl-*"))
    words = [*FLAGS, *(f"-I{header}" for header in headers), *(str(folder / name) for name in _SOURCES)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        partial = Path(scratch, path.name)
        done = subprocess.run(
            [*command, *words, "-o", str(partial)], stdin=subprocess.DEVNULL, capture_output=True, timeout=BUILD_LIMIT
        )
        if done.returncode:
            errors = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if "error" in line]
            reason = errors[0] if errors else f"it ended with {done.returncode}"
            raise NoLibrary(f"{shlex.join(command)} cannot build AMD Quark's library (C++17 is needed): {reason}")
        partial.replace(path)
