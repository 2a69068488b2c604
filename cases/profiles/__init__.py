"""Lists of cases, random cases, and levels of certificates."""
