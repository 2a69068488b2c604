"""Pinned lists of cases."""
