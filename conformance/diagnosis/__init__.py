"""Findings, from results, and what explains them."""
