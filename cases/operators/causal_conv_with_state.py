"""Cases of CausalConvWithState."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..simple.family import SimpleFamily
from ..simple.spec import SimpleSpec


@dataclass(frozen=True)
class CausalConvSpec(SimpleSpec):
    """Its own fields: sizes, and the attribute."""

    batch_size: int = 2
    channels: int = 3
    length: int = 6
    k: int = 4
    activation: str | None = None

    op = "CausalConvWithState"
    version = 27


class CausalConvFamily(SimpleFamily):
    """See :class:`..simple.family.SimpleFamily`."""

    operators = ("CausalConvWithState",)
    spec = CausalConvSpec
    # Lengths below, at and above k - 1 = 3 of models; channels in and beside blocks of 4 and 8.
    axes = MappingProxyType(
        {
            "k": (4, 1, 2, 3, 5, 8),
            "length": (6, 0, 1, 2, 3, 4, 9, 17),
            "batch_size": (2, 1, 3),
            "channels": (3, 1, 4, 5, 9, 64),
            "activation": (None, "none", "silu", "swish"),
        }
    )
    edges: Sequence[Mapping[str, Any]] = (
        {"batch_size": 0},
        {"batch_size": 0, "activation": "silu"},
        {"k": 1, "length": 0},
        {"length": 0, "session": "cut"},
    )
    constants = ("weight", "bias")
    carried = MappingProxyType({"past_state": "present_state"})
    sequence = "length"


CAUSAL_CONV_FAMILY = CausalConvFamily()
