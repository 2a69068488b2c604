"""Display of numbers, and scripts that show a case."""
