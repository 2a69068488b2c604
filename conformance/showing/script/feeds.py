"""The inputs of a case, as statements of its script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from ....cases import Case, Spec, family_of
from .literals import LITERAL, array_text, packed, shortest, wrapped


def feeds_of(case: Case) -> Iterator[str]:
    """Return the inputs of all runs as assignments, each tensor once, and ``FEEDS``, the inputs of each run."""
    feeds = case.trial.feeds
    variables: list[dict[str, str]] = [{} for _ in feeds]
    graph = onnx.load_model_from_string(case.trial.model).graph
    there = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    for name in dict.fromkeys([*case.trial.node.operator.inputs, *feeds[-1].inputs]):
        if name not in there:
            continue  # in a wrap a constant is held as something else
        arrays = {run: feed.inputs[name] for run, feed in enumerate(feeds) if name in feed.inputs}
        distinct = list(dict.fromkeys((a.shape, a.tobytes()) for a in arrays.values()))
        for run, array in arrays.items():
            number = distinct.index((array.shape, array.tobytes())) + 1
            variable = name if len(distinct) == 1 else f"{name}_{number}"
            if not any(variable in seen.values() for seen in variables):
                yield from wrapped(f"{variable} = {_tensor(case.spec, name, array)}")
            variables[run][name] = variable
    fed = [{name: held[name] for name in feed.fed} for feed, held in zip(feeds, variables, strict=True)]
    runs = ["{" + ", ".join(f'"{name}": {variable}' for name, variable in run.items()) + "}" for run in fed]
    yield from wrapped(f"FEEDS = [{', '.join(runs)}]")


def _tensor(spec: Spec, name: str, array: NDArray[Any]) -> str:
    """Return an expression for an input: its numbers if it is small, else its generator, else bytes."""
    # NumPy has no bfloat16; float32 holds it exactly.
    dtype = "float32" if array.dtype.name == "bfloat16" else array.dtype.name
    if array.dtype.kind in "iu":
        return array_text(array, dtype)
    if array.size <= LITERAL:
        return array_text(shortest(array.astype(dtype)), dtype)
    return family_of(spec.op).formula(spec, name, array) or f'{packed(array.astype(np.float64))}.astype("{dtype}")'
