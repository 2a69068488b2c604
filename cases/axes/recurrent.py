"""The axes of LSTM, GRU and RNN, in the order in which a case has its fields."""

from __future__ import annotations

from .axis import Axis
from .node.activations import ACTIVATIONS_AXIS
from .node.clip import CLIP
from .node.direction import DIRECTION
from .node.explicit import EXPLICIT
from .node.hidden_size import HIDDEN_SIZE
from .node.input_forget import INPUT_FORGET
from .node.layout import LAYOUT
from .node.linear_before_reset import LINEAR_BEFORE_RESET
from .node.opset import OPSET
from .node.output_sequence import OUTPUT_SEQUENCE
from .node.outputs import OUTPUTS
from .session.dimensions import DIMENSIONS
from .session.reruns import RERUNS
from .tensors.bias import BIAS
from .tensors.data import DATA
from .tensors.element_type import ELEMENT_TYPE
from .tensors.initial import INITIAL
from .tensors.lengths import LENGTHS
from .tensors.peepholes import PEEPHOLES
from .tensors.seeds import SEEDS
from .tensors.size import SIZE
from .tensors.weights import WEIGHTS

__all__ = ["RECURRENT_AXES"]

RECURRENT_AXES: tuple[Axis, ...] = (
    *(ELEMENT_TYPE, DIRECTION, LAYOUT, SIZE, OPSET, BIAS, LENGTHS, INITIAL, PEEPHOLES),
    *(ACTIVATIONS_AXIS, CLIP, INPUT_FORGET, LINEAR_BEFORE_RESET, OUTPUT_SEQUENCE, HIDDEN_SIZE, EXPLICIT),
    *(OUTPUTS, WEIGHTS, DIMENSIONS, DATA, RERUNS, SEEDS),
)
