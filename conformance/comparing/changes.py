"""Single changes of a recurrent node that exporters and their users get wrong, each a hypothesis about a model.

A change is a computation of the framework that differs from the exported model. Sources: the documents of LSTM, GRU and
RNN, which print the order of gates and the defaults of attributes; PyTorch's documentation of ``torch.nn.LSTM`` and
``GRU`` (blocks i, f, g, o and r, z, n; two biases; the reset gate after the recurrent product); Keras' of its layers
(blocks i, f, c, o and z, r, h; ``reset_after``; ``hard_sigmoid``; ``unit_forget_bias``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations, product
from typing import Any

import numpy as np

from ..text import listed
from .split import Array, Arrays, RecurrentNode, evaluated

_BLOCKS = {"LSTM": "iofc", "GRU": "zrh", "RNN": "i"}
"""Letters of the blocks of W, R and B in the order of the document."""

_FRAMEWORKS = {
    ("LSTM", "ifco"): "PyTorch's and Keras' order",
    ("LSTM", "icfo"): "the order of TensorFlow 1",
    ("GRU", "rzh"): "PyTorch's order",
}

_FUNCTIONS = {
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    "GRU": ("Sigmoid", "Tanh"),
    "RNN": ("Tanh",),
}

_OTHER_FUNCTIONS: dict[str, tuple[tuple[str, float | None], ...]] = {
    "Sigmoid": (("HardSigmoid", 0.2), ("HardSigmoid", 1 / 6), ("Tanh", None), ("Relu", None)),
    "HardSigmoid": (("Sigmoid", None), ("HardSigmoid", 0.2), ("HardSigmoid", 1 / 6)),
    "Tanh": (("Relu", None), ("Sigmoid", None), ("Softsign", None)),
    "Relu": (("Tanh", None), ("Sigmoid", None)),
}
"""Functions that a framework may have in place of one, with the alpha of HardSigmoid; its beta is 0.5."""


@dataclass(frozen=True)
class Change:
    """One difference of the framework from the model.

    words
        The difference, as a phrase after "with".
    remedy
        The remedy in the model or in its export.
    outputs
        Outputs of a node by formal name, from the node and its inputs.
    """

    words: str
    remedy: str
    outputs: Callable[[RecurrentNode, Arrays], Mapping[str, Array]]


def changes_of(node: RecurrentNode, inputs: Arrays, given: Arrays) -> Iterator[Change]:
    """Yield the changes that can be made to a node with these inputs.

    given
        The inputs of the model, by name.
    """
    yield from _attributes(node)
    yield from _activations(node)
    yield from _gate_orders(node, inputs)
    yield from _biases(node, inputs)
    yield from _weights(node, inputs)
    yield from _states_and_lengths(inputs)
    yield from _lost(node, inputs, given)
    yield from _directions(node, inputs)
    if not {"initial_h", "initial_c", "sequence_lens"} & inputs.keys():  # they tell batch and time apart
        remedy = "transpose X before the node and Y behind it: one of the two is batch first"
        yield Change("X with time and batch exchanged", remedy, _batch_first)


def with_inputs(words: str, remedy: str, **changed: Array | None) -> Change:
    """Return a change to these inputs; None removes an input."""
    return _change(words, remedy, lambda inputs: changed)


def _change(
    words: str,
    remedy: str,
    inputs_of: Callable[[Arrays], Mapping[str, Array | None]] = lambda inputs: {},
    **attributes: Any,
) -> Change:
    """Return a change of some inputs and attributes; None removes one."""

    def outputs(node: RecurrentNode, inputs: Arrays) -> Mapping[str, Array]:
        changed = {name: array for name, array in {**inputs, **inputs_of(inputs)}.items() if array is not None}
        left = {name: value for name, value in {**node.node.attributes, **attributes}.items() if value is not None}
        return evaluated(replace(node.node, attributes=left), changed)

    return Change(words, remedy, outputs)


def _attributes(node: RecurrentNode) -> Iterator[Change]:
    attributes = node.node.attributes
    if node.node.op_type == "GRU" and "linear_before_reset" in node.node.operator.attributes:
        value = 1 - int(bool(attributes.get("linear_before_reset", 0)))
        remedy = f"set linear_before_reset to {value}; Keras calls it reset_after, and PyTorch always computes 1"
        yield _change(f"linear_before_reset = {value}", remedy, linear_before_reset=value)
    if node.node.op_type == "LSTM":
        value = 1 - int(bool(attributes.get("input_forget", 0)))
        yield _change(f"input_forget = {value}", f"set input_forget to {value}", input_forget=value)
    if attributes.get("clip"):
        yield _change("no clip", "remove the attribute clip", clip=None)
    direction = attributes.get("direction", "forward")
    if direction in ("forward", "reverse"):
        other = "reverse" if direction == "forward" else "forward"
        yield _change(f"direction = {other}", f"set direction to {other}", direction=other)


def _activations(node: RecurrentNode) -> Iterator[Change]:
    attributes, defaults = node.node.attributes, _FUNCTIONS[node.node.op_type]
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    written = tuple(attributes.get("activations", defaults * directions))
    if len(written) != len(defaults) * directions:
        return
    remove: dict[str, Any] = {"activation_alpha": None, "activation_beta": None}
    if "activations" in attributes:
        remedy = "remove activations, activation_alpha and activation_beta"
        yield _change("the default activation functions", remedy, activations=None, **remove)
    if attributes.get("activation_alpha") or attributes.get("activation_beta"):
        words = "the default coefficients of its activation functions"
        yield _change(words, "remove activation_alpha and activation_beta", **remove)
    for position, current in enumerate(written[: len(defaults)]):
        where = (" of the gates", " of the candidate", " of the cell's output")[position] if len(defaults) > 1 else ""
        for name, alpha in _OTHER_FUNCTIONS.get(current, ()):
            changed = list(written)
            changed[position :: len(defaults)] = [name] * directions
            if alpha is None:
                if tuple(changed) != defaults * directions:  # else a change above covers this
                    words, remedy = f"{name} in place of {current}{where}", f"write activations = {changed}"
                    yield _change(words, remedy, activations=tuple(changed), **remove)
            elif {*changed} <= {"HardSigmoid", "Sigmoid", "Tanh", "Relu", "Softsign"}:
                hard = changed.count("HardSigmoid")
                yield _change(
                    f"{name} (alpha {_fraction(alpha)}, beta 0.5) in place of {current}{where}",
                    f"write activations = {changed}, activation_alpha {_fraction(alpha)}, activation_beta 0.5",
                    activations=tuple(changed),
                    activation_alpha=(alpha,) * hard,
                    activation_beta=(0.5,) * hard,
                )


def _fraction(number: float) -> str:
    return "1/6" if abs(number - 1 / 6) < 1e-12 else f"{number:g}"


def _gate_orders(node: RecurrentNode, inputs: Arrays) -> Iterator[Change]:
    op = node.node.op_type
    letters = _BLOCKS[op]
    if len(letters) == 1:
        return
    present = [name for name in ("W", "R", "B") if name in inputs]
    groups = [present, *([name] for name in present if len(present) > 1)]
    for order in map("".join, permutations(letters)):
        if order == letters:
            continue
        source = _FRAMEWORKS.get((op, order))
        in_order = f"in the order {', '.join(order)}"
        for names in groups:
            yield _change(
                f"the blocks of {listed(names)} {in_order}" + (f" ({source})" if source else ""),
                f"reorder the blocks of {listed(names)} to {', '.join(letters)}, as the document of {op} has them",
                partial(_reordered, names=names, order=order, letters=letters),
            )
        for d, direction in enumerate(("forward", "backward") if len(inputs["W"]) == 2 else ()):
            yield _change(
                f"the {direction} direction's blocks {in_order}",
                f"reorder the {direction} direction's blocks of {listed(present)} to {', '.join(letters)}",
                partial(_reordered, names=present, order=order, letters=letters, directions=slice(d, d + 1)),
            )


def _reordered(
    inputs: Arrays, names: list[str], order: str, letters: str, directions: slice = slice(None)
) -> dict[str, Array]:
    """Return blocks that are in the order `order`, in the document's order, in some directions."""
    places = [order.index(letter) for letter in letters]
    result = {name: inputs[name].copy() for name in names}
    for name, array in result.items():
        blocks = array.reshape(len(array), 2 if name == "B" else 1, len(letters), -1)
        array[directions] = blocks[:, :, places].reshape(array.shape)[directions]
    return result


