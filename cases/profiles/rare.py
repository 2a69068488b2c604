"""Parts of the space in which what dice seldom throw stands together: a level of the pool of dense cases.

What happens in one case of six meets another such thing in one of thirty-six, and a part that both hide in fewer still:
so most triples that chance leaves open are made of two rare contexts. A case of this level has some of them by
decision, and its version and type each as often as any other. In half types its functions are mostly piecewise linear
ones: Sigmoid and Tanh may be off by (4|f| + 4)u, so a bound beyond them is wider than 1 % of the signal almost
everywhere in bfloat16 and half the time in float16 (docs/coverage.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ...reference import interpretations_touched, operator_version, versions_of
from ..axes.generator import Counter
from ..axes.node.outputs import output_subsets
from ..axes.recurrent import RECURRENT_AXES
from ..specs.data import inputs_of
from ..specs.spec import CaseSpec
from .dense import Supported

RARE = "rare"
"""The name of the level; it is drawn within ``complete``."""

_SIXTHS = 6

# The order in which dice for the pinned pool have taken them from the beginning.
_PINNED = (
    *("lengths", "reruns", "direction", "data", "clip", "input_forget", "linear_before_reset", "layout"),
    *("peepholes", "initial"),
)
_BY_AXIS = {axis.name: axis.seldom for axis in RECURRENT_AXES if axis.seldom}
# By axis what dice seldom throw; each in a sixth of the cases.
_SELDOM: Mapping[str, Collection[Any]] = {
    "T": (1,),
    "N": (1,),
    "I": (1, 33, 34, 36),
    "H": (1, 32, 33, 34, 36),
    **{name: _BY_AXIS[name] for name in _PINNED},
}
_COEFFICIENTS: tuple[Supported, ...] = ({}, {}, {"alpha": (None,)}, {"beta": (None,)}, {"beta": (None,)})
_HALF = frozenset({"float16", "bfloat16"})
_MOST, _WIDEST = 300, 600  # T*N*H and I*H
_FEW_STEPS = (1, 2, 3, 4)  # in half types: what no output shows gathers roundings at each


def rare_space(op: str, index: int) -> tuple[int, str, Supported]:
    """Version, type and part of the space of the operator's case of that number."""
    choose = Counter.of(f"{RARE}/{op}/{index}")
    versions = versions_of(op)
    version = choose.one_of(versions)
    operator = operator_version(op, version)
    types = tuple(operator.types)
    kind = str(choose.one_of(types))
    space: dict[str, Collection[Any]] = {}
    for axis, values in _SELDOM.items():
        if choose.below(_SIXTHS) == 0:
            space[axis] = values
    space |= choose.one_of(_COEFFICIENTS)
    if choose.below(_SIXTHS) == 0:
        space["outputs"] = tuple(s for s in output_subsets(operator) if "Y" not in s) or output_subsets(operator)
    if kind in _HALF:
        if choose.below(_SIXTHS):
            space["activations"] = ("Affine", "HardSigmoid", "LeakyRelu", "Relu", "ThresholdedRelu")
        space.setdefault("T", _FEW_STEPS)
    return version, kind, {name: values for name, values in space.items() if _has(operator, name)}


def costly(spec: CaseSpec) -> bool:
    """Tell whether a case costs more to measure than others that show as much: it is large, or touches several open
    questions, each of which doubles the ways in which a fault may be excused."""
    large = spec.T * spec.N * spec.H > _MOST or spec.I * spec.H > _WIDEST
    return large or len(interpretations_touched(spec.node, inputs_of(spec))) > 1


def _has(operator: Any, axis: str) -> bool:
    """Tell whether a version has an axis of attributes at all."""
    return axis not in ("input_forget", "linear_before_reset", "layout") or axis in operator.attributes
