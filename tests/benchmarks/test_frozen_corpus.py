"""The frozen corpus of v0.4.0: its cases keep their ids, models and inputs."""

from __future__ import annotations

from benchmarks.net.corpus import corpus, digests_of
from onnxspec.cases import build_case
from onnxspec.cases.portable import case_from_json


def test_the_corpus_is_whole() -> None:
    parts = [row["part"] for row in corpus()]
    assert (parts.count("core"), parts.count("random")) == (1947, 300)


def test_every_case_keeps_its_id_its_models_and_its_inputs() -> None:
    changed = []
    for row in corpus():
        spec = case_from_json(row["case"])
        if spec.id != row["id"] or digests_of(build_case(spec).trials) != row["digests"]:
            changed.append(row["id"])
    assert changed == []
