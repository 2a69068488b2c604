"""Adapters made of several files: one source text in which the parts can be imported."""

from __future__ import annotations

from collections.abc import Mapping

_TEXT = """import sys, types

for _name, _source in {parts!r}.items():
    _module = sys.modules["onnxspec_part_" + _name] = types.ModuleType("onnxspec_part_" + _name)
    exec(compile(_source, "<" + _name + ">", "exec", dont_inherit=True), _module.__dict__)
exec(compile({adapter!r}, "<adapter>", "exec", dont_inherit=True), globals())
"""


def bundled(adapter: str, parts: Mapping[str, str]) -> str:
    """The source text of an adapter that imports `parts` (name to source text) as ``onnxspec_part_<name>``."""
    return _TEXT.format(parts=dict(parts), adapter=adapter)
