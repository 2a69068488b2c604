"""Lists of cases, random cases, and conformance levels for certificates."""
