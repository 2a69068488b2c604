"""Comparison of a model with a framework's results, and the attribute or weight that explains a difference."""
