"""Axes of the node: attributes, functions, outputs."""

from ...._face import face

__getattr__, __dir__ = face(__name__, functions="functions_of", outputs="output_subsets")
