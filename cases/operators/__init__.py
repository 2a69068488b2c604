"""What only one operator's cases have: a folder each."""
