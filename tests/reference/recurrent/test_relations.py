"""Test of outputs of any legal node that strategies draw, each with the others or without.

Directions, layouts, lengths and versions are compared with the second derivation
(``operators/test_against_mpmath.py``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from onnxspec.cases import CaseSpec, strategies
from onnxspec.cases.specs.model import inputs_of
from onnxspec.reference import CELLS, evaluate, operator_version, versions_of

every_version = pytest.mark.parametrize(("op", "version"), [(op, v) for op in CELLS for v in versions_of(op)])
few = settings(derandomize=True, database=None, deadline=None, max_examples=25)


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
