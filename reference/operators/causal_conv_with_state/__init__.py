"""CausalConvWithState: a depthwise convolution along time that looks back only, with its last positions as a state."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from ...documents.operators import Document, NodeRules
from ...documents.tensors import ONE, Extent, TensorForm, by_name
from ..described import Described, DescribedOperator, Outputs
from .bounds import radii
from .recurrence import convolved

_N, _C, _L = Extent("batch_size"), Extent("channels"), Extent("length")
_POSITIONS = ("row", "channel", "position")

FORMS = by_name([
    TensorForm("input", ((_N, _C, _L),)),
    TensorForm("weight", ((_C, ONE, Extent("k")),)),
    TensorForm("bias", ((_C,),)),
    TensorForm("past_state", ((_N, _C, Extent("k", plus=-1)),)),
    TensorForm("output", ((_N, _C, _L),), axes=_POSITIONS),
    TensorForm("present_state", ((_N, _C, Extent("k", plus=-1)),), axes=_POSITIONS),
])  # fmt: skip
RULES = NodeRules(choices={"activation": ("none", "silu", "swish")})


class CausalConvWithState(DescribedOperator):
    """ONNX's own, see :class:`..described.DescribedOperator`."""

    document = Document("CausalConvWithState", "", Path(__file__).with_name("clauses.toml"), tensors=FORMS, rules=RULES)
    topics = MappingProxyType({"present_state": "present-state"})

    def equations(self, c: Described) -> Outputs:
        """See :func:`.recurrence.convolved`."""
        return convolved(c)

    def radii(self, c: Described, outputs: Outputs, accuracy: str) -> Outputs:
        """See :func:`.bounds.radii`."""
        return radii(c, outputs, accuracy)
