"""AMD Quark's custom-op library for onnxruntime: found, or built from the package's sources.

The package ``amd-quark`` ships the operators of the domain ``com.amd.quark`` as C++ sources and compiles them with
PyTorch's help when it is imported. Neither PyTorch nor the import is needed: the sources that are meant for the CPU and
the headers of onnxruntime that lie beside them are enough for a compiler, in seconds and with the flags that the
package itself uses.

This module travels to the target's interpreter together with the adapter ``quark``, so it imports the standard library
only and works under Python 3.8.
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
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

FLAGS = ("-O3", "-std=c++17", "-DNO_GPU", "-fPIC", "-shared", "-w")
"""The command by which the package itself compiles for the CPU (quark/common/torch_cpp_ext.py)."""

PACKAGE = "amd-quark"
TESTED = "0.13"
BUILD_LIMIT = 600.0
"""Seconds."""

_FOLDER = Path("onnx", "operators", "custom_ops")
_SOURCES = (
    *(f"src/custom_op_{part}.cc" for part in ("library", "qdq", "in", "bfp", "mx", "lstm")),
    *(f"src/{part}/cpu/{part}{kernel}.cc" for part in ("bfp", "mx") for kernel in ("", "_kernel")),
)
_SUFFIX = {"Darwin": ".dylib", "Windows": ".dll"}.get(platform.system(), ".so")
_INSTALL = f"pip install --no-deps {PACKAGE}=={TESTED}"


class NoLibrary(RuntimeError):
    """No usable library; the message has the reason and the remedy."""


class Library(NamedTuple):
    """A custom-op library.

    path
        Of the shared library.
    origin
        ``given``, ``shipped`` or ``built``.
    version
        Version of amd-quark; empty where the library was given by path.
    compiler
        First line of the compiler's version text; empty unless built.
    """

    path: str
    origin: str
    version: str
    compiler: str


def quark_library(library: str = "", package: str = "", compiler: str = "", cache: str = "") -> Library:
    """Return the custom-op library.

    library
        Path of one; then nothing is looked for.
    package
        Folder of the package (the one named ``quark``, or the one that holds it); else the environment's
        ONNXSPEC_QUARK_PACKAGE, else the installed one.
    compiler
        Command of a C++ compiler; else the environment's CXX, c++, g++ or clang++.
    cache
        Folder for built libraries; default: ``onnxspec/quark`` in the user's cache folder.

    Raises NoLibrary.
    """
    if library:
        path = Path(library).expanduser()
        if not path.is_file():
            raise NoLibrary(f"there is no file {path}: option library names AMD Quark's custom-op library")
        return Library(str(path.resolve()), "given", "", "")
    folder = _package_folder(package or os.environ.get("ONNXSPEC_QUARK_PACKAGE", ""))
    version = _version_of(folder)
    _refuse_older(_onnxruntime_version(), _api_of(folder / _FOLDER))
    shipped = _shipped(folder / _FOLDER)
    if shipped is not None:
        return Library(str(shipped), "shipped", version, "")
    return _built(folder / _FOLDER, version, compiler, _cache_folder(cache))


def _package_folder(package: str) -> Path:
    """Return the folder ``quark`` of the package, without importing it, which would start a compilation."""
    if package:
        given = Path(package).expanduser()
        for folder in (given, given / "quark"):
            if (folder / _FOLDER).is_dir():
                return folder
        raise NoLibrary(f"{given} does not hold AMD Quark: there is no {_FOLDER.as_posix()} in it")
    spec = importlib.util.find_spec("quark")
    places: Iterable[str] = (spec.submodule_search_locations or ()) if spec is not None else ()
    for place in places:
        if (Path(place) / _FOLDER).is_dir():
            return Path(place)
    other = " (the module quark that is installed is another one)" if spec is not None else ""
    raise NoLibrary(f"{PACKAGE} is not installed for {sys.executable}{other}: {_INSTALL}")


def _version_of(folder: Path) -> str:
    try:
        text = (folder / "version.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    match = re.search(r"__version__\s*=\s*['\"]([^'\"]+)", text)
    return match.group(1) if match else ""


def _shipped(folder: Path) -> Path | None:
    """Return a compiled library for the CPU that needs no PyTorch, as wheels for one platform may have it."""
    for pattern in (f"**/_C_cpu*{_SUFFIX}", "**/_C_cpu*.pyd", f"**/*custom_ops{_SUFFIX}"):
        for path in sorted(folder.glob(pattern)):
            return path
    return None


def _headers(folder: Path) -> list[Path]:
    """Folders of headers, in the order in which they are searched."""
    folders = [folder / "include", folder / "src"]
    for runtime in sorted((folder / "include").glob("onnxruntime-*")):
        folders += [runtime / "onnxruntime", runtime / "onnxruntime" / "core" / "session"]
    return folders + sorted((folder / "include").glob("gsl-*"))


def _api_of(folder: Path) -> int:
    """Return the version of onnxruntime's C interface that the sources ask for; 0 where that cannot be read."""
    for header in sorted((folder / "include").glob("onnxruntime-*/**/onnxruntime_c_api.h")):
        match = re.search(r"#define ORT_API_VERSION (\d+)", header.read_text(encoding="utf-8", errors="replace"))
        if match:
            return int(match.group(1))
    return 0


