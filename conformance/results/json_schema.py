"""The records of a run folder as JSON Schema: made from the types that they are checked against when they are read.

Run as a module it writes them into a folder, as they are published in docs/schema::

    python -m onnxspec.conformance.results.json_schema docs/schema
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from .lines import Line
from .records import SCHEMA, RunRecord
from .result import Result

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schemas() -> dict[str, dict[str, Any]]:
    """Return file name to schema, of a line of results.jsonl, a result among them, and run.json."""
    kinds: dict[str, tuple[str, Any]] = {
        "result.schema.json": ("A result, a line of results.jsonl", Result),
        "results.schema.json": ("A line of results.jsonl", Line),
        "run.schema.json": ("run.json", RunRecord),
    }
    return schemas_of(kinds, SCHEMA)


def schemas_of(kinds: Mapping[str, tuple[str, Any]], form: int) -> dict[str, dict[str, Any]]:
    """File name to schema, from file name to what the file is about, and its type."""
    return {
        name: {"$schema": _DIALECT, "title": f"{title} (form {form})", **_in_lines(msgspec.json.schema(kind))}
        for name, (title, kind) in kinds.items()
    }


def _in_lines(schema: Any) -> Any:
    """The schema with descriptions as they are read: up to Python 3.12 docstrings are indented as their source is."""
    if isinstance(schema, dict):
        return {
            key: inspect.cleandoc(value) if key == "description" and isinstance(value, str) else _in_lines(value)
            for key, value in schema.items()
        }
    return [_in_lines(value) for value in schema] if isinstance(schema, list) else schema


def write_json_schemas(folder: Path, schemas: Mapping[str, Any]) -> None:
    """Write the schemas. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas.items():
        (folder / name).write_text(json.dumps(schema, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_json_schemas(Path(sys.argv[1]), json_schemas())
