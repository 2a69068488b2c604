"""A node, the scan that all recurrent operators share, and what outputs must be."""
