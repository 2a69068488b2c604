"""Invalid models of LinearAttention, beyond those that follow from its form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from ...axes.violation import Draft, Violation, changed, set_to, sized, without_input


def _each_shape(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """Return violations of shapes, and their copies with symbolic dimensions, which a target detects only at run
    time."""
    static = tuple(violations)
    symbolic = (
        replace(v, id=f"{v.id}-symbolic", due="run", base={**v.base, "dimensions": "all-symbolic"}, breaks=v.topic)
        for v in static
    )
    return (*static, *symbolic)


def _width(name: str, width: Callable[[Draft], int]) -> Callable[[Draft], None]:
    """Return a change that cuts or repeats an input to another width."""

    def change(draft: Draft) -> None:
        sized(name, draft.inputs[name].ndim - 1, lambda n: width(draft))(draft)

    return change


def _added(name: str, heads: str = "kv_num_heads") -> Callable[[Draft], None]:
    """Return a change that adds an input that the rule does not use, with one element a head."""

    def change(draft: Draft) -> None:
        query = draft.inputs["query"]
        draft.inputs[name] = np.zeros((*query.shape[:2], draft.attributes[heads]), query.dtype)

    return change


def _heads(name: str, heads: Callable[[Draft], int]) -> Callable[[Draft], None]:
    """Return a change that gives past_state another number of heads."""

    def change(draft: Draft) -> None:
        sized(name, 1, lambda n: heads(draft))(draft)

    return change


def _without_name(name: str) -> Callable[[Draft], None]:
    """Return a change that makes the name of an output empty."""

    def change(draft: Draft) -> None:
        draft.outputs[draft.outputs.index(name)] = ""

    return change


def _uneven(draft: Draft) -> None:
    """Set four query heads and three key-value heads, with matching shapes."""
    draft.attributes["kv_num_heads"] = 3
    for name, axis in (("key", 2), ("value", 2), ("past_state", 1), ("decay", 2), ("beta", 2)):
        sized(name, axis, lambda n: n // 2 * 3)(draft)


def _fewer(draft: Draft) -> None:
    """Set one query head and two key-value heads, with matching shapes."""
    draft.attributes["q_num_heads"] = 1
    sized("query", 2, lambda n: n // 2)(draft)


_OF_SHAPES = (
    Violation(
        "shapes.query-uneven",
        "load",
        "the width of query is no multiple of q_num_heads",
        sized("query", 2, lambda n: n + 1),
    ),
    Violation(
        "shapes.value-uneven",
        "load",
        "the width of value is no multiple of kv_num_heads",
        sized("value", 2, lambda n: n + 1),
    ),
    Violation(
        "shapes.key-of-one-head",
        "load",
        "key has one head less",
        _width("key", lambda d: d.inputs["key"].shape[2] // 2),
    ),
    Violation(
        "shapes.key-of-query-heads",
        "load",
        "key has q_num_heads heads",
        _width("key", lambda d: d.inputs["query"].shape[2]),
    ),
    Violation("shapes.decay-single", "load", "decay has one element for all heads", _width("decay", lambda d: 1)),
    Violation(
        "shapes.decay-of-d-k",
        "load",
        "decay has d_k elements",
        _width("decay", lambda d: d.inputs["past_state"].shape[2]),
    ),
    Violation(
        "shapes.decay-of-query-heads",
        "load",
        "decay has q_num_heads elements",
        _width("decay", lambda d: d.attributes["q_num_heads"] + 2),
        {"d_k": 5},
    ),
    Violation(
        "shapes.beta-of-query-heads",
        "load",
        "beta has q_num_heads elements",
        _width("beta", lambda d: d.attributes["q_num_heads"]),
    ),
    Violation(
        "shapes.beta-per-key",
        "load",
        "beta has kv_num_heads * d_k elements",
        _width("beta", lambda d: d.inputs["key"].shape[2]),
    ),
    Violation(
        "shapes.past-state-transposed",
        "load",
        "past_state is (B, H, d_v, d_k)",
        changed("past_state", lambda a: np.swapaxes(a, 2, 3)),
    ),
    Violation(
        "shapes.past-state-of-query-heads",
        "load",
        "past_state has q_num_heads heads",
        _heads("past_state", lambda d: d.attributes["q_num_heads"]),
    ),
    Violation(
        "shapes.past-state-of-one-row",
        "load",
        "past_state has one row for a batch of two",
        sized("past_state", 0, lambda n: 1),
    ),
    Violation("shapes.decay-of-other-steps", "load", "decay has one step less", sized("decay", 1, lambda n: n - 1)),
    Violation("shapes.beta-of-one-step", "load", "beta has a single step", sized("beta", 1, lambda n: 1)),
)

_OF_RULES = tuple(
    Violation(
        f"inputs.{name}-with-{rule.replace('_', '-')}",
        "load",
        f"there is a {name}, and update_rule is {rule}",
        _added(name),
        {"update_rule": rule},
    )
    for name, rules in (("decay", ("linear", "delta")), ("beta", ("linear", "gated")))
    for rule in rules
)

_OF_NODES = (
    Violation("heads.uneven", "load", "q_num_heads is 4 and kv_num_heads is 3", _uneven),
    Violation("heads.fewer-than-kv", "load", "q_num_heads is 1 and kv_num_heads is 2", _fewer, {"group": 1}),
    Violation("attributes.q-num-heads-negative", "load", "q_num_heads is -4", set_to("q_num_heads", -4)),
    Violation("attributes.kv-num-heads-negative", "load", "kv_num_heads is -2", set_to("kv_num_heads", -2)),
    Violation("attributes.scale-int", "check", "scale is an INT", set_to("scale", 1)),
    Violation(
        "inputs.beta-needed-by-delta",
        "load",
        "there is no beta, which update_rule 'delta' needs",
        without_input("beta"),
        {"update_rule": "delta"},
    ),
    Violation(
        "inputs.beta-needed-by-gated-delta",
        "load",
        "there is no beta, which update_rule 'gated_delta' needs",
        without_input("beta"),
        {"update_rule": "gated_delta"},
    ),
    Violation(
        "inputs.decay-needed-by-gated-delta",
        "load",
        "there is no decay, which update_rule 'gated_delta' needs",
        without_input("decay"),
        {"update_rule": "gated_delta"},
    ),
    Violation("outputs.output-empty", "check", "output has an empty name", _without_name("output")),
    Violation(
        "outputs.present-state-empty", "check", "present_state has an empty name", _without_name("present_state")
    ),
)


VIOLATIONS = (*_each_shape(_OF_SHAPES), *_OF_RULES, *_OF_NODES)
