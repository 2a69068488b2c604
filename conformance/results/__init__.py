"""Results: their files, summaries, records and lists of expected failures."""
