"""Write models and results of data/ with PyTorch: ``python make_data.py DIR [NAME...]`` (PyTorch 2.13, onnxscript).

Each NAME.onnx is an export; NAME.npz has its inputs under ``in.`` and PyTorch's results under ``out.``.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import nn

N, T, I, H = 3, 6, 4, 5


class Layers(nn.Module):
    """Recurrent layer, with or without its states, followed by a linear layer."""

    def __init__(self, layer: nn.RNNBase, classes: int = 0) -> None:
        super().__init__()
        self.layer = layer
        self.linear = nn.Linear(layer.hidden_size * (2 if layer.bidirectional else 1), classes) if classes else None

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, states = self.layer(x)
        if self.linear is not None:
            return (self.linear(y),)
        return (y, states[0] if isinstance(states, tuple) else states)


class WithStates(nn.Module):
    """LSTM with given states."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(I, H)

    def forward(self, x: torch.Tensor, h0: torch.Tensor, c0: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, (h, c) = self.layer(x, (h0, c0))
        return y, h, c


class Packed(nn.Module):
    """GRU on packed sequences; its lengths decrease, as the exporter requires."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(I, H, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, ...]:
        packed, h = self.layer(nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True))
        return nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0], h


MODELS = {
    "lstm": Layers(nn.LSTM(I, H, batch_first=True)),
    "lstm-stacked": Layers(nn.LSTM(I, H, num_layers=2, batch_first=True), classes=3),
    "lstm-bidirectional": Layers(nn.LSTM(I, H, bidirectional=True)),
    "gru": Layers(nn.GRU(I, H, batch_first=True), classes=3),
    "gru-bidirectional": Layers(nn.GRU(I, H, bidirectional=True, batch_first=True)),
    "rnn": Layers(nn.RNN(I, H, nonlinearity="relu")),
    "lstm-states": WithStates(),
    "gru-packed": Packed(),
}


def inputs_of(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return random inputs of a module, by name."""
    if isinstance(module, WithStates):
        return {"x": torch.randn(T, N, I), "h0": torch.randn(1, N, H), "c0": torch.randn(1, N, H)}
    x = torch.randn(*((N, T, I) if module.layer.batch_first else (T, N, I)))
    return {"x": x, "lengths": torch.tensor([T, 4, 2])} if isinstance(module, Packed) else {"x": x}


def write(folder: Path, name: str, module: nn.Module, *, dynamo: bool) -> None:
    """Export one module and record its results."""
    torch.manual_seed(len(name))
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.9, 0.9)
    inputs = inputs_of(module)
    values = tuple(inputs.values())
    with torch.no_grad():
        outputs = module(*values)
    names = ["output", "h", "c"][: len(outputs)]
    rows = {n: {array.shape.index(N): "batch"} for n, array in inputs.items()}
    if dynamo:
        program = torch.onnx.export(
            module, values, dynamo=True, input_names=[*inputs], output_names=names, dynamic_shapes=rows, verbose=False
        )
        model = program.model_proto
    else:
        buffer = io.BytesIO()
        torch.onnx.export(
            module, values, buffer, dynamo=False, input_names=[*inputs], output_names=names, dynamic_axes=rows
        )
        model = onnx.load_from_string(buffer.getvalue())
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    onnx.save(model, folder / f"{name}.onnx")
    arrays = {f"in.{n}": array.numpy() for n, array in inputs.items()}
    arrays |= {f"out.{n}": array.numpy() for n, array in zip(names, outputs, strict=True)}
    np.savez(folder / f"{name}.npz", **arrays)


if __name__ == "__main__":
    folder, *asked = sys.argv[1:]
    for name in asked or MODELS:
        module = MODELS[name].eval()
        write(Path(folder), name, module, dynamo=False)
        if name not in ("rnn", "gru-packed"):  # the newer exporter unrolls RNN and has no packed sequences
            write(Path(folder), f"{name}-dynamo", module, dynamo=True)
