"""Axes of the tensors: types, sizes, presence, data."""
