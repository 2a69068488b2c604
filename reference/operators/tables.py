"""Registration of every operator and every fault table of this package, done when this module is imported.

User-defined operators are registered with :func:`.operator.register` in the same way.
"""

from importlib import import_module

from ..documents.operators import MISSING, has_schema
from ..faults.fault import FAULTS
from ..recurrent.rnn import CELLS
from .causal_conv_with_state import CausalConvWithState, DilatedCausalConvWithState
from .described import DescribedOperator
from .dynamic_quantize_lstm import DYNAMIC_QUANTIZE_LSTM
from .extended_lstm.operator import EXTENDED_LSTM
from .linear_attention import LinearAttention, OnnxruntimeLinearAttention
from .operator import register
from .recurrent import RecurrentOperator

# Described operators whose schema the installed onnx has; an operator that extends one comes with it.
DESCRIBED: tuple[DescribedOperator, ...] = tuple(
    operator
    for family in (
        (CausalConvWithState(), DilatedCausalConvWithState()),
        (LinearAttention(), OnnxruntimeLinearAttention()),
    )
    if has_schema(family[0].document)
    for operator in family
)

UNJUDGED: frozenset[tuple[str, str]] = frozenset({("com.microsoft", "AttnLSTM"), *(("", name) for name in MISSING)})
"""Operators without a document here: those of other domains, and those without a schema in the installed onnx."""


def _load_faults() -> None:
    from ..faults.tables import (  # noqa: F401 - generic ones first
        activation,
        block,
        clip,
        constant,
        contract,
        direction,
        function,
        layout,
        length,
        output,
        precision,
        quantized,
        session,
        size,
        state,
        step,
        weight,
    )
    from .dynamic_quantize_lstm import faults as dynamic_quantize_lstm_faults  # noqa: F401
    from .extended_lstm import faults as extended_faults  # noqa: F401
    from .gru import faults as gru_faults  # noqa: F401
    from .lstm import faults as lstm_faults  # noqa: F401
    from .rnn import faults as rnn_faults  # noqa: F401

    for operator in DESCRIBED:
        import_module(f"{type(operator).__module__}.faults")


FAULTS.await_tables(_load_faults)
for _operator in (*map(RecurrentOperator, CELLS.values()), EXTENDED_LSTM, DYNAMIC_QUANTIZE_LSTM, *DESCRIBED):
    register(_operator)
