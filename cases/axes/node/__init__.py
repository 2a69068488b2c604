"""Axes of the node: attributes, functions, outputs."""
