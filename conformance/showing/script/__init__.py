"""Scripts of single cases."""
