"""Adapters: one module per runtime, each standing alone.

The *source text* of an adapter is sent to the worker, which may run under another interpreter or on another machine.
So an adapter imports only the standard library, NumPy and its runtime. It defines a class ``Adapter``:

``Adapter(options)``
    Any exception means that the target is not available. If the module has ``OPTION_DEFAULTS``, a table of all options
    with their defaults, the worker passes all options, and refuses unknown ones and those of another type.
``describe() -> dict``
    JSON values: runtime, version, provider, device, ... The worker adds numpy, python, platform and machine.
``prepare(model: bytes) -> session``
    Any ordinary exception is a refusal in phase ``load``.
``session.run(feeds) -> list``
    Feeds by name; outputs in the order of the graph's. bfloat16 comes in, and may go out, as uint16 arrays with the
    attribute ``element == "bfloat16"``. Any ordinary exception is a refusal in phase ``run``.
``session.finish()``, ``session.proof`` (both optional)
    Called after the last run; text that shows where the model ran.

``FORKS = True``, a line of its own, declares that importing the module starts no thread and opens no device. After a
worker was lost, the next ones are then forked from a process that has only imported the module.

An exception that indicates a bug (IndexError, TypeError, NameError, ...) is a refusal if the adapter itself raises it.
From a deeper frame it shows that the runtime broke: no clean refusal in ``prepare``, a crash in ``run``.

``SESSIONS = (...)``, a tuple of words, declares the abilities of its sessions beside running feeds in turn
(docs/worker-protocol.md). Cases that ask for more are not tried.

An exception with ``status`` "fell-back" means that the model did not run on the requested device, or that nothing shows
that it did; its ``proof`` is kept.
"""

from __future__ import annotations

from pathlib import Path

from ..third_party import source_of, third_parties

ADAPTERS = {
    name: f"{name.replace('-', '_')}.py"
    for name in (
        *("onnxruntime", "onnx-reference", "openvino", "tract", "iree", "emx-onnx-cgen", "opencv", "mnn", "ncnn"),
        *("sofie", "litert", "quark", "rknn", "backend"),
    )
}
"""Files of the adapters shipped here, by their names."""

PARTS = {"quark.py": {"onnxruntime": "onnxruntime.py", "quark_library": "quark_library.py"}}
"""Files that travel with an adapter: to its file the names by which it imports them, and where they are from here."""

ADAPTERS_FOLDER = Path(__file__).parent

EXTERNAL = "external"
"""The adapter of targets whose command is a program that speaks the protocol: no source is sent to it."""


def adapter_names() -> list[str]:
    """Return every adapter that a table may name: those shipped here, programs, and those of other packages."""
    return list(dict.fromkeys([*ADAPTERS, EXTERNAL, *third_parties()]))


def adapter_source(adapter: str) -> str:
    """Return the source text of a shipped adapter, of another package's, or of a file (a path ending in ``.py``); empty
    for a program that speaks the protocol.

    Raise `OSError` for a file that cannot be read, `KeyError` for an unknown adapter, `UserError` if another package's
    source is not found.
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
