"""Parts that only one operator's cases have: a folder each; and what leads from one operator to another."""
