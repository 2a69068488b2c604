"""Regression net for the release that halves the code: v0.4.0 and this version, compared on a frozen corpus."""
