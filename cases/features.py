"""Features: what a case contains, by which clauses know their cases and reports group them."""

from __future__ import annotations

from functools import lru_cache

from ..reference import ACTIVATIONS, Clause, clauses_of, configure
from .data import inputs_of
from .spec import CaseSpec

__all__ = ["GROUPS", "clauses_exercised", "features_of", "group_of"]


@lru_cache(maxsize=4096)
def features_of(spec: CaseSpec) -> frozenset[str]:
    """The features of a case, as clause tables name them under ``needs``."""
    lengths = inputs_of(spec).get("sequence_lens")
    touched = configure(spec.node, inputs_of(spec)).touched
    known = {name.lower(): kind for name, kind in ACTIVATIONS.items()}
    kinds = [known[name.lower()] for name in spec.activations or ()]
    alphas, betas = sum(k.uses_alpha for k in kinds), sum(k.uses_beta for k in kinds)
    short = lengths is not None and bool((lengths < spec.T).any())
    present = {
        "direction-absent": spec.direction == "forward" and not spec.explicit,
        "forward": spec.direction != "reverse",
        "reverse": spec.direction != "forward",
        "bidirectional": spec.direction == "bidirectional",
        "bias": spec.bias,
        "initial-state": spec.initial != "none",
        "initial-state-absent": spec.initial != "all",
        "peepholes": spec.peepholes,
        "lengths": lengths is not None,
        "lengths-absent": lengths is None,
        "short-row": short,
        "empty-row": (lengths is not None and bool((lengths == 0).any())) or spec.T == 0,
        "activations": spec.activations is not None,
        "activations-absent": spec.activations is None,
        "letter-case": any(name not in ACTIVATIONS for name in spec.activations or ()),
        "alpha": spec.alpha is not None,
        "beta": spec.beta is not None,
        "coefficients-ambiguous": "coefficients" in touched,
        "default-coefficient": len(spec.alpha or ()) < alphas or len(spec.beta or ()) < betas,
        "default-unknown": "defaults" in touched,
        "thresholded-relu": "threshold" in touched,
        "clip": spec.clip is not None,
        "zero-clip": spec.clip == 0,
        "nonfinite": spec.data in ("nan-row", "inf-row", "nan-padding"),
        "several-rows": spec.N > 1,
        "input-forget": bool(spec.input_forget),
        "uncoupled": not spec.input_forget,
        "layout1": spec.layout == 1,
        "Y": "Y" in spec.outputs,
        "Y-absent": "Y" not in spec.outputs,
        "Y_h": "Y_h" in spec.outputs,
        "Y_c": "Y_c" in spec.outputs,
        "output-sequence": spec.version == 1,
        "Y-unannounced": "sequence_output" in touched,
        "size-one": 1 in (spec.T, spec.N, spec.I, spec.H),
        "size-zero": 0 in (spec.T, spec.N),
        "rerun": spec.reruns != "none",
        "initializers": spec.weights == "initializer",
        "symbolic": spec.dimensions == "symbolic",
        "numerics": spec.data == "numerics",
        "exact": spec.data == "exact",
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


def group_of(spec: CaseSpec) -> list[str]:
    """The report columns to which a case belongs."""
    features = features_of(spec)
    return [title for feature, title in GROUPS.items() if feature in features]
