"""LinearAttention: linear, gated and delta-rule attention, with a state (d_k, d_v) for each key-value head."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from msgspec import Struct, structs

from ...documents.interpretations import Interpretations
from ...documents.operators import MISSING, Document, Needed, NodeRules, OperatorVersion
from ...documents.tensors import ONE, Extent, TensorForm, by_name
from ...faults.fault import Fault
from ...numbers.accuracy import WIDER_PRESETS
from ...recurrent.node import Diagnostic, Node, Written
from ..described import Described, DescribedOperator
from ..operator import Classes, register
from .bounds import bound, costs_of, returned_radius
from .recurrence import RULES, Array, Attention, advance, retrieve_in_order

_B, _T = Extent("batch_size"), Extent("seq_length")
_HEADS, _D_K, _D_V = Extent("kv_num_heads"), Extent("d_k"), Extent("d_v")
_KEYS, _VALUES = (Extent(size, factor="kv_num_heads") for size in ("d_k", "d_v"))

_SHORT, _LARGE = 20, 1 << 20
"""Limits of cases on which a proof tries faults: number of steps, and key elements times value elements over all
steps."""

FORMS = by_name([
    TensorForm("query", ((_B, _T, Extent("d_k", factor="q_num_heads")),), axes=("row", "step", "element")),
    TensorForm("key", ((_B, _T, _KEYS),), axes=("row", "step", "element")),
    TensorForm("value", ((_B, _T, _VALUES),), axes=("row", "step", "element")),
    TensorForm("past_state", ((_B, _HEADS, _D_K, _D_V),), kind="S", axes=("row", "head", "key", "value")),
    TensorForm("decay", ((_B, _T, _HEADS), (_B, _T, _KEYS)), axes=("row", "step", "element")),
    TensorForm("beta", ((_B, _T, _HEADS), (_B, _T, ONE)), axes=("row", "step", "head")),
    TensorForm("output", ((_B, _T, Extent("d_v", factor="q_num_heads")),), axes=("row", "step", "element")),
    TensorForm("present_state", ((_B, _HEADS, _D_K, _D_V),), kind="S", axes=("row", "head", "key", "value")),
])  # fmt: skip

NODE_RULES = NodeRules(
    choices={"update_rule": RULES},
    needed={
        "decay": Needed("update_rule", ("gated", "gated_delta")),
        "beta": Needed("update_rule", ("delta", "gated_delta")),
    },
    sizes={"q_num_heads": "q_num_heads", "kv_num_heads": "kv_num_heads"},
)


class Changed(Struct, frozen=True):
    """Equations of a node that faults have changed; the innermost change comes first."""

    changes: tuple[Callable[[Attention], Attention], ...]

    def __call__(self, c: Described) -> dict[str, Array]:
        return attention_of(c).run()


def attention_of(c: Described) -> Attention:
    """Return the node of a computation, with the changes of its faults."""
    inputs, attributes = c.inputs, c.attributes
    node = Attention(
        query=inputs["query"],
        key=inputs["key"],
        value=inputs["value"],
        q_num_heads=int(attributes["q_num_heads"]),
        kv_num_heads=int(attributes["kv_num_heads"]),
        past_state=inputs.get("past_state"),
        decay=inputs.get("decay"),
        beta=inputs.get("beta"),
        update_rule=str(attributes["update_rule"]),
        scale=float(attributes.get("scale", 0.0)),
        chunk_size=int(attributes.get("chunk_size", 64)),
    )
    for change in getattr(c.equations, "changes", ()):
        node = change(node)
    return node


class LinearAttention(DescribedOperator):
    """Operator LinearAttention of ONNX."""

    document = Document(
        "LinearAttention", "", Path(__file__).with_name("clauses.toml"), tensors=FORMS, rules=NODE_RULES
    )
    topics: Mapping[str, str] = {"present_state": "present-state"}

    def equations(self, c: Described) -> dict[str, Array]:
        return attention_of(c).run()

    def evaluate_in_order(
        self, node: Node, inputs: Mapping[str, Array], interpretations: Interpretations | None = None
    ) -> dict[str, Array]:
        """Return the outputs computed in a fixed order of operations, so that every machine gives the same digits."""
        attention = attention_of(self.resolve(node, inputs, interpretations))
        outputs = replace(attention, advance=partial(advance, retrieve=retrieve_in_order)).run()
        return {name: outputs[name] for name in node.outputs}

    def radii(self, c: Described, outputs: Mapping[str, Array], accuracy: str) -> dict[str, Array]:
        radii = bound(attention_of(c), costs_of(accuracy, c.format.name))
        errors = {"output": radii.output_radius, "present_state": radii.state_radius}
        return {
            name: returned_radius(value, errors[name], accuracy, c.format_of(name).name)
            for name, value in outputs.items()
        }

    def classes(self, accuracy: str, type: str) -> Classes:
        return Classes((accuracy,), tuple(preset for preset in WIDER_PRESETS[type] if preset != accuracy))

    def in_mutation_test(self, fault: Fault, node: Node, inputs: Mapping[str, Array]) -> bool:
        """Return whether a fault is tried on a case. Faults of many steps are tried on all but huge cases, others on
        short cases, which show the same as long ones."""
        batch, steps, _ = inputs["query"].shape
        sizes = inputs["key"].shape[2] * inputs["value"].shape[2]
        needs_steps = any(part in fault.id for part in (".chunks.", ".state.", ".tails."))
        return bool(batch * steps * sizes <= _LARGE and (needs_steps or steps <= _SHORT))

    def uneven(self, queries: int, keys: int) -> str:
        """Return an error message for two numbers of heads that do not fit; empty where they fit."""
        return f"q_num_heads {queries} is no multiple of kv_num_heads {keys}" if queries % keys else ""

    def check(self, c: Described) -> None:
        message = self.uneven(c.attributes["q_num_heads"], c.attributes["kv_num_heads"])
        if message:
            raise self.illegal("heads", message)

    def diagnostics(self, written: Written) -> Iterator[Diagnostic]:
        yield from super().diagnostics(written)
        queries, keys = written.chosen("q_num_heads"), written.chosen("kv_num_heads")
        if isinstance(queries, int) and isinstance(keys, int) and queries > 0 and keys > 0:
            message = self.uneven(queries, keys)
            if message:
                yield Diagnostic("heads", message)


def _version_of_onnxruntime() -> OperatorVersion:
    output = Extent("d_v", factor="q_num_heads", or_factor="kv_num_heads")
    forms = (
        TensorForm("key", ((_B, _T, Extent("k_num_heads", factor="d_k")),), axes=FORMS["key"].axes),
        TensorForm("output", ((_B, _T, output),), axes=FORMS["output"].axes),
    )
    integers = ("q_num_heads", "kv_num_heads", "chunk_size", "state_window")
    types = ("float32", "float16", "bfloat16")
    return OperatorVersion(
        domain="com.microsoft",
        op_type="LinearAttention",
        since_version=1,
        attributes={**dict.fromkeys(integers, "INT"), "scale": "FLOAT", "update_rule": "STRING"},
        defaults={"chunk_size": 64, "scale": 0.0, "state_window": 0, "update_rule": "gated_delta"},
        inputs=("query", "key", "value", "past_state", "decay", "beta"),
        required=frozenset({"query", "key", "value"}),
        outputs=("output", "present_state"),
        required_outputs=frozenset({"output", "present_state"}),
        types=types,
        kinds={"S": types},
        tensors={**FORMS, **by_name(forms)},
        rules=structs.replace(
            NODE_RULES,
            needed={name: structs.replace(needed, refused=False) for name, needed in NODE_RULES.needed.items()},
            default_only=frozenset({"state_window"}),
        ),
    )


class OnnxruntimeLinearAttention(LinearAttention):
    """LinearAttention of onnxruntime's contrib domain. Key-value heads may share queries and keys, and inputs that the
    rule does not use are allowed."""

    document = Document(
        "LinearAttention",
        "com.microsoft",
        Path(__file__).with_name("onnxruntime.toml"),
        {1: _version_of_onnxruntime()},
    )

    def uneven(self, queries: int, keys: int) -> str:
        """Return an error message where neither number of heads is a multiple of the other."""
        if queries % keys == 0 or keys % queries == 0:
            return ""
        return f"neither of q_num_heads {queries} and kv_num_heads {keys} is a multiple of the other"

    def check(self, c: Described) -> None:
        super().check(c)
        heads, keys = c.sizes["kv_num_heads"], c.sizes.get("k_num_heads", 0)
        if not keys or heads % keys:
            raise self.illegal("shapes", f"kv_num_heads {heads} is no multiple of the {keys} heads of key")


if "LinearAttention" not in MISSING:  # the installed onnx has its schema
    register(LinearAttention())
    register(OnnxruntimeLinearAttention())
