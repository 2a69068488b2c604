"""Tests of relations between two evaluations of any legal node that strategies draw.

Directions, layouts and lengths are compared with the second derivation (``operators/test_against_mpmath.py``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from onnxspec.cases import CaseSpec, strategies
from onnxspec.cases.specs.model import inputs_of
from onnxspec.reference import CELLS, Node, evaluate, operator_version, versions_of

every_version = pytest.mark.parametrize(("op", "version"), [(op, v) for op in CELLS for v in versions_of(op)])
few = settings(derandomize=True, database=None, deadline=None, max_examples=25)


@every_version
def test_versions_agree_on_what_they_share(op: str, version: int) -> None:
    @settings(few)
    @given(strategies.cases(op, version, types=["float32", "float64", "float16"]))
    def check(spec: CaseSpec) -> None:
        inputs = inputs_of(spec)
        expected = evaluate(spec.node, inputs)
        shared = {n: v for n, v in spec.node.attributes.items() if n != "output_sequence" and (n, v) != ("layout", 0)}
        for other in versions_of(op):
            defined, attributes = operator_version(op, other), dict(shared)
            if not attributes.keys() <= defined.attributes.keys():
                continue  # it lacks one of the attributes
            if "output_sequence" in defined.attributes:
                attributes["output_sequence"] = 1
            outputs = tuple(dict.fromkeys((*spec.node.outputs, *defined.required_outputs)))
            computed = evaluate(Node(op, other, attributes, outputs), inputs)
            for name, value in expected.items():
                np.testing.assert_array_equal(computed[name], value, err_msg=f"{name} of {op}-{other}")

    check()


@every_version
def test_an_output_does_not_depend_on_which_are_asked_for(op: str, version: int) -> None:
    everything = operator_version(op, version).outputs

    @settings(few)
    @given(strategies.cases(op, version, min_steps=0, min_rows=0))
    def check(spec: CaseSpec) -> None:
        inputs = inputs_of(spec)
        whole = evaluate(replace(spec, outputs=everything).node, inputs)
        for name, value in evaluate(spec.node, inputs).items():
            np.testing.assert_array_equal(value, whole[name], err_msg=name)

    check()
