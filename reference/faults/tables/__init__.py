"""Faults that several operators can have, by subject."""
