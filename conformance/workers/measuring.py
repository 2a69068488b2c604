"""Environment of a worker, measured by itself: packages by their files, libraries, devices, system.

Its source travels to the worker like an adapter's, so it needs only the standard library and Python 3.8, and works
without onnxspec. Nothing here raises: values that cannot be measured are left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sys
from importlib import metadata
from typing import Any

MOST = 200  # packages, and libraries: a process of a runtime has dozens
_BLOCK = 1 << 20
_OWN = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")  # these depend on the installation, not on the package


def measured() -> dict[str, Any]:
    """Return the environment of this process, as JSON data."""
    packages, owned = _packages()
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": platform.platform(),
        "machine": platform.machine(),
        "processor": _processor(),
        "processors": os.cpu_count() or 0,
        "devices": _devices(),
        "packages": packages[:MOST],
        "libraries": _libraries(owned)[:MOST],
    }


def _packages() -> tuple[list[dict[str, Any]], list[str]]:
    """Return the distributions with loaded modules, and the paths of their files."""
    loaded = {name.partition(".")[0] for name in list(sys.modules)}
    by_name: dict[str, dict[str, Any]] = {}
    owned: list[str] = []
    for distribution in metadata.distributions():
        with contextlib.suppress(Exception):
            name = distribution.metadata["Name"]
            files = sorted(distribution.files or (), key=str)
            tops = {_top(str(path)) for path in files} & loaded
            if not tops or name in by_name:
                continue
            digest, count = hashlib.sha256(), 0
            for path in files:
                location = str(distribution.locate_file(path))
                owned.append(os.path.realpath(location))
                if _counts(str(path)) and os.path.isfile(location):
                    digest.update(f"{path}\0{_digest(location)}\n".encode("utf-8", "backslashreplace"))
                    count += 1
            by_name[name] = {
                "name": name,
                "version": distribution.version,
                "files": count,
                "sha256": digest.hexdigest() if count else "",
            }
    return [by_name[name] for name in sorted(by_name, key=str.lower)], owned


def _top(path: str) -> str:
    """Return the module of a file of a distribution: the first part of its path, without suffixes."""
    first = path.replace("\\", "/").partition("/")[0]
    return first.partition(".")[0] if first.endswith((".py", ".so", ".pyd")) else first


def _counts(path: str) -> bool:
    """Return whether a file is the same on every machine: not a script, compiled cache or note of the installer."""
    path = path.replace("\\", "/")
    note = ".dist-info/" in path and path.rpartition("/")[2] in _OWN
    return not (note or path.startswith("../") or path.endswith((".pyc", ".pyo")) or ".." in path.split("/"))


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(_BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def _libraries(owned: list[str]) -> list[dict[str, Any]]:
    """Return the loaded shared libraries that belong to none of the packages; empty without /proc."""
    package_files = set(owned)
    by_path: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        paths = sorted({line.split(None, 5)[5].strip() for line in maps if line.count("/")})
        for path in paths:
            name = os.path.basename(path)
            of_interpreter = "/lib-dynload/" in path  # the interpreter, whose version is listed already
            if ".so" in name and not of_interpreter and os.path.realpath(path) not in package_files:
                with contextlib.suppress(OSError):
                    by_path[path] = {"name": name, "size": os.path.getsize(path), "sha256": _digest(path)}
    return sorted(by_path.values(), key=lambda each: (each["name"], each["sha256"]))


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith(("model name", "Hardware")):
                return line.partition(":")[2].strip()
    return platform.processor()


def _devices() -> list[dict[str, str]]:
    """Return the display controllers and accelerators on the PCI bus, with their drivers; empty without /sys."""
    bus, devices = "/sys/bus/pci/devices", []
    with contextlib.suppress(OSError):
        for address in sorted(os.listdir(bus)):
            device_class = _line(bus, address, "class")
            if device_class.startswith(("0x03", "0x12", "0x1180")):
                link = os.path.join(bus, address, "driver")
                driver = os.path.basename(os.path.realpath(link)) if os.path.exists(link) else ""
                version = _line("/sys/module", driver, "version") if driver else ""
                ids = "{}:{}".format(_line(bus, address, "vendor")[2:], _line(bus, address, "device")[2:])
                devices.append(
                    {"place": address, "class": device_class, "id": ids, "driver": driver, "driver_version": version}
                )
    return devices


def _line(*path: str) -> str:
    with contextlib.suppress(OSError), open(os.path.join(*path)) as file:
        return file.readline().strip()
    return ""
