"""Search beyond the profiles: random legal configurations, to find failures that are not known yet."""
