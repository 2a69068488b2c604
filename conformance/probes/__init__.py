"""Probes: things that can be run and judged, and how they are chosen and sent."""
