"""Adapters that other packages bring, found by their entry points in the group ``onnxspec.targets``.

An entry point names a module, or a class in one: ``mine = "my_package.onnxspec_adapter"``. The worker gets the source
text of the module. Neither it nor the package around it is imported here, because that may load a runtime.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from importlib import metadata
from importlib.machinery import ModuleSpec
from itertools import accumulate

from msgspec import Struct

from ...reference.errors import UserError

GROUP = "onnxspec.targets"
"""The group of entry points."""


class ThirdParty(Struct, frozen=True):
    """Adapter of another package: its name, its module and class, and the distribution's name and version."""

    name: str
    module: str
    attribute: str
    distribution: str
    version: str


def third_parties() -> dict[str, tuple[ThirdParty, ...]]:
    """Return the adapters of other packages, by name; several for a name that several distributions claim."""
    by_name: dict[str, dict[ThirdParty, None]] = defaultdict(dict)
    for entry in metadata.entry_points(group=GROUP):
        owner = entry.dist
        version = owner.version if owner is not None else ""
        name = str(owner.name) if owner is not None else ""
        by_name[entry.name][ThirdParty(entry.name, entry.module, entry.attr or "Adapter", name, version)] = None
    return {name: tuple(adapters) for name, adapters in sorted(by_name.items())}


def source_of(name: str) -> str:
    """Return the source text of an adapter of another package.

    Raise `KeyError` if no package has one of this name, `UserError` if several do or its source is not found.
    """
    adapters = third_parties()[name]
    if len(adapters) > 1:
        both = ", ".join(f"{each.distribution} {each.version}" for each in adapters)
        raise UserError(f"several packages bring an adapter {name!r}: {both}; uninstall all but one")
    (adapter,) = adapters
    who = f"adapter {name!r} of {adapter.distribution} {adapter.version}"
    spec = _spec_of(adapter.module)
    if spec is None:
        raise UserError(f"{who}: there is no module {adapter.module}")
    try:
        text = getattr(spec.loader, "get_source", lambda name: None)(spec.name)
    except (ImportError, OSError, SyntaxError, UnicodeDecodeError) as error:
        raise UserError(f"{who}: {error}") from None
    if text is None:
        raise UserError(f"{who}: module {adapter.module} has no source text, and it is that which is sent")
    return str(text) if adapter.attribute == "Adapter" else f"{text}\nAdapter = {adapter.attribute}\n"


def _spec_of(module: str) -> ModuleSpec | None:
    """Return the spec of a module like `importlib.util.find_spec`, but without importing the packages around it."""
    spec: ModuleSpec | None = None
    for name in accumulate(module.split("."), "{}.{}".format):
        path = spec.submodule_search_locations if spec is not None else None
        if spec is not None and path is None:
            return None  # a module that is no package
        finders = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
        spec = next((s for find in finders if find is not None and (s := find(name, path)) is not None), None)
        if spec is None:
            return None
    return spec
