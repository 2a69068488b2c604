"""Findings for others: an issue for a runtime's maintainers, a node test for onnx's working group."""
