"""A run: plan, engine, merge."""
