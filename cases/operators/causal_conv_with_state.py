"""Cases of CausalConvWithState."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from ...reference import Node
from ..simple.family import SimpleFamily
from ..simple.spec import SimpleSpec
from ..specs.family import register


@dataclass(frozen=True)
class _ConvSpec(SimpleSpec):
    """Sizes of both operators."""

    batch_size: int = 2
    channels: int = 3
    length: int = 6


@dataclass(frozen=True)
class CausalConvSpec(_ConvSpec):
    """Fields of ONNX's operator: sizes and the attribute."""

    k: int = 4
    activation: str | None = None

    op = "CausalConvWithState"
    version = 27


class CausalConvFamily(SimpleFamily):
    """Cases of CausalConvWithState."""

    operators = ("CausalConvWithState",)
    spec: type[SimpleSpec] = CausalConvSpec
    # Lengths below, at and above k - 1 = 3 of models; channels in and outside blocks of 4 and 8.
    axes = MappingProxyType(
        {
            "k": (4, 1, 2, 3, 5, 8),
            "length": (6, 0, 1, 2, 3, 4, 9, 17),
            "batch_size": (2, 1, 3),
            "channels": (3, 1, 4, 5, 9, 64),
        }
    )
    constants = ("weight", "bias")
    carried = MappingProxyType({"past_state": "present_state"})
    sequence = "length"


@dataclass(frozen=True)
class DilatedCausalConvSpec(_ConvSpec):
    """Fields of onnxruntime's operator: sizes, activation, dilation and channels_last."""

    lag: int = 3
    activation: str | None = None
    dilation: int | None = None
    channels_last: int | None = None

    op = "com.microsoft::CausalConvWithState"


class DilatedCausalConvFamily(CausalConvFamily):
    """Cases of CausalConvWithState of onnxruntime's contrib domain."""

    operators = ("com.microsoft::CausalConvWithState",)
    spec = DilatedCausalConvSpec
    axes = MappingProxyType(
        {
            "lag": (3, 0, 1, 4, 7),
            "length": (6, 1, 2, 3, 9, 17),
            "batch_size": (2, 1, 3),
            "channels": (3, 1, 4, 6, 9, 64),
            "dilation": (None, 2, 3),
        }
    )

    def node_features(self, node: Node, inputs: Mapping[str, NDArray[Any]]) -> frozenset[str]:
        """Return features of a node with its inputs, dilation and layout included."""
        features = {
            "dilated": node.attributes.get("dilation", 1) != 1,
            "channels-last": node.attributes.get("channels_last") == 1,
        }
        return super().node_features(node, inputs) | {name for name, present in features.items() if present}


register(CausalConvFamily())
register(DilatedCausalConvFamily())
