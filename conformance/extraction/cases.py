"""The recurrent nodes of a model as test-case directories, and what belongs to which node."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from ...cases.directories.directory import DataSet, write_directory
from ...cases.directories.fairness import data_sets_of
from ...cases.directories.foreign import read_any, trials_of
from ...cases.directories.reading import NotOneNode
from ...reference import IllegalNode, operator_for, resolve
from ...reference.errors import UserError
from ...reference.operators.asking import returned_in_order
from ...reference.operators.mishap import told_mishap
from ...reference.operators.operator import dtype_of
from ..checking.check import recurrent_nodes
from ..judging.judgement import RANDOM_WEIGHTS
from ..models.content import ModelError, read_content
from ..models.inference import main_scope
from ..models.walk import Located
from ..text import listed
from .capture import CapturedInputs, capture
from .connected_nodes import ConnectedNodes, connected_nodes
from .drawing import drawn
from .portable import Array, NotPortable, PortableNode, portable
from .qdq_context import QuantizedNode, quantized_node

NODES = "nodes.json"
"""Beside the cases: which node each is."""


@dataclass(frozen=True)
class NodeCase:
    """One node of the model, in the model's order.

    node
        Its path.
    operator
        ``LSTM-14``, or the name alone.
    case
        Id of its case, the folder's name; empty where there is none, and `why` says why.
    data
        Where its numbers come from, in words.
    made_up
        Formal names of weights that are random numbers, as nobody knows them.
    mishap
        Whether the suite's own code, or the operator's, broke off there.
    members
        Paths of the nodes that it is about, where they are several that are run together.
    """

    node: str
    operator: str
    case: str = ""
    data: str = ""
    why: str = ""
    mishap: bool = False
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
    """Write a test-case directory for every recurrent node of a model that can be run, and which is which; where there
    is none nothing is written.

    fed
        Arrays for the model's inputs: what flows into the nodes is captured with them. Without them numbers are drawn.

    outputs
        Whether the reference's outputs are written, too. They take most of the time, and nobody needs them to judge.
    progress
        Called with the name of each step before it begins.

    Raises ModelError, ExecutionError, UserError, OSError.
    """
    progress(f"reading {file}")
    content = read_content(file)
    try:
        entries = [_taken_out(located) for located in recurrent_nodes(main_scope(content))]
    except RecursionError:
        raise ModelError("holds graphs or names that lead in a circle, or too deep into one another") from None
    nodes = [each for each in entries if isinstance(each, PortableNode)]
    if not nodes:
        return [each for each in entries if isinstance(each, NodeCase)]
    if fed:
        progress(f"running {file} on your data")
    captures = dict(zip((n.path for n in nodes), capture(content, nodes, fed), strict=True)) if fed else {}
    _clear(folder)
    written: list[NodeCase] = []
    taken: set[str] = set()
    for each in entries:
        if isinstance(each, NodeCase):
            written.append(each)
            continue
        captured = captures.get(each.path) if fed else None
        progress(f"writing the case of {each.path}{', with outputs' if outputs else ''}")
        try:
            written.append(_written(each, folder / _case_id(each.path, taken), captured, outputs))
            if written[-1].case and (quantized := quantized_node(each)) is not None:
                case = _case_id(f"{each.path}~qdq", taken)
                written.append(_written_quantized(each, quantized, folder / case, captured, outputs))
        except OSError:
            raise
        except Exception as error:  # whatever it is, it is ours or the operator's, and costs this node alone
            written.append(_broken_off(each.path, each.operator.name, error))
    for together in connected_nodes(nodes):
        case = _case_id("+".join(node.path.strip("/") for node in together.nodes), taken)
        progress(f"writing the case of {len(together.nodes)} nodes together{', with outputs' if outputs else ''}")
        written.append(_written_together(together, folder / case, captures if fed else None, outputs))
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps([asdict(each) for each in written], indent=2, ensure_ascii=False)
    (folder / NODES).write_text(text + "\n", encoding="utf-8")
    return written


def _taken_out(located: Located) -> PortableNode | NodeCase:
    """Take a node out of its model, or return why that cannot be. Raises ModelError."""
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
    return NodeCase(path, operator, why=f"the suite's fault or the operator's: {told_mishap(error)}", mishap=True)


def read_nodes(folder: Path) -> list[NodeCase]:
    """Read the nodes that :func:`cases_of_model` has written about. Raises OSError, ValueError."""
    rows = json.loads((folder / NODES).read_text(encoding="utf-8"))
    try:
        return [NodeCase(**row | {name: tuple(row.get(name, ())) for name in ("members", "made_up")}) for row in rows]
    except TypeError as error:
        raise ValueError(f"{folder / NODES}: {error}") from None


def _written(node: PortableNode, folder: Path, captured: CapturedInputs | None, outputs: bool) -> NodeCase:
    plain = NodeCase(node.path, node.operator.name)
    if captured is not None and not captured.runs:
        return NodeCase(plain.node, plain.operator, why=captured.why)
    try:
        runs = list(captured.runs) if captured is not None else drawn(node)
        for run in runs:
            resolve(node.read.node, node.read.bind(run))
        sets = [DataSet(run, _outputs(node, run) if outputs else {}) for run in runs]
    except IllegalNode as error:
        return NodeCase(plain.node, plain.operator, why=f"is illegal with these inputs: {error}")
    except NotPortable as error:
        return NodeCase(plain.node, plain.operator, why=str(error))
    made_up = _made_up([node], captured is not None)
    write_directory(folder, _marked(node.model, made_up), sets)
    origin = _origin([node], captured is not None, len(sets))
    return NodeCase(plain.node, plain.operator, folder.name, origin, made_up=made_up)


def _written_quantized(
    node: PortableNode, quantized: QuantizedNode, folder: Path, captured: CapturedInputs | None, outputs: bool
) -> NodeCase:
    """Write the case of a node with its DequantizeLinear and QuantizeLinear."""
    runs = [quantized.fed(run) for run in (captured.runs if captured is not None else drawn(node))]
    outputs = outputs or not _has_document(quantized.model)
    sets = [
        DataSet(run, returned_in_order(quantized.node, {**quantized.constants, **run}) if outputs else {})
        for run in runs
    ]
    made_up = _made_up([node], captured is not None)
    write_directory(folder, _marked(quantized.model, made_up), sets)
    operator = f"{node.operator.name} with what quantizes around it"
    return NodeCase(node.path, operator, folder.name, _origin([node], captured is not None, len(sets)), made_up=made_up)


def _has_document(model: bytes) -> bool:
    """Tell whether a case is judged by documents, and not by the outputs that are written with it."""
    try:
        read_any(model)
    except (NotOneNode, IllegalNode):
        return False
    return True


def _written_together(
    together: ConnectedNodes, folder: Path, captures: Mapping[str, CapturedInputs] | None, outputs: bool
) -> NodeCase:
    """Write the case of connected nodes."""
    members = tuple(node.path for node in together.nodes)
    path, operator = " + ".join(members), " + ".join(node.operator.name for node in together.nodes)
    several = [captures[n.path].runs if captures is not None else drawn(n) for n in together.nodes]
    if not all(several):
        return NodeCase(path, operator, why="no data for all of them", members=members)
    fed = [together.fed(runs) for runs in zip(*several, strict=False)]
    try:
        trial = trials_of(folder.name, together.model, read_any(together.model), fed)[0]
        sets = data_sets_of(trial, outputs=outputs)
    except (NotOneNode, ValueError, KeyError) as error:
        return NodeCase(path, operator, why=f"cannot be run together: {error}", members=members)
    made_up = _made_up(together.nodes, captures is not None)
    write_directory(folder, _marked(together.model, made_up), sets)
    origin = _origin(together.nodes, captures is not None, len(sets))
    return NodeCase(path, operator, folder.name, origin, members=members, made_up=made_up)


def _made_up(nodes: Sequence[PortableNode], captured: bool) -> tuple[str, ...]:
    """Return the formal names of weights that are drawn; weights that are computed are captured like other data."""
    names = {name for node in nodes for name in node.unknown_weights if not captured}
    return tuple(name for name in dict.fromkeys(n for node in nodes for n in node.weights) if name in names)


def _marked(model: bytes, made_up: Sequence[str]) -> bytes:
    """Return the model with a property that names its random weights, for whoever judges the case."""
    if not made_up:
        return model
    proto = onnx.load_model_from_string(model)
    helper.set_model_props(proto, {RANDOM_WEIGHTS: ",".join(made_up)})
    return bytes(proto.SerializeToString(deterministic=True))


def _origin(nodes: Sequence[PortableNode], captured: bool, runs: int) -> str:
    """Return the origin of the numbers, in words."""
    count = f"{runs} runs" if runs > 1 else "one run"
    fixed = dict.fromkeys(f"{size} {value}" for node in nodes for size, value in node.fixed_sizes.items())
    if fixed and not captured:
        count += f", all of {listed(list(fixed))}"
    made_up = _made_up(nodes, captured)
    known = dict.fromkeys(name for node in nodes for name in node.weights if name not in made_up)
    parts = [f"{listed(list(known))} from the model"] if known else []
    parts += [f"{listed(made_up)} made up"] if made_up else []
    return f"{'your data' if captured else 'random data'}, {count}; {', '.join(parts)}"


def _outputs(node: PortableNode, run: Mapping[str, Array]) -> dict[str, Array]:
    """Return the reference's outputs in the node's type; of an open question it gives its own answer."""
    inputs = node.read.bind(run)
    numbers = operator_for(node.read.node).evaluate_in_order(node.read.node, inputs)
    with np.errstate(over="ignore"):
        resolved = resolve(node.read.node, inputs)
        return {name: array.astype(dtype_of(resolved, name)) for name, array in numbers.items()}


def _case_id(path: str, taken: set[str]) -> str:
    """Return a safe folder name made of a path."""
    plain = re.sub(r"[^\w.+=@~-]+", "_", path.strip("/").replace("/", "."), flags=re.ASCII)[-150:].strip("._") or "node"
    name = next(n for n in (plain, *(f"{plain}~{k}" for k in range(2, len(taken) + 3))) if n not in taken)
    taken.add(name)
    return name


def _clear(folder: Path) -> None:
    """Make room where earlier cases are; nothing else is ever removed."""
    if not folder.exists():
        return
    if not (folder / NODES).is_file() and any(folder.iterdir()):
        raise UserError(f"{folder} holds something else than cases of a model")
    for place in folder.iterdir():
        if place.is_dir() and (place / "model.onnx").is_file():
            shutil.rmtree(place)
