"""``onnxspec compare``: a model beside the results of a framework."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..comparing.comparison import compare as compare_model
from ..comparing.comparison import lines_of
from .nodes import arrays_of
from .terminal import console_on


def compare(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="ONNX model.")],
    inputs: Annotated[Path, typer.Argument(metavar="INPUTS", help="Inputs of the model by name, as .npz.")],
    outputs: Annotated[
        Path,
        typer.Argument(
            metavar="OUTPUTS", help="The framework's results as .npz, by name of an output or of a tensor inside."
        ),
    ],
) -> None:
    """Compare a model with a framework's results, and find the cause of a difference.

    Exit code 0: the results agree; 1: they differ, explained or not; 2: the model or the arrays cannot be used.
    """
    comparison = compare_model(model, arrays_of(inputs), arrays_of(outputs))
    answer, *lines = lines_of(comparison)
    console = console_on(sys.stdout)
    console.print(answer, style="bold green" if comparison.agrees else "bold red", markup=False, soft_wrap=True)
    for line in lines:
        console.print(line, markup=False, emoji=False, soft_wrap=True, highlight=False)
    raise typer.Exit(0 if comparison.agrees else 1)
