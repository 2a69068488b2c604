"""Features: what a case contains, by which clauses know their cases and reports group them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..reference import ACTIVATIONS, Clause, Node, clauses_of, configure
from .data import inputs_of
from .spec import CaseSpec

__all__ = [
    "GROUPS",
    "clauses_exercised",
    "features_of",
    "group_of",
    "groups_with",
    "model_features",
    "node_features",
]


@lru_cache(maxsize=4096)
def features_of(spec: CaseSpec) -> frozenset[str]:
    """The features of a case, as clause tables name them under ``needs``."""
    of_model = model_features(spec.weights == "initializer", spec.dimensions == "symbolic", spec.reruns != "none")
    of_data = {spec.data} & {"numerics", "exact"}
    return node_features(spec.node, inputs_of(spec)) | of_model | of_data


def model_features(initializers: bool, symbolic: bool, rerun: bool) -> frozenset[str]:
    """The features of a model and its use: weights as constants, dimensions with names, more than one run."""
    present = {"initializers": initializers, "symbolic": symbolic, "rerun": rerun}
    return frozenset(name for name, there in present.items() if there)


def node_features(node: Node, inputs: Mapping[str, NDArray[Any]]) -> frozenset[str]:
    """The features that a node has with its inputs (by formal name). Raises IllegalNode."""
    c = configure(node, inputs)
    attributes, lengths = node.attributes, inputs.get("sequence_lens")
    names = attributes.get("activations")
    known = {name.lower(): kind for name, kind in ACTIVATIONS.items()}
    kinds = [known[name.lower()] for name in names or ()]
    alphas, betas = sum(k.uses_alpha for k in kinds), sum(k.uses_beta for k in kinds)
    given = [attributes.get(f"activation_{name}") for name in ("alpha", "beta")]
    initial = [name in inputs for name in node.operator.inputs if name.startswith("initial_")]
    numbers = [array for name, array in inputs.items() if name != "sequence_lens"]
    present = {
        "direction-absent": "direction" not in attributes,
        "forward": "forward" in c.directions,
        "reverse": "reverse" in c.directions,
        "bidirectional": len(c.directions) == 2,
        "bias": "B" in inputs,
        "initial-state": any(initial),
        "initial-state-absent": not all(initial),
        "peepholes": "P" in inputs,
        "lengths": lengths is not None,
        "lengths-absent": lengths is None,
        "short-row": c.ragged,
        "empty-row": bool((c.lengths == 0).any()) or c.T == 0,
        "activations": names is not None,
        "activations-absent": names is None,
        "letter-case": any(name not in ACTIVATIONS for name in names or ()),
        "alpha": given[0] is not None,
        "beta": given[1] is not None,
        "coefficients-ambiguous": "coefficients" in c.touched,
        "default-coefficient": len(given[0] or ()) < alphas or len(given[1] or ()) < betas,
        "default-unknown": "defaults" in c.touched,
        "thresholded-relu": "threshold" in c.touched,
        "clip": attributes.get("clip") is not None,
        "zero-clip": attributes.get("clip") == 0,
        "nonfinite": not all(np.isfinite(array.astype(np.float64)).all() for array in numbers),
        "several-rows": c.N > 1,
        "input-forget": bool(attributes.get("input_forget")),
        "uncoupled": not attributes.get("input_forget"),
        "layout1": c.layout == 1,
        **{name: name in node.outputs for name in node.operator.outputs},
        "Y-absent": "Y" not in node.outputs,
        "output-sequence": "output_sequence" in node.operator.attributes,
        "Y-unannounced": "sequence_output" in c.touched,
        "size-one": 1 in (c.T, c.N, c.I, c.H),
        "size-zero": 0 in (c.T, c.N),
    }
    return frozenset(name for name, there in present.items() if there)


def clauses_exercised(spec: CaseSpec) -> list[Clause]:
    """The clauses that a case exercises."""
    return clauses_of(spec.op, spec.version, features_of(spec))


# Columns of reports: a feature, and what it is called there. A case belongs to each of its features' groups.
GROUPS: dict[str, str] = {
    "forward": "forward",
    "reverse": "reverse",
    "bidirectional": "bidirectional",
    "lengths": "sequence lengths",
    "bias": "bias",
    "initial-state": "initial states",
    "peepholes": "peepholes",
    "activations": "activations",
    "clip": "clip",
    "input-forget": "input_forget",
    "layout1": "layout 1",
    "Y-absent": "no Y",
    "rerun": "repeated runs",
    "nonfinite": "NaN and infinity",
    "numerics": "accuracy",
    "exact": "exact arithmetic",
}


def groups_with(features: Set[str]) -> list[str]:
    """The report columns to which what has these features belongs."""
    return [title for feature, title in GROUPS.items() if feature in features]


def group_of(spec: CaseSpec) -> list[str]:
    """The report columns to which a case belongs."""
    return groups_with(features_of(spec))
