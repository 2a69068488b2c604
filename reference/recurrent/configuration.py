"""Configuration of a node with its inputs: attributes resolved."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import USUAL, Interpretations, Question
from ..numbers.accuracy import Format, format_of
from ..numbers.activations import THRESHOLDED_RELU_ABOVE, Activation, ActivationKind, Coefficient, kind_named
from .cell import Cell
from .node import (
    Illegal,
    IllegalNode,
    Node,
    cell_of_version,
    clause_of,
    require_inputs,
    sizes_of_inputs,
    text_of,
)

RECURRENT_QUESTIONS = (
    # Clip bounds the argument of h(Ct) like that of every activation, or only those of the gates.
    Question(
        "cell_output_clip",
        ("clipped", "unclipped"),
        generous="unclipped",
        words="clip does not bound the last activation of a step",
    ),
    # input_forget keeps the input gate, f = 1 - i, or the forget gate, i = 1 - f.
    Question("coupled_gate", ("input", "forget")),
    # Each activation that uses an alpha (beta) takes the next one; or the n-th entry belongs to the n-th activation,
    # used or not.
    Question("coefficients", ("by-use", "by-position")),
    # Functions without coefficients for which the document names none, like Affine and ScaledTanh. `one`: those of the
    # ONNX operator of that name, and where it has none, alpha 1 and beta 0 for Affine, alpha 1 and beta 1 for
    # ScaledTanh; `zero`: 0 throughout. A kernel's table may hold some functions and not others: `named` is 0 for those
    # two alone, `affine` and `scaled-tanh` for one of the two, that which is not named.
    Question(
        "defaults",
        ("one", "zero", "named", "affine", "scaled-tanh"),
        asked_anew=True,
        generous="zero",
        words="a function runs with 0 where no alpha or beta is given and the document names none",
    ),
    # ThresholdedRelu at x == alpha: x, or 0.
    Question(
        "threshold", ("at", "above"), generous="above", words="ThresholdedRelu is 0 where its argument equals alpha"
    ),
    # State after a sequence of no steps: the initial state, or zeros.
    Question("empty", ("initial", "zero")),
    # A clip of 0: no clip, or every argument becomes 0.
    Question("zero_clip", ("off", "zero")),
    # Version 1 prints Ht-1*Ri where later versions print Ht-1*(Ri^T), and either fits R's shape.
    Question("recurrent_product", ("transposed", "plain")),
    # Version 1, output_sequence 0, and Y asked for all the same.
    Question("sequence_output", ("given", "absent")),
)


_DIRECTIONS = {"forward": ("forward",), "reverse": ("reverse",), "bidirectional": ("forward", "reverse")}


@dataclass(frozen=True)
class Configuration:
    """Configuration of a node with its inputs, as the scan and the cell use it.

    T, N, I, H
        seq_length, batch_size, input_size, hidden_size.
    directions
        ``forward`` and ``reverse``, in the order of W.
    activations
        For each direction its functions, coefficients included.
    clips
        For each activation of a direction the clip threshold or None.
    lengths
        Shape (N,), every row's number of steps.
    transposes
        Whether the recurrent product is with the transposed blocks of R.
    operands
        Numbers that replace X and states in products; None for themselves.
    open_questions
        Names of the interpretations on which this node's results depend.
    """

    cell: Cell
    format: Format
    directions: tuple[str, ...]
    T: int
    N: int
    I: int
    H: int
    layout: int
    activations: tuple[tuple[Activation, ...], ...]
    clips: tuple[float | None, ...]
    coupled: str | None
    linear_before_reset: bool
    lengths: NDArray[np.int64]
    empty: str
    outputs: tuple[str, ...]
    transposes: bool
    open_questions: frozenset[str]
    operands: Any = None

    @cached_property
    def ragged(self) -> bool:
        """Whether some row has fewer than T steps."""
        return bool((self.lengths != self.T).any())

    @property
    def equivalence_key(self) -> tuple[object, ...]:
        """A value that two interpretations of a node share if they compute the same."""
        return self.operands, self.activations, self.clips, self.coupled, self.empty, self.transposes

    @property
    def states(self) -> tuple[str, ...]:
        """The outputs beside Y, in the order in which they are computed."""
        return tuple(f"Y_{name}" for name in ("h", *self.cell.inner))

    def shape_of(self, output: str) -> tuple[int, ...]:
        """Return the shape of an output, in the node's layout; initial states have that of Y_h."""
        D = len(self.directions)
        if output == "Y":
            return (self.T, D, self.N, self.H) if self.layout == 0 else (self.N, self.T, D, self.H)
        return (D, self.N, self.H) if self.layout == 0 else (self.N, D, self.H)


def steps_first(Y: Any, layout: int) -> Any:
    """Return Y as (T, D, N, H), from the node's layout."""
    return Y.transpose(1, 2, 0, 3) if layout == 1 else Y


