"""Diagnosis: findings from results, and the faults that explain them."""
