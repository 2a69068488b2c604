"""Exact cases: no conforming implementation rounds any number that their outputs depend on, so their error bound is 0.

This holds for the default interpretations; others have ordinary bounds.

Data and coefficients are multiples of powers of 2, and every partial sum, in any order, is a number of the tensors'
type. ``tests/cases/specs/test_exact.py`` proves this for each case. Cases are listed by id: a case that differs in any
field is not exact.
"""

from __future__ import annotations

from dataclasses import replace

from .case import Case

EXACT_CASES = frozenset(
    {
        "gru-14.float32.bidirectional.bias.initial-all.activations.exact.T1N3I2H3.87b4a2",
        "gru-14.float32.bidirectional.bias.initial-all.activations.exact.T1N3I2H3.e7703e",
        "gru-14.float32.bidirectional.bias.initial-all.activations.exact.T1N3I2H3.c43f81",
        "gru-14.float32.bidirectional.bias.initial-all.activations.exact.T1N3I2H3.a21ae0",
        "rnn-14.float32.bidirectional.bias.initial-all.activations.exact.T1N3I2H3.f51479",
        "rnn-14.float32.bidirectional.bias.initial-all.activations.exact.T1N3I2H3.09aae2",
        "rnn-14.float32.bidirectional.bias.initial-all.activations.exact.T1N3I2H3.5dfe46",
        "rnn-14.float32.bidirectional.bias.initial-all.activations.exact.T1N3I2H3.8a8f5c",
        "rnn-14.float64.bidirectional.bias.initial-all.activations.exact.T2N3I2H3.fbbf63",
        "rnn-14.float64.bidirectional.bias.initial-all.activations.exact.T2N3I2H3.443a51",
        "rnn-14.float16.bidirectional.bias.initial-all.activations.exact.T1N3I2H3.7bf09f",
        "rnn-14.float16.bidirectional.bias.initial-all.activations.exact.T1N3I2H3.4dd948",
        "rnn-22.bfloat16.bidirectional.bias.initial-all.activations.exact.T1N3I2H3.510cc6",
        "rnn-22.bfloat16.bidirectional.bias.initial-all.activations.exact.T1N3I2H3.60ba8f",
        "lstm-14.float32.forward.activations.u8.scales-power.T1N40I3H36.570986",
        "lstm-14.float32.forward.activations.u8.scales-power.T1N40I3H36.66795a",
        "lstm-14.float32.forward.activations.s8.scales-power.T1N40I3H36.22af3e",
        "lstm-14.float32.forward.activations.s8.scales-power.T1N40I3H36.e60e01",
        "lstm-14.float32.forward.activations.u16.weights-s8.scales-power.T1N40I3H36.01e567",
        "lstm-14.float32.forward.activations.u16.weights-s8.scales-power.T1N40I3H36.19da88",
        "lstm-14.float32.forward.activations.s16.weights-s8.scales-power.T1N40I3H36.e143f6",
        "lstm-14.float32.forward.activations.s16.weights-s8.scales-power.T1N40I3H36.d5cabd",
        "gru-14.float32.forward.activations.u8.scales-power.T1N40I3H36.16ed60",
        "gru-14.float32.forward.activations.u8.scales-power.T1N40I3H36.e5be30",
        "gru-14.float32.forward.activations.s8.scales-power.T1N40I3H36.634771",
        "gru-14.float32.forward.activations.s8.scales-power.T1N40I3H36.0fbf4a",
        "gru-14.float32.forward.activations.u16.weights-s8.scales-power.T1N40I3H36.b74100",
        "gru-14.float32.forward.activations.u16.weights-s8.scales-power.T1N40I3H36.9c24c5",
        "gru-14.float32.forward.activations.s16.weights-s8.scales-power.T1N40I3H36.a14c96",
        "gru-14.float32.forward.activations.s16.weights-s8.scales-power.T1N40I3H36.0b352b",
        "rnn-14.float32.forward.activations.u8.scales-power.T1N40I3H36.c97df2",
        "rnn-14.float32.forward.activations.u8.scales-power.T1N40I3H36.4e73be",
        "rnn-14.float32.forward.activations.s8.scales-power.T1N40I3H36.1e4671",
        "rnn-14.float32.forward.activations.s8.scales-power.T1N40I3H36.cc99e8",
        "rnn-14.float32.forward.activations.u16.weights-s8.scales-power.T1N40I3H36.d5c256",
        "rnn-14.float32.forward.activations.u16.weights-s8.scales-power.T1N40I3H36.886933",
        "rnn-14.float32.forward.activations.s16.weights-s8.scales-power.T1N40I3H36.f8e8d9",
        "rnn-14.float32.forward.activations.s16.weights-s8.scales-power.T1N40I3H36.dc56e9",
    }
)


def mark_exact(case: Case) -> Case:
    """Return the case, with nodes that are marked as exact if it is one of EXACT_CASES."""
    if case.spec.id not in EXACT_CASES:
        return case
    return case.changed(lambda trial: replace(trial, node=replace(trial.node, exact=True)))
