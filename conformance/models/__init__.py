"""Models from users: bounded reading, traversal of their graphs, constant folding, and shape inference."""
