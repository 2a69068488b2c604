"""A static site of many runs: which runtime computes what rightly, and since when."""
