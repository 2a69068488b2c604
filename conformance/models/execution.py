"""Execution of models on onnxruntime's CPU provider, in a process of its own, to get their intermediate tensors.

The results judge no target.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from google.protobuf.message import EncodeError
from numpy.typing import NDArray
from onnx import ModelProto, ValueInfoProto

from ...reference.errors import UserError
from ..targets.target import parse_target
from ..workers.process import Job, TargetProcess, TargetUnavailable

Array = NDArray[Any]


class ExecutionError(UserError):
    """Model that cannot be run with the given arrays; the text gives the reason in one line."""


@contextmanager
def onnxruntime_process() -> Iterator[TargetProcess]:
    """Start a process for :func:`outputs_of`. Raise ExecutionError."""
    try:
        with TargetProcess(parse_target("onnxruntime"), repeats=1) as process:
            process.start()
            yield process
    except TargetUnavailable as error:
        raise ExecutionError(f"onnxruntime, which runs the model, cannot start: {error}") from None


def serialized(model: ModelProto, names: Sequence[str]) -> bytes:
    """Return a serialized model with the tensors of these names as its outputs. Raise ExecutionError.

    onnxruntime infers types and shapes of outputs itself, so only onnxruntime can use this model.
    """
    del model.graph.output[:]
    model.graph.output.extend(ValueInfoProto(name=name) for name in names)
    try:
        return bytes(model.SerializeToString())
    except (EncodeError, ValueError):
        raise ExecutionError("the model is too large to be run with more outputs: 2 GiB with its data") from None


def outputs_of(process: TargetProcess, model: bytes, names: Sequence[str], fed: Mapping[str, Array]) -> dict[str, Any]:
    """Return the outputs of a model by name; None for one that is not a numeric tensor. Raise ExecutionError."""
    (outcome,) = process.run([Job("model", model, (dict(fed),))])
    if outcome.status != "ran" or outcome.malformed:
        raise ExecutionError(f"onnxruntime does not run the model: {outcome.message or outcome.malformed}")
    return dict(zip(names, outcome.outputs[0][0], strict=True))


def require_inputs(model: ModelProto, fed: Collection[str]) -> None:
    """Raise ExecutionError unless arrays of these names are a model's inputs; inputs with a default are optional."""
    defaults = {tensor.name for tensor in model.graph.initializer}
    inputs = [value.name for value in model.graph.input]
    if unknown := [name for name in fed if name not in inputs]:
        raise ExecutionError(f"the model has no input {', '.join(unknown)}; it has {', '.join(inputs)}")
    if missing := [name for name in inputs if name not in fed and name not in defaults]:
        raise ExecutionError(f"no array is given for the model's input {', '.join(missing)}")
