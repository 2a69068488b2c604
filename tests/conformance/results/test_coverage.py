"""The reach of a run, in a line: operators in which nothing is shown are not told as shares."""

from __future__ import annotations

from onnxspec.conformance.results import OperatorCoverage, coverage_line


def reach(operator: str, shown: int) -> OperatorCoverage:
    return {
        "operator": operator,
        "lacks": [],
        "declared": [],
        "avoided": [],
        "before": {"pairs": [0, 10], "twice": [0, 10], "triples": [0, 10]},
        "after": {"pairs": [shown, 10], "twice": [shown, 10], "triples": [shown, 10]},
        "models": 0,
        "cases": 0,
        "reached": False,
    }


def line(*operators: OperatorCoverage) -> str:
    return coverage_line({"operators": list(operators), "cases": [], "digest": "", "left_out": ""})


def test_an_operator_in_which_nothing_is_shown_has_no_share() -> None:
    told = line(reach("LSTM", 9), reach("GRU", 0), reach("RNN", 0))
    assert "90.0 % (LSTM) of faults that need two features at once" in told
    assert "; none in GRU and RNN; " in told
    assert told.endswith("less than is due in LSTM")
    assert "0.0 % (GRU)" not in told


def test_of_nothing_but_refusals_no_share_is_told() -> None:
    assert line(reach("GRU", 0)) == "these cases find no fault that needs two features at once in GRU"
