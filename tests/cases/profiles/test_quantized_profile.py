"""Tests of the profile of quantized cases: small enough for compilers of devices, sound, and with every value."""

from __future__ import annotations

import onnx

from onnxspec.cases import build_case, digest_of, operator_versions, profile
from onnxspec.cases.specs.space import space_of
from onnxspec.cases.specs.spec import RECURRENT_AXES
from onnxspec.reference import operator_version

CASES = [spec for op, version in operator_versions(None) for spec in profile("quantized", op, version)]
FIELDS = [axis.name for axis in RECURRENT_AXES if axis.block]


def test_it_stays_within_what_device_compilers_can_bear() -> None:
    models = {trial.model for spec in CASES for trial in build_case(spec).trials}
    assert len(CASES) <= 400
    assert len(models) <= 200
    assert len({spec.id for spec in CASES}) == len(CASES)
    assert all(spec.quantization != "none" for spec in CASES)
    for model in sorted(models)[::9]:
        onnx.checker.check_model(model, full_check=True)


def test_no_other_profile_has_any() -> None:
    assert all(spec.quantization == "none" for spec in profile("full", "RNN", 7))
    assert digest_of(profile("quantized", "LSTM", 1)) == digest_of(())


def test_every_value_is_in_it_by_operator() -> None:
    for op in ("LSTM", "GRU", "RNN"):
        of_operator = [spec for spec in CASES if spec.op == op]
        space = space_of(operator_version(op, 14))
        for field in FIELDS:
            expected = {*space[field].values} - {"none"}
            if field == "weight_type":  # no kernel has weights alone in 16 bits
                expected -= {"u16", "s16"}
            assert expected <= {getattr(spec, field) for spec in of_operator}, (op, field)
