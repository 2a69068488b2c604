"""Errata: what the registered schemas get wrong, as data. Everything else is taken from them as it is."""

from __future__ import annotations

from msgspec import Struct

Default = int | float | str | tuple[str, ...]


class Erratum(Struct, frozen=True):
    """A default value that a schema registers and its own document contradicts.

    registered
        What ``onnx.defs`` says.
    meant
        What the document says; None where it says that there is no one default.
    why
        Where the document says so.
    """

    op_type: str
    versions: tuple[int, ...]
    attribute: str
    registered: Default
    meant: Default | None
    why: str


ERRATA: tuple[Erratum, ...] = (
    Erratum(
        "GRU",
        (1,),
        "direction",
        "foward",
        "forward",
        "Attribute direction of GRU-1: must be one of forward (default), reverse, or bidirectional",
    ),
    Erratum(
        "RNN",
        (1, 7, 14, 22),
        "activations",
        ("Tanh", "Tanh"),
        None,
        "Attribute activations of RNN: one function, or two if bidirectional; the default is Tanh for each",
    ),
)


def corrected(op_type: str, version: int, attribute: str, registered: Default) -> Default | None:
    """The default that an attribute really has. An entry that no longer meets what is registered corrects nothing."""
    for erratum in ERRATA:
        if (erratum.op_type, erratum.attribute) == (op_type, attribute) and version in erratum.versions:
            return erratum.meant if registered == erratum.registered else registered
    return registered
