"""The axes of LSTM, GRU and RNN, in the order in which a case has its fields, and phases take them."""

from __future__ import annotations

from .axis import Axis
from .node.activations import ACTIVATIONS_AXIS
from .node.attributes import (
    CLIP,
    DIRECTION,
    EXPLICIT,
    HIDDEN_SIZE,
    INPUT_FORGET,
    LAYOUT,
    LINEAR_BEFORE_RESET,
    OPSET,
    OUTPUT_SEQUENCE,
    PLACEHOLDERS,
)
from .node.outputs import OUTPUTS
from .quantized import BIAS_TYPE, CHANNELS, QUANTIZATION, QUANTIZED_TENSORS, SCALES, WEIGHT_TYPE, ZERO_POINTS
from .session import DIMENSIONS, EVENTFUL, NEIGHBOURS, RERUNS
from .tensors.alike import ALIKE
from .tensors.bias import BIAS
from .tensors.constants import CONSTANT, FED, HELD
from .tensors.data import DATA
from .tensors.element_type import ELEMENT_TYPE
from .tensors.extremes import EXTREMES
from .tensors.initial import INITIAL
from .tensors.lengths import LENGTHS
from .tensors.peepholes import PEEPHOLES
from .tensors.reach import REACH
from .tensors.row_order import ROW_ORDER
from .tensors.seeds import SEEDS
from .tensors.size import SIZE
from .tensors.weights import WEIGHTS
from .tensors.zeros import ZEROS

RECURRENT_AXES: tuple[Axis, ...] = (
    *(ELEMENT_TYPE, DIRECTION, LAYOUT, SIZE, OPSET, BIAS, LENGTHS, REACH, ROW_ORDER, INITIAL, PEEPHOLES),
    *(ACTIVATIONS_AXIS, CLIP, INPUT_FORGET, LINEAR_BEFORE_RESET, OUTPUT_SEQUENCE, HIDDEN_SIZE, EXPLICIT),
    *(OUTPUTS, WEIGHTS, CONSTANT, HELD, FED, DIMENSIONS, DATA, ZEROS, EXTREMES, ALIKE, RERUNS, SEEDS),
    # Axes that come later change what stands before them.
    *EVENTFUL,
    *(QUANTIZATION, WEIGHT_TYPE, CHANNELS, BIAS_TYPE, QUANTIZED_TENSORS, SCALES, ZERO_POINTS),
    *(NEIGHBOURS, PLACEHOLDERS),
)
