"""Expected failures."""
