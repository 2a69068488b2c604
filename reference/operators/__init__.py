"""What only one operator has: a folder each."""
