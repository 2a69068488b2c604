"""Invented operators, to test the work that a new operator takes: a folder for its document, and one for its cases."""
