"""Table of the cases of the operators of this package, each loaded when it is first asked for."""

from collections.abc import Mapping
from functools import partial
from importlib import import_module

from ...reference import operator_names
from ..specs.family import await_family

MODULES: Mapping[str, str] = {
    "LSTM": "profiles.recurrent",
    "GRU": "profiles.recurrent",
    "RNN": "profiles.recurrent",
    "ExtendedLSTM": "operators.extended_lstm.family",
    "DynamicQuantizeLSTM": "operators.dynamic_quantize_lstm",
    "CausalConvWithState": "operators.causal_conv_with_state",
    "com.microsoft::CausalConvWithState": "operators.causal_conv_with_state",
    "LinearAttention": "operators.linear_attention.family",
    "com.microsoft::LinearAttention": "operators.linear_attention.family",
}
"""The module that registers the cases of each operator of this package."""

for _op, _module in MODULES.items():
    if _op in operator_names():  # no cases for operators that the installed onnx lacks
        await_family(_op, partial(import_module, f"...{_module}", __name__))
