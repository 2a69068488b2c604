"""Cases of single operators, a folder or module each, and the mapping from an operator to its cases."""
