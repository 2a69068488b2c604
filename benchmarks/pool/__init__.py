"""The pools of dense cases: drawn, measured, chosen, and written to cases/profiles/pool.json."""
