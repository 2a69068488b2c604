"""General rules, which follow from an operator's description.

The description has its lists of attributes, inputs, outputs and types, and its sizes. Rules that only its attributes
can violate are in the operator itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...reference import Operator, operator_of
from ...reference.documents.tensors import Extent, Shape, sizes_known
from ..models.content import NotConstant
from ..models.scope import shown_name
from .sizes import agreement, fits, printed_extents, swapped_states
from .subject import Broken, Input, Missing, NodeSubject, Outcome


def outcomes(subject: NodeSubject, operator: Operator) -> Iterator[Outcome]:
    """Yield the violations of a node, and the facts that are missing to decide other rules."""
    yield from _attributes(subject, operator)
    yield from _inputs(subject)
    yield from _outputs(subject)
    yield from _types(subject)
    for diagnostic in operator.diagnostics(subject):
        yield Broken(*diagnostic)
    formal = shapes_of(subject)
    if (subject.chosen(subject.operator.rules.layout) or 0) not in (0, 1):  # the position of the batch is unknown
        formal = {name: shape for name, shape in formal.items() if Extent("batch_size") not in shape}
    for name, message in swapped_states(subject).items():
        # Otherwise its other extents would contradict X, which is right.
        formal = {formal_name: shape for formal_name, shape in formal.items() if formal_name != name}
        if isinstance(subject.sequence[1], int):
            yield Broken("shapes", message, subject.inputs[name].type.certain)
    yield from agreement(subject, formal, operator.stated_sizes(subject))
    yield from _lengths(subject)


def shapes_of(subject: NodeSubject) -> Mapping[str, Shape]:
    """Return the printed shapes of inputs in the node's layout, for several the one with the actual rank."""
    layout, forms = subject.layout, subject.operator.tensors
    shapes = {}
    for name in subject.operator.inputs:
        actual = subject.inputs.get(name)
        rank = None if actual is None or actual.shape is None else len(actual.shape)
        if name in forms:
            shapes[name] = forms[name].shape(layout, rank)
    operator = operator_of(subject.operator.op_type, subject.operator.domain)
    stated = {size: entry.value for size, entry in operator.stated_sizes(subject).items()}
    for name in [name for name in shapes if len(forms[name].shapes) > 1]:
        shapes[name] = _fitting(subject, name, shapes, stated)
    return shapes


def _fitting(subject: NodeSubject, name: str, shapes: Mapping[str, Shape], said: Mapping[str, int]) -> Shape:
    """Return the first shape that fits the actual shape of an input and the sizes of other inputs."""
    actual = subject.inputs.get(name)
    if actual is None or actual.shape is None:
        return shapes[name]
    others = {other_name: shape for other_name, shape in shapes.items() if other_name != name}
    sizes = sizes_known(printed_extents(subject, others), said)
    forms = subject.operator.tensors[name].shapes
    return next((shape for shape in forms if fits(actual.shape, shape, sizes)), shapes[name])


def _attributes(subject: NodeSubject, operator: Operator) -> Iterator[Outcome]:
    version = subject.operator
    for name, attribute in subject.attributes.items():
        if name not in version.attributes:
            yield Broken("attributes", f"{version.name} defines no attribute {shown_name(name)!r}")
        elif attribute.kind != version.attributes[name]:
            topic = operator.topic_of_kind(name, attribute.kind)
            yield Broken(topic, f"attribute {name} is {attribute.kind}, not {version.attributes[name]}")
    for name in subject.twice:
        yield Broken("attributes", f"attribute {name!r} stands there twice")


def _inputs(subject: NodeSubject) -> Iterator[Outcome]:
    operator = subject.operator
    for name in operator.inputs:
        if name in operator.required and name not in subject.inputs:
            yield Broken("inputs", f"input {name} is missing")
    if subject.surplus:
        total = len(operator.inputs) + subject.surplus
        yield Broken("inputs", f"there are {total} inputs; {operator.name} has {len(operator.inputs)} at most")


def _outputs(subject: NodeSubject) -> Iterator[Outcome]:
    operator = subject.operator
    present = {formal for formal, name in zip(operator.outputs, subject.outputs, strict=False) if name}
    if len(subject.outputs) > len(operator.outputs):
        message = f"there are {len(subject.outputs)} outputs; {operator.name} has {len(operator.outputs)} at most"
        yield Broken("outputs", message)
    for name in operator.outputs:
        if name in operator.required_outputs and name not in present:
            yield Broken("outputs.required", f"output {name}, which {operator.name} demands, is missing")


def _types(subject: NodeSubject) -> Iterator[Outcome]:
    """Yield wrong types: inputs of one type parameter have one type."""
    operator = subject.operator
    kinds: dict[str, list[str]] = {}
    for name in subject.inputs:
        kinds.setdefault(operator.kind_of(name), []).append(name)
    # The type of X first, then types of tensors that have one of their own.
    for kind in sorted(kinds, key=lambda kind: kind != "T"):
        yield from _types_of_one_kind(subject, kind, [subject.inputs[name] for name in kinds[kind]])


def _types_of_one_kind(subject: NodeSubject, kind: str, inputs: list[Input]) -> Iterator[Outcome]:
    operator = subject.operator
    allowed = operator.types_of(inputs[0].name)
    first = next((source for source in inputs if source.element is not None), inputs[0])
    for actual in inputs:
        name = actual.name
        if actual.element is None:
            yield Missing("types", f"the element type of {name}")
        elif actual.element not in allowed and (actual is first or actual.element != first.element):
            if kind == "T":
                message = f"{name} is {actual.element}, which {operator.name} does not take: {_alternatives(allowed)}"
            else:
                message = f"{name} is {actual.element}, not {_alternatives(allowed)}"
            yield Broken("types", message, actual.type.certain)
        elif actual.element != first.element:
            message = f"{name} is {actual.element} while {first.name} is {first.element}: all must be the same"
            yield Broken("types", message, actual.type.certain and first.type.certain)


def _alternatives(types: tuple[str, ...]) -> str:
    *most, last = types
    return f"{', '.join(most)} or {last}" if most else last


def _lengths(subject: NodeSubject) -> Iterator[Outcome]:
    """Yield lengths in sequence_lens that are below 0 or above seq_length.

    If the lengths or seq_length are unknown, yield the missing fact.
    """
    if "sequence_lens" not in subject.inputs:
        return
    try:
        bounds = subject.lengths()
    except NotConstant as why:
        yield Missing("lengths", f"the values of sequence_lens, which {why}")
        return
    if bounds is None:
        return
    (least, most), steps = bounds, subject.steps
    if least < 0:
        yield Broken("lengths", f"sequence_lens holds {least}, a length below 0")
    if steps is not None and most > steps:
        yield Broken("lengths", f"sequence_lens holds {most}, while X has {steps} steps")
    elif steps is None and least >= 0:
        yield Missing("lengths", f"whether X has the {most} steps that sequence_lens holds")
