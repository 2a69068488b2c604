"""The border where text that others wrote comes in: it is checked once, here, and typed behind it."""
