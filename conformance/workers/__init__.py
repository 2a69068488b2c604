"""Processes in which targets run."""
