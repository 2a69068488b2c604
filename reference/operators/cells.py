"""The cells of ONNX's recurrent operators, entered before any table of faults names them."""

from .gru.cell import GRU
from .lstm.cell import LSTM
from .recurrent import cell_known
from .rnn.cell import RNN

ONNX = tuple(map(cell_known, (LSTM, GRU, RNN)))
