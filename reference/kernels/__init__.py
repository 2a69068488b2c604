"""Conforming kernels: the same equations with the roundings and orders of real implementations."""
