"""Models of other people: read within bounds, their graphs walked, their constants folded, their shapes inferred."""
