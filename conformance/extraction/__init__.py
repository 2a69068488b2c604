"""Recurrent nodes taken out of their models: each with its own weights as a case that can be run anywhere."""
