"""Axes of the tensors: types, sizes, which there are, what is in them."""
