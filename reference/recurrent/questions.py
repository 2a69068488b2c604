"""Questions that the documents of ONNX's recurrent operators leave open, and the reference can compute either way."""

from __future__ import annotations

from ..documents.interpretations import Question

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
