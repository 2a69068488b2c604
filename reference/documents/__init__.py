"""What the documents say in tables: operator versions, errata, clauses, interpretations."""
