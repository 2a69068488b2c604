"""Targets: the runtimes to test, and the adapters that run them."""
