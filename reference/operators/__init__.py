"""Operators: what they have in common, and a sub-package for each, loaded when it is first asked for.

The module of an operator registers it with :func:`.operator.register`, as modules of other distributions do.
"""

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from ..documents.operators import MISSING, await_document, has_schema
from ..recurrent.node import Diagnostic as Diagnostic
from .operator import Conforming as Conforming

if TYPE_CHECKING:
    from .described import Described as Described
    from .described import DescribedOperator as DescribedOperator
    from .described import with_attributes as with_attributes
    from .described import with_equations as with_equations
    from .described import with_inputs as with_inputs
else:

    def __getattr__(name: str) -> object:
        """Return a name for operators that follow from a description; it is loaded with the first of them."""
        if name not in ("Described", "DescribedOperator", "with_attributes", "with_equations", "with_inputs"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import described

        return getattr(described, name)


MODULES: Mapping[str, str] = {
    "LSTM": "recurrent",
    "GRU": "recurrent",
    "RNN": "recurrent",
    "com.microsoft::DynamicQuantizeLSTM": "dynamic_quantize_lstm",
    "com.amd.quark::ExtendedLSTM": "extended_lstm.operator",
    "CausalConvWithState": "causal_conv_with_state",
    "com.microsoft::CausalConvWithState": "causal_conv_with_state",
    "LinearAttention": "linear_attention",
    "com.microsoft::LinearAttention": "linear_attention",
}
"""Module of each operator of this package. Those of other domains than ONNX's have one version, 1."""

for _title, _module in MODULES.items():
    _domain, _, _op_type = _title.rpartition("::")
    # An operator of another domain that extends one of ONNX's comes with it.
    if _op_type not in MISSING and (_domain or has_schema(_op_type)):
        _load = partial(import_module, f".{_module}", __package__)
        await_document((_domain, _op_type), (1,) if _domain else None, _load)

UNJUDGED: frozenset[tuple[str, str]] = frozenset({("com.microsoft", "AttnLSTM"), *(("", name) for name in MISSING)})
"""Operators without a document here: those of other domains, and those without a schema in the installed onnx."""
