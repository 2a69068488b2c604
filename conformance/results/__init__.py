"""Results, the files they stand in, and what is known and kept of them."""
