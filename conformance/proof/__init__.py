"""Mutation test of the suite: faults must be caught, conforming kernels must pass."""
