"""From what a target did to a verdict."""
