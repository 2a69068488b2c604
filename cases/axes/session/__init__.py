"""Axes of the session: what runs when, and how dimensions are given."""
