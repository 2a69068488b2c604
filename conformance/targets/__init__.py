"""Targets: what is to be put to the test, and the adapters that run it."""
