"""Axes of nodes between DequantizeLinear and QuantizeLinear."""
