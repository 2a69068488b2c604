"""A case as a script of its own."""
