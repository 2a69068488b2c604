"""The spec-checker: it finds the recurrent nodes of a model that violate their document, without running the model."""
