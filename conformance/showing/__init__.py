"""Numbers as people look at them, and scripts that show a case."""
