"""What a runner with one tolerance sees: large faults, and those of one direction in that direction alone."""

from onnxspec.cases import CaseSpec
from onnxspec.conformance.proof import Shown, parts_shown, shown_to_runner


def test_a_runner_with_one_tolerance_sees_large_faults() -> None:
    spec = CaseSpec("LSTM", 14, T=3, N=2, I=2, H=3, outputs=("Y", "Y_h", "Y_c"))
    seen = shown_to_runner(spec)
    assert seen["gates.io"] == Shown(True, (True,))
    assert seen.keys() <= parts_shown(spec).keys()


def test_each_direction_is_looked_at_by_itself() -> None:
    spec = CaseSpec("GRU", 14, T=3, N=2, I=2, H=3, direction="bidirectional", outputs=("Y", "Y_h"))
    assert shown_to_runner(spec)["reverse.forward"] == Shown(True, (False, True))
