"""Case of LinearAttention as a value."""

from __future__ import annotations

from dataclasses import dataclass

from ....reference import OperatorVersion
from ...simple.spec import SimpleSpec


@dataclass(frozen=True)
class LinearAttentionSpec(SimpleSpec):
    """Fields of LinearAttention: sizes, attributes, and kinds of numbers.

    group
        Number of query heads of each key-value head.
    decay_form, beta_form
        Index of the shape in the document: 0 for one element a head, 1 for one each key, or a single one.
    type_S
        Type of the states; empty for that of the other tensors.
    keys
        ``unit``, ``alike``, ``positive`` and ``one-hot`` have norm 1; ``free`` keys are between -1 and 1.
    decays, betas
        Kinds of their numbers, see ``DECAYS`` and ``BETAS`` in :mod:`.numbers`.
    numbers
        ``integers`` for small integers, which no implementation rounds.
    """

    batch_size: int = 2
    seq_length: int = 5
    kv_num_heads: int = 2
    group: int = 2
    d_k: int = 4
    d_v: int = 3
    update_rule: str | None = None
    scale: float | None = None
    chunk_size: int | None = None
    type_S: str = ""  # noqa: N815 - the document's letter
    decay_form: int = 0
    beta_form: int = 0
    decays: str = "mild"
    betas: str = "unit"
    keys: str = "unit"

    op = "LinearAttention"
    version = 27

    @property
    def q_num_heads(self) -> int:
        """Number of query heads."""
        return self.kv_num_heads * self.group

    @property
    def k_num_heads(self) -> int:
        """Number of heads of key."""
        return self.kv_num_heads

    @property
    def rule(self) -> str:
        """The update rule, or its default."""
        return self.update_rule or "gated_delta"

    @property
    def delta(self) -> bool:
        """Whether the rule is one of the delta rules."""
        return self.rule in ("delta", "gated_delta")

    @property
    def gated(self) -> bool:
        """Whether the rule has a decay."""
        return self.rule in ("gated", "gated_delta")


@dataclass(frozen=True)
class OnnxruntimeLinearAttentionSpec(LinearAttentionSpec):
    """Fields of onnxruntime's operator.

    query_sharing, key_sharing
        Number of key-value heads that share a query head, or a head of key.
    unused
        Inputs that are present although the rule does not use them: ``unused-decay``, ``unused-beta``, ``unused-both``.
    """

    query_sharing: int = 1
    key_sharing: int = 1
    unused: str = ""

    op = "com.microsoft::LinearAttention"
    version = 1

    @property
    def q_num_heads(self) -> int:
        """Number of query heads."""
        return self.kv_num_heads * self.group // self.query_sharing

    @property
    def k_num_heads(self) -> int:
        """Number of heads of key."""
        return self.kv_num_heads // self.key_sharing

    def has(self, operator: OperatorVersion, name: str) -> bool:
        """Return whether an input is present."""
        used = {"decay": self.gated, "beta": self.delta}
        if name not in used:
            return super().has(operator, name)
        return used[name] or self.unused in (f"unused-{name}", "unused-both")
