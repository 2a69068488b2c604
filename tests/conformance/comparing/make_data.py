"""Write the models and results of data/ with real PyTorch: ``python make_data.py DIR`` (PyTorch 2.13, onnxscript).

Each NAME.onnx is an export, NAME.npz has its inputs under ``in.`` and what PyTorch computed under ``out.``.
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
    """A recurrent layer, with its states or without, and a linear one behind it."""

    def __init__(self, layer: nn.RNNBase, classes: int = 0) -> None:
        super().__init__()
        self.layer = layer
        self.linear = nn.Linear(layer.hidden_size * (2 if layer.bidirectional else 1), classes) if classes else None

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, states = self.layer(x)
        if self.linear is not None:
            return (self.linear(y),)
        return (y, states[0] if isinstance(states, tuple) else states)


MODELS = {
    "lstm": Layers(nn.LSTM(I, H, batch_first=True)),
    "lstm-stacked": Layers(nn.LSTM(I, H, num_layers=2, batch_first=True), classes=3),
    "lstm-bidirectional": Layers(nn.LSTM(I, H, bidirectional=True)),
    "gru": Layers(nn.GRU(I, H, batch_first=True), classes=3),
    "gru-bidirectional": Layers(nn.GRU(I, H, bidirectional=True, batch_first=True)),
    "rnn": Layers(nn.RNN(I, H, nonlinearity="relu")),
}


def write(folder: Path, name: str, module: Layers, *, dynamo: bool) -> None:
    """Export one module and record what it computes."""
    torch.manual_seed(len(name))
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.9, 0.9)
    shape = (N, T, I) if module.layer.batch_first else (T, N, I)
    x = torch.randn(*shape)
    with torch.no_grad():
        outputs = module(x)
    names = ["output", "h"][: len(outputs)]
    axis = {0 if module.layer.batch_first else 1: "batch"}
    if dynamo:
        program = torch.onnx.export(
            module, (x,), dynamo=True, input_names=["x"], output_names=names, dynamic_shapes={"x": axis}, verbose=False
        )
        model = program.model_proto
    else:
        buffer = io.BytesIO()
        torch.onnx.export(
            module, (x,), buffer, dynamo=False, input_names=["x"], output_names=names, dynamic_axes={"x": axis}
        )
        model = onnx.load_from_string(buffer.getvalue())
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    onnx.save(model, folder / f"{name}.onnx")
    arrays = {"in.x": x.numpy(), **{f"out.{n}": o.numpy() for n, o in zip(names, outputs, strict=True)}}
    np.savez(folder / f"{name}.npz", **arrays)


if __name__ == "__main__":
    for name, module in MODELS.items():
        write(Path(sys.argv[1]), name, module.eval(), dynamo=False)
        if name != "rnn":  # the newer exporter unrolls it into other operators
            write(Path(sys.argv[1]), f"{name}-dynamo", module.eval(), dynamo=True)
