"""Verdicts on what a target did."""