def _built(folder: Path, version: str, compiler: str, cache: Path) -> Library:
    missing = [name for name in _SOURCES if not (folder / name).is_file()]
    if missing:
        identity = f"{PACKAGE} {version}".strip()
        raise NoLibrary(f"{identity} in {folder} has no {missing[0]}; tested with {TESTED}: {_INSTALL}")
    command = _compiler(compiler)
    identity = _said_of_itself(command)
    path = cache / f"custom_ops-{version or 'unknown'}-{_digest(folder, command, identity)[:16]}{_SUFFIX}"
    if not path.is_file():
        _compile(folder, command, path)
    return Library(str(path), "built", version, identity)


def _compiler(wanted: str) -> list[str]:
    if platform.system() == "Windows":
        raise NoLibrary(
            "on Windows the library is not built here: let amd-quark do it, and name the path in option library"
        )
    for name in [wanted] if wanted else [os.environ.get("CXX", ""), "c++", "g++", "clang++"]:
        command = shlex.split(name)
        if command and shutil.which(command[0]):
            return command
    if wanted:
        raise NoLibrary(f"there is no compiler {wanted!r}: option compiler names a C++ compiler")
    raise NoLibrary(
        "AMD Quark's library must be built once, and there is no C++ compiler (CXX, c++, g++, clang++): install one "
        "(apt-get install g++), or name a library that was built elsewhere in option library"
    )


def _said_of_itself(command: list[str]) -> str:
    try:
        done = subprocess.run([*command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise NoLibrary(f"the compiler {shlex.join(command)} does not run: {error}") from None
    return done.stdout.decode("utf-8", "replace").partition("\n")[0].strip()


def _digest(folder: Path, command: list[str], compiler: str) -> str:
    """Return the digest of everything that the library depends on."""
    digest = hashlib.sha256("\0".join((*FLAGS, *command, compiler, platform.machine())).encode())
    for place in ("src", "include"):
        for path in sorted(p for p in (folder / place).rglob("*") if p.is_file()):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _compile(folder: Path, command: list[str], path: Path) -> None:
    """Build into a name of its own and put in place at once: several workers may do so at the same time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(suffix=_SUFFIX, dir=str(path.parent))
    except OSError as error:
        raise NoLibrary(
            f"the library cannot be kept in {path.parent}: {error.strerror}; option cache names a folder"
        ) from None
    os.close(handle)
    try:
        headers = [f"-I{header}" for header in _headers(folder)]
        sources = [str(folder / name) for name in _SOURCES]
        done = subprocess.run(
            [*command, *FLAGS, *headers, *sources, "-o", partial],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=BUILD_LIMIT,
        )
        if done.returncode:
            errors = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if "error" in line]
            reason = errors[0] if errors else f"it ended with {done.returncode}"
            raise NoLibrary(f"{shlex.join(command)} cannot build AMD Quark's library (C++17 is needed): {reason}")
        os.chmod(partial, 0o755)
        os.replace(partial, str(path))
    except subprocess.TimeoutExpired:
        raise NoLibrary(
            f"{shlex.join(command)} took more than {BUILD_LIMIT:g} s to build AMD Quark's library"
        ) from None
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def _cache_folder(cache: str) -> Path:
    if cache:
        return Path(cache).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base, "onnxspec", "quark")


def _onnxruntime_version() -> str:
    """Return the version of this interpreter's onnxruntime; empty if it is unknown without importing it."""
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None:
        raise NoLibrary(f"onnxruntime is not installed for {sys.executable}: pip install onnxruntime")
    try:
        return metadata.version("onnxruntime")
    except metadata.PackageNotFoundError:  # onnxruntime-openvino and others hold the same module
        return ""


def _refuse_older(version: str, api: int) -> None:
    """onnxruntime gives older libraries their interface, but not newer ones, which then crash at registration."""
    match = re.match(r"1\.(\d+)", version)
    if match and int(match.group(1)) < api:
        raise NoLibrary(
            f"AMD Quark's library needs onnxruntime 1.{api} or newer, and {sys.executable} has {version}, in which it "
            f"crashes at registration: pip install 'onnxruntime>=1.{api}'"
        )
