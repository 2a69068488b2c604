"""What speaks for a fault: elements that are judged, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxspec.reference import FAULTS, Expectation, Fault, Node, budget
from onnxspec.reference.faults import Run
from onnxspec.reference.numbers import Bounded
from onnxspec.reference.operators import Predicted

NODE = Node("RNN", 14, {"hidden_size": 1}, ("Y",))
FAULT = next(iter(FAULTS.values()))


def predicted(clause: str, returned: float) -> Predicted:
    """One element that is 0 by the document and 1 with a fault, as a clause has it, of which this was returned."""

    def expect(*given: Any) -> list[Expectation]:
        faults: tuple[Fault, ...] = given[5] if len(given) > 5 else ()
        value = np.full(1, float(bool(faults)))
        return [Expectation("Y", Bounded(value, np.full(1, 2.0**-20), budget("standard", "float32")), clause)]

    def form(inputs: Any, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        return (1,), np.dtype(np.float32)

    run = Run({"X": np.zeros((1, 1), np.float32)}, {"Y": np.full(1, returned, np.float32)})
    return Predicted(expect, lambda *_, **__: {}, form, NODE, (run,), "standard")


@pytest.mark.parametrize(("clause", "bits"), [("rnn.equations", 20.0), ("rnn.padding.zero", 0.0)])
def test_padding_speaks_for_no_fault(clause: str, bits: float) -> None:
    fit = predicted(clause, 1.0).fit((FAULT,))
    assert fit is not None
    assert fit.evidence == pytest.approx(bits)


def test_padding_speaks_against_no_fault() -> None:
    assert predicted("rnn.equations", 5.0).fit((FAULT,)) is None
    assert predicted("rnn.padding.zero", 5.0).fit((FAULT,)) is not None