def in_layout(Y: Any, layout: int) -> Any:
    """Return Y (T, D, N, H) in the node's layout."""
    return Y.transpose(2, 0, 1, 3) if layout == 1 else Y


_KNOWN: OrderedDict[object, Configuration] = OrderedDict()
_MOST_KNOWN = 2048
"""Configurations that are kept: a case is resolved some ten times, from its features to its verdict, and a run has a
hundred or two under way."""


def configure(
    node: Node, inputs: Mapping[str, NDArray[Any]], interpretations: Interpretations | None = None
) -> Configuration:
    """Resolve a node with its inputs (formal name to array; absent ones missing or None).

    Raise IllegalNode, naming the clause, if the operator's document does not allow them.
    """
    interpretations = interpretations or USUAL
    inputs = {name: array for name, array in inputs.items() if array is not None}
    if node.key is None:
        return _configured(node, inputs, interpretations)
    lengths = inputs.get("sequence_lens")
    # All that is asked of the inputs: shapes and types, and of the lengths their values.
    forms = tuple((name, array.shape, array.dtype) for name, array in inputs.items())
    key = node.key, forms, None if lengths is None else lengths.tobytes(), interpretations
    known = _KNOWN.get(key)
    if known is None or known.cell is not cell_of_version(node.operator):
        known = _KNOWN[key] = _configured(node, inputs, interpretations)
        known.lengths.flags.writeable = False  # it is shared from now on
        while len(_KNOWN) > _MOST_KNOWN:
            _KNOWN.popitem(last=False)
    return known


def _configured(node: Node, inputs: Mapping[str, NDArray[Any]], interpretations: Interpretations) -> Configuration:
    operator, cell = node.operator, cell_of_version(node.operator)
    open_questions: set[str] = set()

    def illegal(topic: str, message: str) -> IllegalNode:
        return IllegalNode(clause_of(node, topic), f"{operator.name}: {message}")

    require_inputs(operator, inputs, illegal)
    direction = text_of(node.attributes.get("direction", operator.defaults["direction"]))
    if direction not in _DIRECTIONS:
        raise illegal("direction", f"direction is forward, reverse or bidirectional, not {direction!r}")
    directions = _DIRECTIONS[direction]
    layout = node.attributes.get("layout", 0)
    if layout not in (0, 1):
        raise illegal("layout", f"layout is 0 or 1, not {layout}")

    D = len(directions)
    T, N, I, H = sizes_of_inputs(node, inputs, D, layout, illegal)
    lengths = _lengths(inputs, T, N, open_questions, illegal)
    clips = _clips(node, cell, interpretations, open_questions, illegal)
    coupled = _coupled(node, interpretations, open_questions, illegal)
    open_questions |= cell.questions(T, lengths, directions)
    if node.since_version in cell.unmarked:
        open_questions.add("recurrent_product")
    announced = "output_sequence" not in operator.attributes or node.attributes.get("output_sequence", 0)
    if "Y" in node.outputs and not announced:
        open_questions.add("sequence_output")

    return Configuration(
        cell=cell,
        format=format_of(inputs["X"].dtype),
        directions=directions,
        T=T,
        N=N,
        I=I,
        H=H,
        layout=layout,
        activations=_activations(node, cell, D, interpretations, open_questions, illegal),
        clips=clips,
        coupled=coupled,
        linear_before_reset=bool(node.attributes.get("linear_before_reset", 0)),
        lengths=lengths,
        empty=interpretations.empty,
        outputs=node.outputs,
        transposes=interpretations.recurrent_product == "transposed" or node.since_version not in cell.unmarked,
        open_questions=frozenset(open_questions),
        operands=None if cell.operands is None else cell.operands(interpretations, bool((lengths != T).any())),
    )


def _lengths(
    inputs: Mapping[str, NDArray[Any]], T: int, N: int, open_questions: set[str], illegal: Illegal
) -> NDArray[np.int64]:
    """Return the number of steps of each row."""
    lengths = np.full(N, T, np.int64)
    if "sequence_lens" in inputs:
        given = inputs["sequence_lens"]
        if given.size and (given.min() < 0 or given.max() > T):
            raise illegal("lengths", f"sequence_lens lie between 0 and {T}, not {given.tolist()}")
        lengths = given.astype(np.int64)
    if (lengths == 0).any():
        open_questions.add("empty")
    return lengths


def _clips(
    node: Node, cell: Cell, interpretations: Interpretations, open_questions: set[str], illegal: Illegal
) -> tuple[float | None, ...]:
    """Return the threshold of each activation's argument; None for no clip."""
    clip = node.attributes.get("clip")
    if clip is not None:
        if not clip >= 0:
            raise illegal("clip", f"clip is a threshold, not {clip}")
        clip = float(np.float32(clip))  # attributes are float32, whatever the tensors are
        if clip == 0:
            open_questions.add("zero_clip")
            clip = None if interpretations.zero_clip == "off" else clip
    clips: list[float | None] = [clip] * len(cell.activations)
    if clip is not None and cell.inner:
        open_questions.add("cell_output_clip")
        if interpretations.cell_output_clip == "unclipped":
            clips[-1] = None
    return tuple(clips)


