"""The published JSON Schemas match the types, and real runs conform to them."""

from __future__ import annotations

import json
import runpy
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ..miniatures import Command, naming, pick

PUBLISHED = Path(__file__).parents[3] / "docs" / "schema"

MSGSPEC = tuple(int(part) for part in metadata.version("msgspec").split(".")[:2])


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((PUBLISHED / name).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.skipif(MSGSPEC < (0, 22), reason="an older msgspec words the same schemas otherwise")
def test_what_is_published_is_what_is_checked() -> None:
    """To update them: python docs/make_schemas.py."""
    made = runpy.run_path(str(PUBLISHED.with_name("make_schemas.py")))["json_schemas"]()
    paths = [*PUBLISHED.glob("*.json"), *PUBLISHED.glob("certificate/*.json")]
    published = {path.relative_to(PUBLISHED).as_posix(): json.loads(path.read_text(encoding="utf-8")) for path in paths}
    assert published == json.loads(json.dumps(made))


@pytest.fixture(scope="module")
def run(kin: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a real run with passes, failures, a diagnosis, refusals and findings, and a target that cannot start."""
    command = Command(kin, folder := tmp_path_factory.mktemp("real"))
    cases = [*pick(3), *pick(2, lambda s: s.lengths == "ragged" and s.data == "dense" and "Y" in s.outputs)]
    targets = ["--target", "backend:lengths_ignored", "--target", "onnxruntime", "--target", "backend:nowhere"]
    assert command("run", *targets, *naming(cases), "--out", "run").code == 3
    return folder / "run"


def rows_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_real_run_fits(run: Path) -> None:
    records = set()
    for row in rows_of(run):
        validator("results.schema.json").validate(row)
        if row["record"] == "result":
            validator("result.schema.json").validate(row)
        records.add(row["record"])
    assert records == {"header", "target", "result", "update", "end"}
    described: dict[str, Any] = json.loads((run / "run.json").read_text(encoding="utf-8"))
    validator("run.schema.json").validate(described)
    assert described["targets"][0]["findings"]
