"""Docstrings as the site shows them: what stands indented below a name is its definition, a role is code.

An extension of Griffe, with which mkdocstrings reads sources (mkdocs.yml).
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_NAME = re.compile(r"^(\S.*)\n {4}(?=\S)", re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?([^`]*)`")


class Docstrings(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            defined = _NAME.sub(r"\n\1\n:   ", obj.docstring.value)
            obj.docstring.value = _ROLE.sub(r"`\1`", defined)
