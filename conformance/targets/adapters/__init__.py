"""Adapters: one module per runtime, each standing alone.

An adapter's *source text* is sent to the worker, which may run under another interpreter or on another machine, so it
imports nothing but the standard library, NumPy and its runtime. It defines a class ``Adapter``:

``Adapter(options)``
    Any exception means that the target is not available. Where the module has ``OPTION_DEFAULTS``, a table of all
    options at their defaults, the worker refuses others, and those of another type, and hands over all of them.
``describe() -> dict``
    JSON values: runtime, version, provider, device, ... The worker adds numpy, python, platform and machine.
``prepare(model: bytes) -> session``
    Any ordinary exception is a refusal in phase ``load``.
``session.run(feeds) -> list``
    Feeds by name; outputs in the order of the graph's. bfloat16 comes in, and may go out, as uint16 arrays with the
    attribute ``element == "bfloat16"``. Any ordinary exception is a refusal in phase ``run``.
``session.finish()``, ``session.proof`` (both optional)
    Called after the last run; text that shows where the model ran.

``FORKS = True``, a line of its own, declares that to import the module starts no thread and touches no device: where a
worker was lost the next ones are then forked from a process that has done no more than that.

An exception that programs raise by mistake (IndexError, TypeError, NameError, ...) is a refusal where the adapter
itself raises it. From deeper in it says that the runtime broke: no clean refusal in ``prepare``, a crash in ``run``.

``SESSIONS = (...)``, a tuple of words, declares the abilities of its sessions beside running feeds in turn
(docs/worker-protocol.md). Cases that ask for more are not tried.

An exception with ``status`` "fell-back" says that the model would not run, or was not shown to run, where it should;
its ``proof`` is kept.
"""

from __future__ import annotations

from pathlib import Path

from ..third_party import source_of, third_parties

ADAPTERS = {
    "onnxruntime": "onnxruntime.py",
    "onnx-reference": "onnx_reference.py",
    "openvino": "openvino.py",
    "tract": "tract.py",
    "iree": "iree.py",
    "emx-onnx-cgen": "emx.py",
    "opencv": "opencv.py",
    "mnn": "mnn.py",
    "ncnn": "ncnn.py",
    "sofie": "sofie.py",
    "litert": "litert.py",
    "quark": "quark.py",
    "rknn": "rknn.py",
    "backend": "backend.py",
}
"""Names of the adapters shipped here and the files that hold them."""

PARTS = {"quark.py": {"onnxruntime": "onnxruntime.py", "quark_library": "quark_library.py"}}
"""Files that travel with an adapter: to its file the names by which it imports them, and where they are from here."""

ADAPTERS_FOLDER = Path(__file__).parent

EXTERNAL = "external"
"""The adapter of targets whose command is a program that speaks the protocol: no source is sent to it."""


def adapter_names() -> list[str]:
    """Return every adapter that a table may name: those shipped here, programs, and those of other packages."""
    return list(dict.fromkeys([*ADAPTERS, EXTERNAL, *third_parties()]))


def adapter_source(adapter: str) -> str:
    """Source text of a shipped adapter, of one that another package brings, or of the file that `adapter` names (a path
    ending in ``.py``); empty for a program that is a target by itself.

    Raises `OSError` when the file cannot be read, `KeyError` when there is no such adapter, `UserError` when
    another package's is not to be had.
    """
    if adapter == EXTERNAL:
        return ""
    if adapter.endswith(".py"):
        return Path(adapter).read_text(encoding="utf-8")
    if adapter not in ADAPTERS:
        return source_of(adapter)
    name = ADAPTERS[adapter]
    text = (ADAPTERS_FOLDER / name).read_text(encoding="utf-8")
    parts = {part: (ADAPTERS_FOLDER / file).read_text(encoding="utf-8") for part, file in PARTS.get(name, {}).items()}
    return _BUNDLE.format(parts=parts, adapter=text) if parts else text


_BUNDLE = """import sys, types

for _name, _source in {parts!r}.items():
    _module = sys.modules["onnxspec_part_" + _name] = types.ModuleType("onnxspec_part_" + _name)
    exec(compile(_source, "<" + _name + ">", "exec", dont_inherit=True), _module.__dict__)
exec(compile({adapter!r}, "<adapter>", "exec", dont_inherit=True), globals())
"""
"""One source text for an adapter that imports its parts (name to source text) as ``onnxspec_part_<name>``."""
