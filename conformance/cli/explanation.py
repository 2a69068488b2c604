"""One case explained: verdict, node, clauses, and numbers step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import onnx
import onnx.printer
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ...cases import ABILITIES, Trial
from ...cases.specs.case import Bound
from ...reference import Interpretations, clause_named, document_saying
from ...reference.documents.interpretations import QUESTIONS
from ..diagnosis.findings import of_clauses
from ..judging.divergence import ratio_text
from ..judging.judgement import FAILING, Judgement, Verdict
from ..judging.runs import NodeView, node_views, view_of
from ..judging.vocabulary import STATUS_WORDS
from ..probes.probe import Prepared, Probe
from ..probes.stream import made_ready
from ..results.records import Finding
from ..results.wording import headline
from ..showing.evidence import codecs_of
from ..showing.tables import tables_of
from ..workers.process import Job, Outcome
from ..workers.worker import one_line

_LINES_SHOWN = 10  # of what the runtime printed, the last ones
_LENGTHS_SHOWN = 16
_WIDEST = 250
_LEGIBLE = 120  # columns of lines that are read, where nothing says how wide a page is


def print_explanation(
    probe: Probe,
    outcomes: Sequence[Outcome],
    judgement: Judgement | None,
    console: Console,
    accuracy: str = "standard",
    findings: Sequence[Finding] = (),
) -> None:
    """Print an explanation. Tables of numbers keep their width, because a number that is cut is a wrong one."""
    for part in explanation_of(probe, outcomes, judgement, accuracy, findings):
        if isinstance(part, Table) and part.title is not None:
            # Apart, since a table breaks its title at its own width.
            console.print(Text(str(part.title), "italic"))
            part.title = None
            part.width = Measurement.get(console, console.options.update(max_width=_WIDEST), part).maximum
        if isinstance(part, Table) and not part.show_header:
            part.width = min(console.width, _LEGIBLE)
        console.print(part, crop=False)


def explanation_of(
    probe: Probe,
    outcomes: Sequence[Outcome] = (),
    judgement: Judgement | None = None,
    accuracy: str = "standard",
    findings: Sequence[Finding] = (),
) -> Iterator[RenderableType]:
    """Yield an explanation of a case, from the verdict down to single numbers.

    outcomes
        The outcomes of the case's jobs on a target, in order; none: only expected numbers are shown.
    judgement
        The verdict on them, with the interpretations that the target follows; None: the reference's own.
    accuracy
        Name of the accuracy class whose radii are shown. Raise ValueError for an unknown one.
    findings
        The findings whose faults explain the outputs.
    """
    yield Text(probe.id, style="bold")
    prepared = made_ready(probe)
    lost = judgement if prepared.jobs else prepared.judge((), "")
    if lost is not None and (not prepared.jobs or lost.verdict is Verdict.NOT_JUDGED):
        yield Text(f"{lost.verdict.value} ({lost.reason}): {lost.message}", style="bold red")
        return
    explained = tuple(dict.fromkeys(clause for finding in findings for clause in finding["clauses"]))
    if judgement is not None and explained:
        judgement = replace(judgement, message=of_clauses(judgement.message, explained))
    yield from _verdict(outcomes[0] if outcomes else None, judgement)
    for finding in findings:
        yield from _explained(finding)
    yield from _nodes(prepared, outcomes, judgement)
    if prepared.forbidden:
        yield _heading("What is forbidden")
        yield Text(f"  {prepared.forbidden}")
        yield from _clauses(probe, judgement, explained)
        return
    chosen = Interpretations(**dict(judgement.interpretations or {})) if judgement is not None else Interpretations()
    for view in _views(prepared, outcomes, judgement):
        yield _heading(f"Numbers of the node {view.name!r}" if view.name else "Numbers")
        yield from tables_of(view, accuracy, chosen)
    yield from _clauses(probe, judgement, explained)
    shown = frozenset(judgement.interpretations or {}) if judgement is not None else frozenset[str]()
    yield from _interpretations(probe, prepared, chosen, shown)


def _explained(finding: Finding) -> Iterator[Text]:
    """Yield the explanation of a case by a fault: confirmed by fresh cases, or consistent with this one."""
    forbidden = finding["kind"] == Verdict.NOT_REJECTED.value  # of which one case is proof
    certain = forbidden or (finding["foretold"] and not finding["passing"])
    conditions = f" (with {finding['conditions']})" if finding["conditions"] else ""
    lead = "explained by  " if certain else "consistent with  "
    yield Text.assemble((lead, "dim"), (finding["fault"], "bold"), f": {finding['what']}{conditions}")
    if finding["foretold"]:
        but = ", but other new cases that should show it pass" if finding["passing"] else ""
        yield Text(f"  This explanation also predicted {finding['foretold']} new cases correctly{but}.", style="dim")
    elif not forbidden:
        yield Text("  Nothing but this case speaks for it: it was not confirmed on new cases.", style="dim")


def _verdict(outcome: Outcome | None, judgement: Judgement | None) -> Iterator[Text]:
    if outcome is None or judgement is None:
        yield Text("No target: what is expected is shown alone.")
        return
    colour = "green" if judgement.verdict is Verdict.PASS else "red" if judgement.verdict in FAILING else "yellow"
    line = Text(headline(judgement))
    line.stylize(f"bold {colour}", 0, len(judgement.verdict.value))
    yield line
    if judgement.elements:
        counted = f"{judgement.judged} of {judgement.elements} elements judged"
        yield Text(f"{counted}; largest error / error bound: {ratio_text(judgement.worst)}")
    if judgement.flags:
        yield Text("flags: " + ", ".join(judgement.flags))
    if outcome.proof:
        yield Text(f"where it ran: {outcome.proof}")
    if outcome.signal:
        yield Text(f"the worker ended by {outcome.signal}")
    printed = [one_line(line, 200) for line in outcome.captured.splitlines() if line.strip()]
    if printed:
        yield Text("the runtime printed:")
        yield from (Text(f"  {line}", style="dim") for line in printed[-_LINES_SHOWN:])


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _views(prepared: Prepared, outcomes: Sequence[Outcome], judgement: Judgement | None) -> Iterator[NodeView]:
    """Yield the nodes to show. Nodes behind a malformed one got no inputs."""
    for view in node_views(prepared.trials, outcomes):
        yield view
        malformed = judgement is not None and judgement.verdict is Verdict.MALFORMED
        if malformed and view.name == view_of(prepared.trials, outcomes, judgement).name:
            return


def _nodes(prepared: Prepared, outcomes: Sequence[Outcome], judgement: Judgement | None) -> Iterator[RenderableType]:
    model = onnx.load_model_from_string(prepared.jobs[0].model)
    for view in _views(prepared, outcomes, judgement):
        made = [n for n in model.graph.node if n.op_type == view.trials[0].node.op_type]
        node = next((n for n in model.graph.node if n.name == view.name), (made or model.graph.node)[-1])
        bound = prepared.trials[0].subject.named(view.name)
        yield from _node(prepared.jobs[0], model, node, view.trials[0], bound)


def _node(
    job: Job, model: onnx.ModelProto, node: onnx.NodeProto, trial: Trial, bound: Bound
) -> Iterator[RenderableType]:
    yield _heading(f"Node {bound.name!r}" if bound.name else "Node")
    # onnx before 1.19 prints no node by itself, only a graph that holds it.
    text = onnx.printer.to_text(onnx.helper.make_graph([node], "node", [], []))
    yield Text(text[text.index("{") + 1 : text.rindex("}")].strip())
    (opset,) = (opset.version for opset in model.opset_import if opset.domain == node.domain)
    name = f"{f'{node.domain}::' if node.domain else ''}{node.op_type}-{trial.node.since_version}"
    imported = f"version {opset} of {node.domain}" if node.domain else f"opset {opset}"
    yield Text(f"{name} in a model of {imported}, IR version {model.ir_version}")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("input", "type", "shape", ""):
        table.add_column(title)
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    inputs = trial.feeds[-1].inputs
    for name in dict.fromkeys([*trial.node.operator.inputs, *inputs]):
        array = inputs.get(name)
        if array is None:
            table.add_row(name, "", "", "absent", style="dim")
            continue
        origin = bound.origin(name)
        note = "graph input" if origin == name or origin in job.feeds[-1] else f"{origin}, as it was reported"
        note = "initializer" if origin in constants else note
        if name == "sequence_lens":
            few = ", ".join(map(str, array[:_LENGTHS_SHOWN].tolist()))
            note += f": {few}{', ...' if array.size > _LENGTHS_SHOWN else ''}"
        table.add_row(name, array.dtype.name, _shape(array.shape), note)
    yield table
    others = [name for name in trial.node.operator.outputs if name not in trial.node.outputs]
    not_asked = f"; not asked for: {', '.join(others)}" if others else ""
    yield Text(f"outputs asked for: {', '.join(trial.node.outputs)}{not_asked}")
    if codecs := codecs_of(trial.node):
        yield Text("held as levels, each of which stands for (level - zero point) * scale:")
        yield from (Text(f"  {name}: {text}") for name, text in codecs.items())
    if job.course is not None:
        runs = sum(step.does == "run" for step in job.course.steps)
        words = "; ".join(meaning for ability, meaning in ABILITIES.items() if ability in job.needs)
        yield Text(f"its sessions have {words}: {runs} runs, each step of them twice")
    elif len(job.feeds) > 1:
        name = trial.node.operator.sequence
        before = "; ".join(_shape(feed.inputs[name].shape) for feed in trial.first.feeds[:-1])
        yield Text(f"the same session runs other data first: {name} of shape {before}")


def _clauses(probe: Probe, judgement: Judgement | None, explained: tuple[str, ...]) -> Iterator[RenderableType]:
    """Yield the case's clauses, with marks at those that an explanation names, or else at that of the failed check."""
    checked = () if judgement is None or judgement.clause is None else (judgement.clause,)
    broken = explained or checked
    ids = (*(id for id in broken if id not in probe.clauses), *probe.clauses)
    yield _heading("Clauses that it exercises: what the document says, summarised")
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for clause in map(clause_named, ids):
        mark, style = ("> ", "bold red") if clause.id in broken else ("  ", None)
        table.add_row(mark + clause.id, clause.status, Text(clause.text), style=style)
    yield table
    statuses = dict.fromkeys(clause_named(id).status for id in ids)
    yield Text("; ".join(f"{status}: {STATUS_WORDS[status]}" for status in statuses), "dim")
    if explained:
        yield Text("> marks the clauses of the explanation above; this case does not show whether the others are met")
    elif checked:
        yield Text("> marks the clause whose check failed; this check does not show whether the others are met")
    for document in dict.fromkeys(map(document_saying, ids)):
        if document is not None and document.page:
            yield Text(f"the document itself: {document.page}")


def _interpretations(
    probe: Probe, prepared: Prepared, chosen: Interpretations, shown: frozenset[str]
) -> Iterator[RenderableType]:
    open_questions = sorted(frozenset().union(*(trial.open_questions for trial in prepared.trials[:1])))
    if not open_questions:
        return
    yield _heading("Points that the document leaves open")
    for name in open_questions:
        options = " or ".join(QUESTIONS[name].options)
        clauses = ", ".join(id for id in probe.clauses if clause_named(id).interpretation == name)
        here = "here" if name in shown else "not shown here, computed with"
        yield Text(f"  {name}: {options}; {here}: {getattr(chosen, name)}" + (f" ({clauses})" if clauses else ""))


def _shape(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"
