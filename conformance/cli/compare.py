"""``onnxspec compare``: a model beside the results of a framework."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..comparing.comparison import compare as compare_model
from .command import PATH
from .nodes import arrays_of
from .terminal import console_on


@click.command()
@click.argument("model", metavar="MODEL", type=PATH, required=True)
@click.argument("inputs", metavar="INPUTS", type=PATH, required=True)
@click.argument("outputs", metavar="OUTPUTS", type=PATH, required=True)
def compare(model: Path, inputs: Path, outputs: Path) -> None:
    """Compare a model with a framework's results, and find the cause of a difference.

    INPUTS is an .npz file of the inputs of the ONNX model, by name. OUTPUTS is an .npz file of the framework's results,
    by name of an output or of a tensor inside.

    Exit code 0: the results agree; 1: they differ, explained or not; 2: the model or the arrays cannot be used.
    """
    comparison = compare_model(model, arrays_of(inputs), arrays_of(outputs))
    answer, *lines = str(comparison).splitlines()
    console = console_on(sys.stdout)
    console.print(answer, style="bold green" if comparison.agrees else "bold red", markup=False, soft_wrap=True)
    for line in lines:
        console.print(line, markup=False, emoji=False, soft_wrap=True, highlight=False)
    raise click.exceptions.Exit(0 if comparison.agrees else 1)
