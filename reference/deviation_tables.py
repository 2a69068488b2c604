"""All tables of deviations: importing this module registers them. Generic ones first."""

from . import (  # noqa: F401
    activation_deviations,
    clip_deviations,
    contract_deviations,
    direction_deviations,
    function_deviations,
    gru_deviations,
    layout_deviations,
    length_deviations,
    lstm_deviations,
    output_deviations,
    precision_deviations,
    rnn_deviations,
    size_deviations,
    state_deviations,
    weight_deviations,
)

__all__: list[str] = []
