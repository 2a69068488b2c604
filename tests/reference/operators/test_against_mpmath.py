"""Tests of the reference against the second derivation, over random legal configurations of all versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, strategies
from onnxspec.cases.specs.model import inputs_of
from onnxspec.reference import Interpretations, Node, evaluate

from .second_derivation import ACTIVATIONS, Choices, second

# Versions that print Ht-1*R without the mark of transposition.
UNMARKED = {"LSTM": (1,), "GRU": (1, 3), "RNN": (1,)}

# float64 has u = 1.1e-16. A step at these sizes adds at most 9 terms and makes a few roundings more, some 20 u of the
# sum of absolute values; weights of at most 1 and at most four steps amplify that by less than the rest.
RELATIVE = 1e-13


# Each interpretation of the reference that differs from its default, and the equivalent choice of the second
# derivation.
INTERPRETATIONS: list[tuple[Interpretations, Choices]] = [
    (Interpretations(), Choices()),
    (Interpretations(cell_output_clip="unclipped"), Choices(clip_cell_output=False)),
    (Interpretations(coupled_gate="forget"), Choices(coupled_keeps="f")),
    (Interpretations(coefficients="by-position"), Choices(alpha_per_user=False)),
    (Interpretations(defaults="zero"), Choices(defaults_of_the_lost=False)),
    (Interpretations(threshold="above"), Choices(threshold_passes=False)),
    (Interpretations(empty="zero"), Choices(empty_keeps_state=False)),
    (Interpretations(zero_clip="zero"), Choices(clip_zero_is_off=False)),
    (Interpretations(recurrent_product="plain"), Choices(transpose_r=False)),
]


# Numbers of ordinary size: the reference adds large ones with errors beyond RELATIVE of a small result.
ORDINARY = {"data": ["dense", "small", "one-sign"]}


def assert_same(
    node: Node, inputs: Mapping[str, NDArray[Any]], interpretations: Interpretations, choices: Choices
) -> None:
    op, version = node.op_type, node.since_version
    if version not in UNMARKED[op]:
        choices = replace(choices, transpose_r=True)
    attributes = dict(node.attributes)
    if "activations" in attributes:  # in any letter case
        attributes["activations"] = [
            {name.lower(): name for name in ACTIVATIONS}[n.lower()] for n in attributes["activations"]
        ]
    actual = evaluate(node, inputs, interpretations)
    expected = second(op, attributes, inputs, choices, says_defaults=(op, version) != ("GRU", 1))
    size = max(1.0, *(float(np.abs(value).max(initial=0.0)) for value in expected.values()))
    for name, value in actual.items():
        assert value.dtype == np.float64
        assert value.shape == expected[name].shape
        np.testing.assert_allclose(value, expected[name], rtol=RELATIVE, atol=RELATIVE * size, err_msg=name)


@settings(max_examples=1000, deadline=None, derandomize=True)
@given(
    spec=strategies.operator_cases(
        min_steps=0, max_steps=4, min_rows=0, max_rows=3, max_inputs=3, max_size=3, only=ORDINARY
    ).filter(lambda spec: spec.quantization == "none"),
    interpretation=st.sampled_from(INTERPRETATIONS),
)
def test_reference_agrees_with_the_second_derivation(
    spec: CaseSpec, interpretation: tuple[Interpretations, Choices]
) -> None:
    assert_same(spec.node, inputs_of(spec), *interpretation)
