"""Whatever can be run and judged, and how it is chosen and sent."""
