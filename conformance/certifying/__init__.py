"""Certificates: what a run shows, packed so that anybody can reach its verdicts again without the target."""
