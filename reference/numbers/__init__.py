"""Formats, accuracy classes, activation functions, and the arithmetics that a computation can run in."""
