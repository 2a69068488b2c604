"""Every operator that comes with this package, and every table of faults: importing this module registers them.

An operator of one's own is registered with :func:`.operator.register` as these are.
"""

from ..faults.fault import FAULTS
from ..recurrent.rnn import CELLS
from .dynamic_quantize_lstm import DYNAMIC_QUANTIZE_LSTM
from .extended_lstm.operator import EXTENDED_LSTM
from .operator import register
from .recurrent import RecurrentOperator

UNJUDGED: frozenset[tuple[str, str]] = frozenset({("com.microsoft", "AttnLSTM")})
"""Recurrent operators of other domains for which there is no document here."""


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
    from .extended_lstm import output_faults as extended_output_faults  # noqa: F401
    from .gru import faults as gru_faults  # noqa: F401
    from .lstm import faults as lstm_faults  # noqa: F401
    from .rnn import faults as rnn_faults  # noqa: F401


FAULTS.await_tables(_load_faults)
for _operator in (*map(RecurrentOperator, CELLS.values()), EXTENDED_LSTM, DYNAMIC_QUANTIZE_LSTM):
    register(_operator)
