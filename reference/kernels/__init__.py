"""Conforming kernels: the reference's equations with the roundings and summation orders of real implementations."""
