"""Fault tables that several operators share, by subject."""
