"""The spec-checker: which recurrent nodes of a model break their document, found without running anything."""
