"""Measurements of a target on nodes with little in them: how far its functions and sums are off, which are wrong."""
