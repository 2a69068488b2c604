"""The verdict on a case of ExtendedLSTM, by the documented oracle.

Step-local, like every verdict: each step is judged from the Y that the target reported one step before. A target may
compute in fixed point, float32 or bfloat16, and feed back its state quantized or as computed; it must do one of these
everywhere in a case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cases.extended_spec import ExtendedSpec
from ..reference.bounded import RADIUS_SLACK
from ..reference.extended_lstm import ARITHMETICS, STATES, WIDEST, ExtendedLSTM, expect_extended
from ..reference.extended_lstm_kernel import Parameters, run_kernel
from ..reference.tanhf import TANHF, system_tanhf
from .judgement import Judgement, Verdict, not_run
from .process import Outcome

__all__ = ["Compared", "ExtendedRun", "arithmetic_of", "compared", "judge_extended"]

# Narrower floats than float32, for which the bound of bfloat16 is the only one wide enough.
_NARROW = frozenset({"tf32", "f16-math", "bf16-math", "f16-storage", "bf16-storage", "fast"})

_MANY = 6
"""Elements that fail in one direction alone: of fewer, that the other has none is chance (2^-6)."""

Array = NDArray[Any]


def arithmetic_of(accuracy: str) -> str:
    """The kind of arithmetic by which a target of an accuracy class is judged first: fixed point, but for classes of
    narrow floats bfloat16."""
    return accuracy if accuracy in ARITHMETICS else "bfloat16" if accuracy in _NARROW else "fixed-point"


def _right(accuracy: str) -> tuple[str, ...]:
    """The kinds of arithmetic in which a target of an accuracy class may compute. The document says bfloat16 in its
    summary and uint16 in its attributes: whoever declares nothing may take either for float32 or for fixed point."""
    declared = arithmetic_of(accuracy)
    return (declared, "float32") if declared == "fixed-point" and accuracy not in ARITHMETICS else (declared,)


@dataclass(frozen=True)
class ExtendedRun:
    """One run: the node with its inputs, and what it was made from."""

    node: ExtendedLSTM
    attributes: Mapping[str, Any]
    inputs: Mapping[str, Array]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.T, 2, self.node.N, self.node.H


@dataclass(frozen=True)
class Compared:
    """A Y against what it must be; all arrays (T, 2, N, H).

    doubt
        Elements that nothing can be said of.
    """

    got: Array
    value: Array
    radius: Array
    doubt: NDArray[np.bool_]

    @property
    def error(self) -> Array:
        """got - value; infinite where got is not finite."""
        found: Array = np.where(np.isfinite(self.got), self.got - self.value, np.inf)
        return np.where(self.doubt, 0.0, found)

    @property
    def ratio(self) -> Array:
        """|error| / radius; zero in doubt."""
        found: Array = np.abs(self.error) / (self.radius * RADIUS_SLACK)
        return np.where(self.doubt, 0.0, found)

    @property
    def telling(self) -> NDArray[np.bool_]:
        """Where lying within the radius says something, as outputs lie between -1 and 1; so does being in doubt, as
        long as something else is not."""
        return np.asarray((self.radius <= WIDEST) | self.doubt)

    @property
    def first(self) -> tuple[int, ...] | None:
        """Where it parts first: the worst element of the earliest step, in processing order, that fails."""
        ratio = self.ratio.copy()
        ratio[:, 1] = ratio[::-1, 1].copy()
        failing = np.argwhere(ratio > 1)
        if not len(failing):
            return None
        step = int(failing[:, 0].min())
        d, n, h = (int(k) for k in np.unravel_index(int(ratio[step].argmax()), ratio[step].shape))
        return (step if d == 0 else len(ratio) - 1 - step), d, n, h


def compared(run: ExtendedRun, Y: Array, arithmetic: str, state: str) -> Compared:
    """Y against what it must be in one kind of arithmetic by one reading."""
    with np.errstate(all="ignore"):
        expected = expect_extended(run.node, Y, arithmetic, state)
    doubt = np.zeros(expected.value.shape, bool) if expected.doubt is None else expected.doubt
    return Compared(Y.astype(np.float64), expected.value, expected.radius, doubt | _undefined(run))


def _undefined(run: ExtendedRun) -> NDArray[np.bool_]:
    """Elements that depend on a NaN, for which no level is defined."""
    mask = np.zeros(run.shape, bool)
    X = np.asarray(np.isnan(run.inputs["X"]).any(axis=2, keepdims=True))
    mask[:, 0] |= np.logical_or.accumulate(X, axis=0)
    mask[:, 1] |= np.flip(np.logical_or.accumulate(np.flip(X, 0), axis=0), 0)
    for name in ("W", "R", "B"):
        if name in run.inputs:
            for d in range(2):
                mask[:, d] |= bool(np.isnan(run.inputs[name][d]).any())
    return mask


def judge_extended(spec: ExtendedSpec, runs: Sequence[ExtendedRun], outcome: Outcome, accuracy: str) -> Judgement:
    """The verdict on a legal case.

    accuracy
        Name of the accuracy class by which the target is judged, or of a kind of arithmetic.
    """
    if outcome.status != "ran":
        return not_run(outcome)
    if outcome.malformed:
        return Judgement(Verdict.MALFORMED, "form", message=outcome.malformed)
    sessions: list[tuple[ExtendedRun, Array]] = []
    for run, lists in zip(runs, outcome.outputs, strict=True):
        for outputs in lists:
            wrong = _malformed(run, outputs)
            if wrong is not None:
                return wrong
            assert outputs[0] is not None
            sessions.append((run, outputs[0]))
    if outcome.changed:
        names = ", ".join(outcome.changed)
        return Judgement(Verdict.IMPURE, "inputs-changed", message=f"the run changed its inputs: {names}")
    flags = ["nondeterministic"] if any(len(lists) > 1 for lists in outcome.outputs) else []
    if all(_as_shipped(run, Y) for run, Y in sessions):
        flags.append("as-shipped")
    return _by_values(spec, sessions, _right(accuracy), tuple(flags))


def _malformed(run: ExtendedRun, outputs: Sequence[Array | None]) -> Judgement | None:
    if len(outputs) != 1:
        return Judgement(Verdict.MALFORMED, "count", message=f"{len(outputs)} outputs came back, 1 was asked for")
    Y, where = outputs[0], {"output": "Y", "index": None, "step": None}
    if Y is None:
        return Judgement(Verdict.MALFORMED, "form", where, "Y is missing or no array of numbers")
    if Y.shape != run.shape:
        return Judgement(Verdict.MALFORMED, "shape", where, f"Y has shape {Y.shape}, must be {run.shape}")
    if Y.dtype != np.float32:
        return Judgement(Verdict.MALFORMED, "type", where, f"Y is {Y.dtype.name}, must be float32")
    return None


def _as_shipped(run: ExtendedRun, Y: Array) -> bool:
    """Whether Y is what the kernel of amd-quark 0.13 gives, bit for bit, as far as its model can tell."""
    name = system_tanhf()
    given = "B" in run.inputs and "hidden_size" in run.attributes
    if name is None or run.node.y is None or not given or run.node.N != 1:
        return False
    with np.errstate(all="ignore"):
        X, W, R, B = (run.inputs[n] for n in ("X", "W", "R", "B"))
        theirs = run_kernel(X, W, R, B, Parameters.of(run.attributes), TANHF[name])
    return theirs.tobytes() == Y.tobytes()


def _choices(right: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for arithmetic in (*right, *(name for name in ARITHMETICS if name not in right)):
        for state in STATES:
            yield arithmetic, state


def _by_values(
    spec: ExtendedSpec, sessions: Sequence[tuple[ExtendedRun, Array]], right: tuple[str, ...], flags: tuple[str, ...]
) -> Judgement:
    best: tuple[int, list[Compared], str] | None = None
    holding: tuple[str, str, list[Compared]] | None = None
    for arithmetic, state in _choices(right):
        found = [compared(run, Y, arithmetic, state) for run, Y in sessions]
        failing = sum(int((c.ratio > 1).sum()) for c in found)
        if not failing and (arithmetic in right or all(c.telling.all() for c in found)):
            holding = arithmetic, state, found
            break
        if arithmetic in right and (best is None or failing < best[0]):
            best = failing, found, state
    if holding is not None and holding[0] in right:
        arithmetic, state, found = holding
        elements, judged = _counts(found)
        if state == "as-computed":  # tried last, so the other one does not serve
            flags = (*flags, "state-as-computed")
        # What only a bound of the second kind that says nothing makes right is neither right nor wrong.
        lost = (
            best is not None
            and arithmetic != right[0]
            and any(((tight.ratio > 1) & ~wide.telling).any() for tight, wide in zip(best[1], found, strict=True))
        )
        verdict = Verdict.UNJUDGED if elements and (lost or not judged) else Verdict.PASS
        said = f"cannot be told from {arithmetic} arithmetic" if lost else "no element could be judged"
        return Judgement(
            verdict,
            "unjudged" if verdict is Verdict.UNJUDGED else None,
            _size(sessions, found),
            said if verdict is Verdict.UNJUDGED else "",
            worst=max((float(c.ratio.max(initial=0.0)) for c in found), default=0.0),
            accuracy=arithmetic,
            judged=judged,
            elements=elements,
            flags=flags,
        )
    assert best is not None
    _, found, state = best
    elements, judged = _counts(found)
    at = max(range(len(found)), key=lambda k: float(found[k].ratio.max(initial=0.0)))
    words = _sentence(found[at], sessions[at][0])
    if holding is not None:
        words += f"; within the bound of {holding[0]} arithmetic"
    index = found[at].first
    verdict = Verdict.WRONG if holding is None else Verdict.INACCURATE
    if "nondeterministic" in flags:
        verdict, words = Verdict.UNSTABLE, f"repeated runs differ; one of them: {words}"
    return Judgement(
        verdict,
        "value" if np.isfinite(found[at].got).all() else "nonfinite",
        {
            "output": "Y",
            "index": list(index) if index is not None else None,
            "step": index[0] if index is not None else None,
            **_size(sessions, found),
        },
        words,
        float(found[at].ratio.max()),
        _clause(spec, sessions[at][0], found[at]),
        flags,
        accuracy=holding[0] if holding is not None else None,
        judged=judged,
        elements=elements,
    )


def _counts(found: Sequence[Compared]) -> tuple[int, int]:
    """All elements, and those that are judged."""
    return sum(c.got.size for c in found), sum(int((c.telling & ~c.doubt).sum()) for c in found)


def _size(sessions: Sequence[tuple[ExtendedRun, Array]], found: Sequence[Compared]) -> dict[str, Any]:
    """The largest error, as a number and in units of y_scale."""
    largest = max((float(np.abs(c.error).max(initial=0.0)) for c in found), default=0.0)
    y = sessions[0][0].node.y if sessions else None
    shown = largest if np.isfinite(largest) else None
    return {"error": shown, "units": shown / y.scale if y is not None and shown is not None else None}


def _sentence(found: Compared, run: ExtendedRun) -> str:
    index = found.first
    assert index is not None
    t, d, n, h = index
    got, must, radius = (float(a[index]) for a in (found.got, found.value, found.radius))
    y = run.node.y
    units = "" if y is None else f", {abs(got - must) / y.scale:.4g} units of y_scale"
    failing, total = int((found.ratio > 1).sum()), found.got.size
    way = "backward" if d else "forward"
    return (
        f"Y[{t}, {d}, {n}, {h}] ({way}) is {got:.9g}, must be {must:.9g} +- {radius:.3g}{units}; "
        f"{failing} of {total} elements outside"
    )


def _clause(spec: ExtendedSpec, run: ExtendedRun, found: Compared) -> str:
    """The clause that says what the first wrong element must be."""
    index = found.first
    assert index is not None
    y = run.node.y
    if spec.N > 1:
        topic = "batch"
    elif y is not None and not y.least < found.value[index] < y.greatest:
        topic = "output-quantization.saturation"
    elif spec.data in ("inf", "far"):
        topic = "quantization.saturation"
    elif (found.ratio[:, 0] <= 1).all() and (found.ratio[:, 1] > 1).sum() >= _MANY:
        topic = "directions"
    elif y is not None and np.abs(found.error).max() <= 2 * y.scale:
        topic = "output-quantization.nearest"
    else:
        topic = "equations"
    return f"extendedlstm.{topic}"
