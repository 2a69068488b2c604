"""All tables of faults of this package. ``faults/fault.py`` imports this module when a fault is first needed."""

from ..documents.operators import MISSING
from ..faults.tables import (  # noqa: F401 - generic ones first
    activation,
    clip,
    contract,
    function,
    length,
    output,
    precision,
    quantized,
    session,
    step,
    weight,
)
from .dynamic_quantize_lstm import faults as dynamic_quantize_lstm_faults  # noqa: F401
from .extended_lstm import faults as extended_faults  # noqa: F401
from .gru import faults as gru_faults  # noqa: F401
from .lstm import faults as lstm_faults  # noqa: F401
from .rnn import faults as rnn_faults  # noqa: F401

if "CausalConvWithState" not in MISSING:
    from .causal_conv_with_state import faults as causal_conv_faults  # noqa: F401
if "LinearAttention" not in MISSING:
    from .linear_attention import faults as linear_attention_faults  # noqa: F401
