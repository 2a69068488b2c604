"""Losses of binary digits that stay undetected: kernels that lose digits, judged as targets.

``python -m benchmarks.digits`` makes a table of docs/measurements.md. For each type and each position where kernels
lose digits, it has the fewest lost digits that a run of ``core`` detects: by a failing case of each operator, or by the
bias of all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.cases import Case, build_case, profile
from onnxspec.conformance.judging.judgement import FAILING
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.conformance.results.grades import BIAS_ERRORS, BIAS_UNITS
from onnxspec.reference import CELLS as OPERATORS
from onnxspec.reference import FORMATS, Node, versions_of
from onnxspec.reference.kernels.kernel import STYLES, Kernel, run_kernel

Array = NDArray[Any]
Arrays = dict[str, Array]
_MOST = 12  # digits


def shortened(x: Array, digits: int, *, cut: bool) -> Array:
    """Return numbers with ``digits`` binary digits: the others truncated, or rounded away."""
    fraction, exponent = np.frexp(x.astype(np.float64))
    scaled = np.ldexp(fraction, digits)
    kept = np.trunc(scaled) if cut else np.rint(scaled)
    return np.where(np.isfinite(x.astype(np.float64)), np.ldexp(kept, exponent - digits), x).astype(x.dtype)


@dataclass(frozen=True)
class Lossy:
    """Position where digits are lost, as text, and the kernel that loses a given number of them there."""

    place: str
    made: Callable[[int], Callable[[Node, Arrays], Arrays]]


def _results(cut: bool) -> Callable[[int], Callable[[Node, Arrays], Arrays]]:
    """Return the maker of kernels that shorten stored numbers: outputs, and with them the states of the next step."""

    def made(lost: int) -> Callable[[Node, Arrays], Arrays]:
        class Short(Kernel):
            def stored(self, x: Array) -> Array:
                return shortened(super().stored(x), self.form.precision - lost, cut=cut)

        return lambda node, inputs: run_kernel(node, inputs, STYLES["forward"], arithmetic=Short)

    return made


def _operands(lost: int) -> Callable[[Node, Arrays], Arrays]:
    """Return a kernel that shortens multiplied numbers: X, W, R and states."""

    class Short(Kernel):
        def _operand(self, x: Array) -> Array:
            return shortened(super()._operand(x), self.form.precision - lost, cut=False)

    return lambda node, inputs: run_kernel(node, inputs, STYLES["forward"], arithmetic=Short)


def _functions(lost: int) -> Callable[[Node, Arrays], Arrays]:
    """Return a kernel that shortens the results of activation functions."""

    class Short(Kernel):
        def _evaluated(self, activation: Any, x: Array) -> Array:
            return shortened(super()._evaluated(activation, x), self.form.precision - lost, cut=False)

    return lambda node, inputs: run_kernel(node, inputs, STYLES["forward"], arithmetic=Short)


PLACES = (
    Lossy("results and states, cut off", _results(cut=True)),
    Lossy("results and states, rounded", _results(cut=False)),
    Lossy("operands of products, rounded", _operands),
    Lossy("values of functions, rounded", _functions),
)


def _cases(op: str, kind: str, graded: bool) -> list[Case]:
    """Return legal cases of core: accuracy cases of all versions, or all other cases of the newest one."""
    versions = versions_of(op) if graded else versions_of(op)[-1:]
    specs = [s for version in versions for s in profile("core", op, version) if s.type == kind and not s.illegal]
    return [build_case(s) for s in specs if s.graded == graded]


def _fails(cases: Sequence[Case], implementation: Any) -> bool:
    return any(judge_staged(case, implementation).verdict in FAILING for case in cases)


def _leans(cases: Sequence[Case], implementation: Any) -> bool:
    """Return whether the errors of a run are biased."""
    sums = sum((np.array(judge_staged(case, implementation).error_sums) for case in cases), np.zeros(4))
    largest, error = max(abs(sums[0]), abs(sums[1])) / sums[3], np.sqrt(sums[2]) / sums[3]
    return bool(largest > max(BIAS_UNITS, BIAS_ERRORS * error))


def _first(sees: Callable[[Sequence[Case], Any], bool], cases: Sequence[Case], lossy: Lossy) -> int | None:
    """Return the smallest loss of digits that some cases detect."""
    return next((lost for lost in range(_MOST + 1) if sees(cases, lossy.made(lost))), None)


def lost_unseen(kinds: Iterable[str] = FORMATS, every: int = 1) -> Iterator[tuple[str, str, str, int | None]]:
    """Yield (place, type, detection, the smallest loss of digits that it detects).

    A detection is the bias of a run of all operators ("bias"), or a failing case of an operator (its name).
    """
    for type_name in kinds:
        graded = [case for op in OPERATORS for case in _cases(op, type_name, True)]
        cases_by_op = {op: [*_cases(op, type_name, True), *_cases(op, type_name, False)[::every]] for op in OPERATORS}
        for lossy in PLACES:
            yield lossy.place, type_name, "bias", _first(_leans, graded, lossy)
            for op, cases in cases_by_op.items():
                yield lossy.place, type_name, op, _first(_fails, cases, lossy)


def main() -> None:
    """Print the table; an argument N takes only every Nth dense case."""
    for place, type_name, shows, fewest in lost_unseen(every=int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        print(f"{place:32} {type_name:9} {shows:5} {fewest}", flush=True)


if __name__ == "__main__":
    main()
