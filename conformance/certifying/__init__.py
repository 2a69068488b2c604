"""Certificates: packages with the results of a run, whose verdicts can be recomputed without the target."""
