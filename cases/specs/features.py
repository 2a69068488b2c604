"""Features: what a case contains, by which clauses know their cases and reports group them."""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping, Sequence, Set
from functools import cache, lru_cache
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import (
    ACTIVATIONS,
    CELLS,
    IllegalNode,
    Node,
    configure,
    operator_version,
)
from ...reference.documents.clauses import ILLEGAL
from .data import inputs_of
from .spec import CaseSpec

__all__ = [
    "GROUPS",
    "ILLEGAL_TOPICS",
    "all_features",
    "groups_with",
    "illegal_feature",
    "model_features",
    "node_features",
    "recurrent_features",
]

# What a model can break, by the clause: <op>.<topic> is broken by a model with the feature illegal:<topic>.
ILLEGAL_TOPICS: tuple[str, ...] = (
    "activation-alpha",
    "activation-beta",
    "activations",
    "attributes",
    "clip",
    "direction",
    "hidden-size",
    "input-forget",
    "inputs",
    "layout",
    "lengths",
    "outputs",
    "shapes",
    "types",
)

# Functions that go to a limit on both sides by way of e^x.
_SATURATING = frozenset({"Tanh", "Sigmoid", "ScaledTanh"})

# Kinds of data that make a feature.
_DATA = frozenset({"numerics", "exact"})


@lru_cache(maxsize=4096)
def recurrent_features(spec: CaseSpec) -> frozenset[str]:
    """The features of a case, as clause tables name them under ``needs``. A forbidden model has no others than what is
    forbidden about it: nothing else is tried."""
    if spec.illegal:
        return frozenset({"illegal", f"{ILLEGAL}{spec.illegal.partition('.')[0]}"})
    of_model = model_features(spec.weights == "initializer", spec.dimensions == "symbolic", spec.reruns != "none")
    return node_features(spec.node, inputs_of(spec)) | of_model | ({spec.data} & _DATA)


def model_features(initializers: bool, symbolic: bool, rerun: bool) -> frozenset[str]:
    """The features of a model and its use: weights as constants, dimensions with names, more than one run."""
    present = {"initializers": initializers, "symbolic": symbolic, "rerun": rerun}
    return frozenset(name for name, there in present.items() if there)


def illegal_feature(error: IllegalNode) -> str:
    """The feature of what cannot be legal: ``illegal:`` and the topic of the clause that it breaks."""
    return f"{ILLEGAL}{error.clause.partition('.')[2]}"


def node_features(node: Node, inputs: Mapping[str, NDArray[Any]]) -> frozenset[str]:
    """The features that a node has with its inputs (by formal name). Raises IllegalNode."""
    return frozenset(name for name, there in _present(node, inputs).items() if there)


@cache
def all_features(op: str, version: int) -> frozenset[str]:
    """Every feature that a case of this operator version can have, and those of its illegal models."""
    rows = len(CELLS[op].gates)
    inputs = {name: np.zeros((1, size, 1), np.float32) for name, size in (("X", 1), ("W", rows), ("R", rows))}
    possible = _present(Node(op, version, outputs=operator_version(op, version).outputs), inputs)
    illegal = {"illegal", *(f"{ILLEGAL}{topic}" for topic in ILLEGAL_TOPICS)}
    return frozenset(possible) | model_features(True, True, True) | _DATA | illegal


def _present(node: Node, inputs: Mapping[str, NDArray[Any]]) -> dict[str, bool]:
    """Every feature of nodes of this operator version, and whether this one has it."""
    c = configure(node, inputs)
    operator, attributes, lengths = node.operator, node.attributes, inputs.get("sequence_lens")
    names = attributes.get("activations")
    known = {name.lower(): kind for name, kind in ACTIVATIONS.items()}
    kinds = [known[name.lower()] for name in names or ()]
    alphas, betas = sum(k.uses_alpha for k in kinds), sum(k.uses_beta for k in kinds)
    given = [attributes.get(f"activation_{name}") for name in ("alpha", "beta")]
    initial = [name in inputs for name in operator.inputs if name.startswith("initial_")]
    finite, infinite, largest = _magnitudes(inputs)
    used = {function.name for functions in c.activations for function in functions}
    # One product may bring an argument to where e^x leaves the range of T.
    steep = largest["X"] * largest["W"] >= np.log(c.format.largest)
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
        "unsorted": bool((np.diff(c.lengths) > 0).any()),
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
        "clip-absent": attributes.get("clip") is None,
        "nonfinite": not finite,
        "infinity": infinite,
        "saturating": steep and bool(used & _SATURATING),
        "overflow": (steep and "Softplus" in used) or largest["X"] * largest["W"] * c.I >= c.format.largest,
        "several-rows": c.N > 1,
        "input-forget": bool(attributes.get("input_forget")),
        "uncoupled": not attributes.get("input_forget"),
        "layout1": c.layout == 1,
        "input-skipped": _skips(operator.inputs, inputs),
        "output-skipped": _skips(operator.outputs, node.outputs),
        **{name: name in node.outputs for name in operator.outputs},
        "Y-absent": "Y" not in node.outputs,
        "output-sequence": "output_sequence" in operator.attributes,
        "Y-unannounced": "sequence_output" in c.touched,
        "size-one": 1 in (c.T, c.N, c.I, c.H),
        "size-zero": 0 in (c.T, c.N),
        "no-rows": c.N == 0,
        "no-steps": c.T == 0,
        **{f"uses-{name}": name in used for name in ACTIVATIONS},
        **{name: name == c.format.name for name in operator.types},
    }
    if "r" in c.cell.gates:
        chosen = attributes.get("linear_before_reset", 0)
        present["linear-before-reset"] = c.linear_before_reset
        present["linear-before-reset-not-one"] = chosen not in (0, 1)
        present["reset-before-linear"] = not c.linear_before_reset
    return present


def _skips(formal: Sequence[str], given: Container[str]) -> bool:
    """Whether one that is not given stands before one that is."""
    there = [name in given for name in formal]
    return any(not before and after for before, after in itertools.pairwise(there))


def _magnitudes(inputs: Mapping[str, NDArray[Any]]) -> tuple[bool, bool, dict[str, float]]:
    """Whether all numbers are finite, whether one is infinite, and the largest finite magnitude of each tensor."""
    finite, infinite, largest = True, False, {}
    for name, array in inputs.items():
        if name != "sequence_lens":
            numbers = np.abs(array.astype(np.float64))
            largest[name] = float(numbers.max(initial=0.0))
            if not isfinite(largest[name]):
                finite, infinite = False, infinite or bool(np.isinf(numbers).any())
                largest[name] = float(numbers.max(initial=0.0, where=np.isfinite(numbers)))
    return finite, infinite, largest


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
    "linear-before-reset": "linear_before_reset",
    "layout1": "layout 1",
    "Y-absent": "no Y",
    "rerun": "repeated runs",
    "nonfinite": "NaN and infinity",
    "numerics": "accuracy",
    "exact": "exact arithmetic",
    "illegal": "forbidden models",
}


def groups_with(features: Set[str]) -> list[str]:
    """The report columns to which what has these features belongs."""
    return [title for feature, title in GROUPS.items() if feature in features]