def _biases(node: RecurrentNode, inputs: Arrays) -> Iterator[Change]:
    if "B" not in inputs:
        return
    W, R = np.split(inputs["B"], 2, axis=1)
    none, forget = np.zeros_like(W), np.zeros_like(W)
    forget[:, W.shape[1] // 2 : W.shape[1] // 4 * 3] = 1
    yield with_inputs("no bias", "remove B, or set it to 0", B=None)
    rows = [
        ("the bias halves Wb and Rb exchanged", "exchange the halves of B", (R, W)),
        ("Wb alone as the bias", "set Rb, the second half of B, to 0", (W, none)),
        ("Rb alone as the bias", "set Wb, the first half of B, to 0", (none, R)),
        ("Wb in both halves of the bias", "Rb, the second half of B, is not the framework's", (W, W)),
    ]
    if node.node.op_type == "LSTM":
        part = "the forget gate's part of B (forget_bias)"
        rows.append(("the bias of the forget gate higher by 1", f"add 1 to {part}", (W + forget, R)))
        rows.append(("the bias of the forget gate lower by 1", f"subtract 1 from {part}", (W - forget, R)))
    for words, remedy, halves in rows:
        yield with_inputs(words, remedy, B=np.concatenate(halves, axis=1))


def _weights(node: RecurrentNode, inputs: Arrays) -> Iterator[Change]:
    count = len(_BLOCKS[node.node.op_type])
    for name in ("W", "R"):
        _, rows, columns = inputs[name].shape
        if rows != columns or count == 1:
            yield _change(
                f"{name} transposed from its values in order (a reshape took the place of a transpose)",
                f"transpose the framework's kernel to {name} instead of reshaping it",
                partial(_from_reshape, name=name),
            )
        if rows == count * columns:
            words = f"each gate's block of {name} transposed"
            remedy = f"transpose each gate's block of {name}"
            yield _change(words, remedy, partial(_transposed_blocks, name=name, count=count))


def _from_reshape(values: Arrays, name: str) -> dict[str, Array]:
    directions, rows, columns = values[name].shape
    return {name: np.ascontiguousarray(values[name].reshape(directions, columns, rows).swapaxes(1, 2))}


def _transposed_blocks(values: Arrays, name: str, count: int) -> dict[str, Array]:
    blocks = np.split(values[name], count, axis=1)
    return {name: np.concatenate([block.swapaxes(1, 2) for block in blocks], axis=1)}


def _states_and_lengths(inputs: Arrays) -> Iterator[Change]:
    states = [name for name in ("initial_h", "initial_c") if name in inputs]
    for names in [states, *([name] for name in states if len(states) > 1)] if states else []:
        remedy = f"remove {listed(names)}, or feed what the framework started from"
        yield with_inputs(f"{listed(names)} of zero", remedy, **dict.fromkeys(names))
    if len(states) == 2:
        yield _change(
            "initial_h and initial_c exchanged",
            "exchange initial_h and initial_c",
            lambda values: {"initial_h": values["initial_c"], "initial_c": values["initial_h"]},
        )
    if "sequence_lens" in inputs:
        remedy = "remove sequence_lens, or give the framework packed sequences"
        yield with_inputs("all steps of every row, without sequence_lens", remedy, sequence_lens=None)


def _lost(node: RecurrentNode, inputs: Arrays, given: Arrays) -> Iterator[Change]:
    """Yield changes that give a node a state or lengths of the model's inputs, which an export lost or froze."""
    X, R = inputs["X"], inputs["R"]
    rows = X.shape[1 - _layout(node)]
    state = (rows, len(R)) if _layout(node) else (len(R), rows)
    shapes = {"sequence_lens": (rows,), "initial_h": (*state, R.shape[2]), "initial_c": (*state, R.shape[2])}
    fitting = {
        formal: [
            name
            for name, array in given.items()
            if array.shape == shape
            and array.dtype.kind == ("i" if formal == "sequence_lens" else "f")
            and not any(np.array_equal(array, used) for used in inputs.values())
        ]
        for formal, shape in shapes.items()
        if formal in node.node.operator.inputs
    }
    candidates = [{formal: name} for formal, names in fitting.items() for name in names]
    pairs = product(fitting["initial_h"], fitting.get("initial_c", ()))
    candidates += [{"initial_h": h, "initial_c": c} for h, c in pairs if h != c]
    for sources in candidates:
        description = " and ".join(f"{formal} from the model's input {name}" for formal, name in sources.items())
        kinds = {formal: np.int32 if formal == "sequence_lens" else X.dtype for formal in sources}
        arrays = {formal: given[name].astype(kinds[formal]) for formal, name in sources.items()}
        yield with_inputs(description, f"connect {description}", **arrays)


def _directions(node: RecurrentNode, inputs: Arrays) -> Iterator[Change]:
    if node.node.attributes.get("direction") != "bidirectional":
        return
    weights = [name for name in ("W", "R", "B", "P") if name in inputs]
    yield _change(
        "the weights of the two directions exchanged",
        f"exchange the two directions of {listed(weights)}",
        lambda values: {name: values[name][::-1].copy() for name in weights},
    )
    states = [name for name in ("initial_h", "initial_c") if name in inputs]
    if states:
        yield _change(
            "the initial states of the two directions exchanged",
            f"exchange the two directions of {listed(states)}",
            lambda values: {name: np.flip(values[name], _layout(node)).copy() for name in states},
        )
    yield Change(
        "the backward half of Y in the order in which it was computed",
        "the framework did not put the backward half back in the order of time: reverse that half of its results",
        _not_put_back,
    )
    remedy = "exchange the directions where they are concatenated"
    yield Change("the two directions of the outputs exchanged", remedy, _exchanged_outputs)
    remedy = "the framework took its output at the last time step: take Y's last step, not Y_h"
    yield Change("Y_h of the backward half from the last time step of Y", remedy, _last_step)


def _layout(node: RecurrentNode) -> int:
    return 1 if node.node.attributes.get("layout", 0) else 0


def _direction_axis(node: RecurrentNode, output: str) -> int:
    return _layout(node) + (output == "Y")


def _backward(node: RecurrentNode, output: str, array: Array) -> Array:
    """Return the backward half of an output, as a view."""
    half: Array = np.moveaxis(array, _direction_axis(node, output), 0)[1]
    return half


def _not_put_back(node: RecurrentNode, inputs: Arrays) -> Mapping[str, Array]:
    outputs = evaluated(node.node, inputs)
    Y = outputs["Y"]
    _backward(node, "Y", Y)[...] = _backward(node, "Y", np.flip(Y, _layout(node))).copy()
    return outputs


def _last_step(node: RecurrentNode, inputs: Arrays) -> Mapping[str, Array]:
    outputs = evaluated(node.node, inputs)
    last = np.take(outputs["Y"], -1, _layout(node))
    _backward(node, "Y_h", outputs["Y_h"])[...] = _backward(node, "Y_h", last)
    return outputs


def _batch_first(node: RecurrentNode, inputs: Arrays) -> Mapping[str, Array]:
    outputs = evaluated(node.node, {**inputs, "X": inputs["X"].swapaxes(0, 1).copy()})
    return {**outputs, "Y": outputs["Y"].swapaxes(0, 1 if _layout(node) else 2)}


def _exchanged_outputs(node: RecurrentNode, inputs: Arrays) -> Mapping[str, Array]:
    return {name: np.flip(array, _direction_axis(node, name)) for name, array in evaluated(node.node, inputs).items()}
