"""Rules that are the same for every operator: they follow from its list of attributes, inputs, outputs and types."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...reference import OperatorVersion
from ..models.folding import NotConstant
from ..models.scope import shown_name
from .subject import Attribute, Broken, Missing, Outcome, Subject

__all__ = ["attributes", "inputs", "lengths", "outputs", "types"]


def attributes(subject: Subject, of_kind: Callable[[str, Attribute], str]) -> Iterator[Outcome]:
    """`of_kind` gives, for an attribute of the wrong type, the topic of the clause that this breaks."""
    operator = subject.operator
    for name, attribute in subject.attributes.items():
        if name not in operator.attributes:
            yield Broken("attributes", f"{operator.name} defines no attribute {shown_name(name)!r}")
        elif attribute.kind != operator.attributes[name]:
            topic = of_kind(name, attribute)
            yield Broken(topic, f"attribute {name} is {attribute.kind}, not {operator.attributes[name]}")
    for name in subject.twice:
        yield Broken("attributes", f"attribute {name!r} stands there twice")


def inputs(subject: Subject) -> Iterator[Outcome]:
    operator = subject.operator
    for name in operator.inputs:
        if name in operator.required and name not in subject.inputs:
            yield Broken("inputs", f"input {name} is missing")
    if subject.surplus:
        total = len(operator.inputs) + subject.surplus
        yield Broken("inputs", f"there are {total} inputs; {operator.name} has {len(operator.inputs)} at most")


def outputs(subject: Subject) -> Iterator[Outcome]:
    operator = subject.operator
    there = {formal for formal, name in zip(operator.outputs, subject.outputs, strict=False) if name}
    if len(subject.outputs) > len(operator.outputs):
        what = f"there are {len(subject.outputs)} outputs; {operator.name} has {len(operator.outputs)} at most"
        yield Broken("outputs", what)
    for name in operator.outputs:
        if name in operator.required_outputs and name not in there:
            yield Broken("outputs.required", f"output {name}, which {operator.name} demands, is missing")


def types(subject: Subject) -> Iterator[Outcome]:
    operator = subject.operator
    numbers = {name: given for name, given in subject.inputs.items() if name != "sequence_lens"}
    base = next((name for name, given in numbers.items() if given.element is not None), None)
    for name, given in numbers.items():
        if given.element is None:
            yield Missing("types", f"the element type of {name}")
            continue
        assert base is not None
        first = numbers[base]
        if given.element not in operator.types and (name == base or given.element != first.element):
            allowed = _alternatives(operator)
            yield Broken(
                "types",
                f"{name} is {given.element}, which {operator.name} does not take: {allowed}",
                given.type.certain,
            )
        elif given.element != first.element:
            what = f"{name} is {given.element} while {base} is {first.element}: all must be the same"
            yield Broken("types", what, given.type.certain and first.type.certain)
    given_lengths = subject.inputs.get("sequence_lens")
    if given_lengths is not None:
        if given_lengths.element is None:
            yield Missing("types", "the element type of sequence_lens")
        elif given_lengths.element != "int32":
            yield Broken("types", f"sequence_lens is {given_lengths.element}, not int32", given_lengths.type.certain)


def _alternatives(operator: OperatorVersion) -> str:
    *most, last = operator.types
    return f"{', '.join(most)} or {last}" if most else last


def lengths(subject: Subject, steps: int | None) -> Iterator[Outcome]:
    """Whether sequence_lens lie between 0 and seq_length, where both are known."""
    if "sequence_lens" not in subject.inputs:
        return
    try:
        own = subject.lengths()
    except NotConstant as why:
        yield Missing("lengths", f"what sequence_lens holds: it {why}")
        return
    if own is None:
        return
    least, most = own
    if least < 0:
        yield Broken("lengths", f"sequence_lens holds {least}, a length below 0")
    if steps is not None and most > steps:
        yield Broken("lengths", f"sequence_lens holds {most}, while X has {steps} steps")
    elif steps is None and least >= 0:
        yield Missing("lengths", f"whether X has the {most} steps that sequence_lens holds")
