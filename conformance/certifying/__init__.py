"""Certificates: the results of a run, packed so that anybody can reach its verdicts again without the target."""
