"""Probes: cases and other tests that run on a target, their selection, and the stream of probes to a target."""
