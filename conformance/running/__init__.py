"""A run: its plan, its loop, its merge."""
