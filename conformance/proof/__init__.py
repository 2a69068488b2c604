"""The suite against faults and conforming kernels."""
