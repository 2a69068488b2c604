"""Test-case directories for the recurrent nodes of a model, and the list of nodes with their cases."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec
import onnx
from msgspec import Struct, structs
from onnx import helper

from ...cases.directories.directory import write_directory
from ...cases.directories.graph_reading import read_node_graph, trials_of
from ...cases.directories.manifest import data_sets_of
from ...cases.directories.reading import NotOneNode
from ...reference import IllegalNode, resolve
from ...reference.errors import UserError, format_internal_error
from ..border.strict_json import decode
from ..checking.check import recurrent_nodes
from ..judging.judgement import RANDOM_WEIGHTS
from ..models.content import ModelError, read_content
from ..models.inference import main_scope
from ..models.scope import Located
from ..text import listed
from .capture import CapturedInputs, capture
from .contexts import Extract, connected_nodes, quantized_node
from .portable import Array, NotPortable, PortableNode, drawn, portable

NODES = "nodes.json"
"""File next to the cases, with the node of each."""


class NodeCase(Struct, frozen=True):
    """One node of the model, in the model's order.

    node
        Its path.
    operator
        ``LSTM-14``, or the name alone.
    case
        Id of its case, the folder's name; empty without a case, and `why` has the reason.
    data
        Description of the source of its numbers.
    made_up
        Formal names of weights that are random numbers, because the real ones are unknown.
    internal_error
        Whether the suite's own code, or the operator's, raised an exception.
    members
        Paths of its nodes, if it is a group of nodes that are run together.
    """

    node: str
    operator: str
    case: str = ""
    data: str = ""
    why: str = ""
    internal_error: bool = False
    members: tuple[str, ...] = ()
    made_up: tuple[str, ...] = ()


def cases_of_model(
    file: Path,
    folder: Path,
    fed: Mapping[str, Array] | None = None,
    *,
    outputs: bool = False,
    progress: Callable[[str], None] = lambda step: None,
) -> list[NodeCase]:
    """Write a test-case directory for every recurrent node of a model that can be run.

    The folder also gets the list of nodes. Without such a node, no file is written.

    fed
        Arrays for the model's inputs, with which the inputs of the nodes are captured. Without them, numbers are drawn.
    outputs
        Whether the reference's outputs are written, too. They take most of the time, and judging does not need them.
    progress
        Called with the name of each step before it begins.

    Raise ModelError, ExecutionError, UserError, OSError.
    """
    progress(f"reading {file}")
    content = read_content(file)
    try:
        entries = [_taken_out(located) for located in recurrent_nodes(main_scope(content))]
    except RecursionError:
        raise ModelError("holds graphs or names that lead in a circle, or too deep into one another") from None
    nodes = [entry for entry in entries if isinstance(entry, PortableNode)]
    if not nodes:
        return [entry for entry in entries if isinstance(entry, NodeCase)]
    if fed:
        progress(f"running {file} on your data")
    captures = dict(zip((n.path for n in nodes), capture(content, nodes, fed), strict=True)) if fed else None
    _clear(folder)
    cases: list[NodeCase] = []
    taken: set[str] = set()

    def write(first: Extract, quantized: Callable[[], Extract | None] = lambda: None) -> None:
        """Write the case of some nodes, and if that can be written, the one with the quantizers around them."""
        path = " + ".join(first.paths)
        extract: Extract | None = first
        try:
            while extract is not None:
                progress(f"writing the case of {path}{', with outputs' if outputs else ''}")
                cases.append(_written(extract, folder / _case_id(extract, taken), captures, outputs))
                extract = quantized() if cases[-1].case and extract is first else None
        except OSError:
            raise
        except Exception as error:  # a bug of the suite or of the operator, which costs these nodes alone
            cases.append(_broken_off(path, first.operator, error))

    for entry in entries:
        if isinstance(entry, NodeCase):
            cases.append(entry)
        else:
            write(Extract((entry,), entry.model, lambda runs: runs[0]), partial(quantized_node, entry))
    for together in connected_nodes(nodes):
        write(together)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NODES).write_bytes(msgspec.json.format(msgspec.json.encode(cases), indent=2) + b"\n")
    return cases


def _taken_out(located: Located) -> PortableNode | NodeCase:
    """Take a node out of its model, or return its row with the reason why not. Raise ModelError."""
    path, op = located.path, located.node.op_type
    try:
        return portable(located)
    except NotPortable as error:
        return NodeCase(path, op, why=str(error))
    except (ModelError, RecursionError):
        raise
    except Exception as error:  # as above
        return _broken_off(path, op, error)


def _broken_off(path: str, operator: str, error: Exception) -> NodeCase:
    return NodeCase(
        path, operator, why=f"the suite's fault or the operator's: {format_internal_error(error)}", internal_error=True
    )


def read_nodes(folder: Path) -> list[NodeCase]:
    """Return the list of nodes that :func:`cases_of_model` has written. Raise OSError, ValueError."""
    return decode((folder / NODES).read_bytes(), list[NodeCase])


def _written(extract: Extract, folder: Path, captures: Mapping[str, CapturedInputs] | None, outputs: bool) -> NodeCase:
    """Write the case of some nodes, unless there is a reason against it; return its row."""
    nodes, model, paths = extract.nodes, extract.model, extract.paths
    case = NodeCase(" + ".join(paths), extract.operator, members=paths if len(paths) > 1 else ())
    try:
        inputs = [drawn(node) if captures is None else captures[node.path] for node in nodes]
        drawn_runs = [runs for runs in inputs if not isinstance(runs, str)]
        if len(drawn_runs) < len(inputs):
            raise NotPortable(next(why for why in inputs if isinstance(why, str)))
        fed = [extract.feed(runs) for runs in zip(*drawn_runs, strict=False)]
        trial = trials_of(folder.name, model, read_node_graph(model), fed)[0]
        for feed_of_run in trial.feeds if trial.graph is None else ():
            resolve(trial.node, feed_of_run.inputs)
        sets = data_sets_of(trial, outputs=outputs)
    except IllegalNode as error:
        return structs.replace(case, why=f"is illegal with these inputs: {error}")
    except (NotPortable, NotOneNode) as error:
        return structs.replace(case, why=str(error))
    captured = captures is not None
    unknown = {name for node in nodes for name in node.unknown_weights if not captured}
    weights = dict.fromkeys(name for node in nodes for name in node.weights)
    made_up = tuple(name for name in weights if name in unknown)
    if made_up:  # a property of the model, for the user who judges the case
        proto = onnx.load_model_from_string(model)
        helper.set_model_props(proto, {RANDOM_WEIGHTS: ",".join(made_up)})
        model = proto.SerializeToString(deterministic=True)
    write_directory(folder, model, sets)
    count = f"{len(sets)} runs" if len(sets) > 1 else "one run"
    fixed = dict.fromkeys(f"{size} {value}" for node in nodes for size, value in node.fixed_sizes.items())
    if fixed and not captured:
        count += f", all of {listed(list(fixed))}"
    from_model = [name for name in weights if name not in unknown]
    origins = [f"{listed(from_model)} from the model"] if from_model else []
    origins += [f"{listed(made_up)} made up"] if made_up else []
    data = f"{'your data' if captured else 'random data'}, {count}" + (f"; {', '.join(origins)}" if origins else "")
    return structs.replace(case, case=folder.name, data=data, made_up=made_up)


def _case_id(extract: Extract, taken: set[str]) -> str:
    """Return a safe folder name for a case."""
    path = "+".join(path.strip("/") for path in extract.paths) + "~qdq" * extract.quantized
    plain = re.sub(r"[^\w.+=@~-]+", "_", path.strip("/").replace("/", "."), flags=re.ASCII)[-150:].strip("._") or "node"
    name = next(n for n in (plain, *(f"{plain}~{k}" for k in range(2, len(taken) + 3))) if n not in taken)
    taken.add(name)
    return name


def _clear(folder: Path) -> None:
    """Remove earlier cases from a folder; no other file is ever removed."""
    if not folder.exists():
        return
    if not (folder / NODES).is_file() and any(folder.iterdir()):
        raise UserError(f"{folder} contains something other than cases of a model")
    for path in folder.iterdir():
        if path.is_dir() and (path / "model.onnx").is_file():
            shutil.rmtree(path)
