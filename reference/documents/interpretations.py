"""Interpretations: the meanings that ambiguous clauses allow, as choices that the reference can compute with.

A target may follow any interpretation of a clause, but the same one everywhere. The first option of each is the
reference's own. What each is about, and why it is open, stands in the clause tables.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

__all__ = ["ASKED_ANEW", "GENEROUS", "OPTIONS", "USUAL", "Interpretations"]


@dataclass(frozen=True)
class Interpretations:
    """One choice per open question.

    cell_output_clip
        ``clipped``: clip bounds the argument of h(Ct) like that of every activation; ``unclipped``: only those of
        the gates.
    coupled_gate
        ``input``: input_forget keeps the input gate, f = 1 - i; ``forget``: it keeps the forget gate, i = 1 - f.
    coefficients
        ``by-use``: each activation that uses an alpha (beta) takes the next one; ``by-position``: the n-th entry
        belongs to the n-th activation, used or not.
    defaults
        Functions without coefficients for which the document names none, like Affine and ScaledTanh: ``one``: those of
        the ONNX operator of that name, and where it has none, alpha 1 and beta 0 for Affine, alpha 1 and beta 1 for
        ScaledTanh; ``zero``: 0 throughout.
    threshold
        ThresholdedRelu at x == alpha: ``at``: x; ``above``: 0.
    empty
        State after a sequence of no steps: ``initial``: the initial state; ``zero``: zeros.
    zero_clip
        A clip of 0: ``off``: no clip; ``zero``: every argument becomes 0.
    recurrent_product
        Version 1 prints Ht-1*Ri where later versions print Ht-1*(Ri^T), and either fits R's shape: ``transposed`` or
        ``plain``.
    sequence_output
        Version 1, output_sequence 0, and Y asked for all the same: ``given`` or ``absent``.
    state_quantization
        Of a quantized Y, what goes into the next step: ``quantized``, Y itself; ``as-computed``, Ht before that.
    """

    cell_output_clip: str = "clipped"
    coupled_gate: str = "input"
    coefficients: str = "by-use"
    defaults: str = "one"
    threshold: str = "at"
    empty: str = "initial"
    zero_clip: str = "off"
    recurrent_product: str = "transposed"
    sequence_output: str = "given"
    state_quantization: str = "quantized"

    def __post_init__(self) -> None:
        for name, options in OPTIONS.items():
            if getattr(self, name) not in options:
                raise ValueError(f"interpretation {name} is one of {', '.join(options)}, not {getattr(self, name)!r}")

    def alternatives(self, touched: Iterable[str]) -> Iterator[Interpretations]:
        """Every combination of the options of the named interpretations, this one first."""
        return iter(_alternatives(self, frozenset(touched)))


@cache  # every case asks, and few questions are open together
def _alternatives(usual: Interpretations, touched: frozenset[str]) -> tuple[Interpretations, ...]:
    names = sorted(touched)
    choices = [sorted(OPTIONS[n], key=lambda o, n=n: o != getattr(usual, n)) for n in names]  # type: ignore[misc]
    return tuple(replace(usual, **dict(zip(names, options, strict=True))) for options in itertools.product(*choices))


OPTIONS: dict[str, tuple[str, ...]] = {
    "cell_output_clip": ("clipped", "unclipped"),
    "coupled_gate": ("input", "forget"),
    "coefficients": ("by-use", "by-position"),
    "defaults": ("one", "zero"),
    "threshold": ("at", "above"),
    "empty": ("initial", "zero"),
    "zero_clip": ("off", "zero"),
    "recurrent_product": ("transposed", "plain"),
    "sequence_output": ("given", "absent"),
    "state_quantization": ("quantized", "as-computed"),
}

ASKED_ANEW: frozenset[str] = frozenset({"defaults"})
"""Interpretations whose question is another one for every activation function: following both options is no
contradiction."""

GENEROUS: dict[str, str] = {"cell_output_clip": "unclipped", "defaults": "zero", "threshold": "above"}
"""Options that the letter of a document speaks against, and its text can be read for all the same: the clauses say how.
Reports name the targets that follow one."""

USUAL = Interpretations()
"""The reference's own."""
