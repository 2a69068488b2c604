"""Errata of the registered schemas, as data. All other facts are taken from the schemas as they are."""

from __future__ import annotations

from msgspec import Struct

Default = int | float | str | tuple[str, ...]


class Erratum(Struct, frozen=True):
    """Default value that a schema registers and its own document contradicts.

    registered
        The value in ``onnx.defs``.
    meant
        The value in the document; None if the document says that there is no single default.
    why
        Section of the document.
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
    """Return the true default of an attribute. An erratum that no longer fits the registered value corrects nothing."""
    for erratum in ERRATA:
        if (erratum.op_type, erratum.attribute) == (op_type, attribute) and version in erratum.versions:
            return erratum.meant if registered == erratum.registered else registered
    return registered
