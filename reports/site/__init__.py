"""Static site of many runs: the operators that each runtime computes correctly, and since which release."""
