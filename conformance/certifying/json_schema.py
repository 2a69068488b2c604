"""The records of a certification package as JSON Schema, as they are published in docs/schema/certificate::

python -m onnxspec.conformance.certifying.json_schema docs/schema/certificate
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ..results.json_schema import schemas_of, write_json_schemas
from .records import FORM, AttestationRecord, EnvelopeRecord, MeasuredRecord, SuiteRecord


def certificate_schemas() -> dict[str, dict[str, Any]]:
    """File name to schema, of the files of a package that are no run's."""
    kinds: dict[str, tuple[str, Any]] = {
        "statement.schema.json": ("STATEMENT.json", AttestationRecord),
        "environment.schema.json": ("ENVIRONMENT.json", MeasuredRecord),
        "suite.schema.json": ("SUITE.json", SuiteRecord),
        "envelope.schema.json": ("STATEMENT.intoto.jsonl", EnvelopeRecord),
    }
    return schemas_of(kinds, FORM)


if __name__ == "__main__":
    write_json_schemas(Path(sys.argv[1]), certificate_schemas())
