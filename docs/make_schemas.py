"""Makes docs/schema, the JSON Schemas of run folders and packages, from the types that read them.

python docs/make_schemas.py
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec

from onnxspec.conformance.certifying.records import FORM, AttestationRecord, EnvelopeRecord
from onnxspec.conformance.results.lines import Line
from onnxspec.conformance.results.records import SCHEMA, RunRecord
from onnxspec.conformance.results.result import Result


def json_schemas() -> dict[str, dict[str, Any]]:
    """Return the schemas by file name."""
    types: dict[str, tuple[str, int, Any]] = {
        "result.schema.json": ("A result, a line of results.jsonl", SCHEMA, Result),
        "results.schema.json": ("A line of results.jsonl", SCHEMA, Line),
        "run.schema.json": ("run.json", SCHEMA, RunRecord),
        "certificate/statement.schema.json": ("STATEMENT.json", FORM, AttestationRecord),
        "certificate/envelope.schema.json": ("STATEMENT.intoto.jsonl", FORM, EnvelopeRecord),
    }
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {
        name: {**dialect, "title": f"{title} (form {form})", **_clean(msgspec.json.schema(record_type))}
        for name, (title, form, record_type) in types.items()
    }


def _clean(schema: Any) -> Any:
    """Return a schema with clean descriptions: up to Python 3.12 docstrings keep the indentation of their source."""
    if isinstance(schema, list):
        return [_clean(value) for value in schema]
    if isinstance(schema, dict):
        return {key: _clean(value) for key, value in schema.items()}
    return inspect.cleandoc(schema) if isinstance(schema, str) else schema


if __name__ == "__main__":
    for file, content in json_schemas().items():
        path = Path(__file__).parent / "schema" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
