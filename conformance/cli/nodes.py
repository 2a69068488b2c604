"""``onnxspec run MODEL``: the recurrent nodes of a model as cases, and their results."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from ..checking.rule import workaround
from ..extraction.cases import NodeCase, cases_of_model, read_nodes
from ..judging.judgement import DECLINED, Verdict
from ..models.content import ModelError
from ..models.execution import ExecutionError
from ..results.records import Finding
from ..results.result import Result
from ..running.run import Run, TargetRun
from ..text import listed
from .terminal import console_on, fail, warn, why


def nodes_of_model(model: Path, inputs: Path | None, folder: Path, *, again: bool, outputs: bool) -> list[NodeCase]:
    """Return the nodes of a model, with their cases written into a folder; a resumed run has them already.

    outputs
        Whether the reference's outputs are written too.

    End the command if the model cannot be read or has no recurrent node that can be run.
    """
    if again:
        try:
            return read_nodes(folder)
        except (OSError, ValueError):
            pass  # it was interrupted before they were there
    try:
        fed = arrays_of(inputs) if inputs is not None else None
        with console_on(sys.stderr).status("") as status:
            nodes = cases_of_model(
                model, folder, fed, outputs=outputs, progress=lambda step: status.update(Text(f"{step} ..."))
            )
    except ModelError as error:
        fail(f"{model} {error}")
    except ExecutionError as error:
        fail(f"{model}: {error}")
    except OSError as error:
        fail(why(error))
    if not nodes:
        fail(f"{model} has no recurrent node")
    if not any(node.case for node in nodes):
        for node in nodes:
            warn(f"{node.node}  {node.operator}: {node.why}", "yellow")
        internal_error = any(node.internal_error for node in nodes)
        fail(f"{model} has no recurrent node that can be run", 1 if internal_error else 2)
    return nodes


def arrays_of(file: Path) -> Mapping[str, NDArray[Any]]:
    """Return the arrays of an npz file by name. End the command if it holds none."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                fail(f"{file} holds one array without a name: save it with numpy.savez, by the names of the inputs")
            return {name: archive[name] for name in archive.files}
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror or error}")
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        fail(f"{file} holds no arrays of numbers: {' '.join(str(error).split())}")


def say_nodes(nodes: Sequence[NodeCase], finished: Run, console: Console) -> None:
    """Print the result of each node on each target, in the order of the model."""

    def line(text: str, style: str = "") -> None:
        console.print(text, style=style, markup=False, emoji=False, soft_wrap=True)

    declined = {run.target.name: _declined_alone(nodes, run) for run in finished.targets}
    line("\nnodes of the model")
    for node in nodes:
        line(f"  {node.node}  {node.operator}  {f'({node.data})' if node.data else ''}".rstrip())
        if node.why:
            line(f"    not run: {node.why}", "yellow")
        for each in finished.targets:
            for text, style in _became(node, nodes, each, declined[each.target.name]):
                line(f"    {text}", style)
    for each in finished.targets:
        for text in _lasting(nodes, each):
            line(f"  {text}", "red")
    left_out = [node.node for node in nodes if node.why and not node.members]
    if left_out:
        line(f"  not run: {listed(left_out)}", "red")
    if any(each.judged for each in finished.targets):
        line("  only recurrent nodes were tested")


def _became(
    node: NodeCase, nodes: Sequence[NodeCase], run: TargetRun, declined: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the lines about a node on a target, with their styles. `declined` are nodes that it declines alone."""
    result = next((r for r in run.results if node.case and r.case == node.case), None)
    if result is None:
        return
    told = f"{result.target}: {result.verdict.value}"
    # A feature that is refused alone is refused beside others, too, and they are not to blame.
    alone = [path for path in node.members if path in declined]
    if alone and result.verdict in DECLINED:
        yield f"{told}, as {listed(alone)} is alone", ""
        return
    if result.failing and _right_alone(node, nodes, run):
        told += " together, though each is right alone"
    yield f"{told}: {result.message}" if result.message else told, "red" if result.failing else ""
    for helps in _helping(result, run.findings):
        yield f"  {helps}", ""


def _declined_alone(nodes: Sequence[NodeCase], run: TargetRun) -> list[str]:
    """Return the nodes that a target declines by themselves, in the order of the model."""
    return list(dict.fromkeys(node.node for node in _declined(nodes, run) if not node.members))


def _declined(nodes: Sequence[NodeCase], run: TargetRun) -> list[NodeCase]:
    declined = {result.case for result in run.results if result.verdict in DECLINED}
    return [node for node in nodes if node.case in declined]


def _right_alone(node: NodeCase, nodes: Sequence[NodeCase], run: TargetRun) -> bool:
    """Return whether every member of a group of nodes passes alone."""
    passed = {result.case for result in run.results if result.verdict is Verdict.PASS}
    return bool(node.members) and {*node.members} <= {alone.node for alone in nodes if alone.case in passed}


def _first_wrong(nodes: Sequence[NodeCase], run: TargetRun) -> str:
    """Return the path of the first wrong node, with others if it is right alone; empty if no node is wrong."""
    failing = {result.case: result for result in run.results if result.failing}
    node = next((node for node in nodes if node.case in failing), None)
    if node is None or not node.members:
        return node.node if node is not None else ""
    # Verdicts on several nodes name the one that is wrong, by the path without what a graph cannot have in a name.
    name = (failing[node.case].where or {}).get("node")
    first = next((path for path in node.members if path == name), node.node)
    others = [path for path in node.members if path != first]
    if first == node.node or not _right_alone(node, nodes, run):
        return first
    return f"{first}, which is right alone, together with {listed(others)}"


def _lasting(nodes: Sequence[NodeCase], run: TargetRun) -> Iterator[str]:
    """Yield the last lines on a target: can the model be deployed on it?"""
    if wrong := _first_wrong(nodes, run):
        yield f"first wrong node on {run.target.name}: {wrong}"
    declined, alone = _declined(nodes, run), _declined_alone(nodes, run)
    together = [node.node for node in declined if not {*node.members} & {*alone}]
    if declined:
        yield f"not supported by {run.target.name}: {listed(alone or together)}"


def _helping(result: Result, findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the cause of a wrong or declined result, and the remedy in the model."""
    finding = next((finding for finding in findings if result.case in finding["cases"]), None)
    if finding is None or not (result.failing or result.verdict in DECLINED):
        return
    if finding["fault"]:
        yield f"explained by: {finding['what']}"
    if result.why:
        yield f"known: {result.why}"
    remedy = workaround(finding, result.op) or "try other targets, releases or providers, with --target"
    yield f"what to do: {remedy}"
