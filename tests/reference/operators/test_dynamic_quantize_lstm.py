"""Tests of DynamicQuantizeLSTM against an independent derivation, step by step in float32 like kernels."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import (
    FAULTS,
    IllegalNode,
    Interpretations,
    Node,
    compare,
    evaluate,
    expect,
    faults_of,
    open_questions_of,
    operator_for,
)
from onnxspec.reference.operators.asking import kill_margin

Array = NDArray[Any]
OP, DOMAIN = "DynamicQuantizeLSTM", "com.microsoft"


def drawn(seed: int, **given: Any) -> tuple[Node, dict[str, Array]]:
    """Return a node and its inputs. `given` replaces random choices: D, N, T, kind, channels, mixed."""
    random = np.random.default_rng(seed)
    T, N, I, H = (int(random.integers(low, 7)) for low in (2, 1, 1, 2))
    T, N, D = given.get("T", T), given.get("N", N), given.get("D", int(random.integers(1, 3)))
    kind = np.dtype(given.get("kind", ("uint8", "int8")[seed % 2]))
    least, most = np.iinfo(kind).min, np.iinfo(kind).max + 1
    channels = given.get("channels", bool(random.integers(2)))
    shape = (D, 4 * H) if channels else (D,)
    zeros = (D,) if given.get("mixed") else shape
    inputs: dict[str, Array] = {
        "X": (3 * random.standard_normal((T, N, I))).astype(np.float32),
        "B": random.standard_normal((D, 8 * H)).astype(np.float32),
        "sequence_lens": random.integers(1, T + 1, N).astype(np.int32),
        "initial_h": (random.standard_normal((D, N, H)) / 2).astype(np.float32),
    }
    for name, columns in (("W", I), ("R", H)):
        inputs[name] = random.integers(least, most, (D, columns, 4 * H)).astype(kind)
        inputs[f"{name}_scale"] = random.uniform(0.002, 0.02, shape).astype(np.float32)
        inputs[f"{name}_zero_point"] = random.integers(least, most, zeros).astype(kind)
    direction = "bidirectional" if D == 2 else ("forward", "reverse")[seed % 2]
    return Node(OP, 1, {"direction": direction, "hidden_size": H}, ("Y", "Y_h", "Y_c"), DOMAIN), inputs


def levels(number: Array, among: Array | None = None) -> Array:
    """Return numbers after DynamicQuantizeLinear and DequantizeLinear, all in float32.

    The range is that of `among`, or of the numbers themselves.
    """
    ranged = number if among is None else among
    low, high = np.minimum(ranged.min(initial=0), 0), np.maximum(ranged.max(initial=0), 0)
    scale = np.float32((high - low) / np.float32(255)) if high > low else np.float32(1)
    zero = np.rint(np.clip(-low / scale, 0, 255))
    return ((np.clip(np.rint(number / scale) + zero, 0, 255) - zero) * scale).astype(np.float32)


def by_hand(
    node: Node, inputs: dict[str, Array], input_range: str = "sequence", state_range: str = "batch", clock: bool = False
) -> dict[str, Array]:
    """Return outputs computed step by step, all rows at once, with masks; W and R are dequantized first.

    The ranges are those of a kernel that computes in this order: see the operator's questions. With `clock`, reverse
    goes through the steps of X backwards; otherwise through those of each row.
    """
    X, lengths = inputs["X"], inputs["sequence_lens"]
    D, (T, N, _), H = len(inputs["W"]), X.shape, inputs["R"].shape[1]
    W, R = (
        (inputs[n].astype(np.float32) - inputs[f"{n}_zero_point"].astype(np.float32).reshape(D, 1, -1))
        * inputs[f"{n}_scale"].reshape(D, 1, -1)
        for n in "WR"
    )
    valid, rows = np.arange(T)[:, np.newaxis] < lengths, np.arange(N)
    wholes = {"sequence": X[: lengths.max()], "tensor": X, "valid": X[valid]}
    Y = np.zeros((T, D, N, H), np.float32)
    last = np.zeros((2, D, N, H), np.float32)
    for d in range(D):
        backward = d == 1 or node.attributes["direction"] == "reverse"
        h, c = inputs["initial_h"][d].copy(), np.zeros((N, H), np.float32)
        for step in range(T):
            if backward and clock:
                at, had = np.full(N, T - 1 - step), step - (T - lengths)
            else:
                at, had = np.where(backward & (step < lengths), lengths - 1 - step, step), np.full(N, step)
            live = (had >= 0) & (had < lengths)
            x = X[at, rows]
            if input_range in wholes:
                x = levels(x, wholes[input_range])
            elif input_range in ("step", "running"):
                x = levels(x, x if input_range == "step" else x[live])
            else:
                of = [x[n] if input_range == "vector" else X[: lengths[n], n] for n in rows]
                x = np.stack([levels(x[n], of[n]) for n in rows])
            among = {"batch": (had >= 0) & (had <= lengths), "running": live, "held": had > -T - 1}
            each = state_range == "row"
            state = np.stack([levels(h[n]) for n in rows]) if each else levels(h, h[among[state_range]])
            B = inputs["B"][d]
            sums = np.clip(x @ W[d] + state @ R[d] + B[: 4 * H] + B[4 * H :], -80, 80)
            i, o, f, g = sums.reshape(N, 4, H).swapaxes(0, 1)
            i, o, f = (np.tanh(gate / 2) / 2 + np.float32(0.5) for gate in (i, o, f))
            c = np.where(live[:, np.newaxis], f * c + i * np.tanh(g), c)
            h = np.where(live[:, np.newaxis], o * np.tanh(c), h)
            Y[at[live], d, rows[live]] = h[live]
        last[:, d] = h, c
    return {"Y": Y, "Y_h": last[0], "Y_c": last[1]}


def is_right(
    node: Node, inputs: dict[str, Array], outputs: dict[str, Array], reading: Interpretations | None = None
) -> bool:
    """Return whether all outputs lie within their bounds."""
    expected = expect(node, inputs, outputs, interpretations=reading)
    return all(compare(expectation, outputs[expectation.output]).worst <= 1 for expectation in expected)


@pytest.mark.parametrize("seed", range(40))
def test_a_kernel_in_float32_is_right_and_nearly_all_of_it_is_judged(seed: int) -> None:
    node, inputs = drawn(seed)
    outputs = by_hand(node, inputs)
    assert is_right(node, inputs, outputs)
    agreements = [compare(expectation, outputs[expectation.output]) for expectation in expect(node, inputs, outputs)]
    assert sum(a.judged for a in agreements) >= 0.9 * sum(a.elements for a in agreements)
    values = evaluate(node, inputs)
    assert np.abs(values["Y"] - outputs["Y"]).max() < 0.05  # a level may differ, and its consequences


WALKS = [
    (inputs, states, clock)
    for inputs in ("sequence", "tensor", "valid", "step", "running", "row", "vector")
    for states in ("batch", "running", "held", "row")
    for clock in (False, True)
]


@pytest.mark.parametrize("asked", [("Y", "Y_h", "Y_c"), ("Y_h", "Y_c")])
@pytest.mark.parametrize("walk", WALKS)
def test_a_kernel_that_takes_any_range_is_right_by_the_reading_that_it_follows(
    walk: Any, asked: tuple[str, ...]
) -> None:
    inputs_of, states_of, clock = walk
    pace = "clock" if clock else "own"
    reading = Interpretations(input_range=inputs_of, state_range=states_of, reverse_pace=pace)
    node, inputs = drawn(4, D=2, N=4, T=5)
    inputs["sequence_lens"] = np.array([3, 4, 1, 4], np.int32)
    inputs["initial_h"] *= 3
    inputs["X"][4] *= 20  # past all rows, and past one of them: ranges that include parts of them differ
    inputs["X"][3, 0] *= 9
    node = Node(OP, 1, node.attributes, asked, DOMAIN)
    assert open_questions_of(node, inputs) >= {"input_range", "state_range", "reverse_pace"}
    outputs = {name: array for name, array in by_hand(node, inputs, *walk).items() if name in asked}
    assert is_right(node, inputs, outputs, reading)
    assert is_right(node, inputs, outputs) == (walk == ("sequence", "batch", False))


def test_which_steps_reverse_takes_at_once_is_asked_only_where_rows_differ() -> None:
    node, inputs = drawn(3, D=2, N=3, T=4)
    inputs["sequence_lens"] = np.array([4, 2, 3], np.int32)
    assert "reverse_pace" in open_questions_of(node, inputs)
    assert "reverse_pace" not in open_questions_of(node, inputs | {"sequence_lens": np.full(3, 4, np.int32)})
    assert "reverse_pace" not in open_questions_of(
        Node(OP, 1, {"direction": "forward"}, node.outputs, DOMAIN),
        {name: array[:1] if name[0] in "WRBi" else array for name, array in inputs.items()},
    )


def test_it_has_lstms_faults_and_its_own() -> None:
    own = {fault.id for fault in faults_of(OP, 1)}
    assert {"gates.interleaved", "lstm.gates.icfo", "weights.next-channel"} <= own
    assert not {id for id in own if id.startswith(("gru.", "rnn.", "extended.", "layout."))}


# Factors of the steps of X: only the first step is smaller.
FIRST_SMALLER = np.array([0.25] + [1.0] * 5, np.float32).reshape(-1, 1, 1)


@pytest.mark.parametrize(
    ("id", "given", "change"),
    [
        ("weights.zero-points-ignored", {}, None),
        ("weights.zero-points-of-the-other-direction", {"D": 2}, None),
        ("weights.scales-of-the-other-direction", {"D": 2}, None),
        ("weights.scale-of-w-for-r", {}, None),
        ("weights.first-channel", {"channels": True}, None),
        ("weights.next-channel", {"channels": True}, None),
        ("weights.zero-points-out-of-bounds", {"channels": True, "mixed": True, "D": 2}, None),
        ("weights.other-sign", {"kind": "uint8"}, None),
        ("dynamic.truncated", {}, None),
        ("dynamic.not-quantized", {}, None),
        ("dynamic.states-not-quantized", {}, None),
        ("dynamic.state-range-of-2-parts", {"N": 5}, None),
        ("dynamic.range-without-zero", {}, lambda X: np.abs(X) + 1),
        ("dynamic.range-of-first-step", {}, lambda X: X * FIRST_SMALLER[: len(X)]),
    ],
)
def test_its_faults_show(id: str, given: dict[str, Any], change: Any) -> None:
    node, inputs = drawn(2, **given)
    if change is not None:
        inputs["X"] = change(inputs["X"])
    assert kill_margin(FAULTS[id], node, [(inputs, inputs)]) > 8


def test_any_two_of_its_faults_are_made_together() -> None:
    node, inputs = drawn(2)
    answer = operator_for(node).answering(node, inputs)
    own = [fault for fault in faults_of(OP, 1) if fault.id.startswith(("dynamic.", "weights."))]
    assert len(own) > 10
    for pair in permutations(own, 2):
        outputs = answer(pair, fed={name: array.copy() for name, array in inputs.items()})
        assert outputs.keys() == set(node.outputs), pair


def test_ties_go_to_even() -> None:
    node, inputs = drawn(2, D=1)
    X = inputs["X"] = np.zeros((4, 1, 2), np.float32)
    X[:, 0] = [(-100, 155), (0.5, 1.5), (2.5, -0.5), (3.5, -1.5)]  # a level is 1 exactly
    inputs |= {"W": inputs["W"][:, :1].repeat(2, 1), "initial_h": inputs["initial_h"][:, :1]}
    inputs["sequence_lens"] = np.array([4], np.int32)
    assert kill_margin(FAULTS["dynamic.half-up"], node, [(inputs, inputs)]) > 8
    assert is_right(node, inputs, by_hand(node, inputs))


def test_a_range_whose_levels_vanish_is_that_of_zeros() -> None:
    node, inputs = drawn(4)
    inputs["X"] = np.full_like(inputs["X"], 2.0**-145)
    with np.errstate(all="raise", under="ignore"):
        outputs = evaluate(node, inputs)
    zeros = evaluate(node, inputs | {"X": np.zeros_like(inputs["X"])})
    assert all(np.array_equal(outputs[name], zeros[name]) for name in zeros)
    assert all(np.isfinite(expectation.number.radius).all() for expectation in expect(node, inputs, outputs))


@pytest.mark.parametrize(
    ("name", "change", "clause"),
    [
        ("W", lambda a: a.astype(np.float32), "types"),
        ("R", lambda a: a.view(np.int8), "types"),
        ("W_scale", lambda a: a.astype(np.float64), "types"),
        ("W_zero_point", lambda a: a[:0], "shapes"),
        ("R_scale", lambda a: np.tile(a.reshape(len(a), -1)[:, :1], (1, 3)), "shapes"),
        ("W", lambda a: a.swapaxes(1, 2), "shapes"),
    ],
)
def test_what_its_document_does_not_allow_is_refused(name: str, change: Any, clause: str) -> None:
    node, inputs = drawn(2, kind="uint8")
    inputs[name] = change(inputs[name])
    with pytest.raises(IllegalNode) as caught:
        evaluate(node, inputs)
    assert caught.value.clause == f"dynamicquantizelstm.{clause}"


def test_four_readings_of_the_ranges_are_tried_before_all_others() -> None:
    asked = ("input_range", "state_range", "reverse_pace")
    choices = [tuple(getattr(each, name) for name in asked) for each in Interpretations().alternatives(asked)]
    assert choices[0] == ("sequence", "batch", "own")
    assert {*choices[:4]} == {(x, h, "own") for x in ("sequence", "step") for h in ("batch", "row")}
    assert len({*choices}) == len(choices) == 7 * 4 * 2
