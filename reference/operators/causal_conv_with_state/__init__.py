"""CausalConvWithState: a causal depthwise convolution along time, whose state is the last positions."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from ...documents.operators import MISSING, Document, NodeRules, OperatorVersion
from ...documents.tensors import ONE, Extent, TensorForm, by_name
from ..described import Described, DescribedOperator, Outputs
from ..operator import register
from .recurrence import convolved, radii

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

_DEFAULT_ONLY = {
    "ndim": 1,
    "state_window": 0,
    "state_update_capacity": 0,
    "state_length": 0,
    "state_channels_last": -1,
    "input_channels": 0,
    "input_channel_offset": 0,
}
"""Attributes of onnxruntime's operator that need a GPU or more dimensions. Its CPU kernel refuses a state_window: "CUDA
EP only"."""


def _dilated_version() -> OperatorVersion:
    lag = Extent("lag", factor="dilation")
    forms = by_name([
        TensorForm("input", ((_N, _C, _L),), (_N, _L, _C)),
        TensorForm("weight", ((_C, ONE, Extent("lag", plus=1)),)),
        TensorForm("bias", ((_C,),)),
        TensorForm("past_state", ((_N, _C, lag),), (_N, lag, _C)),
        TensorForm("output", ((_N, _C, _L),), (_N, _L, _C)),
        TensorForm("present_state", ((_N, _C, lag),), (_N, lag, _C)),
    ])  # fmt: skip
    return OperatorVersion(
        domain="com.microsoft",
        op_type="CausalConvWithState",
        since_version=1,
        attributes={"activation": "STRING", **dict.fromkeys(("dilation", "channels_last", *_DEFAULT_ONLY), "INT")},
        defaults={"activation": "none", "dilation": 1, "channels_last": 0, **_DEFAULT_ONLY},
        inputs=("input", "weight", "bias", "past_state"),
        required=frozenset({"input", "weight"}),
        outputs=("output", "present_state"),
        required_outputs=frozenset({"output", "present_state"}),
        types=("float16", "bfloat16", "float32"),
        kinds={},
        tensors=forms,
        rules=NodeRules(
            choices=RULES.choices,
            sizes={"dilation": "dilation"},
            layout="channels_last",
            default_only=frozenset(_DEFAULT_ONLY),
        ),
    )


class CausalConvWithState(DescribedOperator):
    """Operator CausalConvWithState of ONNX."""

    document = Document("CausalConvWithState", "", Path(__file__).with_name("clauses.toml"), tensors=FORMS, rules=RULES)
    topics = MappingProxyType({"present_state": "present-state"})

    def equations(self, c: Described) -> Outputs:
        """Return output and present_state in float64."""
        return convolved(c)

    def radii(self, c: Described, outputs: Outputs, accuracy: str) -> Outputs:
        """Return the radius of each number; infinity where it may overflow."""
        return radii(c, outputs, accuracy)


class DilatedCausalConvWithState(CausalConvWithState):
    """CausalConvWithState of onnxruntime's contrib domain, which has dilation and a layout with channels last."""

    document = Document(
        "CausalConvWithState", "com.microsoft", Path(__file__).with_name("dilated.toml"), {1: _dilated_version()}
    )


if "CausalConvWithState" not in MISSING:  # the installed onnx has its schema
    register(CausalConvWithState())
    register(DilatedCausalConvWithState())
