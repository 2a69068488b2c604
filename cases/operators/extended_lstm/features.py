"""Features of any node of ExtendedLSTM with its inputs, as the clause table names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....reference import Node
from ....reference.operators.extended_lstm.document import resolve

__all__ = ["node_features"]

_ALL = 0.999
"""Outputs lie between -1 and 1: what cannot be represented up to this saturates."""


def node_features(node: Node, inputs: Mapping[str, NDArray[Any]]) -> frozenset[str]:
    """What a node contains with its inputs. Raises IllegalNode."""
    c = resolve(node.attributes, inputs)
    beyond = (
        (c.given[name] < affine.least - affine.scale).any() or (c.given[name] > affine.greatest + affine.scale).any()
        for name, affine in c.affine.items()
    )
    present = {
        "bidirectional": True,
        "bias": "B" in inputs,
        "bias-absent": "B" not in inputs,
        "quantized-output": c.y is not None,
        "float-output": c.y is None,
        "size-one": 1 in (c.T, c.I, c.H),
        "size-zero": 0 in (c.T, c.N, c.I, c.H),
        "several-rows": c.N > 1,
        "hidden-size-absent": "hidden_size" not in node.attributes,
        "nonfinite": not all(np.isfinite(array).all() for array in c.given.values()),
        "saturating-input": any(beyond),
        "saturating-output": c.y is not None and min(-c.y.least, c.y.greatest) < _ALL,
    }
    return frozenset(name for name, there in present.items() if there)
