"""Verdicts on the results of targets."""
