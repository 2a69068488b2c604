"""Formats, accuracy classes, activation functions, and the arithmetics that a computation can run in."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    accuracy="Budget any_of",
    activations="ACTIVATIONS Activation Coefficient",
    affine="Affine",
    channels="Channels",
    bounded="Bounded RADIUS_SLACK",
    bounding="Bounding",
    formats="FORMATS Format",
    plain="Plain ordered_product",
)
