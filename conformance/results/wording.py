"""Text of a failure, complete enough to be understood in a log alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from numpy.typing import NDArray

from ...cases import ABILITIES
from ...reference import clause_named, fault_named
from ..judging.divergence import ratio_text
from ..judging.judgement import Judgement, Verdict
from ..judging.runs import view_of
from ..probes.probe import Prepared
from ..targets.target import Target
from ..workers.process import Outcome, TargetUnavailable
from ..workers.worker import one_line

_BY_NUMBERS = (Verdict.WRONG, Verdict.INACCURATE, Verdict.UNSTABLE)
_LINES_SHOWN = 10  # maximum number of printed lines; the last ones are shown
_NAMES_SHOWN = 6


def headline(judgement: Judgement) -> str:
    """Return the verdict in one line."""
    reason = f" ({judgement.reason})" if judgement.reason else ""
    message = f": {one_line(judgement.message)}" if judgement.message else ""
    return f"{judgement.verdict.value}{reason}{message}"


def failure_text(
    prepared: Prepared,
    outcomes: Sequence[Outcome],
    judgement: Judgement,
    *,
    accuracy: str = "standard",
    clauses: Sequence[str] = (),
    diagnosis: Sequence[str] = (),
    repeat: str = "",
) -> str:
    """Return an account of a failure, line by line.

    It has the verdict, the first wrong element, the ratio to the bound, the clause, the diagnosis, the node, and the
    command that repeats it.

    outcomes
        The outcomes of the prepared jobs.
    accuracy
        Name of the accuracy class of the judgement.
    clauses
        Ids of the exercised clauses, for verdicts without a violated one.
    diagnosis
        Ids of faults that explain it.
    """
    rows: list[tuple[str, str]] = []
    if judgement.verdict in _BY_NUMBERS:
        ratio = f"largest error / error bound: {ratio_text(judgement.worst)}"
        rows.append(
            ("bound", f"{ratio}, by class {accuracy}; {judgement.judged} of {judgement.elements} elements judged")
        )
    if judgement.clause is not None:
        clause = clause_named(judgement.clause)
        rows.append(("clause", f"{clause.id} ({clause.status}, {clause.source}): {clause.text}"))
    elif clauses:
        more = f", and {len(clauses) - _NAMES_SHOWN} more" if len(clauses) > _NAMES_SHOWN else ""
        rows.append(("clauses", ", ".join(clauses[:_NAMES_SHOWN]) + more))
    for id in diagnosis:
        fault = fault_named(id)
        rows.append(("diagnosis", id if fault is None else f"{id}: {fault.summary}"))
    rows.append(("node", node_text(prepared, outcomes, judgement)))
    rows.append(("flags", ", ".join(judgement.flags)))
    rows.append(("signal", f"the worker ended by {outcomes[0].signal}" if outcomes[0].signal else ""))
    rows += (("printed", line) for line in _last_lines(outcomes[0].captured))
    rows.append(("repeat", repeat))
    return "\n".join([headline(judgement), *(f"  {name:<9} {text}" for name, text in rows if text)])


def _last_lines(captured: str) -> list[str]:
    """Return the last lines of a runtime's printed text."""
    return [one_line(line, 200) for line in captured.splitlines() if line.strip()][-_LINES_SHOWN:]


def node_text(prepared: Prepared, outcomes: Sequence[Outcome] = (), judgement: Judgement | None = None) -> str:
    """Return a node in one line: inputs with their shapes, outputs, attributes, and earlier runs of its session.

    Of several nodes, it is the one that the verdict names.
    """
    job = prepared.jobs[0]
    title = ""
    if prepared.trials:
        view = view_of(prepared.trials, outcomes, judgement)
        title = f"{view.name}: " if view.name else ""
        node, feeds = view.trials[0].node, [feed.inputs for feed in view.trials[0].feeds]
        name, order, outputs, attributes = node.operator.name, node.operator.inputs, node.outputs, node.attributes
        sequence = node.operator.sequence
    else:
        graph = onnx.load_model_from_string(job.model).graph
        proto, constants = graph.node[0], {c.name: onnx.numpy_helper.to_array(c) for c in graph.initializer}
        name, order, outputs = proto.op_type, tuple(proto.input), tuple(proto.output)
        feeds = [{**constants, **feed} for feed in job.feeds]
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}
        sequence = next((input_name for input_name in order if input_name in feeds[-1]), "")
    inputs = feeds[-1]
    input_text = ", ".join(
        f"{input_name}{_shape(input_name, inputs)}"
        for input_name in dict.fromkeys([*order, *inputs])
        if input_name in inputs
    )
    listed = ", ".join(f"{name}={value!r}" for name, value in sorted(attributes.items()))
    text = f"{title}{name}({input_text}) -> {', '.join(outputs)}, {inputs[sequence].dtype.name}"
    before = ", ".join(_shape(sequence, feed) for feed in feeds[:-1])
    if job.course is not None:
        abilities = ", ".join(meaning for ability, meaning in ABILITIES.items() if ability in job.needs)
        return f"{text}{f'; {listed}' if listed else ''}; with {abilities}"
    return f"{text}{f'; {listed}' if listed else ''}{f'; after other data of shape {before}' if before else ''}"


def _shape(name: str, inputs: Mapping[str, NDArray[Any]]) -> str:
    array = inputs[name]
    if name == "sequence_lens" and array.size <= _NAMES_SHOWN:
        return f"={array.tolist()}"
    return f"[{','.join(map(str, array.shape))}]"


def how_to_mend(target: Target, error: TargetUnavailable) -> str:
    """Return the reason why a target did not start, with advice."""
    lines = [f"the target {target.name} cannot start: {error}"]
    if target.command:
        lines.append(f"Its worker is started with: {' '.join(part for part in target.command if part != '{source}')}")
    elif target.adapter == "backend" and "No module named" in str(error):
        lines.append(
            "It runs in a process of its own, which knows no conftest.py: name the module's folder in the ini value "
            "pythonpath or in the environment variable PYTHONPATH, or install it."
        )
    else:
        lines.append(
            "'onnxspec targets' says what installs it; a targets.toml beside the ini-file may name another interpreter."
        )
    return "\n".join([*lines, *(f"  printed   {line}" for line in _last_lines(error.captured))])
