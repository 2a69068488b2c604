"""Adapters: one module per runtime, each standing alone.

An adapter's *source text* is sent to the worker, which may run under another interpreter or on another machine, so it
imports nothing but the standard library, NumPy and its runtime. It defines a class ``Adapter``:

``Adapter(options)``
    Any exception means that the target is not available.
``describe() -> dict``
    JSON values: runtime, version, provider, device, python, platform, ...
``prepare(model: bytes) -> session``
    Any ordinary exception is a refusal in phase ``load``.
``session.run(feeds) -> list``
    Feeds by name; outputs in the order of the graph's. bfloat16 comes in, and may go out, as uint16 arrays with the
    attribute ``element == "bfloat16"``. Any ordinary exception is a refusal in phase ``run``.
``session.finish()``, ``session.proof`` (both optional)
    Called after the last run; text that shows where the model ran.

An exception with ``status`` "fell-back" says that the model would not run, or was not shown to run, where it should;
its ``proof`` is kept.
"""

from __future__ import annotations

from pathlib import Path

ADAPTERS = {
    "onnxruntime": "onnxruntime.py",
    "onnx-reference": "onnx_reference.py",
    "backend": "backend.py",
}
"""Names of the adapters shipped here and the files that hold them."""


def adapter_source(adapter: str) -> str:
    """Source text of a shipped adapter, or of the file that `adapter` names (a path ending in ``.py``).

    Raises `OSError` when the file cannot be read, `KeyError` when there is no such adapter.
    """
    path = Path(adapter) if adapter.endswith(".py") else Path(__file__).parent / ADAPTERS[adapter]
    return path.read_text(encoding="utf-8")