def _coupled(node: Node, interpretations: Interpretations, open_questions: set[str], illegal: Illegal) -> str | None:
    """Return the interpretation of coupled gates; None if gates are not coupled."""
    input_forget = node.attributes.get("input_forget", 0)
    if input_forget not in (0, 1):
        raise illegal("input-forget", f"input_forget is 0 or 1, not {input_forget}")
    if not input_forget:
        return None
    open_questions.add("coupled_gate")
    return interpretations.coupled_gate


def _activations(
    node: Node,
    cell: Cell,
    directions: int,
    interpretations: Interpretations,
    open_questions: set[str],
    illegal: Illegal,
) -> tuple[tuple[Activation, ...], ...]:
    """Return the activation functions of each direction, with the coefficients of the attributes."""
    each = len(cell.activations)
    names = [text_of(n) for n in node.attributes.get("activations", cell.activations * directions)]
    if len(names) != each * directions:
        raise illegal("activations", f"activations are {each * directions} names, not {len(names)}")
    kinds = []
    for name in names:
        kind = kind_named(name)
        if kind is None:
            raise illegal("activations", f"no activation function is called {name!r}")
        kinds.append(kind)
    alphas = _consumed(
        node, "activation_alpha", [k.uses_alpha for k in kinds], interpretations, open_questions, illegal
    )
    betas = _consumed(node, "activation_beta", [k.uses_beta for k in kinds], interpretations, open_questions, illegal)
    has_defaults = node.since_version not in cell.without_defaults

    def coefficient(
        kind: ActivationKind, used: bool, given: float | None, default: float | None, assumed: float
    ) -> Coefficient:
        if not used:
            return Coefficient(0.0)
        if given is not None:
            return Coefficient(float(np.float32(given)))
        usual = Coefficient(assumed) if default is None else Coefficient.of(default)
        if default is not None and has_defaults:
            return usual
        open_questions.add("defaults")
        option = interpretations.defaults
        kept = option == "one" or (option != "zero" and (default is not None or option == _OWN_DEFAULTS[kind.name]))
        return usual if kept else Coefficient(0.0)

    functions = []
    for kind, alpha, beta in zip(kinds, alphas, betas, strict=True):
        function = Activation(
            kind,
            coefficient(kind, kind.uses_alpha, alpha, kind.default_alpha, 1.0),
            coefficient(kind, kind.uses_beta, beta, kind.default_beta, 0.0 if kind.name == "Affine" else 1.0),
        )
        if kind.name == "ThresholdedRelu":
            open_questions.add("threshold")
            if interpretations.threshold == "above":
                function = replace(function, kind=THRESHOLDED_RELU_ABOVE)
        functions.append(function)
    return tuple(tuple(functions[d * each : (d + 1) * each]) for d in range(directions))


_OWN_DEFAULTS = {"Affine": "affine", "ScaledTanh": "scaled-tanh"}
"""Options by which a function that no ONNX operator gives defaults has those that leave its argument as it is."""


def _consumed(
    node: Node,
    attribute: str,
    uses: list[bool],
    interpretations: Interpretations,
    open_questions: set[str],
    illegal: Illegal,
) -> list[float | None]:
    """Return the entry of a coefficient list that belongs to each activation; None if the list has none for it.

    uses
        Whether each activation uses the coefficient.
    """
    values = [float(v) for v in node.attributes.get(attribute, ())]
    if len(values) > len(uses):
        raise illegal(attribute.replace("_", "-"), f"{attribute} has more entries than there are activations")
    by_use = [sum(uses[:position]) if used else len(values) for position, used in enumerate(uses)]
    by_position = [position if used else len(values) for position, used in enumerate(uses)]
    pick = {
        name: [values[p] if p < len(values) else None for p in places]
        for name, places in (("by-use", by_use), ("by-position", by_position))
    }
    if pick["by-use"] != pick["by-position"]:
        open_questions.add("coefficients")
    return pick[interpretations.coefficients]


def open_questions_of(node: Node, inputs: Mapping[str, NDArray[Any]]) -> frozenset[str]:
    """Return all interpretations on which a node's results depend, also those that appear only under another one:
    counted by position, a coefficient list may have nothing left for a function whose default is open.

    Raise IllegalNode as :func:`configure` does.
    """
    known: frozenset[str] = frozenset()
    while True:
        branching = USUAL.alternatives(known & _BRANCHING)
        open_questions = known.union(*(configure(node, inputs, r).open_questions for r in branching))
        if open_questions == known:
            return known
        known = open_questions


_BRANCHING = frozenset({"coefficients", "zero_clip"})
"""Interpretations that decide whether others matter: a missing coefficient, and the range of a clip that is none. All
combinations would be up to 64 times as many, and touch no more."""
