"""Invalid models of LinearAttention, beyond those that follow from its form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...axes.violation import Draft, Violation, changed, set_to, sized, without_input

Change = Callable[[Draft], None]


def _resized(name: str, axis: int, size: Callable[[Draft], int]) -> Change:
    """Return a change that cuts or repeats an input along an axis to another size."""
    return lambda draft: sized(name, axis, lambda n: size(draft))(draft)


def _added(name: str) -> Change:
    """Return a change that adds an input that the rule does not use, with one element a head."""

    def change(draft: Draft) -> None:
        query = draft.inputs["query"]
        draft.inputs[name] = np.zeros((*query.shape[:2], draft.attributes["kv_num_heads"]), query.dtype)

    return change


def _without_name(name: str) -> Change:
    """Return a change that makes the name of an output empty."""
    return lambda draft: draft.outputs.__setitem__(draft.outputs.index(name), "")


def _uneven(draft: Draft) -> None:
    """Set four query heads and three key-value heads, with matching shapes."""
    draft.attributes["kv_num_heads"] = 3
    for name, axis in (("key", 2), ("value", 2), ("past_state", 1), ("decay", 2), ("beta", 2)):
        sized(name, axis, lambda n: n // 2 * 3)(draft)


def _fewer(draft: Draft) -> None:
    """Set one query head and two key-value heads, with matching shapes."""
    draft.attributes["q_num_heads"] = 1
    sized("query", 2, lambda n: n // 2)(draft)


# Rows: id, summary, change, base.
# fmt: off

_OF_SHAPES: tuple[tuple[Any, ...], ...] = (
    ("query-uneven", "the width of query is no multiple of q_num_heads", sized("query", 2, lambda n: n + 1)),
    ("value-uneven", "the width of value is no multiple of kv_num_heads", sized("value", 2, lambda n: n + 1)),
    ("key-of-one-head", "key has one head less", _resized("key", 2, lambda d: d.inputs["key"].shape[2] // 2)),
    ("key-of-query-heads", "key has q_num_heads heads", _resized("key", 2, lambda d: d.inputs["query"].shape[2])),
    ("decay-single", "decay has one element for all heads", _resized("decay", 2, lambda d: 1)),
    ("decay-of-d-k", "decay has d_k elements", _resized("decay", 2, lambda d: d.inputs["past_state"].shape[2])),
    ("decay-of-query-heads", "decay has q_num_heads elements",
     _resized("decay", 2, lambda d: d.attributes["q_num_heads"] + 2), {"d_k": 5}),
    ("beta-of-query-heads", "beta has q_num_heads elements",
     _resized("beta", 2, lambda d: d.attributes["q_num_heads"])),
    ("beta-per-key", "beta has kv_num_heads * d_k elements", _resized("beta", 2, lambda d: d.inputs["key"].shape[2])),
    ("past-state-transposed", "past_state is (B, H, d_v, d_k)",
     changed("past_state", lambda a: np.swapaxes(a, 2, 3))),
    ("past-state-of-query-heads", "past_state has q_num_heads heads",
     _resized("past_state", 1, lambda d: d.attributes["q_num_heads"])),
    ("past-state-of-one-row", "past_state has one row for a batch of two", sized("past_state", 0, lambda n: 1)),
    ("decay-of-other-steps", "decay has one step less", sized("decay", 1, lambda n: n - 1)),
    ("beta-of-one-step", "beta has a single step", sized("beta", 1, lambda n: 1)),
)

_UNUSED = (("decay", "linear"), ("decay", "delta"), ("beta", "linear"), ("beta", "gated"))
_NEEDED = (("beta", "delta"), ("beta", "gated_delta"), ("decay", "gated_delta"))

_OF_NODES: tuple[tuple[Any, ...], ...] = (
    *((f"inputs.{name}-with-{rule.replace('_', '-')}", f"there is a {name}, and update_rule is {rule}",
       _added(name), {"update_rule": rule}) for name, rule in _UNUSED),
    ("heads.uneven", "q_num_heads is 4 and kv_num_heads is 3", _uneven),
    ("heads.fewer-than-kv", "q_num_heads is 1 and kv_num_heads is 2", _fewer, {"group": 1}),
    ("attributes.q-num-heads-negative", "q_num_heads is -4", set_to("q_num_heads", -4)),
    ("attributes.kv-num-heads-negative", "kv_num_heads is -2", set_to("kv_num_heads", -2)),
    ("attributes.scale-int", "scale is an INT", set_to("scale", 1)),
    *((f"inputs.{name}-needed-by-{rule.replace('_', '-')}", f"there is no {name}, which update_rule {rule!r} needs",
       without_input(name), {"update_rule": rule}) for name, rule in _NEEDED),
    ("outputs.output-empty", "output has an empty name", _without_name("output")),
    ("outputs.present-state-empty", "present_state has an empty name", _without_name("present_state")),
)

# fmt: on


def _violations() -> Iterator[Violation]:
    """Yield all; those of shapes once more with symbolic dimensions, which a target detects only at run time."""
    shapes = [Violation(f"shapes.{id}", "load", summary, *change) for id, summary, *change in _OF_SHAPES]
    yield from shapes
    for v in shapes:
        base = {**v.base, "dimensions": "all-symbolic"}
        yield replace(v, id=f"{v.id}-symbolic", due="run", base=base, breaks=v.topic)
    for id, summary, *change in _OF_NODES:
        due = "check" if id == "attributes.scale-int" or id.startswith("outputs.") else "load"
        yield Violation(id, due, summary, *change)


VIOLATIONS = tuple(_violations())
