"""Records of run folders and packages as JSON Schema, made from the types by which they are read.

``python -m onnxspec.conformance.certifying.json_schema docs/schema`` writes those that are published.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from ..results.lines import Line
from ..results.records import SCHEMA, RunRecord
from ..results.result import Result
from .records import FORM, AttestationRecord, EnvelopeRecord, MeasuredRecord, SuiteRecord


def json_schemas() -> dict[str, dict[str, Any]]:
    """Return file name to schema."""
    kinds: dict[str, tuple[str, int, Any]] = {
        "result.schema.json": ("A result, a line of results.jsonl", SCHEMA, Result),
        "results.schema.json": ("A line of results.jsonl", SCHEMA, Line),
        "run.schema.json": ("run.json", SCHEMA, RunRecord),
        "certificate/statement.schema.json": ("STATEMENT.json", FORM, AttestationRecord),
        "certificate/environment.schema.json": ("ENVIRONMENT.json", FORM, MeasuredRecord),
        "certificate/suite.schema.json": ("SUITE.json", FORM, SuiteRecord),
        "certificate/envelope.schema.json": ("STATEMENT.intoto.jsonl", FORM, EnvelopeRecord),
    }
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {
        name: {**dialect, "title": f"{title} (form {form})", **_clean(msgspec.json.schema(kind))}
        for name, (title, form, kind) in kinds.items()
    }


def _clean(schema: Any) -> Any:
    """Return a schema with clean descriptions: up to Python 3.12 docstrings are indented as their source is."""
    if isinstance(schema, list):
        return [_clean(value) for value in schema]
    if isinstance(schema, dict):
        return {key: _clean(value) for key, value in schema.items()}
    return inspect.cleandoc(schema) if isinstance(schema, str) else schema


if __name__ == "__main__":
    for file, content in json_schemas().items():
        path = Path(sys.argv[1], file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
