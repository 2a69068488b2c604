"""``--onnxspec-model``: the recurrent nodes of models as cases."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

from ..extraction.cases import cases_of_model
from ..models.content import ModelError


def nodes_of_models(models: Sequence[Path], config: pytest.Config) -> list[Path]:
    """Return folders with a test case for every node that can be run, one folder a model. They are removed at the end.

    Warn of nodes that cannot be run, or only with random weights. Raise ModelError for a model that cannot be read, or
    that has no node to run.
    """
    root = Path(tempfile.mkdtemp(prefix="onnxspec-"))
    config.add_cleanup(lambda: shutil.rmtree(root, ignore_errors=True))
    folders = []
    for number, model in enumerate(models):
        folders.append(root / f"{number}-{model.stem}")
        try:
            nodes = cases_of_model(model, folders[-1])
        except ModelError as error:
            raise ModelError(f"{model} {error}") from None
        for node in nodes:
            named = f"{model}: {node.node} ({node.operator})"
            if node.why:
                warnings.warn(pytest.PytestWarning(f"{named} is not run: {node.why}"), stacklevel=1)
            elif node.made_up:
                weights = f"{named} is run with random weights: {', '.join(node.made_up)}"
                warnings.warn(pytest.PytestWarning(weights), stacklevel=1)
        if not any(node.case for node in nodes):
            raise ModelError(f"{model} has no recurrent node that can be run")
    return folders
