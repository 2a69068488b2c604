"""DynamicQuantizeLSTM: its reference against a derivation of its own, step by step in float32 as kernels go."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import FAULTS, IllegalNode, Node, compare, evaluate, expect, faults_of, run_fault
from onnxspec.reference.operators import discrimination_of

Array = NDArray[Any]
OP, DOMAIN = "DynamicQuantizeLSTM", "com.microsoft"


def drawn(seed: int, **given: Any) -> tuple[Node, dict[str, Array]]:
    """A node and its inputs; `given` takes the place of what is drawn: D, N, T, kind, channels, mixed."""
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


def levels(number: Array) -> Array:
    """What DynamicQuantizeLinear and DequantizeLinear make of numbers, all in float32."""
    low, high = np.minimum(number.min(initial=0), 0), np.maximum(number.max(initial=0), 0)
    scale = np.float32((high - low) / np.float32(255)) if high > low else np.float32(1)
    zero = np.rint(np.clip(-low / scale, 0, 255))
    return ((np.clip(np.rint(number / scale) + zero, 0, 255) - zero) * scale).astype(np.float32)


def by_hand(node: Node, inputs: dict[str, Array]) -> dict[str, Array]:
    """Row by row and step by step; of W and R what their levels stand for."""
    X, lengths = inputs["X"], inputs["sequence_lens"]
    D, (T, N, _), H = len(inputs["W"]), X.shape, inputs["R"].shape[1]
    W, R = (
        (inputs[n].astype(np.float32) - inputs[f"{n}_zero_point"].astype(np.float32).reshape(D, 1, -1))
        * inputs[f"{n}_scale"].reshape(D, 1, -1)
        for n in "WR"
    )
    x = levels(X[: lengths.max()])
    Y = np.zeros((T, D, N, H), np.float32)
    last = np.zeros((2, D, N, H), np.float32)
    for d in range(D):
        h, c = inputs["initial_h"][d].copy(), np.zeros((N, H), np.float32)
        for t in range(lengths.max()):
            state = levels(h)
            h = np.zeros_like(h)
            for n in np.flatnonzero(t < lengths):
                backward = d == 1 or node.attributes["direction"] == "reverse"
                at = lengths[n] - 1 - t if backward else t
                sums = np.clip(
                    x[at, n] @ W[d] + state[n] @ R[d] + inputs["B"][d, : 4 * H] + inputs["B"][d, 4 * H :], -80, 80
                )
                i, o, f, g = sums.reshape(4, H)
                i, o, f = (np.tanh(gate / 2) / 2 + np.float32(0.5) for gate in (i, o, f))
                c[n] = f * c[n] + i * np.tanh(g)
                h[n] = Y[at, d, n] = o * np.tanh(c[n])
                last[:, d, n] = h[n], c[n]
    return {"Y": Y, "Y_h": last[0], "Y_c": last[1]}


@pytest.mark.parametrize("seed", range(40))
def test_a_kernel_in_float32_is_right_and_nearly_all_of_it_is_judged(seed: int) -> None:
    node, inputs = drawn(seed)
    outputs = by_hand(node, inputs)
    agreements = [compare(each, outputs[each.output]) for each in expect(node, inputs, outputs)]
    assert all(agreement.worst <= 1 for agreement in agreements)
    assert sum(a.judged for a in agreements) >= 0.9 * sum(a.elements for a in agreements)
    values = evaluate(node, inputs)
    assert np.abs(values["Y"] - outputs["Y"]).max() < 0.05  # a level may differ, and what follows from it


def test_it_has_lstms_faults_and_its_own() -> None:
    own = {fault.id for fault in faults_of(OP, 1)}
    assert {"gates.interleaved", "lstm.gates.icfo", "weights.next-channel"} <= own
    assert not {id for id in own if id.startswith(("gru.", "rnn.", "extended.", "layout."))}


@pytest.mark.parametrize(
    ("id", "given"),
    [
        ("weights.zero-points-ignored", {}),
        ("weights.zero-points-of-the-other-direction", {"D": 2}),
        ("weights.scales-of-the-other-direction", {"D": 2}),
        ("weights.scale-of-w-for-r", {}),
        ("weights.first-channel", {"channels": True}),
        ("weights.next-channel", {"channels": True}),
        ("weights.zero-points-out-of-bounds", {"channels": True, "mixed": True, "D": 2}),
        ("weights.other-sign", {"kind": "uint8"}),
        ("dynamic.truncated", {}),
        ("dynamic.not-quantized", {}),
        ("dynamic.states-not-quantized", {}),
        ("dynamic.state-range-of-2-parts", {"N": 5}),
    ],
)
def test_its_faults_show(id: str, given: dict[str, Any]) -> None:
    node, inputs = drawn(2, **given)
    assert discrimination_of(FAULTS[id], node, [inputs]) > 8


def test_ties_go_to_even() -> None:
    node, inputs = drawn(2, D=1)
    X = inputs["X"] = np.zeros((4, 1, 2), np.float32)
    X[:, 0] = [(-100, 155), (0.5, 1.5), (2.5, -0.5), (3.5, -1.5)]  # a level is 1 exactly
    inputs |= {"W": inputs["W"][:, :1].repeat(2, 1), "initial_h": inputs["initial_h"][:, :1]}
    inputs["sequence_lens"] = np.array([4], np.int32)
    assert discrimination_of(FAULTS["dynamic.half-up"], node, [inputs]) > 8
    outputs = by_hand(node, inputs)
    assert all(compare(each, outputs[each.output]).worst <= 1 for each in expect(node, inputs, outputs))


def test_a_range_whose_levels_vanish_is_that_of_zeros() -> None:
    node, inputs = drawn(4)
    inputs["X"] = np.full_like(inputs["X"], 2.0**-145)
    with np.errstate(all="raise", under="ignore"):
        outputs = evaluate(node, inputs)
    zeros = evaluate(node, inputs | {"X": np.zeros_like(inputs["X"])})
    assert all(np.array_equal(outputs[name], zeros[name]) for name in zeros)
    assert all(np.isfinite(each.number.radius).all() for each in expect(node, inputs, outputs))


def test_a_range_reaches_to_zero() -> None:
    node, inputs = drawn(4)
    inputs["X"] = np.abs(inputs["X"]) + 1
    assert discrimination_of(FAULTS["dynamic.range-without-zero"], node, [inputs]) > 8


def test_a_range_is_not_that_of_the_first_step() -> None:
    node, inputs = drawn(2)
    inputs["X"][0] /= 4
    assert discrimination_of(FAULTS["dynamic.range-of-first-step"], node, [inputs]) > 8


def test_rows_that_are_through_stay_in_the_range_only_where_y_is_not_asked_for() -> None:
    node, inputs = drawn(2, D=1, N=3, T=5)
    inputs["sequence_lens"] = np.array([5, 2, 3], np.int32)
    fault = FAULTS["dynamic.finished-rows-counted-without-y"]
    inputs["initial_h"] *= 3
    right = run_fault(fault, node, inputs)
    assert all(np.array_equal(right[name], evaluate(node, inputs)[name].astype(np.float32)) for name in right)
    fewer = Node(OP, 1, node.attributes, ("Y_h", "Y_c"), DOMAIN)
    assert any(not np.array_equal(run_fault(fault, fewer, inputs)[name], right[name]) for name in ("Y_h", "Y_c"))


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


def test_faults_that_lstm_has_do_what_they_do_there() -> None:
    node, inputs = drawn(4, D=2)
    for fault in faults_of(OP, 1):
        if not fault.accepts:
            run_fault(fault, node, {name: array.copy() for name, array in inputs.items()})
